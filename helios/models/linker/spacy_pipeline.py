"""The recogniser as a spaCy pipeline: for trained pipelines, whose named entities become mentions too.

Two parts of our own: a tokenizer that cuts a cell exactly as the candidate index cuts titles, and `helios_cell_parts`,
which proposes the whole cell and the parts between separators. `blank_pipeline` has nothing else.
"""

from collections.abc import Iterable, Iterator

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from helios.errors import ModelError
from helios.models.linker.recognition import (
    MAX_PARTS,
    MAX_TOKENS,
    SEPARATOR_WORDS,
    SEPARATORS,
    RecognisedCell,
    capital,
)
from helios.models.linker.text import TOKEN, fold

MENTIONS = "mentions"


def cells_of(pipeline: Language, texts: Iterable[str]) -> Iterator[RecognisedCell]:
    """Words and mentions of some cells as a pipeline finds them."""
    return map(_recognised, pipeline.pipe(texts))


def blank_pipeline() -> Language:
    """A blank spaCy pipeline with the cell tokenizer and the part proposer."""
    nlp = spacy.blank("en")
    nlp.tokenizer = CellTokenizer(nlp.vocab)
    nlp.add_pipe("helios_cell_parts")
    return nlp


def trained_pipeline(model: str) -> Language:
    """A trained pipeline by its path or name, with the part proposer; ModelError if it cannot be loaded."""
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
        if token.text in SEPARATORS or token.text.lower() in SEPARATOR_WORDS:
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
                capitals.append(capital(piece))
        first_word.append(len(words))
    mentions = dict.fromkeys(
        (first_word[span.start], first_word[span.end])
        for span in doc.spans[MENTIONS]
        if first_word[span.start] < first_word[span.end]
    )
    return RecognisedCell(tuple(words), tuple(starts), tuple(ends), tuple(capitals), tuple(mentions)[: MAX_PARTS + 1])
