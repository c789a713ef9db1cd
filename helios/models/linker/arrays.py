"""The arrays that the linker's kernels share: a passage index, a worker's scratch space, a table's cells."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class IndexArrays(NamedTuple):
    """A passage index as the kernels read it, an .npy file each. P passages, V vocabulary tokens, K title keys."""

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


class Extra(NamedTuple):
    """Candidates of the distinct cells from routes outside the kernels: offsets int64[U + 1], passages int32."""

    offsets: Array
    passages: Array

    @classmethod
    def none(cls, cells: int) -> "Extra":
        """No candidate for any of so many distinct cells."""
        return cls(np.zeros(cells + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))


def workspace(passages: int, tokens: int) -> Workspace:
    """Fresh scratch arrays: 25 bytes per passage and 1 per vocabulary token."""
    return Workspace(
        np.zeros(passages, dtype=np.float32),
        np.zeros(passages, dtype=np.float32),
        np.zeros(passages, dtype=np.float32),
        np.zeros(passages, dtype=np.float32),
        np.empty(passages, dtype=np.int32),
        np.full(passages, -1, dtype=np.int32),
        np.zeros(tokens + 1, dtype=np.uint8),
    )
