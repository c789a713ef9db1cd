"""Names that the command line offers."""

from enum import StrEnum


class TaskName(StrEnum):
    """The retrieval tasks of DAQu; with two splits of the first two, and two data sets for the last, they are seven."""

    ANY_ANSWER = "any-answer"
    BEST_ANSWER = "best-answer"
    REVIEW_TO_PRODUCT = "review-to-product"
    PRODUCT_TO_PRODUCT = "product-to-product"
