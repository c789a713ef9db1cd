"""Questions made of tables and the passages that their cells link to, by templates; gold edges are known.

A question is about one row and one of its passages. Four kinds, as people ask them over such tables:

    attribute   a passage describes the entity, a cell is the answer    What is the score of the golfer who was born ...
    fact        the row describes the entity, its passage answers       When was the team whose captain is X founded ?
    bridge      one passage of the row describes, another one answers   Where was the coach of the club that ... born ?
    extreme     a column's largest, smallest, latest ... picks the row  Who directed the film with the highest gross ?

Deterministic for a seed, whatever the order of tables; nothing is asked whose answer stands in the question, and
an entity that the question is about is never named.
"""

import hashlib
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from helios.corpus import CorpusStore
from helios.types import Hyperlink, Table
from training.facts import PassageFacts, read_facts
from training.question_file import write_records
from training.wording import asked, condition, extreme, is_usable_header, noun_of_header, place_of

log = logging.getLogger(__name__)

KINDS = {"attribute": 0.24, "fact": 0.18, "bridge": 0.34, "extreme": 0.24}
"""Shares of the kinds that are tried; bridges and extremes come about more rarely."""
POPULAR = 30
"""Passages that more tables link to (countries, positions) are asked about rarely: they say little of a row."""
TRIES = 8
"""Rows tried for a question of one kind, and kinds tried before a table is given up."""
CONTEXT = {"attribute": 0.35, "fact": 0.85, "bridge": 0.3, "extreme": 0.95}
"""How often a question of a kind says which table it is about: the less its description tells, the more."""


@dataclass(frozen=True, slots=True)
class SyntheticQuestion:
    """One record of a question file; `gold` is the edge, as a cell and the passage that it links to."""

    question: str
    answer: str
    table_id: str
    row: int
    column: int
    passage_id: str
    kind: str

    def record(self) -> dict[str, Any]:
        """The JSON record, in the format of the human questions."""
        where = "table" if self.kind == "attribute" else "passage"
        gold = {"cell": [self.row, self.column], "passage": self.passage_id, "answer_in": where}
        name = hashlib.sha256(f"{self.table_id} {self.question}".encode()).hexdigest()[:16]
        return {
            "id": f"synthetic-{name}",
            "question": self.question,
            "answer": self.answer,
            "table": self.table_id,
            "gold": [gold],
            "kind": self.kind,
        }


def synthesise(
    store: CorpusStore,
    table_ids: Iterable[str],
    *,
    count: int,
    seed: int = 13,
    links: Callable[[Table], Sequence[Hyperlink]] = lambda table: table.hyperlinks,
    advance: Callable[[int], None] = lambda made: None,
) -> Iterator[SyntheticQuestion]:
    """Up to `count` different questions, spread over the tables round by round.

    `links` gives the links of a table: the corpus's own, or those of a graph. `advance` is told of each question.
    """
    numbers = [number for name in sorted(set(table_ids)) if (number := store.tables.find(name)) is not None]
    popularity = Counter(name for number in numbers for name in {k.passage_id for k in links(store.tables[number])})
    known = _Passages(store, popularity)
    seen: set[str] = set()
    pending = numbers
    for turn in range(count):
        if not pending or len(seen) >= count:
            return
        random.Random(f"{seed} {turn}").shuffle(pending)
        fruitful = []
        for number in pending:
            table = store.tables[number]
            maker = _Maker(table, links(table), known, random.Random(f"{seed} {turn} {table.table_id}"))
            made = maker.make(seen)
            if made is None:
                continue
            seen.add(_key(made.question))
            fruitful.append(number)
            advance(1)
            yield made
            if len(seen) >= count:
                return
        pending = sorted(fruitful)
    log.info("%d questions from %d tables", len(seen), len(numbers))


class _Passages:
    """Facts of passages, read once."""

    def __init__(self, store: CorpusStore, popularity: Counter[str]) -> None:
        self._store = store
        self.popularity = popularity
        self._read: dict[str, tuple[str, PassageFacts] | None] = {}

    def facts(self, passage_id: str) -> tuple[str, PassageFacts] | None:
        """Title and facts; None for a passage that the corpus lacks."""
        if passage_id not in self._read:
            number = self._store.passages.find(passage_id)
            passage = None if number is None else self._store.passages[number]
            self._read[passage_id] = None if passage is None else (passage.title, read_facts(passage))
        return self._read[passage_id]


@dataclass(frozen=True, slots=True)
class _Entity:
    """A linked cell with what its passage says."""

    row: int
    column: int
    passage_id: str
    title: str
    noun: str
    """What it is called instead of its name: "the film"."""
    facts: PassageFacts


class _Maker:
    """Makes questions of one table with one random source."""

    def __init__(self, table: Table, links: Sequence[Hyperlink], known: _Passages, chance: random.Random) -> None:
        self.table, self.links, self.known, self.chance = table, links, known, chance

    def make(self, seen: set[str]) -> SyntheticQuestion | None:
        """One question that is not among those seen; None where nothing comes of this table."""
        if not self.entities_by_row:
            return None
        rows = sorted(self.entities_by_row)
        for _ in range(3):
            (kind,) = self.chance.choices(list(KINDS), list(KINDS.values()))
            for _ in range(TRIES):
                made = self._try(kind, self.chance.choice(rows))
                if made is not None and _is_sound(made) and _key(made.question) not in seen:
                    return made
        return None

    def _try(self, kind: str, row: int) -> SyntheticQuestion | None:
        if kind == "attribute":
            return self._attribute(row)
        if kind == "bridge":
            return self._bridge(row)
        return self._fact(row) if kind == "fact" else self._extreme()

    @cached_property
    def entities_by_row(self) -> dict[int, list[Hyperlink]]:
        """Links that stand for one row alone in this table, popular passages mostly left out."""
        rows: dict[str, set[int]] = {}
        for link in self.links:
            rows.setdefault(link.passage_id, set()).add(link.row)
        kept: dict[int, list[Hyperlink]] = {}
        for link in self.links:
            is_popular = self.known.popularity[link.passage_id] > POPULAR and self.chance.random() > 0.1
            if len(rows[link.passage_id]) == 1 and not is_popular:
                kept.setdefault(link.row, []).append(link)
        return kept

    def _attribute(self, row: int) -> SyntheticQuestion | None:
        """What is the SCORE of the golfer who was born in Kratié ?"""
        entity = self._entity(row)
        if entity is None or not entity.facts.clauses:
            return None
        columns = [column for column in self._columns() if column != entity.column and self._tells(row, column)]
        if not columns:
            return None
        column = self.chance.choice(columns)
        cell = self.table.rows[row][column]
        described = f"{entity.noun} {self.chance.choice(entity.facts.clauses)}"
        return self._question(
            "attribute", entity, described, cell, lambda np: asked(self.table.header[column], cell, np, self.chance)
        )

    def _fact(self, row: int) -> SyntheticQuestion | None:
        """When was the team whose captain is Keo Sokngon founded ?"""
        entity = self._entity(row)
        conditions = self._conditions(entity) if entity and entity.facts.facts else ""
        if entity is None or not conditions:
            return None
        return self._about("fact", entity, f"{entity.noun} {conditions}")

    def _bridge(self, row: int) -> SyntheticQuestion | None:
        """Where was the coach of the club that plays in Kampong Cham born ?"""
        entity, other = self._entity(row), self._entity(row)
        if entity is None or other is None or not entity.facts.facts or not other.facts.clauses:
            return None
        if entity.noun == other.noun or entity.column == other.column or entity.passage_id == other.passage_id:
            return None
        clause = f"{other.noun} {self.chance.choice(other.facts.clauses)}"
        joint = self.chance.choice(["of", "of", "listed with", "that goes with"])
        return self._about("bridge", entity, f"{entity.noun} {joint} {clause}")

    def _extreme(self) -> SyntheticQuestion | None:
        """Who directed the film with the highest gross in ... ?"""
        columns = self._columns()
        if not columns or len(self.table.rows) < 4:
            return None
        column = self.chance.choice(columns)
        picked = extreme(self.table.header[column], [cells[column] for cells in self.table.rows], self.chance)
        if picked is None:
            return None
        row, phrase = picked
        entity = self._entity(row)
        if entity is None or not entity.facts.facts or entity.column == column:
            return None
        return self._about("extreme", entity, f"{entity.noun} {phrase}")

    def _entity(self, row: int) -> _Entity | None:
        links = self.entities_by_row.get(row)
        if not links:
            return None
        link = self.chance.choice(links)
        found = self.known.facts(link.passage_id)
        if found is None:
            return None
        title, facts = found
        header = noun_of_header(self.table.header[link.column])
        options = [noun for noun in (header, facts.noun) if noun and not _names(noun, title)]
        if not options and not facts.is_person:
            return None
        noun = self.chance.choice(options) if options else "person"
        return _Entity(row, link.column, link.passage_id, title, f"the {noun}", facts)

    def _columns(self) -> list[int]:
        return [column for column, name in enumerate(self.table.header) if is_usable_header(name)]

    def _tells(self, row: int, column: int) -> bool:
        cell = self.table.rows[row][column].strip()
        is_said = any(character.isalnum() for character in cell) and cell.lower() not in ("n/a", "yes", "no", "unknown")
        return is_said and len(cell) <= 60

    def _conditions(self, entity: _Entity) -> str:
        """What other cells of the row say that no other row says; one cell or two."""
        row = self.table.rows[entity.row]
        columns = [
            column for column in self._columns()
            if column != entity.column and self._tells(entity.row, column)
            and len(row[column].split()) <= 6 and not _names(row[column], entity.title)
        ]  # fmt: skip
        self.chance.shuffle(columns)
        chosen = next(([column] for column in columns if self._rows_like(row, [column]) == 1), None)
        pairs = (list(pair) for pair in pairwise(columns))
        chosen = chosen or next((pair for pair in pairs if self._rows_like(row, pair) == 1), [])
        return " and ".join(condition(self.table.header[column], row[column], self.chance) for column in chosen)

    def _rows_like(self, row: Sequence[str], columns: Sequence[int]) -> int:
        return sum(all(other[c] == row[c] for c in columns) for other in self.table.rows)

    def _about(self, kind: str, entity: _Entity, described: str) -> SyntheticQuestion:
        fact = self.chance.choice(entity.facts.facts)
        form = self.chance.choice(fact.forms)
        return self._question(kind, entity, described, fact.answer, lambda np: form.format(np=np))

    def _question(
        self, kind: str, entity: _Entity, described: str, answer: str, ask: Callable[[str], str]
    ) -> SyntheticQuestion:
        place = ""
        if self.chance.random() < CONTEXT[kind]:
            place = place_of(self.table.title, self.table.section, self.chance)
        is_first = self.chance.random() < 0.3
        text = ask(f"{described} {place}" if place and not is_first else described)
        if place and is_first and text:
            text = f"{place} , {text[:1].lower()}{text[1:]}"
        text = " ".join(text.split())
        text = text[:1].upper() + text[1:]
        return SyntheticQuestion(text, answer, self.table.table_id, entity.row, entity.column, entity.passage_id, kind)


def _names(text: str, title: str) -> bool:
    """Whether a text holds a word of a name."""
    return bool({w for w in re.findall(r"\w+", title.lower()) if len(w) > 3} & set(re.findall(r"\w+", text.lower())))


def _is_sound(made: SyntheticQuestion) -> bool:
    """The answer must not stand in the question, which must have a fair length."""
    words = made.question.split()
    is_told = re.search(rf"(?<!\w){re.escape(made.answer.lower())}(?!\w)", made.question.lower())
    return 6 <= len(words) <= 42 and not is_told


def _key(question: str) -> str:
    return " ".join(re.findall(r"\w+", question.lower()))


def write_questions(questions: Iterable[SyntheticQuestion], path: Path) -> dict[str, int]:
    """Write a question file (.jsonl or .jsonl.gz), the same bytes for the same questions; returns counts by kind."""
    made = list(questions)
    write_records((question.record() for question in made), path)
    return dict(sorted(Counter(question.kind for question in made).items()))
