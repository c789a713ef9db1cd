"""Words of a question and of a schema, reduced so that they can meet: `Year_of_Founded` and "founded in the year".

For names of tables and columns: abbreviations, synonyms and stems with a score. `word_forms` answers yes or no, for
verbs that name relationships.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import combining, normalize

TOKEN = re.compile(
    r"[\"“”«»](?P<double>[^\"“”«»]+)[\"“”«»]|(?<!\w)['‘’`](?P<single>[^'‘’`]+(?:['’]\w[^'‘’`]*)?)['‘’`](?!\w)"
    r"|(?P<word>(?P<date>\d{4}-\d\d-\d\d)|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|\d+(?:\.\d+)?(?!\w)|[\w#]+(?:[-.]\w+)*(?:\+{1,2}|(?<=\b[A-Z])-|(?<=\b[A-Z][A-Z])-)?(?!\w))(?P<own>['’]s\b|(?<=s)['’](?=\s))?|(?P<mark>[,;?.!:()%])"
)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-zA-Z])(?=\d)")
NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100,
    "once": 1, "twice": 2, "single": 1,
}  # fmt: skip
IRREGULAR = {
    "people": "person", "persons": "person", "children": "child", "men": "man", "women": "woman", "feet": "foot",
    "teeth": "tooth", "mice": "mouse", "data": "data", "series": "series", "species": "species", "media": "media",
    "has": "have", "had": "have", "having": "have", "is": "be", "are": "be", "was": "be", "were": "be",
    "been": "be", "does": "do", "did": "do", "lives": "live", "wrote": "write", "written": "write", "won": "win",
    "made": "make", "sold": "sell",
    "bought": "buy", "taught": "teach", "gave": "give", "given": "give", "ran": "run", "held": "hold", "born": "birth",
    "spent": "spend", "lost": "lose", "led": "lead", "paid": "pay", "took": "take", "taken": "take", "sang": "sing",
    "fed": "feed", "bred": "breed", "drawn": "draw", "flown": "fly", "driven": "drive", "chosen": "choose",
    "spoken": "speak", "worn": "wear", "stolen": "steal", "grown": "grow", "kept": "keep", "sent": "send",
    "met": "meet", "seen": "see", "sung": "sing", "swum": "swim", "thrown": "throw", "told": "tell", "lent": "lend",
    "ridden": "ride", "fought": "fight", "caught": "catch", "brought": "bring", "eaten": "eat", "beaten": "beat",
    "built": "build", "ids": "id", "buses": "bus", "indices": "index", "analyses": "analysis", "criteria": "criterion",
    "diagnoses": "diagnosis", "theses": "thesis", "crises": "crisis", "hypotheses": "hypothesis", "shelves": "shelf",
    "knives": "knife", "wolves": "wolf", "loaves": "loaf", "leaves": "leaf", "halves": "half", "calves": "calf",
    "colour": "color", "colours": "color", "centre": "center", "theatre": "theater",
    "programme": "program", "licence": "license", "weigh": "weight", "weighs": "weight", "weighing": "weight",
    "weighed": "weight", "gender": "gender", "e-mail": "email", "e-mails": "email",
}  # fmt: skip
IN_IE = frozenset((
    "movies", "cookies", "calories", "zombies", "rookies", "brownies", "smoothies", "hoodies", "selfies", "budgies",
    "collies", "prairies", "sorties", "brasseries", "patisseries", "rotisseries", "menageries", "coteries", "goalies",
    "magpies", "neckties", "freebies", "newbies", "veggies", "foodies", "caddies", "pixies", "hippies", "genies",
    "bookies", "walkies", "birdies", "lassies", "junkies", "indies", "talkies", "pinkies",
))  # fmt: skip
"""Plurals of words that end with -ie; other plurals with -ies are of words that end with -y."""
ABBREVIATIONS = {
    "num": "number", "no": "number", "nbr": "number", "nr": "number", "cnt": "count", "qty": "quantity",
    "amt": "amount", "avg": "average", "max": "maximum", "min": "minimum", "dept": "department", "emp": "employee",
    "addr": "address", "desc": "description", "dob": "birth date", "tel": "phone", "fname": "first name",
    "lname": "last name", "sname": "last name", "canc": "cancelled", "postcd": "postcode", "pstcd": "postcode",
    "mname": "middle name", "yr": "year", "pct": "percent", "pos": "position", "stu": "student",
    "org": "organization", "cat": "category", "cust": "customer", "prod": "product", "inv": "invoice",
    "acct": "account", "lang": "language", "lat": "latitude", "lon": "longitude", "lng": "longitude", "loc": "location",
    "mgr": "manager", "gov": "government", "univ": "university", "sec": "second", "pop": "population",
    "temp": "temperature", "nm": "name", "cd": "code", "dt": "date", "cls": "class", "typ": "type", "wt": "weight",
    "ht": "height", "spd": "speed", "cap": "capacity", "vol": "volume", "hrs": "hours", "mins": "minutes",
    "sal": "salary", "bal": "balance", "maint": "maintenance", "tot": "total", "val": "value", "bldg": "building",
    "nat": "national", "len": "length", "rec": "record", "lic": "license", "elev": "elevation", "acad": "academic",
    "instr": "instructor", "crs": "course", "descr": "description", "flt": "flight", "arr": "arrival",
    "mech": "mechanic", "pax": "passenger", "mfr": "manufacturer", "veh": "vehicle",
    "hosp": "hospital", "cert": "certificate", "hq": "headquarters", "svc": "service",
    "proj": "project", "grp": "group", "mtn": "mountain", "evt": "event",
    "drv": "driver", "trk": "truck", "wrk": "worker", "dsc": "description", "stat": "status", "orig": "origin",
    "dest": "destination", "dlv": "delivery", "lmt": "limit", "mdl": "model", "insp": "inspection", "actv": "active",
    "flg": "flag", "fst": "first", "lst": "last", "exp": "expiry", "odom": "odometer", "pmt": "payment",
    "pymt": "payment", "ord": "order", "itm": "item", "whse": "warehouse", "fac": "facility",
    "empl": "employee", "stf": "staff", "bkd": "booked", "strt": "start", "flr": "floor",
    "meth": "method", "catg": "category", "mth": "month", "lvl": "level", "prc": "price",
    "cst": "cost", "twn": "town", "eml": "email", "adr": "address", "sz": "size",
    "mst": "", "mstr": "", "hdr": "", "ref": "", "tbl": "", "dim": "", "fact": "", "uid": "id", "pk": "id",
}  # fmt: skip
"""What schema authors shorten; "ref", "tbl" and the like say nothing about the rows."""
SAID = ("max", "min", "avg", "num", "qty", "dept", "dob")
"""Abbreviations that questions use as schemas do."""
SYNONYMS = (
    "price cost fee",
    "salary wage earn income pay",
    "gender sex",
    "country nation",
    "phone telephone cell mobile",
    "city town",
    "job occupation profession",
    "movie film",
    "car vehicle automobile",
    "begin start",
    "company firm enterprise",
    "quantity amount unit",
    "picture image photo",
    "nationality citizenship",
    "street address",
    "district region",
    "author writer",
    "maker manufacturer producer",
    "spouse partner",
    "email mail",
    "finish end",
    "kind type category",
    "people person",
    "day date",
    "kg kilogram kilo",
    "percent percentage",
    "revenue taking turnover proceed",
    "worth value",
)
"""Words of schemas and questions that mean the same almost everywhere."""
HOUSED = re.compile(r"(?<=[A-Z]{3})(MST|HDR|TBL|DTL)$")
"""What old systems glue to the names of tables: CREWMST holds crews."""
VOWELS = frozenset("aeiou")
NOUN_ENDINGS = ("tion", "sion", "val", "ture", "ance", "ence")
SHORTEST = 3
"""Letters of a name that may be nothing but the beginning of a word."""
SUFFIXES = ("able", "ing", "ers", "ors", "ed", "d", "er", "or", "ion", "ment", "es", "s", "e", "y", "i")
_FUNCTION_WORDS = """
    a an the of in on at by for from to with and or as is are was were be been being do does did has have had
    that which who whom whose what where when how there this these those it its they them their he she his her him all
    any some each every we our us you your i me my please also then than so such if into onto over about per
    list show find give return tell display get select name names many much can could would will shall may
    both either only other well not no never without than more most less least per between nor neither
    out up off down away yet everyone everybody anyone anybody
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
OPPOSITE = ("dis", "un", "non", "in", "im", "mis", "anti")
"""What a word begins with that means the opposite of its end: no qualification is a disqualification."""
REQUESTED = frozenset(
    ["shows", "lists", "finds", "gives", "returns", "tells", "displays", "gets", "selects", "reports"]
)
"""Words that ask for something in the singular alone: "find" is a request, "finds" are things."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a quotation of the question."""

    text: str
    lemma: str
    start: int
    end: int
    quoted: bool = False
    number: float | None = None
    possessive: bool = False

    @property
    def small(self) -> bool:
        """Whether the word says nothing of what is asked about."""
        return self.lemma in FUNCTION_WORDS and self.text.lower() not in REQUESTED

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


def tokenise(question: str) -> list[Token]:
    """Words, numbers, quotations (one token each) and marks, with where they stand."""
    tokens = []
    question = re.sub(r"n['’]t\b", " not", question)
    for found in TOKEN.finditer(re.sub(r"\bnot (?:a|one) single\b", "no", question)):
        quotation = found["double"] or found["single"] or found["date"]
        if quotation is not None:
            tokens.append(Token(quotation.strip(), quotation.strip().lower(), *found.span(), quoted=True))
            continue
        text = found["word"] or found["mark"]
        tokens.append(
            Token(text, lemma(text), *found.span(), number=as_number(text), possessive=found["own"] is not None)
        )
    return tokens


def as_number(text: str) -> float | None:
    """The number that a word is, or None."""
    if re.fullmatch(r"\d[\d,]*\.?\d*", text):
        return float(text.replace(",", ""))
    known = NUMBER_WORDS.get(text.lower())
    return float(known) if known is not None else None


@lru_cache(20_000)
def lemma(word: str) -> str:
    """A word in lower case and in the singular."""
    word = _without_accents(word.lower()).replace("isation", "ization")
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-1] if word in IN_IE else word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes", "uses")):
        return word[:-2] if not word.endswith("uses") else word[:-1]
    if len(word) > 5 and word.endswith("oes"):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_accents(word: str) -> str:
    """A café is a cafe."""
    if word.isascii():
        return word
    return "".join(sign for sign in normalize("NFKD", word) if not combining(sign))


@lru_cache(20_000)
def stem(word: str) -> str:
    """What derived forms of a word share, roughly: conduct(or), vot(e), found(ed)."""
    word = lemma(word)
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] != "s":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(20_000)
def name_words(name: str) -> tuple[str, ...]:
    """The words of a table's or a column's name: lemmas, abbreviations written out; the name where it has none."""
    words: list[str] = []
    for part in re.split(r"[\W_]+", HOUSED.sub("", name)):
        pieces = [part] if part.lower() in ABBREVIATIONS else CAMEL.split(part)
        for piece in pieces:
            words += ABBREVIATIONS.get(piece.lower(), lemma(piece)).split()
    return tuple(words) or (name.strip().lower() or "-",)


@lru_cache(1)
def _synonyms() -> dict[str, frozenset[str]]:
    return {word: frozenset(group.split()) for group in SYNONYMS for word in group.split()}


@lru_cache(20_000)
def synonyms(name: tuple[str, ...]) -> frozenset[str]:
    """Other words for the words of a name: cell_number holds a phone number."""
    return frozenset(other for word in name for other in _synonyms().get(word, ()))


def similarity(word: str, other: str) -> float:
    """How well a question's word meets a name's (lemmas): 1 for the same, less for derived forms, else 0."""
    if word == other:
        return 1.0
    if word in SAID and ABBREVIATIONS[word] == other:
        return 1.0
    if other in _synonyms().get(word, ()):
        return 0.8
    if min(len(word), len(other)) >= 3 and stem(word) == stem(other):
        return 0.85
    if _shortened(other, word):
        return 0.8
    short, long = sorted((word, other), key=len)
    rest = len(long) - len(short)
    if long.startswith(short) and rest >= 3 and len(short) >= (3 if short == other and rest >= 4 else 5):
        return 0.6
    if len(short) >= 4 and long.endswith(short) and not long.endswith("ity") and long[:rest] not in OPPOSITE:
        return 0.6
    return 0.6 if _noun_of(word, other) or _noun_of(other, word) else 0.0


def _shortened(name: str, word: str) -> bool:
    """Whether a name's word is a longer word without its vowels: grp for group, pymt for payment."""
    if not 3 <= len(name) < len(word) or name[0] != word[0] or not VOWELS.isdisjoint(name[1:]):
        return False
    return in_order(name, word) and name[-1] in word[len(name) - 1 :]


def in_order(name: str, word: str) -> bool:
    """Whether all letters of a name come in a word one after the other."""
    letters = iter(word)
    return all(letter in letters for letter in name)


def consonants_of(word: str) -> str:
    """A word without its vowels, but for its first letter."""
    return word[:1] + "".join(letter for letter in word[1:] if letter not in VOWELS)


def shortens(name: str, word: str) -> bool:
    """Whether a name is a word without its vowels, or at least three letters from which it begins."""
    if not name.isalpha() or len(name) < 2 or len(word) <= len(name):
        return False
    consonants = consonants_of(word)
    begins = len(name) >= SHORTEST and len(word) >= len(name) + 2 and word.startswith(name)
    bare = len(name) >= SHORTEST and VOWELS.isdisjoint(name) and consonants.startswith(name)
    return begins or bare or name == consonants or (len(name) >= SHORTEST and word == name + "e")


def _noun_of(verb: str, noun: str) -> bool:
    """Whether a noun names what a verb does, with another end of the stem: prescribe and prescription, decide and
    decision."""
    root = stem(verb)
    if not noun.endswith(NOUN_ENDINGS) or len(root) < 5:
        return False
    shared = next((i for i, (a, b) in enumerate(zip(root, noun, strict=False)) if a != b), min(len(root), len(noun)))
    return shared >= max(4, len(root) - 2) and len(noun) - shared <= 6
