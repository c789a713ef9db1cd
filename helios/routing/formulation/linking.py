"""Spans of a question that name a table, a column or a stored value, with how surely they do."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from helios.executors.values import Value
from helios.routing.formulation.plan import ColumnRef
from helios.routing.formulation.schema import FIRST_NAMES, LAST_NAMES, ColumnView, SchemaView, TableView
from helios.routing.formulation.words import (
    SHORTEST,
    VOWELS,
    Token,
    consonants_of,
    in_order,
    lemma,
    name_words,
    similarity,
    stem,
    synonyms,
)
from helios.sources.base import ValueHit

LIGHT = frozenset({"number", "of", "in", "the", "and", "for", "to", "by", "at", "is", "if", "per"})
"""Words of names that need not be said: Num_of_Staff is "staff"."""
UNITS = (
    "unit", "million", "billion", "thousand", "km", "mile", "meter", "metre", "kg", "g", "lb", "usd", "eur", "dollar",
    "euro", "sq", "percent", "m", "cm", "hour", "ft",
)  # fmt: skip
INNER = frozenset({"of", "the", "a", "an", "in", "for", "name", "to", "at", "by", "on", "per"})
"""Small words that may stand inside a name."""
SEXES = {
    **dict.fromkeys(("female", "woman", "women", "girl", "f", "w"), "female"),
    **dict.fromkeys(("male", "man", "men", "boy", "m"), "male"),
}
"""How people and columns write a sex."""
FLAG = 0.98
"""A score of an adjective that a column of yes and no is called by."""
NEGATIVE = re.compile(r"^(non-?|un|not-|in|dis)(?=\w{4})")
OPPOSITES = {
    "outdoor": "indoor", "indoor": "outdoor", "full-time": "part-time", "part-time": "full-time", "offline": "online",
    "online": "offline", "open": "closed", "closed": "open", "private": "public", "public": "private",
}  # fmt: skip
"""Words for what is not so, where a column is called by the other."""
WHEN = ("on", "at", "date", "time")
"""What names of columns end with that say when something was done."""
STILL = "still"
"""The word that says that something has not ended."""
ENDINGS = frozenset(
    stem(verb) for verb in (
        "end", "close", "clear", "leave", "left", "discontinue", "decommission", "retire", "terminate", "resign",
        "finish", "complete", "return", "resolve", "withdraw", "scrap", "term", "stop",
    )
)  # fmt: skip
"""Verbs of ends, as columns say when they came: cleared_on, DateLeft."""
HAS_VERBS = frozenset(
    ["have", "with", "without", "get", "receive", "take", "offer", "include", "provide", "allow", "accept", "own", "be"]
)
"""Words after which a column of yes and no is a condition: "huts that have a winter room"."""
FIRST_SAID = tuple(map(" ".join, (*FIRST_NAMES, ("christian", "name"))))
LAST_SAID = tuple(map(" ".join, LAST_NAMES))
"""How people say the halves of their names, whatever the columns are called."""
BEFORE_A_FACT = re.compile(r"(?:(?:^| )(?:a|an|any|no|the|their|its|own|not|part of))+$")
"""What stands between a verb and the fact that something has or is: "are not part of the core range"."""
STATES = ("in", "on", "off", "out", "under", "not", "no", "at", "by")
"""Small words that values begin with: in service, on loan, out of stock."""
STATED = frozenset(("status", "stage", "type", "kind", "category", "class", "outcome", "result", "method"))
"""What columns are called that hold one of a few codes."""
CODED = 0.97
WRITTEN_AS_STORED = re.compile(r"\w_\w|[a-z][A-Z]")
"""What shows that a word is a name of the schema: hourly_wage, unitPrice."""
LONGEST = 6
FOREIGN_WORD = 0.3
"""How much a word of a table's name counts that another table is called by: registrations of students and courses."""
SAME, ALIKE = 0.99, 0.8
"""Scores from which a stored value counts: as the words of the question, as what stands in quotation marks."""
ROLE, ROLES = 0.85, 1.0
"""What a table's name is worth that columns of other tables give it, in the singular and in the plural."""
WHOLE = 0.9
"""A score from which a name is said in full."""
HEADS = {"email": ("address",), "mail": ("address",), "phone": ("number",), "mobile": ("number", "phone")}
"""What people add to names of columns: an email address, a phone number."""
COLLECTIONS = frozenset({"data", "list", "info", "information", "record", "detail", "table"})
"""Words of tables' names that only say that there are rows: cars_data holds cars."""
COLLECTION_WORD = 0.15
"""How much they count."""
ENOUGH = 0.4
"""The least share of a name that a span must say."""


@dataclass(frozen=True, slots=True)
class Link:
    """Tokens [start, end) read as a table (`column` None), a column, or a value of a column."""

    start: int
    end: int
    score: float
    table: str
    column: ColumnRef | None = None
    value: Value = None
    whole: bool = True
    """The name is said in full."""

    @property
    def is_value(self) -> bool:
        return self.value is not None


def says_when(link: Link, word: str) -> bool:
    """Whether a column is the date or the time of what a past form says: `paid_on`, `ClosedOn`, `closing_date`."""
    words = name_words(link.column.column) if link.column is not None else ()
    return len(words) == 2 and words[1] in WHEN and stem(words[0]) == stem(word)


def link_schema(tokens: Sequence[Token], schema: SchemaView) -> list[Link]:
    """Spans that name tables and columns by their words."""
    links = []
    stored = {column.ref.column for column in schema.columns()}
    for start in range(len(tokens)):
        named = tokens[start].quoted and tokens[start].text in stored
        if (tokens[start].quoted and not named) or not tokens[start].lemma[:1].isalnum():
            continue
        for end in range(start + 1, min(len(tokens), start + LONGEST) + 1):
            span = tokens[start:end]
            if (span[-1].quoted and not (named and end == start + 1)) or not span[-1].lemma[0].isalnum():
                break
            if (span[0].small and span[0].lemma not in ("name", "number")) or (
                span[-1].small and span[-1].lemma != "name"
            ):
                continue
            if any(t.small and (t.lemma not in INNER or t.capital) for t in span[1:-1]):
                continue
            plural = {t.lemma for t in span[:-1] if t.lemma != t.text.lower() and not t.possessive}
            words = [t.lemma for t in span if not t.small or t.lemma == "name"]
            if len(span) == 1 and (named or WRITTEN_AS_STORED.search(span[0].text)):
                words = list(name_words(span[0].text))
            joint = next((end - i for i in range(end - 1, start, -1) if tokens[i].lemma in INNER - {"name"}), 0)
            tail = [t.lemma for t in span[len(span) - joint + 1 :]] if joint else []
            whole = joint and any(column.words == tuple(t.lemma for t in span) for column in schema.columns())
            if tail and not whole and any(_name_score(tail, t.words, ()) > 0.9 for t in schema.tables.values()):
                continue
            participle = len(words) > 1 and any(t.text.lower().endswith("ed") for t in span[1:])
            several = span[-1].lemma != span[-1].text.lower()
            shared = plural if not participle else set(words[:-1])
            role = ROLES if several else ROLE
            links += [
                link for link in _links_of(words, start, end, schema, shared, joint, role)
                if link.column is not None or not len(words) > 1 or not _apart(plural, link.table, schema)
            ]  # fmt: skip
            links += _called_by_initials(span, start, end, schema)
    tables = {(link.start, link.end, link.table) for link in links if link.column is None}
    told = {own: key.table for own, key in schema.refers if schema.column(own).words == schema.tables[key.table].words}
    return [k for k in links if k.column not in told or (k.start, k.end, told[k.column]) not in tables]


def distribute(tokens: Sequence[Token], schema: SchemaView) -> list[Token]:
    """ "First and last names" with the noun said twice, where both are columns."""
    found = list(tokens)
    for i in range(len(found) - 6, -1, -1):
        if [token.lemma for token in found[i + 1 : i + 5 : 2]] == [",", ","] and found[i + 4].lemma in ("and", "or"):
            del found[i + 3]  # the comma before "and"
    tokens = tuple(found)
    for i in range(len(tokens) - 6, -1, -1):
        words = [token.lemma for token in tokens[i : i + 6]]
        if words[1] == "," and words[3] in ("and", "or"):
            names = [(words[k], words[5]) for k in (0, 2, 4)]
            if all(any(column.words[-2:] == name for column in schema.columns()) for name in names):
                found.insert(i + 1, tokens[i + 5])
    tokens = tuple(found)
    for i in range(len(tokens) - 4, -1, -1):
        first, joint, second, noun = tokens[i : i + 4]
        if joint.lemma in ("and", "or") and not any(t.quoted for t in (first, second, noun)):
            names = [(first.lemma, noun.lemma), (second.lemma, noun.lemma)]
            if all(any(column.words[-2:] == name for column in schema.columns()) for name in names):
                found.insert(i + 1, noun)
    return found


def link_values(tokens: Sequence[Token], find: Callable[[Sequence[str]], Sequence[ValueHit]]) -> list[Link]:
    """Spans that stand in the data: quotations, and runs of words found exactly."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for start, token in enumerate(tokens):
        for end in range(start + 1, min(len(tokens), start + LONGEST) + 1):
            span = tokens[start:end]
            if any(t.quoted for t in span) and len(span) > 1:
                break
            if span[-1].text in "?;!":
                break
            if not token.quoted and not _sayable(span):
                continue
            phrase = " ".join(t.text for t in span).replace(" ,", ",")
            for wording in {phrase, *_wordings(span)}:
                spans.setdefault(wording, []).append((start, end))
    links = {}
    for hit in find(list(spans)):
        if len(hit.place) != 2:
            continue
        for start, end in spans.get(hit.phrase, ()):
            if hit.score < (ALIKE if tokens[start].quoted else SAME):
                continue
            column = ColumnRef(*hit.place)
            link = Link(start, end, hit.score, column.table, column, hit.value)
            links[start, end, column, hit.value] = link
    same = {key[:3] for key, link in links.items() if str(link.value).lower() == _text(tokens, link).lower()}
    return [
        link
        for key, link in links.items()
        if key[:3] not in same or _text(tokens, link).lower() == str(link.value).lower()
    ]


def without_roles(tokens: Sequence[Token], schema: SchemaView, links: Sequence[Link]) -> list[Link]:
    """The links without tables by what other columns call their rows, where the table itself stores that word.

    Mechanics are the staff whose job is Mechanic, also where a job has a lead mechanic.
    """
    itself = {key.table for own, key in schema.refers if own.table == key.table}
    stored = {(link.start, link.end, link.table) for link in links if link.is_value and link.table not in itself}

    def named(link: Link) -> bool:
        own = {stem(word) for word in schema.tables[link.table].words}
        return any(stem(token.lemma) in own for token in tokens[link.start : link.end])

    return [
        link for link in links
        if link.column is not None or (link.start, link.end, link.table) not in stored or named(link)
    ]  # fmt: skip


def _text(tokens: Sequence[Token], link: Link) -> str:
    return " ".join(token.text for token in tokens[link.start : link.end])


def _wordings(span: Sequence[Token]) -> list[str]:
    """A span as data may write it: its last word in the singular or the plural, a past form without its ending."""
    last = span[-1]
    if last.quoted:
        return []
    forms = [last.lemma]
    if last.lemma == last.text.lower() and last.number is None:
        forms.append(last.text + "s")
    if len(span) == 1 and last.text.endswith("ed") and len(last.text) > 5:
        forms += [last.text[:-2], last.text[:-1]]
    return [" ".join([*(t.text for t in span[:-1]), form]) for form in forms]


def link_sexes(tokens: Sequence[Token], schema: SchemaView, known: Sequence[Link]) -> list[Link]:
    """ "Female" and "men" where a column of sexes writes them in another way, such as F or M."""
    taken = {(link.start, link.end) for link in known if link.is_value}
    links = []
    for place, token in enumerate(tokens):
        sex = SEXES.get(token.lemma)
        if sex is None or token.quoted or (place, place + 1) in taken:
            continue
        for column in schema.columns():
            if not {"sex", "gender"} & set(column.words):
                continue
            stored = next((sample for sample in column.samples if SEXES.get(sample.lower()) == sex), None)
            if stored is not None:
                links.append(Link(place, place + 1, 0.95, column.ref.table, column.ref, stored))
    return links


def link_codes(tokens: Sequence[Token], schema: SchemaView, known: Sequence[Link]) -> list[Link]:
    """ "Cancelled" where a column of states writes CANC, "e-bikes" where one of kinds writes EBIKE.

    Only what is said to have been done or to be going on, or has a hyphen, of a table that the question names.
    """
    taken = {place for link in known if link.is_value for place in range(link.start, link.end)}
    named = {link.table for link in known if link.column is None and link.whole}
    coded = [c for c in schema.columns() if c.ref.table in named and STATED & set(c.words) and _codes(c)]
    links = []
    for place, token in enumerate(tokens if coded else ()):
        word = token.text.lower()
        if token.quoted or place in taken or not (word.endswith(("ed", "ing")) or "-" in word):
            continue
        for column in coded:
            meant = [code for code in column.samples if _coded(code.lower(), word)]
            if len(meant) == 1:
                links.append(Link(place, place + 1, CODED, column.ref.table, column.ref, meant[0]))
    return links


def _codes(column: ColumnView) -> bool:
    """Whether a column holds a few short words in capitals."""
    return bool(column.samples) and not column.key and all(re.fullmatch(r"[A-Z]{2,9}", code) for code in column.samples)


def _coded(code: str, word: str) -> bool:
    """Whether a code stands for a word: its consonants, its first four letters or more, or what a hyphen divides."""
    if "-" in word:
        return lemma(word.replace("-", "")) == code
    if len(code) > SHORTEST and VOWELS.isdisjoint(code):
        return word[0] == code[0] and word[-1] == code[-1] and in_order(code, word)  # DLVD
    if VOWELS.isdisjoint(code):
        return len(code) == SHORTEST and consonants_of(word) == code
    return len(code) > SHORTEST and word.startswith(code) and len(word) > len(code)


def link_undone(tokens: Sequence[Token], schema: SchemaView) -> list[Link]:
    """ "Unpaid" where a column says when something was paid, "still" where one says when it ended: it is empty."""
    links, said = [], {stem(token.lemma) for token in tokens}
    for place, token in enumerate(tokens):
        word = "" if token.quoted else token.text.lower()
        done, lasting = undone(word), word == STILL and not _flagged(tokens[place + 1 : place + 3], schema)
        links += [
            Link(place, place + 1, FLAG, column.ref.table, column.ref)
            for column in (schema.columns() if done or lasting else ())
            if (lasting and says_an_end(column) and said & {stem(w) for w in schema.tables[column.ref.table].words})
            or (done and len(column.words) == 2 and column.words[1] in WHEN and stem(column.words[0]) == stem(done))
        ]
    return links


def says_an_end(column: ColumnView) -> bool:
    """Whether a column says when a thing ended: cleared_on, DateLeft."""
    verbs = {stem(word) for word in column.words if word not in WHEN}
    return len(column.words) == 2 and len(verbs) == 1 and verbs <= ENDINGS


def _flagged(tokens: Sequence[Token], schema: SchemaView) -> bool:
    """Whether one of some words is what a column of yes and no is called by, or says itself what is not done."""
    if any(undone(token.text.lower()) or token.lemma == "not" for token in tokens):
        return True
    said = {stem(token.lemma) for token in tokens}
    return any(column.flag is not None and said & {stem(word) for word in column.words} for column in schema.columns())


def undone(word: str) -> str:
    """What "unpaid" says has not been done; empty for other words."""
    return word[2:] if re.fullmatch(r"un\w{2,}(?:ed|id|ld|nt|en)", word) else ""


def link_flags(tokens: Sequence[Token], schema: SchemaView, known: Sequence[Link]) -> list[Link]:
    """The links, with columns of yes and no that an adjective names as values: "organic farms", "was cancelled"."""
    flags = {column.ref: column.flag for column in schema.columns() if column.flag is not None}
    if not flags:
        return list(known)
    open_from = next((place for place, token in enumerate(tokens) if token.lemma in ("whether", "if")), len(tokens))
    tables = {link.start for link in known if link.column is None and link.whole}
    links = []
    for link in known:
        flag = flags.get(link.column) if link.column is not None and not link.is_value else None
        held = link.whole and (
            _adjective(tokens, link, tables) or _had(tokens, link, tables) or _kind(tokens, link, schema)
        )
        if flag is not None and link.end <= open_from and held:
            link = replace(link, score=FLAG, value=flag[0])
        links.append(link)
    phrases = [column for column in schema.columns() if column.ref in flags and len(column.words) > 1]
    for place, token in enumerate(tokens[:open_from]):
        word = token.text.lower()
        valued = any(k.is_value and k.start <= place + 1 < k.end for k in known)  # accounts whose status is HOLD
        if token.small and not valued:  # "on hold", "in stock", of a column that is called so
            same = (c for c in phrases if c.words == tuple(t.lemma for t in tokens[place : place + len(c.words)]))
            links += [Link(place, place + len(c.words), FLAG, c.ref.table, c.ref, flags[c.ref][0]) for c in same]
        if place and tokens[place - 1].lemma in ("can", "could"):  # "members who can drive", of can_drive
            able = (c for c in schema.columns() if c.ref in flags and c.words == ("can", token.lemma))
            links += [Link(place, place + 1, FLAG, c.ref.table, c.ref, flags[c.ref][0]) for c in able]
        meant = [(word, 0)] if "-" in word else []
        meant += [(lemma(NEGATIVE.sub("", token.lemma)), 1)] if NEGATIVE.match(token.lemma) else []
        meant += [(OPPOSITES[word], 1)] if word in OPPOSITES else []
        for column in schema.columns() if meant and not token.quoted else ():
            flag = flags.get(column.ref)
            if flag is None:
                continue
            for said, side in meant:
                if _name_score(re.split(r"\W", said), _said(column), ()) > WHOLE:
                    links.append(Link(place, place + 1, FLAG, column.ref.table, column.ref, flag[side]))
    return links


def _had(tokens: Sequence[Token], link: Link, tables: set[int]) -> bool:
    """Whether a thing that was named before has, gets or allows what the column is called by."""
    before = BEFORE_A_FACT.sub("", " ".join(token.lemma for token in tokens[: link.start])).split()
    if not before or not any(start < link.start for start in tables):
        return False
    return before[-1] in HAS_VERBS or before[-2:-1] == ["be"]  # "sections that are taught online"


def _kind(tokens: Sequence[Token], link: Link, schema: SchemaView) -> bool:
    """Whether things are called by a column of yes and no: the matinees of IsMatinee, who want a newsletter."""
    words = schema.column(link.column).words if link.column is not None else ()
    if len(words) < 2:
        return False
    if words[0] == "be":
        return tokens[link.end - 1].lemma != tokens[link.end - 1].text.lower()
    before = tokens[link.start - 1].lemma if link.start else ""
    return words[0] != "have" and before in ("who", "that", "which") and link.end - link.start >= len(words)


def _adjective(tokens: Sequence[Token], link: Link, tables: set[int]) -> bool:
    """Whether a word says what something is: before its noun, or after "is" or "has been"."""
    before = [token.lemma for token in tokens[max(0, link.start - 4) : link.start]]
    while before and before[-1] in ("not", "yet", "already", "also", "be", "ever", "currently", "still"):
        if before.pop() == "be":
            return True
    end = link.end
    while end + 1 < len(tokens) and tokens[end].lemma in ("and", "or"):
        end += 2  # "commercial and non-commercial"
    return end in tables or tokens[link.end - 1].lemma.endswith("ed")


def _said(column: ColumnView) -> tuple[str, ...]:
    """The words of a column's name without "is" and "has"."""
    return column.words[1:] if len(column.words) > 1 and column.words[0] in ("be", "have") else column.words


def _sayable(span: Sequence[Token]) -> bool:
    """Whether an unquoted span may be a value: it starts and ends with a word that says something."""
    first, last = span[0], span[-1]
    if first.number is not None and len(span) == 1:
        return False
    opening = len(span) > 1 and first.lemma in STATES and last.text.islower()
    ends = (not first.small or first.capital or opening) and (not last.small or last.capital)
    return ends and first.text[0].isalnum() and last.text[-1].isalnum() and (len(first.text) > 1 or first.capital)


def _apart(plural: set[str], name: str, schema: SchemaView) -> bool:
    """Whether a plural names another table of its own: "nurses assigned" are nurses, not assignments."""
    return any(len(t.words) == 1 and t.words[0] in plural and t.name != name for t in schema.tables.values())


def _links_of(
    words: list[str], start: int, end: int, schema: SchemaView, plural: set[str], joint: int, role: float
) -> list[Link]:
    """Names that words say; a table's word before a column's is singular in English ("singer names").

    `role`: what a table's name is worth that columns of other tables give it.
    """
    if not words:
        return []
    links = []
    for table in schema.tables.values():
        score = _table_score(words, table, schema) if joint == 0 else 0.0
        if joint == 0 and any(_name_score(words, role, ()) > WHOLE for role in table.roles):
            score = max(score, role)
        if score >= ENOUGH and (len(table.words) < 3 or score > 0.6):
            links.append(Link(start, end, score, table.name, whole=score > 0.9))
        for column in (*table.columns, *(table.computed if joint == 0 else ())):
            score = _column_score(words, column, table)
            last = words[-2] if len(words) == 2 and words[1] in HEADS.get(words[0], ()) else words[-1]
            if plural & set(table.words) - set(column.words) or not any(similarity(last, w) for w in column.words):
                continue
            if score >= ENOUGH:
                links.append(Link(start, end, score, table.name, column.ref, whole=score > 0.9))
    return links


def _called_by_initials(span: Sequence[Token], start: int, end: int, schema: SchemaView) -> list[Link]:
    """Columns that are called by the first letters of the words: mpg for miles per gallon."""
    letters = "".join(token.lemma[0] for token in span)
    if len(letters) < 3:
        return []
    columns = [column for column in schema.columns() if column.words == (letters,)]
    return [Link(start, end, ROLE, column.ref.table, column.ref) for column in columns]


def _table_score(words: list[str], table: TableView, schema: SchemaView) -> float:
    """How much of a table's name words say: what other tables are called says little, its own key may stand beside."""
    others = {t.words[0] for t in schema.tables.values() if len(t.words) == 1 and t.name != table.name}
    weights = [FOREIGN_WORD if word in others else 1.0 for word in table.words]
    if len(table.words) < 3 or not any(weight == 1.0 for weight in weights):
        weights = [1.0] * len(table.words)
    if not COLLECTIONS.issuperset(table.words):
        plain = zip(table.words, weights, strict=True)
        weights = [COLLECTION_WORD if word in COLLECTIONS else weight for word, weight in plain]
    return _weighted_score(words, table.words, weights, _key_words(table))


def _key_words(table: TableView) -> tuple[str, ...]:
    """What the key calls the table's rows, where its name does not: the branch of branch_id in bank."""
    beside = {"id", "code", "number", "key", *table.words}
    return tuple(word for column in table.keys[:1] for word in column.words if word not in beside)


def _column_score(words: list[str], column: ColumnView, table: TableView) -> float:
    if column.words in FIRST_NAMES and " ".join(words) in FIRST_SAID:
        return 1.0
    if column.words in LAST_NAMES and " ".join(words) in LAST_SAID:
        return 1.0
    if len(words) == 2 and words[1] in HEADS.get(words[0], ()) and column.words[-1:] == (words[0],):
        return 0.95  # an email address, of contact_email
    context = table.words if column.key else (*table.words, *_key_words(table))
    context = (*context, *(head for word in column.words for head in HEADS.get(word, ())))
    return _name_score(words, _said(column) if column.flag is not None else column.words, context)


def _name_score(words: list[str], name: tuple[str, ...], context: tuple[str, ...]) -> float:
    """How much of a name the words say; 0 where they say anything else than it and its table's name."""
    return _weighted_score(words, name, [_weight(word, context, alone=len(name) == 1) for word in name], context)


def _weighted_score(
    words: list[str], name: tuple[str, ...], weights: Sequence[float], context: tuple[str, ...]
) -> float:  # fmt: skip
    total = sum(weight for word, weight in zip(name, weights, strict=True) if word not in context or len(name) == 1)
    left = list(range(len(name)))
    gained, own = 0.0, False
    for word in words:
        best = max(left, key=lambda i: (similarity(word, name[i]), weights[i]), default=None)
        if best is not None and (alike := similarity(word, name[best])) > 0:
            left.remove(best)
            gained += alike * weights[best]
            total += weights[best] if name[best] in context and len(name) > 1 else 0.0
            own = own or weights[best] >= 0.5 or word == name[best]
        elif not any(similarity(word, other) > 0.8 for other in context) and word not in synonyms(name):
            return 0.0
    if not own or total == 0:
        return 0.0
    return min(gained / total, 1.0)


def _weight(word: str, context: tuple[str, ...], *, alone: bool) -> float:
    if alone:
        return 1.0
    if word in UNITS or word.isdigit() or len(word) == 1:
        return 0.2
    if word in LIGHT:
        return 0.05
    return 0.1 if word in context else 1.0
