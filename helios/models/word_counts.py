"""In how many of many texts each token stands, where words are split on their own: each word is split once.

A tokenizer spends most of its time on words that it has seen before. One that parts words at blanks and punctuation and
splits each alone (BERT's) gives every word the same tokens wherever it stands, so the words of all texts are
found first, in compiled code, and the tokenizer reads each different one.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
BLANK, PUNCTUATION, LETTER = 0, 1, 2
SPLITS_WORDS = ("BertNormalizer", "BertPreTokenizer", "WordPiece")


class Words(NamedTuple):
    """The words of texts (T), one after the other (W), by the numbers of the different ones (U)."""

    numbers: NDArray[np.int32]
    bounds: Numbers
    """Where the words of each text begin: (T + 1)."""
    marks: Numbers
    """How many characters of punctuation each text has: (T)."""
    starts: Numbers
    """The bytes of each different word: (U)."""
    stops: Numbers


def splits_words(tokenizer: Any) -> bool:
    """Whether a tokenizer is one whose tokens of a text are those of its words."""
    stages = (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.model)
    if tuple(type(stage).__name__ for stage in stages) != SPLITS_WORDS:
        return False
    return all(token.special and not token.normalized for token in tokenizer.get_added_tokens_decoder().values())


def count_holders(
    texts: Sequence[str], tokenizer: Any, keep: NDArray[np.bool_], *, room: int
) -> tuple[NDArray[np.int32], list[int]]:
    """How many of the texts hold each token of `keep` (V); and which texts it did not read, for others to count.

    Those are texts of more than `room` tokens, of none that is kept, and with a special token written out.
    """
    special = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    odd = np.array([any(map(text.__contains__, special)) for text in texts], bool)
    encoded = [text.encode() for text in texts]
    buffer = np.frombuffer(b" ".join(encoded) + b" ", np.uint8)
    ends = np.cumsum([len(one) + 1 for one in encoded])
    words = Words(*_words(buffer, ends, _kinds()))
    pieces, offsets = _pieces(buffer, words, tokenizer)
    found = np.zeros(len(keep), np.int32)
    counted = _count(words.numbers, words.bounds, words.marks, pieces, offsets, keep, odd, room, found)
    return found, np.flatnonzero(~counted).tolist()


def _pieces(buffer: Bytes, words: Words, tokenizer: Any) -> tuple[NDArray[np.int32], Numbers]:
    """The tokens of the different words, and where those of each begin (U + 1)."""
    content = buffer.tobytes()
    own = [content[a:b].decode() for a, b in zip(words.starts.tolist(), words.stops.tolist(), strict=True)]
    encoding = tokenizer.encode(" ".join(own), add_special_tokens=False)
    ends = np.cumsum([len(word) + 1 for word in own]) if own else np.zeros(0, np.int64)
    starts = np.array([start for start, _ in encoding.offsets], np.int64)
    offsets = np.append(0, np.searchsorted(starts, ends)).astype(np.int64)
    return np.array(encoding.ids, np.int32), offsets


@njit(cache=True)
def _words(buffer, ends, kinds):  # type: ignore[no-untyped-def]
    """The fields of `Words`; a word is known by a hash of 64 bits."""
    most = len(buffer) // 2 + 1
    numbers, bounds = np.empty(most, np.int32), np.zeros(len(ends) + 1, np.int64)
    marks = np.zeros(len(ends), np.int64)
    starts, stops = np.empty(most, np.int64), np.empty(most, np.int64)
    size = 1
    while size < 2 * most:
        size *= 2
    keys, slots = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
    count, different, at = 0, 0, 0
    for text in range(len(ends)):
        while at < ends[text]:
            kind = kinds[buffer[at]]
            if kind != LETTER:
                marks[text] += kind
                at += 1
                continue
            first, key = at, np.uint64(1469598103934665603)
            while kinds[buffer[at]] == LETTER:  # the last byte is a blank
                key = (key ^ np.uint64(buffer[at])) * np.uint64(1099511628211)
                key ^= key >> np.uint64(29)
                at += 1
            slot = np.int64(key & np.uint64(size - 1))
            while slots[slot] >= 0 and keys[slot] != key:
                slot = (slot + 1) & (size - 1)
            if slots[slot] < 0:
                keys[slot], slots[slot] = key, different
                starts[different], stops[different] = first, at
                different += 1
            numbers[count] = slots[slot]
            count += 1
        bounds[text + 1] = count
    return numbers[:count], bounds, marks, starts[:different], stops[:different]


@njit(cache=True)
def _count(numbers, bounds, marks, pieces, offsets, keep, odd, room, found):  # type: ignore[no-untyped-def]
    """Add to `found` how many texts hold each kept token; returns which texts were counted."""
    counted = np.zeros(len(marks), np.bool_)
    of_word, of_token = np.full(len(offsets), -1, np.int64), np.full(len(keep), -1, np.int64)
    for text in range(len(marks)):
        tokens, kept = marks[text], False
        for word in numbers[bounds[text] : bounds[text + 1]]:
            tokens += offsets[word + 1] - offsets[word]
            for piece in pieces[offsets[word] : offsets[word + 1]]:
                kept |= keep[piece]
        if odd[text] or tokens > room or not kept:
            continue
        counted[text] = True
        for word in numbers[bounds[text] : bounds[text + 1]]:
            if of_word[word] == text:
                continue
            of_word[word] = text
            for piece in pieces[offsets[word] : offsets[word + 1]]:
                if keep[piece] and of_token[piece] != text:
                    of_token[piece] = text
                    found[piece] += 1
    return counted


@cache
def _kinds() -> Bytes:
    """What each byte of UTF-8 is: BERT parts words at blanks and makes every mark of ASCII a token of its own."""
    kinds = np.full(256, LETTER, np.uint8)
    kinds[[ord(blank) for blank in " \t\n\r"]] = BLANK
    kinds[[code for code in range(33, 127) if not chr(code).isalnum()]] = PUNCTUATION
    return kinds
