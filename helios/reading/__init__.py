"""Readers: from a question and its evidence to a short answer with citations, or to an abstention with its reason."""

from helios.reading.base import Answer, Citation, ComputedAnswer, Reader, Support

__all__ = ["Answer", "Citation", "ComputedAnswer", "Reader", "Support"]
