"""Days and times of day, as cells hold them and as questions name them, in English, German, French, Spanish, Chinese.

    read_day("Mi., 7. März 24")                         738952, as date.toordinal
    read_time("18.30 Uhr")                              1110 minutes
    said_times("before ten past nine in the evening")   1270 minutes, and where they are said

`helios.retrieval.refinement.dates` reads the English dates of an encyclopedia; what people write is put into its words.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from helios.retrieval.refinement.dates import read_date
from helios.retrieval.refinement.values import tidy

LONGEST_DATE = 40
"""Characters of a cell that may be a date or a time."""
DAY_MINUTES = 24 * 60
LEAP_DAY = 60
"""`read_date` counts days without a year in a leap year; here they lie in year 1, which is none."""
LAST_CENTURY = 50
"""Years of two digits from here on are of the last century."""
_MONTHS = (
    "jan januar january janvier janv enero ene 一月 1月",
    "feb februar february février fevrier févr febrero 二月 2月",
    "mar march mär märz maerz mars marzo 三月 3月",
    "apr april avril avr abril abr 四月 4月",
    "may mai mayo 五月 5月",
    "jun june juni juin junio 六月 6月",
    "jul july juli juillet juil julio 七月 7月",
    "aug august août aout agosto ago 八月 8月",
    "sep sept september septembre septiembre 九月 9月",
    "oct okt october oktober octobre octubre 十月 10月",
    "nov november novembre noviembre 十一月 11月",
    "dec dez december dezember décembre decembre déc diciembre dic 十二月 12月",
)
MONTHS = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
MONTH = "|".join(sorted((re.escape(name) for name in MONTHS), key=len, reverse=True))
"""A pattern of the names of months."""
_ENGLISH = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
            "November", "December")  # fmt: skip
_WEEKDAYS = (
    "monday montag lundi lunes 星期一 周一",
    "tuesday dienstag mardi martes 星期二 周二",
    "wednesday mittwoch mercredi miércoles miercoles 星期三 周三",
    "thursday donnerstag jeudi jueves 星期四 周四",
    "friday freitag vendredi viernes 星期五 周五",
    "saturday samstag sonnabend samedi sábado sabado 星期六 周六",
    "sunday sonntag dimanche domingo 星期日 星期天 周日",
)
WEEKDAYS = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
_SHORT_DAYS = "mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mer|jeu|ven|sam|dim|mié|jue|vie|sáb|dom"
_WEEKDAY = re.compile(rf"^(?:{'|'.join(WEEKDAYS)}|{_SHORT_DAYS})\b\.?,?\s*(?=\d)", re.IGNORECASE)
_UNSPACED = re.compile(r"^(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号])?$")
_NAMES = "|".join(name for name in MONTH.split("|") if not name.endswith("月"))
_NAMED = re.compile(
    rf"^(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?[-\s./]*(?:of |de |d')?\s*(?P<month>{_NAMES})\b\.?"
    r"(?:[-\s.,/]*(?:de |del )?['’]?(?P<year>\d{4}|\d{2})(?!\d))?$",
    re.IGNORECASE,
)
_MONTH_YEAR = re.compile(
    rf"^(?P<month>{MONTH})\b\.?(?:\s*(?:de |del )?(?P<year>\d{{4}})|\s*[-/'’]\s*(?P<short>\d{{2}}))$", re.I
)
_SHORT = re.compile(r"^(?P<day>\d{1,2})(?P<sign>[./])(?P<month>\d{1,2})(?P=sign)(?P<year>\d{2}|\d{4})$")
_NO_YEAR = re.compile(r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.$")
_NUMBERED = re.compile(r"^(?P<month>\d{1,2})/(?P<year>(?:19|20)\d{2})$")
_NO_UNIT = rf"(?:{MONTH}|spring|summer|autumn|fall|winter|bce?|ad|ce|to|until|till|onwards?|present|now|bis|à|hasta|年)"
"""Words behind a year; others make an amount of it."""
_AMOUNT = re.compile(rf"^\d{{4}}(?:\s*[℃℉°%‰€£$¥′″Ω]|(?!s\b)\s*(?!{_NO_UNIT}(?![^\W\d_]))[^\W\d_])\D*$", re.IGNORECASE)
"""1640 m and 1280℃, which are no years."""
_CLOCK = re.compile(r"[T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$")
_TIME = re.compile(
    r"^(?:(?:c\.|ca\.?|approx\.?|~|um|à|ab|from) ?)?(?P<hour>\d{1,3})"
    r"(?:[:h](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?|\.(?P<dotted>[0-5]\d)(?= ?(?:uhr|[ap]\.?m))"
    r"|(?= ?(?:[ap]\.?m|uhr)))"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: ?(?:uhr|hrs?|h))?"
    r"(?: ?(?:-|–|to|bis|à) ?\d{1,2}(?:[:h.][0-5]\d)?(?: ?[ap]m)?(?: ?(?:uhr|h))?)?$",
    re.IGNORECASE,
)
_MAY_BE_TIME = re.compile(r"\d\s?(?:[:：hua]|\.\d\d\s?[uap]|p\.?m)", re.IGNORECASE)
"""Most cells hold nothing like a time, and every cell is asked."""
_CLOCK_TIME = re.compile(r"^0\d[:h]|^(?:1[3-9]|2[0-4])[:h]|[ap]\.?m|uhr", re.IGNORECASE)


def are_month_first(cells: Iterable[str]) -> bool:
    """Whether 04/02/24 is the second of April in these cells: some second number is no month, and no first one is a day
    alone."""
    found = [match for cell in cells if (match := _SHORT.match(cell.strip()))]
    return any(int(match["month"]) > 12 for match in found) and all(int(match["day"]) <= 12 for match in found)


def read_day(cell: str, *, month_first: bool = False) -> float:
    """The first day of what a cell covers, as `date.toordinal`; year 1 for one without a year, NaN for no date."""
    text = tidy(cell) if len(cell) <= 2 * LONGEST_DATE else ""
    if len(text) > LONGEST_DATE or not any(c.isdigit() for c in text):
        return np.nan
    text = _plain(_CLOCK.sub("", _WEEKDAY.sub("", text)), month_first=month_first)
    numbers = re.fullmatch(r"[\d.,\s]+", text) and not re.match(r"^\d{1,4}[./-]\d{1,2}[./-]\d{2,4}$", text)
    if numbers or _AMOUNT.match(text):
        return np.nan
    try:
        when = read_date(text)
    except (ValueError, OverflowError):  # 9999-12-31 stands for no end
        return np.nan
    if when is None:
        return np.nan
    return when.start - (LEAP_DAY <= when.start <= LEAP_DAY + 306)


def _plain(text: str, *, month_first: bool) -> str:
    """A date as `read_date` knows it; any other text as it is."""
    if found := _NAMED.match(text):
        return _english(found["day"], MONTHS[found["month"].casefold()], found["year"])
    if found := _MONTH_YEAR.match(text):
        return _english(None, MONTHS[found["month"].casefold()], found["year"] or found["short"])
    for pattern in (_UNSPACED, _SHORT, _NO_YEAR, _NUMBERED):
        found = pattern.match(text)
        if found:
            day, month, year = (found.groupdict().get(name) for name in ("day", "month", "year"))
            if pattern is _SHORT and (month_first or int(month or 0) > 12):
                day, month = month, day
            if 1 <= int(month or 0) <= 12:
                return _english(day, int(month or 0), year)
    return text


def _english(day: str | None, month: int, year: str | None) -> str:
    if year is not None and len(year) == 2:
        year = f"{19 if int(year) >= LAST_CENTURY else 20}{year}"
    return " ".join(part for part in (day, _ENGLISH[month - 1], year) if part)


def read_time(cell: str) -> float:
    """Minutes since midnight, or of a duration written alike; NaN for a cell that holds none."""
    if len(cell) > LONGEST_DATE or not _MAY_BE_TIME.search(cell):
        return np.nan
    found = _TIME.match(tidy(cell))
    if found is None:
        return np.nan
    hour = int(found["hour"])
    if found["half"]:
        if hour > 12:
            return np.nan
        hour = hour % 12 + (12 if found["half"].casefold() == "p" else 0)
    minute = int(found["minute"] or found["dotted"] or 0)
    return float(60 * hour + minute) + int(found["second"] or 0) / 60


def has_clock_times(cells: Iterable[str]) -> bool:
    """Whether times of these cells are times of day: 09:10, 18:45 or 6pm among them; 4:30 may be a length."""
    return any(_CLOCK_TIME.search(cell.strip()) for cell in cells)


def as_long_as(minutes: float) -> str:
    """A length as such cells have it, whether they mean hours and minutes or minutes and seconds: 0:45."""
    return f"{int(minutes // 60)}:{round(minutes % 60):02d}"


@dataclass(frozen=True, slots=True)
class SaidTime:
    """A time of day of a question: its minutes, two where the half of the day is open, and its characters."""

    minutes: tuple[int, ...]
    start: int
    end: int


_HOURS = {
    word: number
    for number, words in enumerate(
        ("one eins un une una", "two zwei deux dos", "three drei trois tres", "four vier quatre cuatro",
         "five fünf cinq cinco", "six sechs seis", "seven sieben sept siete", "eight acht huit ocho",
         "nine neun neuf nueve", "ten zehn dix diez", "eleven elf onze once", "twelve zwölf douze doce"), start=1)
    for word in words.split()
}  # fmt: skip
_PAST = {"five": 5, "ten": 10, "a quarter": 15, "quarter": 15, "twenty": 20, "twenty-five": 25, "half": 30}
_HOUR = rf"\d{{1,2}}|{'|'.join(_HOURS)}"
_HALF = (
    r"(?:\s*(?P<half>a\.?m\.?|p\.?m\.?)(?!\w)|\s*(?P<part>in the (?:morning|afternoon|evening)|at night|"
    r"morgens|nachmittags|abends|du matin|du soir|de la (?:mañana|tarde|noche)))?"
)
_BY = (
    r"(?:before|after|until|till|by|from|to|past|since|at|around|than|between|and|"
    r"vor|nach|um|ab|von|zwischen|bis|gegen|avant|après|apres|à|dès|entre|vers|"
    r"antes de las?|después de las?|a las?|desde las?|hasta las?|entre las?|y las?)"
)
_BEHIND = "and|und|et|y|to|bis|in|at|morgens|abends|nachmittags|du|de"
"""Words that may follow an hour which is named by its number alone."""
_SAID_TIMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?P<hour>\d{{1,2}})(?:[:h]|(?<=\d)\.)(?P<minute>[0-5]\d)(?!\d|[.,]\d)(?:\s*uhr\b|\s*h\b)?{_HALF}",
        rf"\b(?P<hour>{_HOUR})(?:\s*(?:o['’]?clock|uhr|heures|h)\b|(?=\s*[ap]\.?m\b)){_HALF}",
        rf"\b(?<!from )(?<!between )(?P<past>{'|'.join(sorted(_PAST, key=len, reverse=True))}) "
        rf"(?P<way>past|to) (?P<hour>{_HOUR})\b{_HALF}",
        rf"\b{_BY} (?P<hour>{_HOUR})\b(?!\s*[%€£$]|[.,:/-]?\d|\w)(?!\s+(?!(?:{_BEHIND})\b)\w){_HALF}",
        r"\b(?P<named>noon|midday|midnight|mittags?|minuit|midi|mediodía|medianoche)\b",
    )
)  # fmt: skip


def said_times(question: str) -> Iterator[SaidTime]:
    """Times of day that a question names, in order."""
    yield from sorted(_said_times(question), key=lambda time: time.start)


def _said_times(question: str) -> Iterator[SaidTime]:
    taken: list[tuple[int, int]] = []
    for pattern in _SAID_TIMES:
        for found in pattern.finditer(question):
            parts = found.groupdict()
            start = found.start("hour") if parts.get("hour") and not parts.get("past") else found.start()
            if any(start < end and found.end() > first for first, end in taken):
                continue
            minutes = _minutes(parts)
            if minutes:
                taken.append((start, found.end()))
                yield SaidTime(minutes, start, found.end())


def _minutes(parts: dict[str, str | None]) -> tuple[int, ...]:
    if parts.get("named"):
        named = str(parts["named"]).casefold()
        return (0,) if named in ("midnight", "minuit", "medianoche") else (720,)
    said = str(parts["hour"]).casefold()
    hour = int(said) if said.isdigit() else _HOURS[said]
    if hour > 24:
        return ()
    minute = int(parts.get("minute") or 0)
    if parts.get("past"):
        minute = _PAST[str(parts["past"]).casefold()]
        hour, minute = (hour, minute) if parts["way"] == "past" else (hour - 1, 60 - minute)
    half, part = (parts.get("half") or "").casefold(), (parts.get("part") or "").casefold()
    late = half.startswith("p") or any(word in part for word in ("after", "evening", "night", "nach", "abend", "soir"))
    late = late or any(word in part for word in ("tarde", "noche"))
    if ("night" in part or "noche" in part) and hour % 12 < 6:
        late = False  # one at night is after midnight
    if late or half or part:
        return (60 * (hour % 12 + (12 if late else 0)) + minute,)
    first = 60 * hour + minute
    return (first,) if hour > 12 or said.startswith("0") else (first, (first + 720) % 1440)
