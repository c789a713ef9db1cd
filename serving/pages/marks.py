"""A text cut where marks begin and end, so that a template can show them: a link, the answer, a word that matched."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters [start, end) of a text, what they are, and with `match` the word of the question and its share."""

    start: int
    end: int
    kind: str
    """`link`, `answer` or `match`."""
    word: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text with the marks that cover it."""

    text: str
    kinds: tuple[str, ...] = ()
    word: str = ""
    share: float = 0.0

    @property
    def classes(self) -> str:
        """Of the element around it."""
        return " ".join(f"is-{kind}" for kind in self.kinds)


def pieces(text: str, marks: Iterable[Mark]) -> list[Piece]:
    """The whole text in runs, each with the marks over it."""
    inside = [mark for mark in marks if 0 <= mark.start < mark.end <= len(text)]
    cuts = sorted({0, len(text), *(mark.start for mark in inside), *(mark.end for mark in inside)})
    found = []
    for start, end in zip(cuts, cuts[1:], strict=False):
        over = [mark for mark in inside if mark.start <= start and end <= mark.end]
        matched = next((mark for mark in over if mark.kind == "match"), None)
        kinds = tuple(dict.fromkeys(mark.kind for mark in over))
        word, share = (matched.word, matched.share) if matched else ("", 0.0)
        found.append(Piece(text[start:end], kinds, word, share))
    return found


def matches_in(text: str, matches: Sequence[dict[str, object]], place: str) -> list[Mark]:
    """Marks of the words that matched at a place (`cell:2`, `title`, `sentence:0`), each where it first stands."""
    found = []
    for match in matches:
        if match["where"] != place:
            continue
        word = str(match["word"])
        at = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
        if at:
            share = float(str(match["similarity"]))
            found.append(Mark(at.start(), at.end(), "match", str(match["query_token"]).casefold(), share))
    return found


def names_in(text: str, name: str) -> list[Mark]:
    """Marks of a linked name, wherever the text has it."""
    if not name.strip():
        return []
    return [Mark(at.start(), at.end(), "link") for at in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
