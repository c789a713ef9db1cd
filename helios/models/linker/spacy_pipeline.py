"""Trained spaCy pipelines, whose named entities become mentions beside the whole cell and its parts.

One component of our own, `helios_cell_parts`, proposes these. Needs the extra `entities`.
"""

from collections.abc import Iterable, Iterator

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

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
