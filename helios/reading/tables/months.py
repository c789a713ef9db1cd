"""The month of each row, where a question asks for one: "which month brought in the most?"

Date         Fee                Date         Fee   month
2026-05-01   40          ->     2026-05-01   40    May
2026-06-12   25                 2026-06-12   25    June
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from helios.index.languages import recognise
from helios.reading.tables.said_dates import are_days, calendar_of
from helios.reading.tables.sheet import Joined, Kind, Sheet

MOST_DATES = 3
"""Columns of dates of a table that months are read from."""
_BEST = r"best|worst|top|peak|\w+est|most \w+|least \w+"
_ASKED = re.compile(
    r"\b(?:which|what) (?:calendar )?month\b|\bwelche[rmns]? monat\b|\bquel mois\b|\b(?:qué|que|cuál) mes\b|"
    rf"哪一?个?月|几月|^\W*(?:(?:what|which|when)(?:['’]s| is| was| has been)? )?(?:the |our |my )?(?:{_BEST}) month\b"
    r"|^\W*(?:was war )?(?:unser |der |mein )?\w+ste[rn]? monat\b"
    r"|^\W*(?:quel (?:est|était|fut) )?(?:le |notre )?(?:meilleur|pire) mois\b"
    r"|^\W*(?:cuál (?:es|fue) )?(?:el |nuestro )?(?:mejor|peor) mes\b",
    re.IGNORECASE,
)
"""Questions that a month answers."""
_NAMES = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "zh": "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月",
}
_HEADERS = {"de": "Monat", "fr": "mois", "es": "mes", "zh": "月份"}


@dataclass(frozen=True, slots=True)
class Months(Joined):
    """The months of a column of dates."""

    names: Sequence[str] = ()

    @property
    def is_month(self) -> bool:
        """It is."""
        return True

    @property
    def header(self) -> str:
        """What the column is called."""
        return self.names[0]

    @property
    def cells(self) -> tuple[str, ...]:
        """Their names (R), with the year where there are several; empty where there is no date."""
        values = self.sheet.columns[self.column].values
        known = are_days(values)
        years, months, _ = calendar_of(np.where(known, values, 1.0))
        several = len(np.unique(years[known])) > 1
        said = [
            f"{self.names[month]} {year}" if several else self.names[month]
            for year, month in zip(years, months, strict=True)
        ]
        return tuple(text if there else "" for text, there in zip(said, known.tolist(), strict=True))


def months_asked(question: str) -> str:
    """The language of a question that a month answers; empty for any other question."""
    return (recognise(question) or "en") if _ASKED.search(question) else ""


def with_months(sheet: Sheet, language: str) -> Sheet:
    """A sheet with the months of its dates beside its columns, in a language; without dates of several months as it
    is."""
    names = (_HEADERS.get(language, "month"), *_NAMES.get(language, _NAMES["en"]).split())
    return sheet.joining(_months(sheet, names))


def _months(sheet: Sheet, names: Sequence[str]) -> Iterator[Joined]:
    dates = [at for at, column in enumerate(sheet.columns[: sheet.own]) if column.kind is Kind.DATE]
    for at in dates[:MOST_DATES]:
        one = Months(sheet, at, at, np.arange(sheet.size), names)
        if len({cell for cell in one.cells if cell}) > 1:
            yield one
