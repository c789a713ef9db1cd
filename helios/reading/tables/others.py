"""Tables of a folder that a question may be about although the search found none of their rows.

"How many bikes did Kasia repair in May?" finds Kasia among the staff; the job cards have her initials, and no word of
the question. Only a corpus of a folder's size is looked through: its tables by the words that they hold, and the best
of these by the reader of columns.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from math import log
from threading import Lock
from typing import TYPE_CHECKING

from helios.index.lexical import terms_of
from helios.reading.tables.candidates import TableQuestion
from helios.reading.tables.columns import ColumnReader, TableText
from helios.reading.tables.compared import compared_matches
from helios.reading.tables.headers import spelled_out
from helios.reading.tables.matching import matches_of
from helios.reading.tables.sheet import WORD
from helios.types import Table

if TYPE_CHECKING:
    from helios.reading.tables.reader import Sheets

READ = 16
"""Tables that the reader of columns is shown, those that hold most of the question's words."""
OTHERS = 3
"""Tables that are read beside those of the evidence."""
LEAST = -2.0
"""Log-odds of the question being about a table, from which on it is read."""


class Others:
    """The words of the tables of a corpus, gathered when they are first asked for; threads may share it."""

    def __init__(self, sheets: "Sheets") -> None:
        self.sheets = sheets
        self._lock = Lock()

    def of(self, reading: TableQuestion, found: Collection[str], reader: ColumnReader) -> list[str]:
        """Ids of the likeliest tables beside those that were found, likeliest first."""
        with self._lock:
            words = self._words
        asked = {word.text for word in reading.words if not word.stop}
        counts = Counter(word for own in words.values() for word in own & asked)
        held = {
            table: sum(log(1 + len(words) / counts[word]) for word in own & asked)
            for table, own in words.items()
            if table not in found
        }
        best = sorted(held, key=lambda table: -held[table])[:READ]
        texts = {table: text for table in best if (text := self._text(reading, table)) is not None}
        odds = [one.table for one in reader.read(reading.asked.text, list(texts.values()))] if texts else []
        likely = sorted(zip(odds, texts, strict=True), key=lambda pair: -pair[0])
        return [table for chance, table in likely[:OTHERS] if chance >= LEAST]

    def _text(self, reading: TableQuestion, table: str) -> TableText | None:
        sheet = self.sheets.joined(table)
        if sheet is None:
            return None
        beside = compared_matches(reading.asked.text, reading.words, reading.wording, sheet)
        matches = matches_of(reading.asked.text, reading.words, reading.wording, sheet, (), beside=beside)
        return TableText.of(sheet, [(match,) for match in matches])

    @cached_property
    def _words(self) -> Mapping[str, frozenset[str]]:
        """The words of the titles, headers and cells of all tables, with those of the tables that they refer to."""
        joins = self.sheets.joins
        own = {table: _words_of(self.sheets.tables.get(table)) for table in joins.tables_of_a_folder()}
        return {table: words.union(*(own[other] for other in joins.referred(table))) for table, words in own.items()}


def _words_of(table: Table) -> frozenset[str]:
    said = (table.source, table.title, table.section, *table.header, *map(spelled_out, table.header))
    different = set(WORD.findall(" ".join([*said, *(cell for row in table.rows for cell in row)])))
    return frozenset(term for word in different for term in terms_of(word))
