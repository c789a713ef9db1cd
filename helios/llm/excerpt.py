"""What a prompt shows of a text that is too long for it: the parts that speak of the question."""

from collections import Counter
from collections.abc import Collection, Sequence

from helios.index.lexical import terms_of
from helios.llm.quoting import CUT, clip, one_line

_FIRST = 1.0
"""The first part says what a text is about: it counts like a word of the question."""


def by_relevance(parts: Sequence[str], asked: Collection[str]) -> list[int]:
    """Places of the parts, best first; a tie goes to the earlier one.

    A part counts what it has of the `asked` terms; a term that several parts have is shared by them.
    """
    found = [frozenset(asked).intersection(terms_of(part)) for part in parts]
    holders = Counter(term for terms in found for term in terms)
    worth = [sum(1 / holders[term] for term in terms) + _FIRST * (place == 0) for place, terms in enumerate(found)]
    return sorted(range(len(parts)), key=lambda place: (-worth[place], place))


def excerpt(sentences: Sequence[str], asked: Collection[str], size: int) -> str:
    """Quoted sentences within `size` bytes, in their order; an ellipsis stands where some are left out.

    Where not even the best one fits, it is shortened.
    """
    lines = [line for sentence in sentences if (line := one_line(sentence))]
    text = " ".join(lines)
    if len(text.encode()) <= size or not lines:
        return text
    best, *others = by_relevance(lines, asked)
    shown = {best}
    text = _joined(lines, shown)
    if len(text.encode()) > size:
        return clip(lines[best], size)
    for place in others:
        longer = _joined(lines, shown | {place})
        if len(longer.encode()) <= size:
            shown.add(place)
            text = longer
    return text


def _joined(lines: Sequence[str], shown: Collection[int]) -> str:
    pieces: list[str] = []
    for place, line in enumerate(lines):
        if place in shown:
            pieces.append(line)
        elif not pieces or pieces[-1] != CUT:
            pieces.append(CUT)
    return " ".join(pieces)
