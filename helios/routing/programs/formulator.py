"""The likeliest programs over the tables of a small database, or of a property graph, as queries.

A program's result is known before its query is written. A query is kept only where the source gives the same: what SQL
compares or adds otherwise than the reader of tables is left out.
"""

import logging
import math
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from helios.errors import ModelError, SourceError
from helios.executors.base import NativeQuery, ResultSet
from helios.models.card import read_card
from helios.models.encoder import TokenEncoder
from helios.reading.tables.programs import Program, Result
from helios.reading.tables.reader import ROLE, WEIGHTS, Sheets, TableReader, table_question
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.plan import PlanError
from helios.routing.programs.compiling import Inexpressible, plan_of
from helios.routing.programs.stored import StoredTables, text_of
from helios.sources.base import Source
from helios.sources.descriptor import GraphSchema, RelationalSchema
from helios.types import Evidence

log = logging.getLogger(__name__)

TRIED = 3
"""Programs of different results that are written as queries."""
FRESH = 300.0
"""Seconds for which tables are kept; what has changed since then is read again."""


@dataclass(frozen=True)
class _Kept:
    """The tables of a source, None for one that is too large or cannot be read, and when they were read."""

    schema: RelationalSchema | GraphSchema
    stored: StoredTables | None
    reader: TableReader | None
    read: float


def reads(encoder: TokenEncoder) -> bool:
    """Whether the packaged reader of tables was made for this encoder."""
    try:
        read_card(WEIGHTS, ROLE).check(WEIGHTS, encoder=encoder.fingerprint)
    except ModelError as error:
        log.info("databases are not read as tables: %s", error)
        return False
    return True


class ProgramFormulator:
    """Queries that say what the reader of tables computes; threads may share it."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder = encoder
        self._reader: TableReader | None = None
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()
        self._reading: dict[str, Lock] = {}

    def formulate(self, question: str, source: Source) -> list[Candidate]:
        """Queries best first; none for a database that is too large to be held in memory, or whose tables cannot all be
        read.

        Raises ModelError where the packaged reader of tables was made for another encoder.
        """
        schema = source.descriptor().schema
        if not isinstance(schema, RelationalSchema | GraphSchema):
            return []
        with self._lock:
            own = self._reading.setdefault(source.name, Lock())
        with own:  # others need not wait for a source that is slow
            kept = self._tables(source, schema)
        if kept.stored is None or kept.reader is None:
            return []
        asked = table_question(question, self.encoder.encode_question(question))
        found = kept.reader.executed(asked, Evidence(question, ()))
        candidates: dict[str, Candidate] = {}
        for number, share in found.shares(kept.reader.confidence.temperature)[:TRIED]:
            program, result = found.programs[number], found.results[number]
            chance = kept.reader.confidence.of(share, found.features[number])
            query = self._query(program, result, kept, source)
            if query is not None:
                candidates.setdefault(query.text, Candidate(query, chance, _explain(program)))
        return sorted(candidates.values(), key=lambda one: -one.confidence)

    def _query(self, program: Program, result: Result, kept: _Kept, source: Source) -> NativeQuery | None:
        """The query of a program, where the source gives the program's result."""
        assert kept.stored is not None and kept.reader is not None
        references = kept.reader.sheets.joins.references(program.sheet.table.table_id)
        try:
            plan = plan_of(program, kept.stored, references)
            query = kept.stored.write(plan)
            return query if says(source.execute(query), result) else None
        except (Inexpressible, PlanError, SourceError) as error:
            log.debug("the program %s is no query: %s", program, error)
            return None

    def _tables(self, source: Source, schema: RelationalSchema | GraphSchema) -> _Kept:
        """The tables as they were not long ago."""
        kept = self._kept.get(source.name)
        if kept is None or kept.schema != schema or monotonic() - kept.read > FRESH:
            stored = _read(source, schema)
            reader = None if stored is None else self._over(Sheets(stored, self.encoder))
            kept = self._kept[source.name] = _Kept(schema, stored, reader, monotonic())
        return kept

    def _over(self, sheets: Sheets) -> TableReader:
        """The packaged reader of tables, loaded when the first database is read."""
        with self._lock:
            if self._reader is None:
                self._reader = TableReader.load(sheets)
            return self._reader.over(sheets)


def _read(source: Source, schema: RelationalSchema | GraphSchema) -> StoredTables | None:
    try:
        return StoredTables.of(source, schema)
    except SourceError as error:
        log.info("%s is not read as tables: %s", source.name, error)
        return None


def _explain(program: Program) -> str:
    return f"{program}; table {program.sheet.table.table_id}"


def says(found: ResultSet, result: Result) -> bool:
    """Whether the rows of a query are the items of a program, in any order unless theirs is a part of the answer."""
    rows = [" ".join(text for value in row if (text := text_of(value).strip())) for row in found.rows]
    said = [row for row in rows if row]
    if result.value is not None and len(result.items) == 1 and len(said) == 1:
        given = _number(said[0])
        if given is not None and math.isclose(given, result.value, rel_tol=1e-6, abs_tol=1e-9):
            return True
    keys, wanted = [_key(one) for one in said], [_key(one) for one in result.items]
    return keys == wanted if result.ordered else sorted(set(keys)) == sorted(set(wanted))


def _key(text: str) -> str:
    number = _number(text)
    return " ".join(text.split()).casefold() if number is None else f"{number:.9g}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
