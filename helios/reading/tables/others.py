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

from helios.reading.tables.candidates import TableQuestion
from helios.reading.tables.columns import ColumnReader, TableText
from helios.reading.tables.matching import matches_of
from helios.reading.tables.sheet import words_of

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
        matches = matches_of(reading.asked.text, reading.words, reading.wording, sheet, ())
        return TableText.of(sheet, [(match,) for match in matches])

    @cached_property
    def _words(self) -> Mapping[str, frozenset[str]]:
        """The words of the titles, headers and values of all tables, with those that are joined to them."""
        found = {}
        for table in self.sheets.joins.tables_of_a_folder():
            sheet = self.sheets.joined(table)
            if sheet is not None:
                said = f"{sheet.table.source} {sheet.table.title} {sheet.table.section}"
                headers = (word for column in sheet.columns for word in column.words)
                found[table] = frozenset((*words_of(said), *headers, *sheet.postings))
        return found
