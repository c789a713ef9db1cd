"""A relational schema as question reading needs it: words of names, keys, and the graph of joins."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush

from helios.executors.values import Value
from helios.routing.formulation.dates import otherwise_written, written
from helios.routing.formulation.glued import of_two, unglued, unglued_short
from helios.routing.formulation.plan import ColumnRef, Computed, Day, Join, Sign
from helios.routing.formulation.words import VOWELS, lemma, name_words, stem
from helios.sources.descriptor import Column, ForeignKey, RelationalSchema, TableSchema

NUMERIC = re.compile(r"int|real|float|double|decimal|numeric|number|money|serial|bool", re.IGNORECASE)
TEMPORAL = re.compile(r"date|time|year", re.IGNORECASE)
NAMING = ("name", "title", "label", "tag", "description")
PREFIX = 3
"""Letters of a prefix that the names of all columns of a table have, at most."""
LISTED = 3
"""Columns of a list of codes with what they stand for, at most."""
TERSE = 0.1
"""Share of the parts of names without a vowel from which a schema is one that shortens them."""
USUAL = frozenset(("km", "kg", "cm", "mm", "ml", "lb", "lbs", "kw", "kwh", "mph", "by", "my", "tv", "dvd", "pdf"))
"""Parts without a vowel that names have anywhere."""
FIRST_NAMES = (("first", "name"), ("given", "name"), ("forename",))
LAST_NAMES = (("last", "name"), ("family", "name"), ("surname",))
"""What halves of people's names are called."""
KEY_WORDS = ("id", "code", "number", "key", "ref", "fk")
"""What names of keys end with."""


FLAGS = (("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("1", "0"))
"""How columns of facts that hold or do not are written."""
FLAGGING = ("yn", "flag", "indicator", "ind", "bool")
"""What names of such columns end with."""


WAYS = {
    "from": ("from", "origin", "source", "departure", "start", "sender", "depart", "leave"),
    "to": ("to", "destination", "target", "arrival", "end", "receiver", "recipient", "arrive", "land"),
}
"""What schemas call the two ends of what goes from one place to another."""
ROLE_COST = 1.1
"""What a join by a role costs beside 1, where the question does not name the role: an advisor's students."""
PASSING = 0.5
"""What it costs to go on from a table that does not only link others."""
SPOKEN = 0.6
"""What a join gains where the question names the table that comes in."""


MANY = ("quantity", "qty", "seat", "ticket", "piece", "unit")
"""What columns are called that say how many of something at a price."""
HELD = ("stock", "capacity", "maximum", "minimum", "reorder", "level", "store", "van", "hand", "daily")
"""What columns are called that say how many there may be or are left, or what a day costs: nothing was sold there."""
SOLD = ("booking", "reservation", "ticket", "sale", "order", "registration", "seat")
"""What tables are called whose seats are taken, rather than there."""
SALES = ("sale", "till", "taking", "income", "receipt", "donation", "booking", "ticket")
"""What tables are called that hold what was taken."""
PRICES = ("price", "cost", "fee", "fare")
"""What columns are called that say what one of them costs."""
SUMS = ("total", "amount", "subtotal", "revenue", "value", "sum", "net", "gross")
"""What columns are called that hold what both make together."""
TAKEN = ("revenue", "spend", "worth", "money")
"""What people call a price times how many, where no column holds it."""

UNIT_SHORT = {
    "metre": "m", "meter": "m", "kilometre": "km", "kilometer": "km", "centimetre": "cm", "centimeter": "cm",
    "millimetre": "mm", "kilogram": "kg", "kilo": "kg", "gram": "g", "litre": "l", "liter": "l", "hour": "h",
    "euro": "eur", "dollar": "usd", "pound": "gbp", "foot": "ft", "mile": "mi", "tonne": "t", "ton": "t",
    "hectare": "ha", "minute": "min",
}  # fmt: skip
"""How names of columns write units."""
JOINED = ("kwh", "mwh", "gwh", "kw", "mw")
"""Units that names of columns write in several parts: EnergyMWh."""


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A column with the words of its name."""

    ref: ColumnRef
    words: tuple[str, ...]
    numeric: bool
    temporal: bool
    key: bool
    """Part of the primary key or of a foreign key."""
    primary: bool
    text: bool
    samples: tuple[str, ...] = ()
    flag: tuple[Value, Value] | None = None
    """What says that a fact holds and what that it does not, of a column that holds nothing else."""

    @property
    def amount(self) -> bool:
        """Whether it holds numbers that are no keys and no years."""
        return self.numeric and not self.key and not self.temporal


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with the words of its name."""

    name: str
    words: tuple[str, ...]
    columns: tuple[ColumnView, ...]
    keys: tuple[ColumnView, ...]
    """The primary key's columns."""
    linking: bool
    """A table that only connects others."""
    roles: tuple[tuple[str, ...], ...] = ()
    """What columns of other tables call its rows, where no table is called so: the students of student_id."""
    computed: tuple[ColumnView, ...] = ()
    """What its columns make together: a price times how many, by the words that people say for it."""

    @property
    def amounts(self) -> tuple[ColumnView, ...]:
        """The columns of numbers that are no keys and no years."""
        return tuple(column for column in self.columns if column.amount)

    @property
    def only_amount(self) -> ColumnRef | None:
        """The only one of these."""
        return self.amounts[0].ref if len(self.amounts) == 1 else None

    @property
    def naming(self) -> ColumnView | None:
        """The column that a person would call a row by."""
        same = [c for c in self.columns if c.words == self.words and c.text and not c.key]
        if same:
            return same[0]
        first = [c for c in self.columns if c.words in FIRST_NAMES and c.text]
        if first and any(c.words in LAST_NAMES for c in self.columns):
            return first[0]
        for word in NAMING:
            named = [c for c in self.columns if word in c.words and not c.key and c.text]
            if named and (word != "description" or len(self.columns) > LISTED):
                return min(named, key=lambda c: len(c.words))
        return None

    @property
    def surname(self) -> ColumnView | None:
        """The other half of a person's name, where the column that names a row has the first alone."""
        naming = self.naming
        if naming is None or naming.words not in FIRST_NAMES:
            return None
        return next((c for c in self.columns if c.words in LAST_NAMES and c.text), None)

    @property
    def described(self) -> ColumnView | None:
        """What a list of codes and descriptions says of a code, where a row has no name."""
        found = [c for c in self.columns if "description" in c.words and c.text]
        coded = len(self.keys) == 1 and self.keys[0].text and len(self.columns) <= LISTED
        return found[0] if coded and found and self.naming is None else None


def units_of(word: str, columns: Iterable[ColumnView]) -> list[ColumnView]:
    """The columns whose names say a unit, as people write it."""
    short = UNIT_SHORT.get(word, word)
    return [c for c in columns if {word, short} & set(c.words) or (word in JOINED and "".join(c.words).endswith(word))]


@dataclass
class SchemaView:
    """Tables by name, and how they join."""

    tables: dict[str, TableView]
    joins: dict[str, list[Join]] = field(default_factory=dict)
    refers: set[tuple[ColumnRef, ColumnRef]] = field(default_factory=set)
    """Columns with the keys that they refer to."""
    terse: bool = False
    """Whether its names are shortened as in old systems: many parts of them have no vowel."""

    @classmethod
    def of(cls, schema: RelationalSchema) -> "SchemaView":
        """Read a descriptor's schema."""
        said = {word for table in schema.tables for word in name_words(table.name)}
        terse = _terse(name for table in schema.tables for name in (table.name, *(c.name for c in table.columns)))
        view = cls({table.name: _table_view(table, said, terse=terse) for table in schema.tables}, terse=terse)
        declared = list(_declared(schema.tables, view.tables))
        covered = {table for pair in declared for table in (pair[0].table, pair[1].table)}
        if len(covered) < len(view.tables):
            declared += _same_named(view.tables, covered)
        view.refers = set(declared)
        money = [name for name, table in view.tables.items() if table.computed]
        stored = [name for name in money if not isinstance(view.tables[name].computed[0].ref, Computed)]
        for name in stored if len(stored) > 1 else ():
            view.tables[name] = replace(view.tables[name], computed=())  # which is meant nobody can tell
        for name, roles in _roles(declared, view).items():
            view.tables[name] = replace(view.tables[name], roles=roles)
        for left, right in dict.fromkeys(declared):
            view.joins.setdefault(left.table, []).append(Join(left, right))
            view.joins.setdefault(right.table, []).append(Join(right, left))
        return view

    def column(self, ref: ColumnRef) -> ColumnView:
        table = self.tables[ref.table]
        same = (column for column in (*table.columns, *table.computed) if column.ref == ref)
        return next(same, None) or next(column for column in table.columns if column.ref.column == ref.column)

    @property
    def dated(self) -> bool:
        """Whether a column holds dates that start with the year."""
        return any(written(column.samples) for column in self.columns())

    @cached_property
    def called(self) -> frozenset[str]:
        """What rows are called: the last words of tables' names and of roles, as lemmas."""
        tables = self.tables.values()
        return frozenset(words[-1] for table in tables for words in (table.words, *table.roles) if words)

    def columns(self) -> Iterable[ColumnView]:
        for table in self.tables.values():
            yield from table.columns

    def connect(self, tables: Iterable[str], said: frozenset[str] = frozenset()) -> tuple[str, tuple[Join, ...]] | None:
        """The first table, and joins from it that reach all the others by shortest paths; None where none do.

        Of paths of one length those through tables whose names share stems with what is `said` are taken.
        """
        wanted = list(dict.fromkeys(tables))
        joined, joins = {wanted[0]}, []
        for table in wanted[1:]:
            if table in joined:
                continue
            path = self.path(joined, table, said, frozenset(wanted))
            if path is None:
                return None
            joins += [join for join in path if join.right.table not in joined]
            joined |= {join.right.table for join in path}
        return wanted[0], tuple(joins)

    def path(
        self, starts: Iterable[str], goal: str, said: frozenset[str] = frozenset(),
        wanted: frozenset[str] = frozenset(),
    ) -> tuple[Join, ...] | None:  # fmt: skip
        """The joins of least cost (`ROLE_COST`, `PASSING`, `SPOKEN`) from one of the starts to a table.

        Of several that cost the same those through `wanted` and `said` tables; None where there are none.
        """

        def told(join: Join) -> tuple[bool, int]:
            name = join.right.table
            return name not in wanted, -len(said & {stem(word) for word in self.tables[name].words})

        starts = sorted(starts)
        queue: list[tuple[float, int, str, tuple[Join, ...]]] = [(0.0, n, start, ()) for n, start in enumerate(starts)]
        count, done = len(queue), set[str]()
        while queue:
            cost, _, table, path = heappop(queue)
            if table == goal:
                return path
            if table in done:
                continue
            done.add(table)
            through = PASSING if path and not self.tables[table].linking else 0.0
            for join in sorted(self.joins.get(table, ()), key=told) if said or wanted else self.joins.get(table, ()):
                if join.right.table not in done:
                    role = ROLE_COST if said and self.unsaid_role(join, said) else 0.0
                    named = any(stem(word) in said for word in self.tables[join.right.table].words)
                    step = 1.0 + through + role - (SPOKEN if named else 0.0)
                    heappush(queue, (cost + step, count, join.right.table, (*path, join)))
                    count += 1
        return None

    def unsaid_role(self, join: Join, said: frozenset[str]) -> bool:
        """Whether a join is by a column that names a role of which nothing is said: the advisor of a student."""
        own, key = (join.left, join.right) if (join.left, join.right) in self.refers else (join.right, join.left)
        words = {stem(word) for word in self.column(own).words if word not in KEY_WORDS}
        words |= {stem(word) for word in words}  # a leader is who led
        known = {stem(word) for word in (*self.tables[key.table].words, *self.column(key).words)}
        return bool(words) and not words & (known | said)


def _terse(names: Iterable[str]) -> bool:
    """Whether names of tables and columns are shortened as in old systems."""
    parts = {part.lower() for name in names for part in re.findall(r"[^\W\d_]{2,}", name)} - USUAL
    return sum(VOWELS.isdisjoint(part) for part in parts) >= TERSE * len(parts) > 0


def _table_view(table: TableSchema, said: set[str], *, terse: bool) -> TableView:
    """A table as seen; `said` are the words of all tables' names, in a `terse` schema names are shortened.

    Masked columns are left out but for keys: their tokens can be joined, not compared, added up or put in order.
    """
    words = (of_two(table.name, said) if terse else None) or tuple(dict.fromkeys(name_words(table.name)))
    foreign = {column for key in table.foreign_keys for column in key.columns}
    primary = [column.name for column in table.columns if column.primary_key] or _guessed_key(table, foreign)
    owners = {key.columns[0]: name_words(key.table) for key in table.foreign_keys if len(key.columns) == 1}
    columns = tuple(
        _column_view(
            table.name, (*owners.get(column.name, ()), *words), said, column, foreign, set(primary), terse=terse
        )
        for column in table.columns
        if not column.masked or column.name in foreign or column.name in primary
    )
    columns = _with_halves(_without_prefix(columns))
    keys = tuple(column for column in columns if column.primary)
    referring = {target for key in table.foreign_keys for target in (key.table,)}
    return TableView(table.name, words, columns, keys, len(referring) > 1, computed=_computed(words, columns))


def _computed(words: Iterable[str], columns: Iterable[ColumnView]) -> tuple[ColumnView, ...]:
    """A price times how many, where a table has one of each and nothing that holds both together."""
    seated = bool(set(words) & set(SOLD))
    numbers = [
        column for column in columns
        if column.amount and not set(column.words) & set(HELD) and (seated or "seat" not in column.words)
    ]  # fmt: skip
    prices = [column for column in numbers if set(column.words) & set(PRICES)]
    many = [c for c in numbers if c not in prices and set(c.words) & set(MANY)]
    sums = [column for column in numbers if set(column.words) & set(SUMS)]
    taken = [c for c in sums if set(c.words) - set(words) <= {*SUMS, "paid", "pay", "sale"}]
    if len(sums) == len(taken) == 1 and set(words) & set(SALES) and not prices:
        return (replace(taken[0], words=("revenue",), samples=()),)
    if len(prices) != 1 or len(many) != 1 or sums:
        return ()
    (price,), (number,) = prices, many
    ref = Computed(number.ref.table, number.ref.column, Sign.TIMES, price.ref.column)
    return tuple(replace(price, ref=ref, words=(word,), samples=()) for word in TAKEN)


def _without_prefix(columns: tuple[ColumnView, ...]) -> tuple[ColumnView, ...]:
    """Columns without letters that all of a table's are written with, as in WK_SURNAME and WK_TRADE."""
    first = {column.words[0] for column in columns}
    short = len(first) == 1 and len(next(iter(first))) <= PREFIX and len(columns) > LISTED
    if not short or any(len(column.words) < 2 for column in columns):
        return columns
    return tuple(replace(column, words=column.words[1:]) for column in columns)


def _with_halves(columns: tuple[ColumnView, ...]) -> tuple[ColumnView, ...]:
    """Columns whose f_nm and s_nm or l_nm are the halves of people's names."""
    halves: dict[tuple[str, ...], tuple[str, ...]] = {
        ("f", "name"): FIRST_NAMES[0], ("s", "name"): LAST_NAMES[0], ("l", "name"): LAST_NAMES[0]
    }  # fmt: skip
    found = halves.keys() & {column.words for column in columns}
    if len(found) == 1 or ("f", "name") not in found:
        return columns
    return tuple(replace(column, words=halves.get(column.words, column.words)) for column in columns)


def _roles(pairs: Iterable[tuple[ColumnRef, ColumnRef]], view: SchemaView) -> dict[str, tuple[tuple[str, ...], ...]]:
    """What columns that refer to a table call its rows, as far as the tables' own names do not say it."""
    known = {stem(word) for table in view.tables.values() for word in table.words}
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for left, right in pairs:
        words = tuple(word for word in view.column(left).words if word not in KEY_WORDS)
        same = view.column(left).words == view.column(right).words
        if words and not same and stem(words[-1]) not in known and words not in found.get(right.table, ()):
            found[right.table] = (*found.get(right.table, ()), words)
    for table in view.tables.values():
        key = table.keys[0].words if len(table.keys) == 1 else ()
        own = key[:-1] if key[-1:] == ("id",) or (view.terse and key[-1:] == ("number",)) else ()
        if own and stem(own[-1]) not in known and own not in found.get(table.name, ()):
            found[table.name] = (*found.get(table.name, ()), own)  # staff with an employee_id are employees
    return found


def _guessed_key(table: TableSchema, foreign: set[str]) -> list[str]:
    """A first column that is called an id, where no key is declared."""
    first = table.columns[0] if table.columns else None
    if first is None or first.name in foreign or name_words(first.name)[-1:] not in (("id",), ("code",)):
        return []
    return [first.name]


def _column_view(
    table: str, own: tuple[str, ...], said: set[str], column: Column, foreign: set[str], primary: set[str],
    *, terse: bool,
) -> ColumnView:  # fmt: skip
    words, ref = name_words(column.name), ColumnRef(table, column.name)
    days = otherwise_written(column.samples) if column.name not in foreign | primary else None
    if days is not None:
        ref, column = Day(table, column.name, days[0]), replace(column, type="date", samples=days[1])
    if len(words) == 1:
        numeric = NUMERIC.search(column.type) is not None
        short = (
            unglued_short(column.name, own, said, numeric=numeric, key=column.name in foreign | primary)
            if terse
            else None
        )
        words = short or unglued(words[0], own, said, key=column.name in foreign | primary)
    if words[-1:] == ("name",) and len(words) > 1 and NUMERIC.search(column.type):
        words = words[:-1]  # distance_nm is in nautical miles
    if len(words) > 1 and words[-1] in FLAGGING and _flag(column, words) is not None:
        words = words[:-1]
    if written(column.samples) and words[-1] != "dt" and words[-1].endswith("dt"):
        words = (*words[:-1], lemma(words[-1][:-2]), "date")  # PAIDDT
    if written(column.samples) and words[-1] in ("on", "at"):
        words = (*words[:-1], "date")
    numeric = NUMERIC.search(column.type) is not None or _numbers(column.samples)
    temporal = TEMPORAL.search(column.type) is not None or bool({"date", "year", "time"} & set(words))
    temporal = temporal or written(column.samples)
    return ColumnView(
        ref, words, numeric, temporal, key=column.name in foreign | primary,
        primary=column.name in primary, text=not NUMERIC.search(column.type) and not _numbers(column.samples),
        samples=column.samples, flag=None if column.name in foreign | primary else _flag(column, words),
    )  # fmt: skip


def _flag(column: Column, words: tuple[str, ...]) -> tuple[Value, Value] | None:
    """How a column says yes and no, where its values say nothing else; 0 and 1 both have to occur in it."""
    stored = {sample.strip().lower(): sample.strip() for sample in column.samples}
    pair = next((pair for pair in FLAGS if stored and stored.keys() <= set(pair)), None)
    if pair is None:
        return None
    if re.search("bool", column.type, re.IGNORECASE) and pair in FLAGS[2:]:
        return True, False
    if pair == FLAGS[-1]:
        if len(stored) < 2 and words[0] not in ("be", "have"):
            return None
        return (1, 0) if NUMERIC.search(column.type) else pair
    like = next(iter(stored.values()))
    yes, no = (word.upper() if like.isupper() else word.title() if like.istitle() else word for word in pair)
    return stored.get(pair[0], yes), stored.get(pair[1], no)


def _numbers(samples: tuple[str, ...]) -> bool:
    return bool(samples) and all(re.fullmatch(r"-?\d+(\.\d+)?", sample.strip()) for sample in samples)


def _declared(
    tables: Iterable[TableSchema], views: dict[str, TableView]
) -> Iterable[tuple[ColumnRef, ColumnRef]]:  # fmt: skip
    names = {name.lower(): name for name in views}
    for table in tables:
        places = {column.name: place for place, column in enumerate(table.columns)}

        def least(key: ForeignKey, places: dict[str, int] = places) -> tuple[bool, int]:
            """A column that is called like the key it refers to goes first, then those that stand first."""
            same = [name.lower() for name in key.columns] == [name.lower() for name in key.referred]
            return not same, min((places.get(name, 0) for name in key.columns), default=0)

        for key in sorted(table.foreign_keys, key=least):
            target = names.get(key.table.lower())
            if target is None or len(key.columns) != 1:
                continue
            referred = key.referred[0] if key.referred else views[target].keys[0].ref.column
            yield ColumnRef(table.name, key.columns[0]), ColumnRef(target, referred)


def _same_named(tables: dict[str, TableView], covered: set[str]) -> list[tuple[ColumnRef, ColumnRef]]:
    """Columns that are called like another table's key, for tables without declared keys."""
    found = []
    for table in tables.values():
        for other in tables.values():
            if other.name == table.name or (table.name in covered and other.name in covered):
                continue
            for key in other.keys[:1]:
                for column in table.columns:
                    full = (*other.words, *key.words)
                    if column.words[-1:] == key.words[-1:] and column.words in (key.words, full) and (
                        len(key.words) > 1 or column.words == full
                    ):  # fmt: skip
                        found.append((column.ref, key.ref))
    return found
