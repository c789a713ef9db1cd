"""What a question names and asks for, held against the words of rows and passages."""

import re
from dataclasses import dataclass

from helios.corpus import CorpusStore
from helios.index.lexical import terms_of

_SUPERLATIVE = re.compile(
    r"\b(most|least|last|latest|recent|first|\w{2,}est|second|third|fourth|fifth|\d+(?:st|nd|rd|th))\b"
)
_KINDS = ("who", "when", "where", "how many", "how much", "how", "which", "what year", "what date", "what", "in what")
_PERSON = re.compile(
    r"\bborn\b|\b(?:was|is) an? (?:\w+ ){0,4}(?:player|actor|actress|politician|singer|writer|coach|artist)\b"
)
_PLACE = re.compile(r"\b(?:city|town|village|municipality|county|province|region|island|country|district|located)\b")
_OPENING = 240
"""Letters at the start of a passage that say what its subject is."""
_WH = frozenset(("which", "what", "whose"))
_FILLER = frozenset(terms_of("is are was were be been being did do does has had have the a an of in on at to for by s"))
_DATE = re.compile(r"\b(?:1\d|20)\d\d\b")
_NUMBER = re.compile(r"\b\d[\d.,]*\b")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's words in the forms that features need."""

    words: str
    terms: frozenset[str]
    superlative: bool
    term_count: int
    kind: int
    wanted: frozenset[str]
    """What is asked for: the first two words of weight after which or what."""

    @classmethod
    def of(cls, question: str) -> "Asked":
        terms = terms_of(question)
        words = f" {' '.join(terms)} "
        lowered = question.lower()
        kind = next((i for i, opening in enumerate(_KINDS) if re.search(rf"\b{opening}\b", lowered)), len(_KINDS))
        after = next((terms[i + 1 :] for i, term in enumerate(terms) if term in _WH), [])
        wanted = frozenset([term for term in after if term not in _FILLER][:2])
        return cls(words, frozenset(terms), bool(_SUPERLATIVE.search(lowered)), len(terms), kind, wanted)

    def names(self, text: str) -> int:
        """Letters of a text that stands in the question word by word, else 0."""
        plain = " ".join(terms_of(text))
        return len(plain) if len(plain) > 1 and f" {plain} " in self.words else 0

    def asks_for(self, text: str) -> int:
        """How many of the words that say what is asked for stand in a text."""
        return len(self.wanted.intersection(terms_of(text)))

    def overlap(self, text: str) -> float:
        """The share of a text's words that the question holds."""
        terms = set(terms_of(text))
        return len(terms & self.terms) / len(terms) if terms else 0.0


@dataclass(frozen=True, slots=True)
class RowWording:
    """Of each cell, how many letters of it the question names, and of each header how many asked-for words it has."""

    cells: tuple[int, ...]
    headers: tuple[int, ...]
    title_overlap: float
    from_start: int
    from_end: int
    table_rows: int


@dataclass(frozen=True, slots=True)
class PassageWording:
    """What a passage's title and text have of the question, and what kind of thing it seems to be about."""

    named: int
    overlap: float
    dates: int
    numbers: int
    is_person: bool
    is_place: bool
    asked: int


NO_PASSAGE = PassageWording(0, 0.0, 0, 0, False, False, 0)


def row_wording(corpus: CorpusStore, asked: Asked, node: int) -> RowWording:
    segment = corpus.segment(node)
    offsets, table = corpus.segment_offsets, corpus.table_of(node)
    first, last = int(offsets[table]), int(offsets[table + 1])
    return RowWording(
        tuple(asked.names(cell) for cell in segment.cells), tuple(asked.asks_for(name) for name in segment.header),
        asked.overlap(f"{segment.title} {segment.section}"), node - first, last - 1 - node, last - first,
    )  # fmt: skip


def passage_wording(corpus: CorpusStore, asked: Asked, passage: int) -> PassageWording:
    found = corpus.passages[passage]
    opening = found.text[:_OPENING]
    return PassageWording(
        asked.names(found.title), asked.overlap(found.title), len(_DATE.findall(found.text)),
        len(_NUMBER.findall(found.text)), bool(_PERSON.search(opening)), bool(_PLACE.search(opening)),
        asked.asks_for(opening),
    )  # fmt: skip
