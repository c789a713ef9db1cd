"""The arrays that the linker's kernels share: a passage index, a worker's scratch space, a table's cells."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from helios.models.linker.passages import PassageIndex

Array = npt.NDArray[Any]


class IndexArrays(NamedTuple):
    """The part of a passage index that the kernels read."""

    title_offsets: Array
    title_tokens: Array
    title_posting_offsets: Array
    title_postings: Array
    text_offsets: Array
    text_tokens: Array
    text_posting_offsets: Array
    text_postings: Array
    text_counts: Array
    title_idf: Array
    text_idf: Array
    title_norm: Array
    text_norm: Array
    base_length: Array
    key_hashes: Array
    key_offsets: Array
    key_passages: Array
    key_kinds: Array
    types: Array
    disambiguators: Array


class Workspace(NamedTuple):
    """Scratch arrays of one worker, all neutral between calls."""

    title_scores: Array
    text_scores: Array
    context_title: Array
    context_text: Array
    touched: Array
    place: Array
    marks: Array


class Cells(NamedTuple):
    """Distinct cell texts of a table as token ids, with mentions as token spans.

    -1 is an unknown token, less than that one that only aliases have.
    """

    token_offsets: Array
    tokens: Array
    capitals: Array
    mention_offsets: Array
    mention_first: Array
    mention_last: Array


class Pool(NamedTuple):
    """Candidates of the distinct cells: passages, token spans and features [N, len(POOL_FEATURES)]."""

    offsets: Array
    passages: Array
    first: Array
    last: Array
    features: Array


def index_arrays(index: PassageIndex) -> IndexArrays:
    """Plain views of a memory-mapped index for the kernels."""
    return IndexArrays(*(np.asarray(getattr(index, name)) for name in IndexArrays._fields))


def workspace(index: PassageIndex) -> Workspace:
    """Fresh scratch arrays for an index: 25 bytes per passage and 1 per vocabulary token."""
    count = index.passage_count
    return Workspace(
        np.zeros(count, dtype=np.float32),
        np.zeros(count, dtype=np.float32),
        np.zeros(count, dtype=np.float32),
        np.zeros(count, dtype=np.float32),
        np.empty(count, dtype=np.int32),
        np.full(count, -1, dtype=np.int32),
        np.zeros(len(index.vocabulary) + 1, dtype=np.uint8),
    )
