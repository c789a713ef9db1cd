"""Mention recognition: a spaCy pipeline that proposes spans of a cell that may name an entity.

The default pipeline is blank English with two parts of our own: a tokenizer that cuts a cell exactly as the
candidate index cuts titles, and `helios_cell_parts`, which proposes the whole cell and the parts between
separators. Any trained spaCy pipeline can be used instead by its path or name: its named entities become
mentions beside the parts. Mentions found by looking titles up inside the cell come later, from the index.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from helios.errors import ModelError
from helios.models.linker.text import TOKEN, fold

MENTIONS = "mentions"
MAX_TOKENS = 96
"""Tokens of a cell beyond this are not read (long notes)."""
MAX_PARTS = 40
CACHE = 200_000
"""Recognised cell texts that are kept."""
_SEPARATORS = frozenset(",;/|()[]:•·–—&+")
_SEPARATOR_WORDS = frozenset({"and", "featuring", "feat", "ft", "with", "vs", "v", "or", "by", "presents"})


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
        self._nlp = blank_pipeline() if model is None else _trained_pipeline(model)

    def recognise(self, cells: Iterable[str]) -> list[RecognisedCell]:
        """Recognise mentions cell by cell, in order; texts seen lately are not read again."""
        texts = list(cells)
        fresh = [text for text in dict.fromkeys(texts) if text not in self._cache]
        known = {text: self._cache[text] for text in texts if text in self._cache}
        known.update(zip(fresh, map(_recognised, self._nlp.pipe(fresh)), strict=True))
        self._cache.update((text, known[text]) for text in fresh)
        while len(self._cache) > CACHE:
            self._cache.popitem(last=False)
        return [known[text] for text in texts]


def blank_pipeline() -> Language:
    """A blank spaCy pipeline with the cell tokenizer and the part proposer."""
    nlp = spacy.blank("en")
    nlp.tokenizer = CellTokenizer(nlp.vocab)
    nlp.add_pipe("helios_cell_parts")
    return nlp


def _trained_pipeline(model: str) -> Language:
    try:
        nlp = spacy.load(model)
    except OSError as error:
        raise ModelError(
            f"spaCy pipeline {model!r} cannot be loaded ({error}); install it or leave `spacy_model` empty"
        ) from error
    nlp.add_pipe("helios_cell_parts", last=True)
    return nlp


class CellTokenizer:
    """Cuts a cell into runs of letters and digits, single other characters, and blanks that join them."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab

    def __call__(self, text: str) -> Doc:
        words: list[str] = []
        spaces: list[bool] = []
        position = 0
        length = len(text)
        while position < length:
            match = TOKEN.match(text, position)
            end = match.end() if match else position + 1
            words.append(text[position:end])
            blank = end < length and text[end] == " "
            spaces.append(blank)
            position = end + blank
        return Doc(self.vocab, words=words, spaces=spaces)

    def to_bytes(self, **_: object) -> bytes:
        """Nothing to store: the tokenizer has no settings."""
        return b""

    def from_bytes(self, _data: bytes, **_kwargs: object) -> "CellTokenizer":
        """Nothing to restore."""
        return self

    def to_disk(self, _path: object, **_kwargs: object) -> None:
        """Nothing to store."""

    def from_disk(self, _path: object, **_kwargs: object) -> "CellTokenizer":
        """Nothing to restore."""
        return self


@Language.component("helios_cell_parts")
def cell_parts(doc: Doc) -> Doc:
    """Propose the whole cell, its parts between separators, and the entities of an upstream recogniser."""
    spans: list[tuple[int, int]] = [(0, len(doc))] if len(doc) else []
    first = 0
    for token in doc:
        if token.text in _SEPARATORS or token.text.lower() in _SEPARATOR_WORDS:
            spans.append((first, token.i))
            first = token.i + 1
    if first:
        spans.append((first, len(doc)))
    spans.extend((entity.start, entity.end) for entity in doc.ents)
    kept = dict.fromkeys(span for span in spans if span[0] < span[1])
    doc.spans[MENTIONS] = [Span(doc, start, end, label="MENTION") for start, end in kept]
    return doc


def _recognised(doc: Doc) -> RecognisedCell:
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    capitals: list[int] = []
    first_word = [0]
    for token in doc:
        for match in TOKEN.finditer(token.text):
            if len(words) < MAX_TOKENS:
                piece = match.group()
                words.append(fold(piece))
                starts.append(token.idx + match.start())
                ends.append(token.idx + match.end())
                capitals.append(_capital(piece))
        first_word.append(len(words))
    mentions = dict.fromkeys(
        (first_word[span.start], first_word[span.end])
        for span in doc.spans[MENTIONS]
        if first_word[span.start] < first_word[span.end]
    )
    return RecognisedCell(tuple(words), tuple(starts), tuple(ends), tuple(capitals), tuple(mentions)[: MAX_PARTS + 1])


def _capital(word: str) -> int:
    if len(word) > 1 and word.isupper():
        return 2
    return 1 if word[0].isupper() or word[0].isdigit() else 0
