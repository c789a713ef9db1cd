"""What things are called: by which columns rows are named, and whose names a question asks for."""

from collections.abc import Sequence

from helios.routing.formulation.cues import Cue
from helios.routing.formulation.draft import Draft, Item
from helios.routing.formulation.plan import Aggregate, ColumnRef, Join, Plan, Term
from helios.routing.formulation.restrictions import Restrictions
from helios.routing.formulation.schema import SchemaView, TableView
from helios.routing.formulation.words import lemma, stem

PEOPLE = frozenset((
    "person", "student", "patient", "guest", "client", "staff", "people", "human", "man", "woman", "friend", "pilot",
    "coach", "chef",
))  # fmt: skip
"""Names of people that do not end like the others."""
DOING = ("er", "or", "ist", "ian", "ee")
"""What names of people end with."""
THINGS = frozenset((
    "order", "boiler", "number", "letter", "offer", "border", "river", "tower", "filter", "ladder", "folder", "cover",
    "layer", "meter", "motor", "sensor", "tractor", "elevator", "color", "floor", "door", "paper", "water", "trailer",
    "computer", "printer", "container", "transfer", "voucher", "reminder", "register", "chapter", "center",
    "theater", "counter", "scooter", "locker", "trigger", "server", "router", "charger", "freezer", "mixer", "harbor",
    "factor", "error", "corridor", "anchor", "list", "fee", "tree", "committee", "coffee", "semester",
    "quarter", "winter", "summer", "cylinder", "converter", "generator", "reactor", "detector", "compressor", "timer",
))  # fmt: skip
"""Names of things that end like them."""
HALVES = frozenset(["first", "last", "forename", "forenames", "surname", "surnames", "given", "family", "middle"])
"""Words that ask for a half of a person's name."""


class Names(Restrictions):
    """The names of what a settled draft is about."""

    def _key(self, table: str) -> ColumnRef | None:
        view = self.schema.tables[table]
        return view.keys[0].ref if view.keys else view.columns[0].ref if view.columns else None

    def _naming(self, table: str) -> ColumnRef | None:
        naming = self.schema.tables[table].naming
        return naming.ref if naming is not None else self._key(table)

    def _called(self, column: ColumnRef) -> ColumnRef:
        """The name of what a foreign key refers to, where it is asked who that is: the host is a person."""
        view = self.schema.column(column)
        if not any(piece.cue == Cue.ASK and piece.text == "who" for piece in self.draft.pieces):
            return column
        naming = self.schema.tables[column.table].naming
        if view.numeric and not view.key and naming is not None and (self._ordered(column) or self._compared(column)):
            return naming.ref  # "who earns the most"
        said = {lemma(word) for piece in self.draft.pieces for word in piece.text.lower().split()}
        if not view.key or view.primary or not view.numeric or view.words[-1] in said & {"id", "code", "number"}:
            return column
        for join in self.schema.joins.get(column.table, ()):
            naming = self.schema.tables[join.right.table].naming
            if join.left == column and naming is not None:
                return naming.ref
        return column

    def _ordered(self, column: ColumnRef) -> bool:
        """Whether a superlative is all that a column is named for."""
        pieces = {id(item.piece) for item in self.draft.select}
        return len(pieces) == 1 and any(self.settled.of(item) == column for item in self.draft.orders) and all(
            id(item.piece) in pieces for item in self.draft.orders
        )  # fmt: skip

    def _compared(self, column: ColumnRef) -> bool:
        """Whether the only column that is asked for is one that is compared: "who earns more than the average"."""
        return len(self.draft.select) == 1 and any(self.settled.of(part) == column for part in self.draft.filters)

    def _doer(self, table: str) -> ColumnRef | None:
        """Who does what a table's rows are, where "who" asks and only these are named: the keeper of a garden."""
        if not any(piece.cue == Cue.ASK and piece.text == "who" for piece in self.draft.pieces[:2]):
            return None
        if len({p.tables[0] for p in self.draft.mentions if p.tables}) > 1 or is_person(
            self.schema.tables[table].words
        ):
            return None
        owners = dict.fromkeys(key.table for own, key in self.schema.refers if own.table == table != key.table)
        doers = [name for name in owners if is_person(self.schema.tables[name].words)] or list(owners)
        naming = self.schema.tables[doers[0]].naming if len(doers) == 1 else None
        if naming is None:
            return None
        self._need([table])
        return naming.ref

    def _who(self) -> ColumnRef | None:
        """Whose names "who" asks for where the question names no people: the members, of "who borrowed the drill"."""
        first = next((p for p in self.draft.pieces if p.cue != Cue.WORD), None)
        chosen = [
            item for item in self.draft.select
            if item.aggregate is None and not item.provisional and item.grade is None
            and not self._said_of(item)
            and (item.piece is None or item.piece.payload is not Aggregate.SUM)
        ]  # fmt: skip
        if first is None or first.cue != Cue.ASK or first.text != "who" or chosen:
            return None
        people = [name for name, table in self.schema.tables.items() if self._people(table)]
        spoken = [t for piece in self.draft.mentions for t in piece.tables[:1]]
        summed = [part.item for part in self.draft.having if part.item is not None]
        parts = [*self.draft.filters, *summed, *self.draft.orders]
        spoken += [column.table for part in parts if (column := self.settled.of(part)) is not None]
        absent = [link.table for piece, _ in self.draft.absent for link in piece.columns[:1]]
        if not spoken and absent and self._people(self.schema.tables[absent[0]]):
            return self._naming(absent[0])
        dated = bool(self.draft.select) and all(map(self._said_of, self.draft.select))
        if dated and spoken[:1] and spoken[0] in people:
            return self._naming(spoken[0])  # "who has left, and when"
        if not spoken or any(table in people for table in spoken):
            return None
        ways = {name: path for name in people if (path := self.schema.path(spoken[:1], name, self.said))}
        told = [name for name, path in ways.items() if any(self._tells(join) for join in path)]
        lengths = sorted(len(path) for path in ways.values())
        nearest = [name for name, path in ways.items() if len(path) == lengths[0]]
        if len(nearest) > 1:  # the customer of a boiler rather than who installed it
            plain = [n for n in nearest if not any(self.schema.unsaid_role(join, self.said) for join in ways[n])]
            nearest = plain or nearest
        lengths = sorted(len(path) for name, path in ways.items() if name in nearest or len(path) > lengths[0])
        alone = len(ways) == 1 or (len(nearest) == 1 and (len(lengths) == 1 or lengths[1] > lengths[0] + 1))
        has = len(nearest) == 1 and lengths[0] == 1 and any(p.text in ("has", "have") for p in self.draft.pieces[1:2])
        meant = nearest if alone or has else told
        return self._naming(meant[0]) if len(meant) == 1 else None

    def _said_of(self, item: Item) -> bool:
        """Whether a date is asked for beside what was done then: "who has left, and when"."""
        done = {self.settled.of(part) for part in self.draft.filters}
        column = self.settled.of(item)
        return column is not None and column in done and self.schema.column(column).temporal

    def _tells(self, join: Join) -> bool:
        """Whether the question's verbs name a table or a column on a way."""
        named = (*self.schema.tables[join.right.table].words, *self.schema.column(join.left).words)
        return bool(self.said & {stem(word) for word in named})

    def _people(self, table: TableView) -> bool:
        """Whether a table's rows are people, who have names."""
        if table.naming is None:
            return False
        whole = table.surname is not None or table.naming.words == ("full", "name")
        return whole or is_person(table.words)

    def _kind_named(self, select: Sequence[Term]) -> ColumnRef | None:
        """The names of things of a kind, beside what is theirs: "all alloys with their suppliers"."""
        first = [p for p in self.draft.pieces if p.cue not in (Cue.WORD, Cue.DISTINCT)][:2]
        if [p.cue for p in first] != [Cue.ASK, Cue.VALUE] or lemma(first[1].text) == first[1].text.lower():
            return None
        tables = {term.column.table for term in select if term.column is not None and term.aggregate is None}
        owned = any(p.text in ("their", "its") for p in self.draft.pieces)
        if not owned or len(tables) != 1 or not any(link.table in tables for link in first[1].values):
            return None
        naming = self.schema.tables[next(iter(tables))].naming
        return naming.ref if naming is not None and Term(naming.ref) not in select else None


def whole_names(plan: Plan, draft: Draft, schema: SchemaView) -> Plan:
    """People by both halves of their names, unless the question asks for one, and grouped by their keys."""
    asked = [item.piece for item in draft.select if item.piece is not None and item.piece.cue == Cue.COLUMN]
    grouped = [item.piece for item in draft.groups if item.piece is not None]
    if {word for piece in (*asked, *grouped) for word in piece.text.lower().split()} & HALVES:
        return plan
    if any(lemma(piece.text) == "name" for piece in grouped):
        return plan  # "which name is the most common"
    other = {
        table.naming.ref: table.surname.ref for table in schema.tables.values()
        if table.naming is not None and table.surname is not None
    }  # fmt: skip
    select: list[Term] = []
    for term in plan.select:
        last = other.get(term.column) if term.column is not None and term.aggregate is None else None
        select += [term] if last is None else [term, Term(last)]
    if len(select) == len(plan.select):
        return plan
    group: list[ColumnRef] = []
    for one in plan.group:
        group += [*(key.ref for key in schema.tables[one.table].keys), one, other[one]] if one in other else [one]
    if plan.combined is not None:
        operation, second = plan.combined
        plan = plan.with_(combined=(operation, whole_names(second, draft, schema)))
    return plan.with_(select=tuple(dict.fromkeys(select)), group=tuple(dict.fromkeys(group)))


def is_person(words: Sequence[str]) -> bool:
    """Whether a table's rows are people, by its name."""
    return words[-1] in PEOPLE or (words[-1].endswith(DOING) and words[-1] not in THINGS)
