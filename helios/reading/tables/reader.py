"""The reader of tables: the likeliest program over the tables of the evidence, its answer, and how sure it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.bounded import Bounded
from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.models.card import read_card
from helios.models.encoder import TokenEncoder, TokenVectors
from helios.models.routes import Runtime
from helios.models.trees import Trees
from helios.reading.base import Citation
from helios.reading.question import ask_in_any_language, yes_or_no
from helios.reading.rivals import Rival
from helios.reading.tables import candidates, columns, editions
from helios.reading.tables.beside import rival_of
from helios.reading.tables.candidates import (
    AskedTable,
    TableFacts,
    TablePrograms,
    TableQuestion,
    asked_table,
    programs_of,
)
from helios.reading.tables.columns import ColumnReader, TableText, column_features
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.heard import heard_in
from helios.reading.tables.joins import Corpus, Joins
from helios.reading.tables.matching import few_values, question_words
from helios.reading.tables.months import months_asked, with_months
from helios.reading.tables.naming import with_names
from helios.reading.tables.others import Others
from helios.reading.tables.programs import COMPUTING, OPS, Program, Result, execute
from helios.reading.tables.series import down_the_page
from helios.reading.tables.sheet import Place, Sheet
from helios.reading.tables.stacks import Stacks
from helios.reading.tables.wording import wording_of
from helios.types import Evidence, SegmentId

FloatArray = NDArray[np.float32]
TABLES = 6
"""Tables of the evidence that are read, best first."""
EVIDENCE_ROWS = 3
"""Best rows of a table that a question may be about without naming them."""
STACKS = 3
"""Stacks of tables that are read, those of the best tables."""
COMPARED = 10
"""Best edges that a table's share is counted over."""
LARGEST = 400_000
"""Cells of a table that is read whole; a larger one is left to the other reader."""
KEPT_SHEETS = 64
"""Tables that are kept ready."""


BEHIND = ("read_total", "read_table", "read_where", "set_content", "header_rest", "header_coverage", "title_similarity")
AMONG = tuple(f"{name}_behind" for name in BEHIND)
"""How far a program is behind the best of all tables."""
FEATURES = (*candidates.FEATURES, *columns.FEATURES, *editions.FEATURES, *AMONG)
WEIGHTS = Path(__file__).parent / "weights"
ROLE = "table-reader"
TREES = "trees.txt"
EXECUTED = 40
"""Best programs that are executed, over all tables."""
DOUBTS = (
    "unexplained", "most_unexplained", "words_unexplained", "table_probability", "row_probability", "table_rank",
    "title_similarity", "from_evidence", "least_share", "set_content", "header_rest", "content", "unused",
    "read_table", "read_column", "read_where", "read_total", "read_total_behind", "edition", "money_fits",
)  # fmt: skip
"""Features of the best program that its confidence is read from."""


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table ready for questions, with the vectors of its columns' names and, last, of its title."""

    sheet: Sheet
    headers: tuple[TokenVectors, ...]
    values: tuple[tuple[int, int, TokenVectors], ...]
    """(column, key, vectors) of the values of columns that have few."""


class Sheets:
    """The tables of a corpus, the last ones kept ready; threads may share it."""

    def __init__(self, corpus: Corpus, encoder: TokenEncoder) -> None:
        self.tables, self.encoder = corpus.tables, encoder
        self.joins = Joins(corpus, self.sheet)
        self.others = Others(self)
        self._sheets: Bounded[str, Sheet | None] = Bounded(KEPT_SHEETS)
        self._joined: Bounded[str, Sheet | None] = Bounded(KEPT_SHEETS)
        self._kept: Bounded[tuple[str, bool, str], ReadTable | None] = Bounded(KEPT_SHEETS)
        self.stacks = Stacks(self.joins.tables_of_a_folder, self.sheet, self.joined)
        self._series: Bounded[str, tuple[ReadTable, ...]] = Bounded(KEPT_SHEETS)
        self._stacked: Bounded[tuple[int, str], ReadTable] = Bounded(KEPT_SHEETS)

    def sheet(self, table_id: str) -> Sheet | None:
        """A table as it is; None for one that is too large."""
        return self._sheets.of(table_id, lambda: self._sheet(table_id))

    def joined(self, table_id: str) -> Sheet | None:
        """The same with columns of the tables that it refers to."""
        return self._joined.of(table_id, lambda: self._join(table_id))

    def get(self, table_id: str, *, joined: bool = True, months: str = "") -> ReadTable | None:
        """The same with vectors; `months` is the language in which those of its dates stand beside, if they are asked
        for."""
        return self._kept.of((table_id, joined, months), lambda: self._read(table_id, joined=joined, months=months))

    def series(self, table_id: str) -> tuple[ReadTable, ...]:
        """What of a table lies across the page, down the page, with vectors; nothing of most tables."""
        return self._series.of(table_id, lambda: self._down(table_id))

    def stack(self, number: int, *, months: str = "") -> ReadTable:
        """Tables that go on in one another, one below the other, with vectors; by the number that `stacks` gives."""
        return self._stacked.of(
            (number, months), lambda: self._with_vectors(_beside(self.stacks.sheet(number), months))
        )

    def _down(self, table_id: str) -> tuple[ReadTable, ...]:
        sheet = self.sheet(table_id)
        return () if sheet is None else tuple(self._with_vectors(one) for one in down_the_page(sheet))

    def _sheet(self, table_id: str) -> Sheet | None:
        table = self.tables.get(table_id)
        return Sheet.of(table) if table.rows and len(table.rows) * len(table.header) <= LARGEST else None

    def _join(self, table_id: str) -> Sheet | None:
        sheet = self.sheet(table_id)
        return None if sheet is None else sheet.joining(self.joins.of(sheet))

    def _read(self, table_id: str, *, joined: bool, months: str = "") -> ReadTable | None:
        sheet = self.joined(table_id) if joined else self.sheet(table_id)
        return None if sheet is None else self._with_vectors(_beside(sheet, months))

    def _with_vectors(self, sheet: Sheet) -> ReadTable:
        table = sheet.table
        title = " ".join(dict.fromkeys(part for part in (table.title, table.section) if part))
        texts = [spelled_out(column.header) or " " for column in sheet.columns] + [title or " "]
        few = few_values(sheet)
        texts += [sheet.columns[column].cells[row] for column, _, row in few]
        vectors = list(self.encoder.encode_documents(texts))
        headers = len(sheet.columns) + 1
        values = ((column, key, found) for (column, key, _), found in zip(few, vectors[headers:], strict=True))
        return ReadTable(sheet, tuple(vectors[:headers]), tuple(values))


def _beside(sheet: Sheet, months: str) -> Sheet:
    return with_months(sheet, months) if months else sheet


def table_question(question: str, vectors: TokenVectors) -> TableQuestion:
    """A question taken apart once for all tables; `vectors` are those of its tokens."""
    return TableQuestion(ask_in_any_language(question), tuple(question_words(question)), wording_of(question), vectors)


def table_facts(evidence: Evidence, *, tables: int = TABLES) -> list[tuple[str, TableFacts]]:
    """The first tables of the evidence, best first, with where they stand in it."""
    rows: dict[str, list[tuple[int, int, float]]] = {}
    chances: dict[str, float] = {}
    for edge in evidence.edges:
        if edge.segment is not None:
            table_id, row = edge.segment.segment_id.table_id, edge.segment.segment_id.row
            known = rows.setdefault(table_id, [])
            if row not in {seen for _, seen, _ in known}:
                known.append((edge.rank, row, edge.probability))
            chances[table_id] = max(chances.get(table_id, 0.0), edge.probability)
    found = []
    for number, (table_id, ranked) in enumerate(list(rows.items())[:tables]):
        share = sum(rank <= COMPARED for rank, _, _ in ranked) / COMPARED
        best = tuple(ranked[:EVIDENCE_ROWS])
        found.append((table_id, TableFacts(number, share, chances[table_id], evidence.present, best)))
    return found


def all_programs(
    reading: TableQuestion, evidence: Evidence, sheets: Sheets, reader: ColumnReader
) -> list[TablePrograms]:
    """The programs over each of the first tables and of others that the question may be about, with all features."""
    chosen = table_facts(evidence)
    if not evidence.filtered:
        others = sheets.others.of(reading, {table for table, _ in chosen}, reader)
        places = enumerate(others, start=len(chosen))
        chosen += [(table, TableFacts(place, 0.0, 0.0, evidence.present, ())) for place, table in places]
    tables = _asked_tables(reading, chosen, sheets, joined=not evidence.filtered)
    readings = reader.read(reading.asked.text, [TableText.of(one.sheet, one.sets) for one in tables])
    found = [programs_of(one, heard_in(said)) for one, said in zip(tables, readings, strict=True)]
    said = editions.edition_features(reading.asked.text, [one.sheet for one in found])
    added = zip(found, column_features(found, readings), said, strict=True)
    features = [np.hstack([one.features, more, np.tile(edition, (len(more), 1))]) for one, more, edition in added]
    return [replace(one, features=own) for one, own in zip(found, _with_gaps(features), strict=True)]


def _with_gaps(features: Sequence[FloatArray]) -> list[FloatArray]:
    """Features of the programs of each table, and how far each program is behind the best of all in some of them."""
    known = FEATURES[: -len(AMONG)]
    at = [known.index(name) for name in BEHIND]
    best = np.array([max((own[:, one].max() for own in features if len(own)), default=0.0) for one in at])
    return [np.hstack([own, own[:, at] - best]).astype(np.float32) for own in features]


def plain_programs(
    reading: TableQuestion, tables: Sequence[tuple[str, TableFacts]], sheets: Sheets, *, joined: bool = True
) -> list[TablePrograms]:
    """The programs over each of the tables, without what the reader of columns says."""
    return [programs_of(one) for one in _asked_tables(reading, tables, sheets, joined=joined)]


def _asked_tables(
    reading: TableQuestion, tables: Sequence[tuple[str, TableFacts]], sheets: Sheets, *, joined: bool
) -> list[AskedTable]:
    found = []
    stacks: dict[int, TableFacts] = {}
    months = months_asked(reading.asked.text)
    for table_id, facts in tables:
        read = sheets.get(table_id, joined=joined, months=months)
        for number in sheets.stacks.of(table_id) if joined else ():
            stacks.setdefault(number, replace(facts, rows=()))
        if read is not None:
            if read.sheet.lies and facts.rows:
                rank, _, chance = facts.rows[0]
                facts = replace(facts, rows=((rank, 0, chance),))
            found.append(asked_table(reading, read.sheet, facts, read.headers, read.values))
            elsewhere = replace(facts, rows=())
            found += [
                asked_table(reading, one.sheet, elsewhere, one.headers, one.values) for one in sheets.series(table_id)
            ]
    for number, facts in list(stacks.items())[:STACKS]:
        read = sheets.stack(number, months=months)
        found.append(asked_table(reading, read.sheet, facts, read.headers, read.values))
    return found


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """An answer that a program gives, and how often such answers are right."""

    program: Program
    result: Result
    confidence: float
    text: str
    """In the language of the question."""

    @property
    def is_computed(self) -> bool:
        """Whether the answer is a value that stands in no cell."""
        return self.program.op in COMPUTING

    @property
    def rival(self) -> Rival:
        """How it is read beside other answers."""
        return rival_of(self.program, self.result)

    def citations(self) -> tuple[Citation, ...]:
        """The cells that were used."""
        sheet = self.program.sheet
        return _cited(place for cell in self.result.cells for place in sheet.places(*cell))

    def named(self) -> tuple[str, tuple[Citation, ...]]:
        """The answer with what its codes stand for in another table, and the cells that say so; empty where there is
        nothing to add."""
        found = with_names(self.program, self.result)
        return ("", ()) if found is None else (found.text, _cited(found.places))


def _cited(places: Iterable[Place]) -> tuple[Citation, ...]:
    return tuple(
        Citation(at.text, SegmentId(at.table.table_id, at.row), at.column, end=len(at.text))
        for at in dict.fromkeys(places)
        if at.text
    )


@dataclass(frozen=True, slots=True)
class Confidence:
    """From the trees' shares to the chance that an answer is right."""

    temperature: float
    intercept: float
    share: float
    """Weight of the log-odds of the share."""
    doubts: Mapping[str, float]
    """Weights of features, by name (`DOUBTS`)."""
    ops: Mapping[str, float] = field(default_factory=dict)
    """Weights of operations: a yes or no is right more often by chance than a name."""

    def of(self, share: float, features: FloatArray) -> float:
        """The chance of an answer with this share whose best program has these features."""
        said = self.intercept + self.share * log_odds(share)
        said += sum(weight * float(features[FEATURES.index(name)]) for name, weight in self.doubts.items())
        said += self.ops.get(OPS[int(features[FEATURES.index("op")])], 0.0)
        return float(1 / (1 + np.exp(-said)))


def log_odds(share: float) -> float:
    """Of a share, held away from 0 and 1."""
    share = min(max(share, 1e-4), 1 - 1e-4)
    return float(np.log(share / (1 - share)))


def doubts_of(features: FloatArray) -> list[float]:
    """What a confidence is read from beside the share: `DOUBTS`, and which of the operations it is."""
    done = int(features[FEATURES.index("op")])
    return [*(float(features[FEATURES.index(name)]) for name in DOUBTS), *(float(at == done) for at in range(len(OPS)))]


@dataclass(frozen=True, slots=True)
class Executed:
    """The best programs of a question that have a result, best first."""

    programs: tuple[Program, ...]
    results: tuple[Result, ...]
    features: FloatArray
    scores: FloatArray

    def shares(self, temperature: float) -> list[tuple[int, float]]:
        """(number of its best program, share of all scores) of each answer, largest first: equal answers are one."""
        if not self.programs:
            return []
        shares = np.exp((self.scores - self.scores.max()) / temperature)
        shares /= shares.sum()
        best: dict[str, int] = {}
        sums: dict[str, float] = {}
        for number, result in enumerate(self.results):
            best.setdefault(result.key, number)
            sums[result.key] = sums.get(result.key, 0.0) + float(shares[number])
        return [(best[key], sums[key]) for key in sorted(best, key=lambda key: -sums[key])]


class TableReader:
    """Reads whole tables; holds no state of a question, so threads may share it."""

    def __init__(self, trees: Trees, confidence: Confidence, sheets: Sheets, reader: ColumnReader) -> None:
        self.trees, self.confidence, self.sheets, self.columns = trees, confidence, sheets, reader
        self._used = [FEATURES.index(name) for name in trees.features]

    @classmethod
    def load(
        cls, sheets: Sheets, folder: Path | None = None, *, runtime: Runtime = "auto",
        threads: int = 1,
    ) -> "TableReader":  # fmt: skip
        """The packaged weights, or those of a folder; ModelError for damaged or foreign files."""
        folder = folder or WEIGHTS
        card = read_card(folder, ROLE)
        card.check(folder, encoder=sheets.encoder.fingerprint)
        trees = Trees.read(folder / TREES)
        unknown = [name for name in trees.features if name not in FEATURES]
        if unknown:
            raise ModelError(f"{folder}: was trained on {unknown[0]!r}, which this version lacks; train it again")
        try:
            reader = ColumnReader(find_base_model(), folder / columns.FILE, runtime=runtime, threads=threads)
            return cls(trees, Confidence(**card.values["confidence"]), sheets, reader)
        except (KeyError, TypeError) as error:
            raise ModelError(f"{folder}: its card lacks the confidence ({error}); train it again") from error

    def over(self, sheets: Sheets) -> "TableReader":
        """The same models over other tables."""
        return TableReader(self.trees, self.confidence, sheets, self.columns)

    def read(self, question: str, vectors: TokenVectors, evidence: Evidence) -> list[TableAnswer]:
        """Answers from the tables of the evidence, likeliest first; none where no program has a result.

        `vectors` are those of the question's tokens.
        """
        executed = self.executed(table_question(question, vectors), evidence)
        return [
            TableAnswer(
                executed.programs[number], executed.results[number],
                self.confidence.of(share, executed.features[number]), answer_text(question, executed.results[number]),
            )
            for number, share in executed.shares(self.confidence.temperature)
        ]  # fmt: skip

    def executed(self, asked: TableQuestion, evidence: Evidence) -> Executed:
        """The best programs by the trees that have a result."""
        found = all_programs(asked, evidence, self.sheets, self.columns)
        return best_executed(found, [self.trees.sums(one.features[:, self._used]) for one in found])


def answer_text(question: str, result: Result) -> str:
    """A result in one line, yes and no in the language of the question."""
    return result.text if result.yes is None else yes_or_no(question, yes=result.yes)


def best_executed(found: list[TablePrograms], scores: list[NDArray[np.float64]], *, most: int = EXECUTED) -> Executed:
    """The best of all programs that give something."""
    order = [
        (float(score), table, number) for table, all_of in enumerate(scores) for number, score in enumerate(all_of)
    ]
    order.sort(key=lambda item: (-item[0], item[1], item[2]))
    kept: list[tuple[Program, Result, FloatArray, float]] = []
    for score, table, number in order[: 5 * most]:
        program = found[table].program(number)
        result = execute(program)
        if result is not None:
            kept.append((program, result, found[table].features[number], score))
        if len(kept) == most:
            break
    features = np.array([one[2] for one in kept], np.float32).reshape(len(kept), len(FEATURES))
    values = np.array([one[3] for one in kept], np.float32)
    return Executed(tuple(one[0] for one in kept), tuple(one[1] for one in kept), features, values)
