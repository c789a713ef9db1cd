"""Questions about a table with their answers, made from it: what the reader of tables learns from beside real ones.

    list(made_questions(table, random.Random(13), count=6))

Words for columns and operations are varied; what a question asks is computed from the cells, so its answer is right.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from helios.reading.tables.programs import number_text
from helios.reading.tables.sheet import Kind, Sheet, SheetColumn

NAMES: dict[str, tuple[str, ...]] = {
    "price": ("cost", "price"),
    "cost": ("price", "cost"),
    "phone": ("phone number", "telephone number"),
    "telephone": ("phone number",),
    "tel": ("phone number",),
    "email": ("mail address", "e-mail"),
    "salary": ("pay", "salary"),
    "amount": ("sum", "amount"),
    "qty": ("quantity", "how many"),
    "dob": ("birthday", "date of birth"),
    "location": ("place", "location"),
    "city": ("town", "city"),
    "nationality": ("citizenship", "nationality"),
    "author": ("writer", "author"),
    "population": ("inhabitants",),
    "capacity": ("seats", "capacity"),
    "duration": ("length", "duration"),
    "status": ("state", "status"),
    "supplier": ("vendor", "supplier"),
    "manager": ("boss", "manager"),
    "owner": ("owner",),
    "occupation": ("job",),
    "position": ("role", "position"),
    "notes": ("comment", "remark"),
    "description": ("description", "meaning"),
}
"""Other words for a column, by a word of its name."""
ADJECTIVES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("price|cost|fee|amount|value", ("most expensive", "highest priced"), ("cheapest", "least expensive")),
    ("age", ("oldest",), ("youngest",)),
    ("length|distance|duration|height", ("longest",), ("shortest",)),
    ("weight", ("heaviest",), ("lightest",)),
    ("year|date|founded|opened|built|released", ("latest", "newest", "most recent"), ("earliest", "oldest", "first")),
    ("area|size|population|capacity", ("biggest", "largest"), ("smallest",)),
    ("height|elevation", ("tallest", "highest"), ("lowest", "shortest")),
    ("speed", ("fastest",), ("slowest",)),
)
"""Adjectives for the largest and the smallest, by a pattern of the column's name."""


@dataclass(frozen=True, slots=True)
class MadeQuestion:
    """A question, the kind of program that answers it, and its answer; no items where the table does not say."""

    question: str
    kind: str
    items: tuple[str, ...]


def made_questions(sheet: Sheet, chance: random.Random, *, count: int) -> Iterator[MadeQuestion]:
    """Up to `count` questions about a table, of kinds drawn at random."""
    maker = _Maker(sheet, chance)
    if maker.names is None:
        return
    seen: set[str] = set()
    for _ in range(count * 4):
        kind = chance.choices(list(_Maker.KINDS), weights=list(_Maker.KINDS.values()))[0]
        made = getattr(maker, kind)()
        if made is not None and made[0] not in seen:
            seen.add(made[0])
            yield MadeQuestion(_untidy(made[0], chance), kind, tuple(made[1]))
            if len(seen) == count:
                return


Made = tuple[str, Sequence[str]] | None


class _Maker:
    KINDS = {
        "lookup": 8,
        "reverse": 4,
        "several": 2,
        "count": 3,
        "count_all": 1,
        "filtered": 3,
        "total": 3,
        "extreme": 5,
        "frequent": 1,
        "grouped": 1,
        "difference": 1,
        "whether": 2,
        "absent": 3,
        "distinct": 1,
    }

    def __init__(self, sheet: Sheet, chance: random.Random) -> None:
        self.sheet, self.chance = sheet, chance
        texts = [c for c in sheet.columns if c.kind is Kind.TEXT and c.distinct >= 0.7 * len(c.cells) > 1 and _short(c)]
        self.names = texts[0] if texts else None
        self.others = [c for c in sheet.columns if c is not self.names and c.header and c.distinct > 1 and _short(c)]
        self.numbers = [c for c in self.others if c.kind is Kind.NUMBER]
        self.compared = [c for c in self.others if c.kind is not Kind.TEXT]
        self.groups = [c for c in self.others if c.kind is Kind.TEXT and c.distinct <= 0.6 * len(c.cells)]
        plural = re.sub(r"[_\W]+", " ", sheet.table.title).strip().lower()
        self.noun = plural if 0 < len(plural.split()) <= 3 else self._noun()

    def _noun(self) -> str:
        name = _plain(self.names.header) if self.names is not None else "row"
        return name if name.endswith("s") else name + "s"

    def lookup(self) -> Made:
        column, row = self._cell()
        if column is None:
            return None
        thing, name = self.names.cells[row], self._name(column)
        templates = [
            f"What is the {name} of {thing}?",
            f"{name} of {thing}",
            f"{thing} {name}",
            f"what's {thing}'s {name}?",
            f"Which {name} does {thing} have?",
            f"Tell me the {name} for {thing}",
            f"{name} {thing}?",
            f"Do we know the {name} of {thing}?"
            if self.chance.random() < 0.1
            else f"What {name} is listed for {thing}?",
        ]
        head = _plain(column.header)
        if column.kind is Kind.DATE:
            templates += [f"When was {thing} {_participle(head)}?", f"when is {thing}?", f"On what date was {thing}?"]
        if re.search(r"price|cost|fee|salary|amount", head):
            templates += [f"How much is {thing}?", f"How much does {thing} cost?", f"what do we pay for {thing}?"]
        if re.search(r"city|country|location|place|address|venue|room|site", head):
            templates += [f"Where is {thing}?", f"where can I find {thing}", f"In which {name} is {thing}?"]
        if re.search(r"owner|manager|coach|director|author|contact|name|player|teacher|by$", head):
            templates += [f"Who is the {name} of {thing}?", f"who is responsible for {thing}?"]
        if re.search(r"\bage\b", head):
            templates += [f"How old is {thing}?"] * 3
        return self.chance.choice(templates), [column.cells[row]]

    def reverse(self) -> Made:
        column, row = self._cell()
        if column is None:
            return None
        key = column.keys[row]
        rows = np.flatnonzero(column.keys == key)
        if len(rows) != 1:
            return None
        value, name, who = column.cells[row], self._name(column), _plain(self.names.header)
        question = self.chance.choice(
            [
                f"Which {who} has the {name} {value}?",
                f"Who has {value} as {name}?",
                f"which {who} is {value}?",
                f"{name} {value} belongs to which {who}?",
                f"What has a {name} of {value}?",
                f"Which {who} has {value}?",
            ]
        )
        return question, [self.names.cells[row]]

    def several(self) -> Made:
        if not self.groups:
            return None
        group, key, rows = self._group()
        if not 2 <= len(rows) <= 12:
            return None
        value, name, who = group.cells[rows[0]], self._name(group), _plain(self.names.header)
        question = self.chance.choice(
            [
                f"Which {self.noun} have {name} {value}?",
                f"List the {who} of all {value}",
                f"Who is in {value}?",
                f"Show all {self.noun} with {value}",
                f"what {self.noun} are {value}?",
                f"Which {who}s have the {name} {value}?",
            ]
        )
        return question, self._listed(rows)

    def count(self) -> Made:
        if not self.groups:
            return None
        group, key, rows = self._group()
        value, name = group.cells[rows[0]], self._name(group)
        question = self.chance.choice(
            [
                f"How many {self.noun} have {name} {value}?",
                f"How many {self.noun} are there in {value}?",
                f"number of {self.noun} with {value}",
                f"how many {self.noun} are {value}",
                f"How many {value} are there?",
            ]
        )
        return question, [str(len(rows))]

    def count_all(self) -> Made:
        rows = int(self.sheet.counted.sum())
        question = self.chance.choice(
            [
                f"How many {self.noun} are there?",
                f"How many {self.noun} do we have?",
                f"Count the {self.noun}",
                f"number of {self.noun}",
                f"How many {self.noun} are listed?",
            ]
        )
        return question, [str(rows)]

    def distinct(self) -> Made:
        if not self.groups:
            return None
        group = self.chance.choice(self.groups)
        keys = group.keys[self.sheet.counted]
        name = self._name(group)
        question = self.chance.choice([f"How many different {name}s are there?", f"How many {name}s do we have?"])
        return question, [str(len(set(keys[keys >= 0].tolist())))]

    def filtered(self) -> Made:
        if not self.numbers:
            return None
        column = self.chance.choice(self.numbers)
        known = np.unique(column.values[np.isfinite(column.values)])
        if len(known) < 3:
            return None
        limit, name, who = (
            float(self.chance.choice(known[1:-1].tolist())),
            self._name(column),
            _plain(self.names.header),
        )
        above = self.chance.random() < 0.5
        inclusive = self.chance.random() < 0.4
        with np.errstate(invalid="ignore"):
            rows = column.values >= limit if above else column.values <= limit
            rows &= column.values != limit if not inclusive else True
        rows = np.flatnonzero(rows & self.sheet.counted)
        if not len(rows):
            return None
        words = {
            (True, False): ("more than", "over", "above"),
            (True, True): ("at least",),
            (False, False): ("less than", "under", "below"),
            (False, True): ("at most",),
        }[above, inclusive]
        how = f"{self.chance.choice(words)} {number_text(limit)}"
        if self.chance.random() < 0.5 or len(rows) > 10:
            return f"How many {self.noun} have a {name} of {how}?", [str(len(rows))]
        question = self.chance.choice(
            [
                f"Which {self.noun} have a {name} {how}?",
                f"Which {who} has {how} {name}?",
                f"{self.noun} with {name} {how}",
            ]
        )
        return question, self._listed(rows)

    def total(self) -> Made:
        if not self.numbers:
            return None
        column = self.chance.choice(self.numbers)
        rows, where = np.flatnonzero(self.sheet.counted & np.isfinite(column.values)), ""
        if self.groups and self.chance.random() < 0.5:
            group, key, chosen = self._group()
            rows = np.intersect1d(rows, chosen)
            where = self.chance.choice([" of {}", " for {}", " in {}"]).format(group.cells[chosen[0]])
        if len(rows) < 2:
            return None
        name, mean = self._name(column), self.chance.random() < 0.4
        value = float(column.values[rows].mean() if mean else column.values[rows].sum())
        question = self.chance.choice(
            [f"What is the average {name}{where}?", f"average {name}{where}", f"mean {name}{where}?"]
            if mean
            else [
                f"What is the total {name}{where}?",
                f"total {name}{where}",
                f"How much {name} altogether{where}?",
                f"Sum of all {name}{where}",
                f"what is the overall {name}{where}",
            ]
        )
        return question, [number_text(value)]

    def extreme(self) -> Made:
        if not self.compared:
            return None
        column = self.chance.choice(self.compared)
        rows, where = np.flatnonzero(self.sheet.counted & np.isfinite(column.values)), ""
        if self.groups and self.chance.random() < 0.25:
            group, key, chosen = self._group()
            rows = np.intersect1d(rows, chosen)
            where = self.chance.choice([" in {}", " of {}", " among {}"]).format(group.cells[chosen[0]])
        steps = np.unique(column.values[rows])
        place = self.chance.choice([1, 1, 1, 1, 1, 2, 2, 3])
        if len(steps) < max(2, place):
            return None
        down = self.chance.random() < 0.65
        wanted = steps[-place] if down else steps[place - 1]
        chosen = rows[column.values[rows] == wanted]
        if len(chosen) > 2:
            return None
        head, name, who = _plain(column.header), self._name(column), _plain(self.names.header)
        ordinal = {1: "", 2: "second ", 3: "third "}[place]
        adjective = next((up if down else low for pattern, up, low in ADJECTIVES if re.search(pattern, head)), None)
        word = self.chance.choice(
            ("highest", "largest", "biggest", "greatest", "most") if down else ("lowest", "smallest", "least")
        )
        if column.kind is Kind.DATE:
            word = self.chance.choice(("latest", "most recent", "last") if down else ("earliest", "first"))
        templates = [
            f"Which {who} has the {ordinal}{word} {name}{where}?",
            f"{who} with the {ordinal}{word} {name}{where}",
            f"Who has the {ordinal}{word} {name}{where}?",
        ]
        if adjective:
            said = self.chance.choice(adjective)
            templates += [
                f"Which {who} is the {ordinal}{said}{where}?",
                f"What is the {ordinal}{said} {who}{where}?",
            ] * 2
        if self.chance.random() < 0.2:
            return f"What is the {ordinal}{word} {name}{where}?", [column.cells[chosen[0]]]
        return self.chance.choice(templates), self._listed(chosen)

    def frequent(self) -> Made:
        if not self.groups:
            return None
        group = self.chance.choice(self.groups)
        keys = group.keys[self.sheet.counted]
        counts = np.bincount(keys[keys >= 0])
        if (counts == counts.max()).sum() != 1 or counts.max() < 2:
            return None
        value = group.cells[int(np.flatnonzero(group.keys == counts.argmax())[0])]
        name = self._name(group)
        question = self.chance.choice(
            [
                f"Which {name} has the most {self.noun}?",
                f"What is the most common {name}?",
                f"Which {name} appears most often?",
            ]
        )
        return question, [value]

    def grouped(self) -> Made:
        if not self.groups or not self.numbers:
            return None
        group, column = self.chance.choice(self.groups), self.chance.choice(self.numbers)
        known = self.sheet.counted & np.isfinite(column.values) & (group.keys >= 0)
        totals = np.bincount(group.keys[known], weights=column.values[known])
        if len(totals) < 2 or (totals == totals.max()).sum() != 1:
            return None
        value = group.cells[int(np.flatnonzero(group.keys == totals.argmax())[0])]
        return f"Which {self._name(group)} has the highest total {self._name(column)}?", [value]

    def difference(self) -> Made:
        if not self.numbers:
            return None
        column = self.chance.choice(self.numbers)
        rows = np.flatnonzero(self.sheet.counted & np.isfinite(column.values)).tolist()
        if len(rows) < 2:
            return None
        one, other = self.chance.sample(rows, 2)
        a, b, name = self.names.cells[one], self.names.cells[other], self._name(column)
        if a == b:
            return None
        question = self.chance.choice(
            [
                f"What is the difference in {name} between {a} and {b}?",
                f"How much more {name} does {a} have than {b}?",
                f"difference between the {name} of {a} and {b}",
            ]
        )
        return question, [number_text(abs(float(column.values[one] - column.values[other])))]

    def whether(self) -> Made:
        column, row = self._cell()
        if column is None:
            return None
        right = self.chance.random() < 0.6
        value = column.cells[row] if right else self.chance.choice([c for c in column.cells if c.strip()])
        right = value == column.cells[row]
        thing, name = self.names.cells[row], self._name(column)
        question = self.chance.choice(
            [
                f"Is the {name} of {thing} {value}?",
                f"Does {thing} have {value} as {name}?",
                f"Is {thing} {value}?",
                f"Has {thing} {name} {value}?",
            ]
        )
        return question, ["yes" if right else "no"]

    def absent(self) -> Made:
        """Of a column that the table does not have."""
        known = {word for column in self.sheet.columns for word in column.words}
        names = [n for n in _ABSENT if not known & set(n.split())]
        row = self.chance.randrange(self.sheet.size)
        thing = self.names.cells[row]
        if not names or not thing.strip():
            return None
        name = self.chance.choice(names)
        question = self.chance.choice(
            [f"What is the {name} of {thing}?", f"{thing} {name}", f"What {name} does {thing} have?"]
        )
        return question, []

    def _cell(self) -> tuple[SheetColumn | None, int]:
        if not self.others:
            return None, 0
        column = self.chance.choice(self.others)
        keys = self.names.keys
        rows = [
            r
            for r in range(len(keys))
            if keys[r] >= 0 and column.keys[r] >= 0 and (keys == keys[r]).sum() == 1 and self.sheet.counted[r]
        ]
        return (column, self.chance.choice(rows)) if rows else (None, 0)

    def _group(self) -> tuple[SheetColumn, int, np.ndarray]:
        group = self.chance.choice(self.groups)
        key = self.chance.choice([key for key in range(group.distinct)])
        return group, key, np.flatnonzero((group.keys == key) & self.sheet.counted)

    def _listed(self, rows: Sequence[int]) -> list[str]:
        return list(dict.fromkeys(self.names.cells[row] for row in rows if self.names.cells[row].strip()))

    def _name(self, column: SheetColumn) -> str:
        plain = _plain(column.header)
        others = [name for word, names in NAMES.items() if word in plain.split() for name in names]
        if others and self.chance.random() < 0.5:
            return self.chance.choice(others)
        words = plain.split()
        if len(words) > 1 and self.chance.random() < 0.25:
            return self.chance.choice((words[-1], words[0]))
        return plain


_ABSENT = (
    "shoe size",
    "e-mail address",
    "phone number",
    "middle name",
    "blood type",
    "bank account",
    "favourite colour",
    "weight",
    "insurance number",
    "delivery date",
    "supplier",
    "birthplace",
    "salary",
    "licence number",
    "warranty",
    "nickname",
    "website",
    "capacity",
    "emergency contact",
    "retirement age",
    "serial number",
    "discount",
    "rating",
)


def _plain(header: str) -> str:
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", header)
    return re.sub(r"[_\W]+", " ", re.sub(r"\([^)]*\)", "", text)).strip().lower() or "value"


def _participle(head: str) -> str:
    words = [word for word in head.split() if word.endswith("ed")]
    return words[0] if words else head.replace("date", "").strip() or "made"


def _short(column: SheetColumn) -> bool:
    filled = [cell for cell in column.cells if cell.strip()]
    return bool(filled) and len(column.header) <= 40 and float(np.mean([len(cell) for cell in filled])) <= 40


def _untidy(question: str, chance: random.Random) -> str:
    """Now and then in small letters or without its mark."""
    if chance.random() < 0.2:
        question = question.rstrip("?")
    return question.lower() if chance.random() < 0.15 else question
