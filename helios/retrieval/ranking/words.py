"""What a question names and asks for, held against the words of rows and passages."""

import re
from dataclasses import dataclass

from helios.index.lexical import terms_of
from helios.index.reader import IndexReader
from helios.retrieval.refinement.wording import NO_SUPERLATIVES

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
class Phrase:
    """A text's terms, and these as one string."""

    plain: str
    terms: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Phrase":
        terms = terms_of(text)
        return cls(" ".join(terms), frozenset(terms))


@dataclass(frozen=True, slots=True)
class RowWords:
    """The words of a row, whatever the question."""

    cells: tuple[Phrase, ...]
    headers: tuple[Phrase, ...]
    titles: Phrase


@dataclass(frozen=True, slots=True)
class PassageWords:
    """The words of a passage and what kind of thing it seems to be about, whatever the question."""

    title: Phrase
    opening: Phrase
    dates: int
    numbers: int
    is_person: bool
    is_place: bool


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
        superlative = any(match[0] not in NO_SUPERLATIVES for match in _SUPERLATIVE.finditer(lowered))
        return cls(words, frozenset(terms), superlative, len(terms), kind, wanted)

    def names(self, phrase: Phrase) -> int:
        """Letters of a text that stands in the question word by word, else 0."""
        plain = phrase.plain
        return len(plain) if len(plain) > 1 and f" {plain} " in self.words else 0

    def asks_for(self, phrase: Phrase) -> int:
        """How many of the words that say what is asked for stand in a text."""
        return len(self.wanted & phrase.terms)

    def overlap(self, phrase: Phrase) -> float:
        """The share of a text's words that the question holds."""
        return len(phrase.terms & self.terms) / len(phrase.terms) if phrase.terms else 0.0


def row_words(index: IndexReader, row: int) -> RowWords:
    """The words of a row, kept by the index for the next question."""

    def read() -> RowWords:
        segment = index.corpus.segment(row)
        header = tuple(_header(index, name) for name in segment.header)
        return RowWords(
            tuple(map(Phrase.of, segment.cells)), header, _header(index, f"{segment.title} {segment.section}")
        )

    return index.remembered("row words", row, read)


def passage_words(index: IndexReader, passage: int) -> PassageWords:
    """The words of a passage, kept by the index for the next question."""

    def read() -> PassageWords:
        found = index.corpus.passages[passage]
        opening = found.text[:_OPENING]
        return PassageWords(
            Phrase.of(found.title), Phrase.of(opening), len(_DATE.findall(found.text)),
            len(_NUMBER.findall(found.text)), bool(_PERSON.search(opening)), bool(_PLACE.search(opening)),
        )  # fmt: skip

    return index.remembered("passage words", passage, read)


def _header(index: IndexReader, text: str) -> Phrase:
    """Texts that all rows of a table share."""
    return index.remembered("phrases", text, lambda: Phrase.of(text))
