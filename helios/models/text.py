"""How a node becomes the text that a token encoder reads, with the place of every piece.

    John Adams, Offices held. Year: 1789 ; Office: Vice President      (a segment)
    Vice President of the United States. The vice president is ...     (a passage)

`where` names follow `helios.types.TokenMatch`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from helios.types import Passage, Segment

_GAP = re.compile(r"(?<=[.!?])[\"'”’»)\]]*\s+(?=[\"'“„«‚(\[¿¡]*(\w+))|(?<=[。！？])(?=[^\s」』”])")
"""Where a sentence may end; the group is the word after it."""
_LAST = re.compile(r"([\w.&/-]+)\.$")
"""The word before a full stop."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TITLES = _words(
    "dr mr mrs ms prof st mt ft sgt lt col gen capt cpt maj rev hon gov sen rep messrs vs cf ca bzw vgl zzgl inkl evtl "
    "ggf hr fr dipl ing sr sra srta dra dña av avda mme mlle mgr approx esp incl viz"
)
"""Abbreviations that words follow which begin with a capital."""
_COUNTED = _words(
    "no nos nr núm num fig figs vol vols ch sec sect art abs pp p pág págs s tel ext op rd jan feb mar apr jun jul aug "
    "sep sept oct nov dec mär okt dez ene abr ago dic"
)
"""Abbreviations that numbers follow."""
_OPENERS = _words(
    "the he she it they we i you a an in on at as for after when this that these those there but and his her its if "
    "der die das er sie es wir im am ein eine el la los las en un una le les il elle une"
)
"""Words that open a sentence even after initials."""
_BEFORE_ORDINALS = _words("im der die das dem den des zur ins beim")
"""German words before numbers of order: im 2. Stock."""
_MONTHS = _words(
    "januar jänner februar märz april mai juni juli august september oktober november dezember jan feb apr aug sep okt "
    "nov dez"
)
_HALVES = _words("a.m p.m")
"""What a sentence may end with although its parts are single letters."""
_LETTERED = _words(
    "plan grade vitamin type class group section block team room platform gate terminal level option part"
)
"""Words that a letter follows which is no initial."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters [start, end) of a node's text and what they are."""

    start: int
    end: int
    where: str


@dataclass(frozen=True, slots=True)
class NodeText:
    """The text of a node and its pieces, in order."""

    text: str
    pieces: tuple[Piece, ...]

    def where(self, position: int) -> str:
        """What the character at a position belongs to; empty for separators."""
        for piece in self.pieces:
            if piece.start <= position < piece.end:
                return piece.where
        return ""


def segment_text(segment: Segment) -> NodeText:
    """A row with its titles and header: title, section. header: cell ; header: cell."""
    parts: list[tuple[str, str]] = [(segment.title, "title")]
    if segment.section:
        parts += [(", ", ""), (segment.section, "section")]
    parts.append((". ", ""))
    for column, (name, cell) in enumerate(zip(segment.header, segment.cells, strict=True)):
        if column:
            parts.append((" ; ", ""))
        parts += [(name, f"header:{column}"), (": ", ""), (cell, f"cell:{column}")]
    return _join(parts)


def plain_segment(segment: Segment) -> str:
    """The same without its pieces."""
    cells = " ; ".join([f"{name}: {cell}" for name, cell in zip(segment.header, segment.cells, strict=True)])
    opening = f"{segment.title}, {segment.section}" if segment.section else segment.title
    return f"{opening}. {cells}"


def passage_text(passage: Passage) -> NodeText:
    """Title and text; every sentence is a piece."""
    parts: list[tuple[str, str]] = [(passage.title, "title"), (". ", "")]
    for number, (start, end) in enumerate(pairwise([0, *sentence_ends(passage.text), len(passage.text)])):
        parts.append((passage.text[start:end], f"sentence:{number}"))
    return _join(parts)


def plain_text(passage: Passage) -> str:
    """The same without its pieces."""
    return f"{passage.title}. {passage.text}"


def sentences_of(passage: Passage) -> Iterator[tuple[int, str]]:
    """Number and text of every sentence, as search explanations and citations count them."""
    text = passage_text(passage)
    for piece in text.pieces:
        kind, _, number = piece.where.partition(":")
        if kind == "sentence":
            yield int(number), text.text[piece.start : piece.end]


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, without the blanks around them."""
    pieces = (text[start:end].strip() for start, end in pairwise([0, *sentence_ends(text), len(text)]))
    return [piece for piece in pieces if piece]


def sentence_ends(text: str) -> list[int]:
    """Where the sentences of a text begin, but for the first; Dr. Smith, No. 5, the U.S. Army, am 1. Mai stay whole."""
    found = []
    for match in _GAP.finditer(text):
        following = match[1]
        before = None if following is None else _LAST.search(text, max(0, match.start() - 40), match.start())
        if following is None or not (following[0].islower() or (before and _is_short(text, before, following))):
            found.append(match.end())
    return found


def _is_short(text: str, before: re.Match[str], following: str) -> bool:
    """Whether a full stop is part of a word and ends no sentence."""
    word, words = before[1], text[max(0, before.start() - 24) : before.start()].split()
    if word.isdigit():
        month = following.lower() in _MONTHS
        return len(word) < 3 and (month or (bool(words) and words[-1].lower() in _BEFORE_ORDINALS))
    if word.lower() in _TITLES:
        return True
    if word.lower() in _COUNTED:
        return following[0].isdigit()
    letters = word.split(".")
    if (
        following.lower() in _OPENERS
        or word.lower() in _HALVES
        or any(len(one) != 1 or not one.isalpha() for one in letters)
    ):
        return False
    opens = not words or words[-1][-1] in '.!?:("“„«' or (words[-1][0].isupper() and words[-1].lower() not in _LETTERED)
    return len(letters) > 1 or (word.isupper() and opens)


def _join(parts: list[tuple[str, str]]) -> NodeText:
    pieces: list[Piece] = []
    position = 0
    for text, where in parts:
        if where and text:
            pieces.append(Piece(position, position + len(text), where))
        position += len(text)
    return NodeText("".join(text for text, _ in parts), tuple(pieces))
