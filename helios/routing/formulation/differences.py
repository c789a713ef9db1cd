"""Questions for the difference of two numbers, as two questions: "How many more loans were there in May than in June?"

Only the wording is divided here; each half is read like any other question.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from helios.routing.formulation.cues import SUPERLATIVES
from helios.routing.formulation.dates import DATE, YEARS
from helios.routing.formulation.pieces import Piece
from helios.routing.formulation.plan import Aggregate, Operator, Plan, SetOperation
from helios.routing.formulation.schema import SchemaView

MORE_THAN = re.compile(
    r"(?:and |so |by )?how (?P<many>many|much) (?P<way>more|fewer|less)(?P<rest> .+?) (?:than|compared (?:to|with))"
    r" (?P<tail>.+?)\s*\?*$",
    re.IGNORECASE,
)
APART = re.compile(
    r"(?:what (?:is|was|'s)|what['’]s|find|give|calculate|show) (?:me )?the difference (?:in (?P<of>.+?) )?between "
    r"(?P<first>.+?) and (?P<second>.+?)\s*[?.]*$",
    re.IGNORECASE,
)
LITTLE_WORDS = ("in", "on", "at", "for", "from", "of", "by", "to", "with", "the", "a", "an", "our", "their")
LITTLE = rf"(?:(?:{'|'.join(LITTLE_WORDS)}) )*"
"""Small words in front of what is compared."""
VERBS = re.compile(r"^\s*(?:did|does|do|has|have|had|was|were|is|are|could|can)\b", re.IGNORECASE)
"""What the second half ends with: "than Ann did"."""
PREPOSITIONS = ("for", "of", "in", "at", "on", "from", "to", "by", "during")
MADE = ("average", "mean", "median", "total", "maximum", "minimum", "first", "last", "highest", "lowest")
ADJECTIVE = 2
"""Words of "the highest", which needs a noun."""


@dataclass(frozen=True, slots=True)
class Said:
    """Some words of a question, cut into pieces, each with where its characters begin and end."""

    text: str
    pieces: tuple[tuple[int, int, Piece], ...]

    @property
    def values(self) -> list[tuple[int, int, Piece]]:
        """Stored values, dates and years."""
        return [place for place in self.pieces if place[2].values or _is_date(place[2])]


def halves(
    question: str, said: Callable[[str], Said]
) -> tuple[SetOperation, str, str] | None:  # fmt: skip
    """The two questions whose numbers are set apart and how, what is taken away last; None for other questions.

    `said` reads the values in some words.
    """
    text = " ".join(question.split())
    if re.search(r"n['’]t\b|\bnot (?:a|one) single\b|\?.", text) or len(re.findall(r"\bthan\b", text)) > 1:
        return None
    if (found := MORE_THAN.fullmatch(text)) is not None:
        first = f"How {found['many'].lower()}{found['rest']}?"
        both = _in_place(said(first), said(found["tail"]))
        if both is None:
            return None
        return SetOperation.LESS, *(both if found["way"].lower() == "more" else both[::-1])
    if (found := APART.fullmatch(text)) is None:
        return None
    one, other = _completed(found["first"], found["second"])
    asked = f"What is the {found['of']} of" if found["of"] is not None else "What is"
    return SetOperation.APART, f"{asked} {one}?", f"{asked} {other}?"


def asks_for_two(question: str) -> bool:
    """Whether a question is worded as one for the difference of two numbers, whether or not it can be divided."""
    text = " ".join(question.split())
    return any(form.fullmatch(text) is not None for form in (MORE_THAN, APART))


def _completed(one: str, other: str) -> tuple[str, str]:
    """Two things that are compared, each with the words that are said only once.

    "The highest and the lowest price of tickets", "the average fee for adults and for children".
    """
    said, later = one.split(), other.split()
    if len(said) == ADJECTIVE and said[0].lower() == "the" != later[0].lower():
        later = [said[0], *later]  # "the highest and lowest price"
    if (begins := later[0].lower()) in PREPOSITIONS and begins in (words := [word.lower() for word in said]):
        last = len(words) - 1 - words[::-1].index(begins)
        return one, " ".join([*said[:last], other])
    graded = said[-1].lower() in (*SUPERLATIVES, *MADE)
    if len(said) <= ADJECTIVE < len(later) and said[0].lower() == later[0].lower() and graded:
        return " ".join([*said, *later[len(said) :]]), " ".join(later)
    return one, other


def _in_place(first: Said, tail: Said) -> tuple[str, str] | None:
    """A question and the same with what stands behind "than" in place of what it is compared with.

    None where something cannot be put in place: "than in Leeds or Hull", "than in any month of 2024".
    """
    text, others, free = first.text.rstrip(" ?"), tail.text, list(first.values)
    swaps: list[tuple[int, int, str]] = []
    for start, end, other in reversed(tail.values):
        same = [place for place in free if _alike(place[2], other)]
        if not same and any(_alike(one, other) for _, _, one in first.values):
            return None
        if same:
            free.remove(same[-1])
            swaps.append((*same[-1][:2], tail.text[start:end]))
            others = re.sub(rf"{LITTLE}$", " ", others[:start], flags=re.IGNORECASE) + others[end:]
    left = VERBS.sub("", others).strip(" ?.")
    opening = tail.text[: tail.values[0][0]].lower().split() if tail.values else []
    known = {*first.text.lower().rstrip(" ?").split(), *LITTLE_WORDS}
    if not swaps or not known.issuperset(opening) or re.match(r"(?:or|and)\b", left, re.IGNORECASE):
        return None
    if left.lower().startswith(" ".join(opening)):
        left = left[len(" ".join(opening)) :].strip()  # "than the trip to Leeds"
    added = f" {left}?" if left else "?"
    changed = text
    for start, end, word in sorted(swaps, reverse=True):
        changed = changed[:start] + word + changed[end:]
    return text + added, changed + added


def _alike(one: Piece, other: Piece) -> bool:
    """Whether two values may stand in one column, or are both dates."""
    if _is_date(one) or _is_date(other):
        return _is_date(one) and _is_date(other)
    return bool({link.column for link in one.values} & {link.column for link in other.values})


def _is_date(piece: Piece) -> bool:
    """A day, a month or a year."""
    return DATE.fullmatch(piece.text) is not None or (piece.number is not None and piece.number in YEARS)


def set_apart(operation: SetOperation, first: Plan, second: Plan, schema: SchemaView) -> Plan | None:
    """One plan of two that each give one number of the same kind; None for others."""
    plans = (first, second)
    if any(len(plan.select) > 1 or not _one_number(plan, schema) for plan in plans) or first == second:
        return None
    if first.select[0].column != second.select[0].column or _asked_of(first) != _asked_of(second):
        return None
    if operation is SetOperation.LESS and first.select != second.select:
        return None
    return first.with_(combined=(operation, second))


def _asked_of(plan: Plan) -> list[tuple[object, ...]]:
    """Which columns of which tables a plan's conditions compare, and how."""
    found = [(one.term, one.operator) for some in plan.where for one in some]
    return [plan.tables, *sorted(found, key=str)]


def _one_number(plan: Plan, schema: SchemaView) -> bool:
    """Whether a plan has one number: an aggregate, the first of an order, or what one named thing has."""
    if plan.group or plan.having or plan.combined is not None or plan.each:
        return False
    (term,) = plan.select
    if term.aggregate is Aggregate.COUNT:
        return True
    view = schema.column(term.column) if term.column is not None else None
    if view is None or not view.amount or view.text:
        return False
    if term.aggregate is not None or plan.limit == 1:
        return term.aggregate is not Aggregate.SHARE
    table = schema.tables[plan.table]
    names = {table.naming.ref} if table.naming is not None else set()
    names |= {key.ref for key in table.keys} if len(table.keys) == 1 else set()
    named = [one for some in plan.where for one in some if one.operator is Operator.EQ and one.term.column in names]
    return bool(named) and not plan.joins
