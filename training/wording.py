"""How table headers, cells and titles are said in a question."""

import random
import re
from collections.abc import Sequence

SKIPPED_TEXT = """
notes note ref ref. refs references reference image images remarks remark comments comment source sources link links
website logo photo map coordinates details key # no no. no . № s.no
"""
SKIPPED = frozenset(SKIPPED_TEXT.split())
"""Headers whose cells are no answers."""
THINGS_TEXT = """
player athlete driver rider gymnast swimmer skier cyclist boxer wrestler golfer runner coach manager captain winner
champion runner-up director writer author artist singer actor actress performer producer composer songwriter
candidate incumbent governor senator representative president minister mayor chairman king queen ruler emperor pope
bishop pilot rower skater medalist nominee recipient inductee scientist engineer architect founder owner commander
leader jockey trainer horse team club school college university film movie show series song album single track book
novel game city town village county country nation state province district municipality region island river lake
mountain peak station airport stadium arena venue ground building bridge tower church museum hotel hospital company
manufacturer sponsor network channel publisher developer label studio newspaper magazine party organization
organisation league competition tournament race event circuit course ship vessel aircraft locomotive car engine
constructor opponent language species award festival street road route park castle dam mine theatre theater airline
operator conference sport discipline constituency airfield member alumnus graduate person birthplace hometown
institution site landmark monument franchise brand program programme institute
"""
THINGS = frozenset(THINGS_TEXT.split())
"""Last words of headers whose cells are things that a passage can describe."""
PREPOSITIONS = ("by", "from", "to", "in", "at", "of", "on", "as", "for", "with")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
PLURALS = re.compile(
    r"(?:goals|points|caps|wins|losses|laps|votes|seats|episodes|games|matches|medals|floors|students|members|titles|"
    r"appearances|assists|rebounds|runs|wickets|tries|starts|passengers|employees|copies|viewers|stations|platforms)$"
)
NUMBER = re.compile(
    r"^[^\d\w]{0,3}\$?\s?(-?\d{1,3}(?:,\d{3})+|-?\d+)(\.\d+)?\s?(?:%|[a-z]{1,8}\.?|\(.*\))?$", re.IGNORECASE
)
YEAR = re.compile(r"^(?:1[5-9]|20)\d{2}$")
LESS_IS_BEST = re.compile(r"\b(?:rank|ranking|position|pos|place|pick|seed|order|number|no)\b", re.IGNORECASE)
SMALL = {"year": ("earliest", "most recent"), "size": ("smallest", "largest"), "amount": ("lowest", "highest"),
         "count": ("fewest", "most")}  # fmt: skip


def is_usable_header(header: str) -> bool:
    """Whether a column can be asked for, or describe a row."""
    name = clean(header)
    is_odd = (
        SKIPPED & {name, *re.findall(r"\w+", name)}
        or re.match(r"column|took|left|unnamed|\W", name)
        or not re.search(r"[a-z]{2}|[A-Z]{2}", name)
    )
    return len(name) > 1 and not is_odd and len(name.split()) <= 4


def clean(header: str) -> str:
    """A header as it stands in a sentence: without brackets, lower case unless it is an abbreviation."""
    name = re.sub(r"\s*[\(\[].*?[\)\]]", "", header).replace(" / ", " or ").strip(" .:*†‡§#")
    words = [word if word.isupper() and len(word) > 1 else word.lower() for word in name.split()]
    return " ".join(words)


def noun_of_header(header: str) -> str:
    """The header as a noun for an entity of its column; empty where it is none ("Name", "Year")."""
    name = clean(re.sub(r" ?/.*| or .*| and .*", "", header))
    if not is_usable_header(header) or len(name.split()) > 3:
        return ""
    if name.endswith("s") and not name.endswith(("ss", "us", "is", "series", "species")):
        name = f"{name[:-3]}y" if name.endswith("ies") else name[:-1]
    return name if name.split()[-1] in THINGS else ""


def article(noun: str) -> str:
    """a or an."""
    return "an" if noun[:1].lower() in "aeiou" else "a"


def asked(header: str, cell: str, described: str, chance: random.Random) -> str:
    """A question for a cell, by its column and the entity of its row; empty where the header cannot be asked for."""
    name = clean(header)
    thing = noun_of_header(header)
    if name.split()[-1] in PREPOSITIONS:
        return ""
    if name == "year" or (YEAR.match(cell) and "year" in name):
        return chance.choice([f"What year is listed for {described} ?", f"In what year was {described} listed ?"])
    if name in ("name", "title"):
        return chance.choice(
            [f"What {name} is listed with {described} ?", f"What is the {name} listed for {described} ?"]
        )
    if PLURALS.search(name) and NUMBER.match(cell):
        return chance.choice(
            [f"How many {name} does {described} have ?", f"How many {name} are listed for {described} ?"]
        )
    be = "are" if name.endswith("s") and not name.endswith(("ss", "us", "is", "series", "species")) else "is"
    plain = [f"What {be} the {name} of {described} ?", f"What {be} the {name} for {described} ?",
             f"For {described} , what {be} the {name} ?"]  # fmt: skip
    if "date" in name.split():
        plain += [f"On what date is {described} listed ?"]
    if name in ("country", "nation", "nationality", "state", "city"):
        plain = [f"Which {name} is {described} from ?", f"What is the {name} of {described} ?"]
    elif thing:
        plain += [f"Which {thing} goes with {described} ?", f"What {thing} is listed with {described} ?"]
    return chance.choice(plain)


def condition(header: str, cell: str, chance: random.Random) -> str:
    """What a cell says of its row, after a noun."""
    name = clean(header)
    thing = noun_of_header(header)
    if name in ("year", "season", "edition") and re.search(r"\d", cell):
        return chance.choice([f"from {cell}", f"of {cell}", f"in {cell}"])
    if "date" in name.split() and re.search(r"\d", cell):
        return chance.choice([f"on {cell}", f"whose {name} is {cell}"])
    if name in ("country", "nation", "nationality", "state", "city", "town", "hometown", "county"):
        return chance.choice([f"from {cell}", f"whose {name} is {cell}"])
    if name in ("location", "venue", "place") and not cell.isdigit():
        return chance.choice([f"in {cell}", f"whose {name} is {cell}"])
    if name in ("rank", "position", "pos", "place", "finish") and re.fullmatch(r"\d{1,2}", cell):
        return chance.choice([f"ranked {cell}", f"in position {cell}", f"that came in number {cell}"])
    if name.split()[-1] in PREPOSITIONS:
        return f"{name} {cell}"
    if PLURALS.search(name) and NUMBER.match(cell):
        return f"with {cell} {name}"
    if NUMBER.match(cell):
        return chance.choice([f"with {article(name)} {name} of {cell}", f"whose {name} is {cell}"])
    if name in ("name", "title"):
        return chance.choice([f"of {cell}", f"listed with {cell}", f"for {cell}"])
    if thing:
        return chance.choice([f"of the {thing} {cell}", f"listed with {cell}", f"whose {thing} is {cell}"])
    return chance.choice([f"whose {name} is {cell}", f"with the {name} {cell}"])


def extreme(header: str, cells: Sequence[str], chance: random.Random) -> tuple[int, str] | None:
    """The row that a superlative or an ordinal over a column picks, and its wording; None where none does."""
    values, is_time = _ordered(header, cells)
    known = sorted({value for value in values if value is not None})
    if not known:
        return None
    name = clean(header)
    scale = "year" if is_time else "count" if PLURALS.search(name) else _scale(name)
    place = chance.choices([0, 1, 2], [6, 2, 1])[0]
    is_high = chance.random() < 0.7
    target = known[-1 - place] if is_high else known[place]
    rows = [row for row, value in enumerate(values) if value == target]
    if len(rows) != 1:
        return None
    ordinal = ("", "second ", "third ")[place]
    return rows[0], f"with the {ordinal}{SMALL[scale][is_high]} {name}"


def extreme_rows(header: str, cells: Sequence[str], *, places: int = 3) -> set[int]:
    """Rows that hold one of the `places` largest or smallest values of a column, fewer places in a short one.

    Empty where the column has no order.
    """
    values, _ = _ordered(header, cells)
    known = sorted({value for value in values if value is not None})
    places = min(places, max(1, len(known) // 4))
    ends = {*known[:places], *known[-places:]}
    return {row for row, value in enumerate(values) if value in ends}


def _ordered(header: str, cells: Sequence[str]) -> tuple[list[float | None], bool]:
    """Values of a column, and whether they are times; no values unless nearly all cells are numbers or dates."""
    name = clean(header)
    is_time = bool(re.search(r"\b(?:year|date|season|founded|established|built|opened|completed|born)\b", name))
    values = [_date(cell) if is_time else _value(cell) for cell in cells]
    known = {value for value in values if value is not None}
    is_full = sum(value is not None for value in values) >= 0.9 * len(cells) and len(known) >= 4
    is_year = not is_time and all(1500 <= value < 2100 for value in known)
    return (values if is_full and not is_year and not LESS_IS_BEST.search(name) else []), is_time


def _scale(name: str) -> str:
    return "size" if re.search(r"\b(?:area|capacity|population|size|crowd|attendance)\b", name) else "amount"


def _value(cell: str) -> float | None:
    match = NUMBER.match(cell.strip())
    return float(match.group(1).replace(",", "") + (match.group(2) or "")) if match else None


def _date(cell: str) -> float | None:
    """Days, more or less, since year 0; a year alone is its first day."""
    year = re.search(r"\b(1[5-9]\d\d|20\d\d)\b", cell)
    if year is None:
        return None
    month = next((n for n, start in enumerate(MONTHS) if re.search(rf"\b{start}", cell.lower())), 0)
    day = re.search(r"\b(\d{1,2})\b", cell)
    return int(year.group()) * 372 + month * 31 + (int(day.group()) if day else 0)


def place_of(title: str, section: str, chance: random.Random) -> str:
    """Which table a question is about: "in the 2013 Cambodian League"."""
    plain = re.sub(r"\s*\(.*?\)", "", title).strip()
    if match := re.match(r"Lists? of (.+)", plain):
        return chance.choice([f"among {match.group(1)}", f"in the list of {match.group(1)}"])
    if plain[:1].isdigit():
        return f"{chance.choice(['in', 'in', 'at'])} the {plain}"
    if section and chance.random() < 0.4 and len(section.split()) <= 3 and section.replace(" ", "").isalpha():
        return f"in the {section.lower()} of {plain}"
    return f"in {plain}"
