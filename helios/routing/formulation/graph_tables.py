"""A property graph as tables: the nodes of a label, and the relationships of a type between the nodes of two labels.

label → table     type between two labels → table of links that refers to both ends     property → column

Every node and every end of a link has a key that no word of a question names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from helios.routing.formulation.plan import ColumnRef, Join, Plan, PlanError, Term
from helios.routing.formulation.schema import SchemaView
from helios.sources.base import Source, ValueHit
from helios.sources.descriptor import Column, ForeignKey, GraphSchema, RelationalSchema, RelationshipType, TableSchema

KEY, START, END = "·", "··", "···"
"""The node itself, and the nodes at both ends of a link."""
KEYS = (KEY, START, END)
LIST = "LIST"
"""What the types of properties begin with that hold several values."""
MARK = "·"
"""What stands behind a name of a table that another one has, in whatever letters."""


@dataclass(frozen=True)
class GraphTables:
    """The tables of a graph, and what their names stand for in it."""

    schema: RelationalSchema
    labels: dict[str, str]
    """Labels by table."""
    links: dict[str, RelationshipType]
    """Types between two labels, by table."""

    @classmethod
    def of(cls, schema: GraphSchema) -> "GraphTables":
        """The tables of a graph; a type whose ends have no label is left out."""
        taken: set[str] = set()
        labels = {_unique(label.name, taken): label for label in schema.labels}
        tables = {label.name: table for table, label in labels.items()}
        links = {
            _unique(type_.name, taken): type_
            for type_ in sorted(schema.relationships, key=lambda one: -one.count)
            if type_.start in tables and type_.end in tables
        }  # fmt: skip
        found = [
            TableSchema(table, (Column(KEY, "STRING", primary_key=True), *_plain(label.properties)),
                        row_count=label.count)
            for table, label in labels.items()
        ]  # fmt: skip
        for table, type_ in links.items():
            ends = ((START, type_.start), (END, type_.end))
            keys = tuple(ForeignKey((column,), tables[label], (KEY,)) for column, label in ends)
            columns = (Column(START, "STRING"), Column(END, "STRING"), *_plain(type_.properties))
            found.append(TableSchema(table, columns, keys, type_.count))
        return cls(
            RelationalSchema("cypher", tuple(found)), {table: label.name for table, label in labels.items()}, links
        )

    def table_of(self, label: str) -> str:
        """The table of a label's nodes."""
        return next(table for table, name in self.labels.items() if name == label)

    def find_values(self, source: Source, phrases: Sequence[str]) -> list[ValueHit]:
        """Stored values with the table and the column that hold them."""
        places: dict[str, list[str]] = {}
        for table, name in (*self.labels.items(), *((table, link.name) for table, link in self.links.items())):
            places.setdefault(name, []).append(table)
        return [
            replace(hit, place=(table, hit.place[1]))
            for hit in source.find_values(phrases) if len(hit.place) == 2
            for table in places.get(hit.place[0], ())
        ]  # fmt: skip

    def named(self, plan: Plan, view: SchemaView) -> Plan:
        """A plan that gives nodes by what they are called, where they are called by something."""
        for place, term in enumerate(plan.select):
            if term.column is None or term.aggregate is not None or term.column.column not in KEYS:
                continue
            joins, table = plan.joins, term.column.table
            if table in self.links:
                link, end = self.links[table], term.column
                table = self.table_of(link.start if end.column == START else link.end)
                key = ColumnRef(table, KEY)
                reached = {join.left: join.right for join in joins} | {join.right: join.left for join in joins}
                if table not in plan.tables:
                    joins = (*joins, Join(end, key))
                elif reached.get(end) != key:
                    continue  # the other end of people who follow people
            naming = view.tables[table].naming
            if naming is None:
                continue
            select = (*plan.select[:place], Term(naming.ref), *plan.select[place + 1 :])
            group = (*plan.group, naming.ref) if plan.group and naming.ref not in plan.group else plan.group
            other = plan.combined
            if other is not None:
                other = other[0], self.named(other[1], view)
            plan = plan.with_(select=select, joins=joins, group=group, combined=other)
        return plan

    def column(self, ref: ColumnRef) -> Column:
        """What is known of a property; PlanError for one that there is not."""
        for table in self.schema.tables:
            if table.name == ref.table:
                for column in table.columns:
                    if column.name == ref.column:
                        return column
        raise PlanError(f"{ref.table} has no {ref.column}")


def _plain(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Properties as columns; what is shown of lists are no values of theirs."""
    return tuple(replace(one, samples=()) if one.type.startswith(LIST) else one for one in columns)


def _unique(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += MARK
    taken.add(name.lower())
    return name
