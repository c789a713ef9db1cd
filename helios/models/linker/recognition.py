"""Mention recognition: spans of a cell that may name an entity.

By default these are the whole cell and the parts between separators, over words as the candidate index cuts titles
into. Any trained spaCy pipeline can be used instead by its path or name: its named entities become mentions beside the
parts (`helios.models.linker.spacy_pipeline`). Mentions found by looking titles up inside the cell come later, from the
index.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from helios.extras import import_library
from helios.models.linker.text import TOKEN, fold

MAX_TOKENS = 96
"""Tokens of a cell beyond this are not read (long notes)."""
MAX_PARTS = 40
CACHE = 200_000
"""Recognised cell texts that are kept."""
SEPARATORS = frozenset(",;/|()[]:•·–—&+")
SEPARATOR_WORDS = frozenset({"and", "featuring", "feat", "ft", "with", "vs", "v", "or", "by", "presents"})
_PIECE = re.compile(f"{TOKEN.pattern}|[{re.escape(''.join(sorted(SEPARATORS)))}]")


@dataclass(frozen=True, slots=True)
class RecognisedCell:
    """A cell's folded tokens with character spans, and its mentions as token spans [first, last)."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    capitals: tuple[int, ...]
    """2 all capitals (two letters or more), 1 starts with a capital or digit, 0 otherwise."""
    mentions: tuple[tuple[int, int], ...]


class Recogniser:
    """Cells → mentions. `model` names a trained spaCy pipeline whose entities are added."""

    def __init__(self, model: str | None = None) -> None:
        self.model = model
        self._cache: OrderedDict[str, RecognisedCell] = OrderedDict()
        self._read = _read_all if model is None else _reader_of(model)

    def recognise(self, cells: Iterable[str]) -> list[RecognisedCell]:
        """Recognise mentions cell by cell, in order; texts seen lately are not read again."""
        texts = list(cells)
        fresh = [text for text in dict.fromkeys(texts) if text not in self._cache]
        known = {text: self._cache[text] for text in texts if text in self._cache}
        known.update(zip(fresh, self._read(fresh), strict=True))
        self._cache.update((text, known[text]) for text in fresh)
        while len(self._cache) > CACHE:
            self._cache.popitem(last=False)
        return [known[text] for text in texts]


def read_cell(text: str) -> RecognisedCell:
    """The words of a cell; the whole cell and its parts between separators as mentions."""
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    capitals: list[int] = []
    parts: list[tuple[int, int]] = []
    first = 0
    for match in _PIECE.finditer(text):
        piece = match.group()
        before = len(words)
        if piece not in SEPARATORS:
            words.append(fold(piece))
            starts.append(match.start())
            ends.append(match.end())
            capitals.append(capital(piece))
        if piece in SEPARATORS or piece.lower() in SEPARATOR_WORDS:
            parts.append((first, before))
            first = len(words)
        if len(words) == MAX_TOKENS:
            break
    spans = dict.fromkeys(span for span in ((0, len(words)), *parts, (first, len(words))) if span[0] < span[1])
    return RecognisedCell(tuple(words), tuple(starts), tuple(ends), tuple(capitals), tuple(spans)[: MAX_PARTS + 1])


def capital(word: str) -> int:
    """See `RecognisedCell.capitals`."""
    if len(word) > 1 and word.isupper():
        return 2
    return 1 if word[0].isupper() or word[0].isdigit() else 0


def _read_all(texts: Iterable[str]) -> Iterator[RecognisedCell]:
    return map(read_cell, texts)


def _reader_of(model: str) -> Callable[[Iterable[str]], Iterator[RecognisedCell]]:
    import_library("spacy", needed_by="a trained pipeline for mentions")
    from helios.models.linker.spacy_pipeline import cells_of, trained_pipeline

    pipeline = trained_pipeline(model)
    return lambda texts: cells_of(pipeline, texts)
