"""A question over a property graph into a plan: pattern and conditions, then order, counts and what is returned."""

from dataclasses import replace

from helios.routing.formulation.graph_columns import number_as_text
from helios.routing.formulation.graph_conditions import ConditionReading
from helios.routing.formulation.graph_plan import Aggregate, Condition, GraphPlan, Item
from helios.routing.formulation.graph_vocabulary import PERSON_WORDS, Kind
from helios.routing.formulation.question_cues import (
    COMMON,
    FILLERS,
    Superlative,
    aggregate_of,
    counted,
    names_of,
    superlatives,
)  # fmt: skip
from helios.routing.formulation.word_forms import singular


class GraphReading(ConditionReading):
    """One question read to the end."""

    order: Item | None = None
    descending = True
    measure: Item | None = None
    """The aggregate that is returned beside what is grouped, or alone."""
    group: Item | None = None
    """A property that rows are grouped by in place of the root."""
    alone = False
    """True where the aggregate is over everything."""
    shape = "list"
    dropped = 0
    """Properties that were asked for and that the shape has no place for."""
    asked_for: frozenset[int] | set[int] = frozenset()

    def read(self) -> GraphPlan | None:
        """The plan; None where no label is found or parts cannot be connected."""
        label, at = self._root()
        if label is None:
            return None
        self.root, self.root_at = self.builder.root(label), at
        try:
            self._relationships()
            self._values()
            self._comparisons()
            self._flags()
            self._orders()
            self._aggregates()
            self._labels()
            self._havings()
            return self._plan()
        except LookupError:
            return None

    def unread(self) -> list[str]:
        """The telling words that the plan did not use."""
        telling = [i for i, m in enumerate(self.row) if m.kind is not Kind.WORD or m.word not in FILLERS]
        used = self.used | self.asked_for | {self.root_at, self.limit_at}
        return [self.row[i].text for i in telling if i not in used] + ["…"] * self.dropped

    # order and counts

    def _orders(self) -> None:
        for superlative in superlatives(self.row):
            if self.order is None and self.measure is None:
                self._order(superlative)
        if self.order is None and self.measure is None:
            self._order_by()

    def _order(self, superlative: Superlative) -> None:
        at = superlative.at
        if superlative.compares:
            item = self._adjective(superlative)
            if item is not None:
                if any(m.word in ("average", "avg") for m in self.row):
                    item = self.measure = replace(item, aggregate="avg")
                self.order, self.descending = item, superlative.descending
                self.used.add(at)
            return
        for j in range(at + 1, min(len(self.row), at + 7)):
            mention = self.row[j]
            if j == self.limit_at or (mention.kind is Kind.WORD and mention.word not in COMMON):
                continue
            if mention.word in COMMON:
                self._most_common(j, superlative)
                if self.measure is None:
                    self._most_before(superlative)
                return
            if j in self.used and mention.kind is not Kind.RELATIONSHIP:
                continue
            if mention.kind is Kind.PROPERTY:
                self._order_property(j, superlative)
                return
            if self._compound(j, superlative):
                self.used.add(j)
                continue
            if mention.kind in (Kind.LABEL, Kind.RELATIONSHIP):
                self._most(j, superlative)
                return
            return
        self._most_before(superlative)

    def _compound(self, j: int, superlative: Superlative, *, any_word: bool = False) -> bool:
        """Whether a label only qualifies the property behind it: `highest review rating`, no `most movies released`."""
        counts = self.row[superlative.at].word in ("most", "least", "fewest") and not any_word
        if counts or j + 1 == len(self.row):
            return False
        return self.row[j + 1].kind is Kind.PROPERTY

    def _most_before(self, superlative: Superlative) -> None:
        """`products that were ordered the most`: what is counted stands before."""
        kinds = (Kind.RELATIONSHIP, Kind.LABEL)
        before = next((i for i in range(superlative.at - 1, self.root_at, -1) if self.row[i].kind in kinds), None)
        if before is not None:
            self._most(before, superlative)

    def _most(self, j: int, superlative: Superlative) -> None:
        """`the most movies`, `most reviewed movies`, `most reviews`: a count of what is related."""
        mention = self.row[j]
        if mention.kind is Kind.LABEL and mention.name == self.builder.label(self.root):
            follows = next((k for k in range(j + 1, len(self.row)) if self.row[k].kind is Kind.RELATIONSHIP), None)
            if follows is None:
                return
            j, mention = follows, self.row[follows]
        self._count(j)
        self.descending = superlative.descending
        self.used.update((superlative.at, j))
        if self._alone_in_number() or (self.row[self.root_at].word == "who" and self._said_once()):
            self.limit = self.limit or 1

    def _said_once(self) -> bool:
        """Whether `who` asks for one: no `are` behind it and no number."""
        return self.limit is None and len(self.row) > self.root_at + 1 and self.row[self.root_at + 1].word not in (
            "are", "were", "have",
        )  # fmt: skip

    def _most_common(self, j: int, superlative: Superlative) -> None:
        """`most common ship cities`, `most frequently ordered products`: a count of each."""
        self.used.add(j)
        for k in range(j + 1, min(len(self.row), j + 5)):
            mention = self.row[k]
            if mention.kind is Kind.PROPERTY and k not in self.used:
                owner, name = self._choose(mention, k)
                alias = self._owner(owner)
                self.group = Item(alias, name)
                self.measure = Item(alias, None, "count")
                self.used.add(k)
                break
            if mention.kind is not Kind.WORD and self._compound(k, superlative, any_word=True):
                continue
            if mention.kind is Kind.RELATIONSHIP:
                self._count(k)
                break
            if mention.kind is Kind.LABEL:
                self._count_neighbours(k)
                break
        if self.measure is not None:
            self.order, self.descending = self.measure, superlative.descending

    def _count_neighbours(self, k: int) -> None:
        """Count what is next to the root: the other label that the question names, or the only neighbour."""
        others = [i for i, m in enumerate(self.row) if m.kind is Kind.LABEL and i > k and m.name != self.row[k].name]
        if others:
            self._count(others[0])
            return
        label = self.row[k].name
        around = [r for r in self.vocabulary.schema.relationships if label in (r.start, r.end)]
        if around:
            best = max(around, key=lambda r: r.count)
            self.builder.guesses += len(around) > 1
            hop = self.builder.relate(best.name)
            self.measure = Item(hop.end if hop.start == self.root else hop.start, None, "count")

    def _count(self, j: int) -> None:
        """Count a label's nodes or a relationship for each root."""
        mention = self.row[j]
        distinct = any(m.word in ("different", "distinct", "unique", "diverse") for m in self.row[max(0, j - 2) : j])
        if mention.kind is Kind.LABEL:
            alias = self.builder.reach(mention.name)
            if alias == self.root:
                raise LookupError(mention.name)
        else:
            hop = self.builder.relate(mention.name)
            alias = hop.end if hop.start == self.root else hop.start if hop.end == self.root else hop.alias
        self.measure = Item(alias, None, "count", distinct=distinct or self._shared(alias))
        self.order = self.measure
        self.used.add(j)

    def _shared(self, alias: str) -> bool:
        """Whether a node two hops away or more is met once for each of the nodes between, as a category of products."""
        last = next((hop for hop in reversed(self.builder.hops) if alias == hop.end), None)
        if last is None or len(self.builder.hops) < 2:
            return False
        sizes = self.vocabulary.labels
        start, end = self.builder.label(last.start), self.builder.label(last.end)
        counts = [
            r.count for r in self.vocabulary.schema.relationships if (r.name, r.start, r.end) == (last.type, start, end)
        ]
        return (
            start in sizes
            and bool(counts)
            and counts[0] <= sizes[start].count
            and sizes[end].count < sizes[start].count
        )

    def _order_property(self, j: int, superlative: Superlative) -> None:
        item = self._number_item(self.row[j], j)
        if self._counts_values(item, superlative):
            self.measure = self.order = replace(
                item, aggregate="count", distinct=self.row[j - 1].word in ("distinct", "different", "unique", "diverse")
            )
            self.descending = superlative.descending
            self.used.update((j, superlative.at))
            return
        if self.row[superlative.at].word in ("shortest", "longest"):
            column = self.vocabulary.column(self._owner_name(item.alias), item.property or "")
            item = replace(item, length=column.type.lower() in ("string", "str", "text"))
        extreme = {"maximum": "max", "max": "max", "minimum": "min", "min": "min"}.get(self.row[superlative.at].word)
        if extreme is not None and self.limit is None and j < self.root_at:
            self.used.update((j, superlative.at))
            self._aggregated(j, "max" if extreme == "max" else "min")
            return
        aggregate = aggregate_of(self.row, j) or (
            "avg" if any(m.word == "average" for m in self.row[j + 1 : j + 4]) else None
        )
        self.used.update((j, superlative.at))
        if aggregate is not None:
            item = self.measure = replace(item, aggregate=aggregate)
        self.order, self.descending = item, superlative.descending
        if self._alone_in_number(superlative.at):
            self.limit = self.limit or 1

    def _counts_values(self, item: Item, superlative: Superlative) -> bool:
        """Whether `most` before a text property counts its values."""
        if self.row[superlative.at].word not in ("most", "least", "fewest"):
            return False
        if item.alias == self.root:
            return False
        column = self.vocabulary.column(self._owner_name(item.alias), item.property or "")
        return column.type.lower() in ("string", "str", "text") and not item.number

    def _adjective(self, superlative: Superlative) -> Item | None:
        """The property that an adjective compares, of the root before other nodes."""
        named = next((m.name for m in self.row[superlative.at : superlative.at + 3] if m.kind is Kind.LABEL), None)
        first = self.builder.find(named) if named is not None else None
        if named is not None and first is None:
            first = self.builder.reach(named)
        present = [
            first or self.root,
            self.root,
            *(node.alias for node in self.builder.nodes[1:]),
            *(h.alias for h in self.builder.hops),
        ]
        for alias in present:
            owner = self._owner_name(alias)
            for compared in superlative.compares:
                for owned in self.vocabulary.properties:
                    if owned.owner == owner and any(names_of(word, (compared,)) for word in owned.words):
                        if self._alone_in_number(superlative.at):
                            self.limit = self.limit or 1
                        return Item(alias, owned.column.name, number=number_as_text(owned.column))
        return None

    def _order_by(self) -> None:
        """`top 5 … by unit price`, `ordered by …`, `based on the number of …`."""
        words = [mention.word for mention in self.row]
        starts = [
            i
            for i in range(self.root_at + 1, len(words))
            if words[i] == "by" or (words[i] in ("on", "of") and words[i - 1] in ("based", "terms"))
        ]
        for i in starts:
            for j in range(i + 1, min(len(self.row), i + 6)):
                mention = self.row[j]
                if counted(self.row, j) and mention.kind in (Kind.LABEL, Kind.RELATIONSHIP):
                    self._count(j)
                    return
                if mention.kind is Kind.PROPERTY and j not in self.used and (self.limit or self._ordering(i)):
                    self._order_property(
                        j, Superlative(i, not any(m.word in ("ascending", "alphabetically") for m in self.row))
                    )
                    return
                if mention.kind is not Kind.WORD:
                    break

    def _ordering(self, i: int) -> bool:
        return self.row[i - 1].word in ("ordered", "sorted", "ranked", "order", "sort")

    def _alone_in_number(self, at: int | None = None) -> bool:
        """Whether the question asks for one: `which person`, `who has`, `the oldest movie` at a superlative."""
        if self.limit is not None:
            return False
        if at is not None:
            near = [m for m in self.row[max(0, at - 3) : at + 3] if m.kind is Kind.LABEL and m.word not in PERSON_WORDS]
            if near and all(m.word == m.name.lower() for m in near):
                return True
        mention = self.row[self.root_at]
        if mention.word == "who":
            return self.row[self.root_at + 1].word in ("has", "is", "was") if len(self.row) > 1 else False
        return singular(mention.word) == mention.word

    def _aggregates(self) -> None:
        """`how many movies`, `average rating of …`, with `for each` or `per` a group."""
        if self.measure is not None:
            return
        for j, mention in enumerate(self.row):
            if mention.kind in (Kind.LABEL, Kind.RELATIONSHIP) and counted(self.row, j) and self.order is None:
                self._counted(j)
                return
            if mention.kind is Kind.PROPERTY and j not in self.used:
                aggregate = aggregate_of(self.row, j)
                if aggregate is not None:
                    self._aggregated(j, aggregate)
                    return

    def _counted(self, j: int) -> None:
        mention = self.row[j]
        distinct = any(m.word in ("different", "distinct", "unique") for m in self.row[max(0, j - 2) : j])
        if mention.kind is Kind.LABEL and mention.name == self.builder.label(self.root):
            self.measure, self.alone = Item(self.root, None, "count", distinct=distinct), True
        else:
            self._count(j)
            self.order = None
            self.alone = self.root_at > j and not self._each()
        self.used.add(j)

    def _aggregated(self, j: int, aggregate: Aggregate) -> None:
        item = self._number_item(self.row[j], j)
        self.measure = replace(item, aggregate=aggregate)
        self.used.add(j)
        self.alone = not self._each() and self.root_at > j and not self.limit
        if self._each():
            self._group_by()

    def _each(self) -> bool:
        return any(m.word in ("each", "per", "every") for m in self.row)

    def _group_by(self) -> None:
        for j in range(1, len(self.row)):
            if self.row[j - 1].word not in ("each", "per", "every"):
                continue
            if self.row[j].kind is Kind.LABEL:
                self.root = self.builder.reach(self.row[j].name)
            elif self.row[j].kind is Kind.PROPERTY and j not in self.used:
                owner, name = self._choose(self.row[j], j)
                self.group = Item(self._owner(owner), name)
            self.used.add(j)

    def _havings(self) -> None:
        self.tests: list[Condition] = []
        for at, comparison in self.having:
            before = self.measure, self.order
            self._count(at)
            counted_item = self.measure
            if before[0] is not None or before[1] is not None:
                self.measure, self.order = before
            else:
                self.order = None
            if counted_item is not None:
                self.tests += [Condition(counted_item, operator, value) for operator, value in comparison.operators]

    # what is returned

    def _plan(self) -> GraphPlan:
        if (self.alone and self.tests) or self._against_average():
            raise LookupError("a plan has no count of groups and no comparison with an aggregate")
        select = self._select()
        order = self.order
        if order is None and self.measure is not None and not self.alone and self.limit:
            order = self.measure
        return GraphPlan(
            nodes=tuple(self.builder.nodes),
            hops=tuple(self.builder.hops),
            conditions=tuple(dict.fromkeys(self.conditions)),
            absent=tuple(self.absent),
            select=tuple(dict.fromkeys(select)),
            having=tuple(self.tests),
            order=order,
            descending=self.descending,
            limit=self.limit,
            distinct=self._distinct(),
        )

    def _against_average(self) -> bool:
        """Whether something is compared with an average in place of a number."""
        words = [mention.word for mention in self.row]
        averages = [i for i, word in enumerate(words) if word in ("average", "mean")]
        return any("than" in words[max(0, i - 3) : i] or "above" in words[max(0, i - 2) : i] for i in averages)

    def _distinct(self) -> bool:
        """Whether equal rows are one: where it is said, and where a list's root may match more than once."""
        if self.measure is not None:
            return False
        said = any(m.word in ("distinct", "unique", "different") for m in self.row)
        return said or (self.shape == "list" and bool(self.builder.hops) and self.limit is None)

    def _select(self) -> list[Item]:
        if self.alone and self.measure is not None:
            self.shape = "aggregate"
            return [self.measure]
        asked = self._asked()
        if self.measure is not None:
            self.shape = "group"
            self.dropped = sum(item.alias != self.root for item in asked)
            return [self.group or self._shown(self.root), *(i for i in asked if i.alias == self.root), self.measure]
        if self.order is not None:
            self.shape = "order"
            column = self.vocabulary.column(self._owner_name(self.order.alias), self.order.property or "")
            measured = self.order.length and column.type.endswith("[]")
            return self._listed(asked, [self.order if measured else replace(self.order, length=False)])
        return self._listed(asked, [])

    def _listed(self, asked: list[Item], order: list[Item]) -> list[Item]:
        shown = self._shown(self.root)
        if asked:
            display = [shown] if shown not in asked and self._root_named() else []
            return [*display, *asked, *order]
        if not self._beyond_root() and not order:
            self.shape += " whole"
            return [Item(self.root)]
        if any(m.word == "same" for m in self.row) and len(self.builder.nodes) > 1:
            self.shape += " same"
            return [shown, self._shown(self.builder.nodes[1].alias)]
        extra = [item for item in self.compared if item.alias in (self.root, *(h.alias for h in self.builder.hops))]
        return [shown, *(order or extra)]

    def _beyond_root(self) -> bool:
        """Whether anything but the root is compared or ordered by, or a label beside the root was named."""
        items = [c.item for c in self.conditions] + ([self.order] if self.order is not None else [])
        named = {m.name for i, m in enumerate(self.row) if m.kind is Kind.LABEL and m.word not in PERSON_WORDS}
        return any(item.alias != self.root for item in items) or (
            bool(self.builder.hops) and len(named | {self.builder.label(self.root)}) > 1
        ) or len(self.builder.hops) > 1  # fmt: skip

    def _root_named(self) -> bool:
        """Whether the asked properties stand beside the root, as in `products and their prices`."""
        asked = [i for i, m in enumerate(self.row) if m.kind is Kind.PROPERTY and i not in self.used]
        return not asked or asked[0] > self.root_at

    def _shown(self, alias: str) -> Item:
        display = self.vocabulary.display(self.builder.label(alias))
        return Item(alias, display)

    def _asked(self) -> list[Item]:
        asked = []
        for i, mention in enumerate(self.row):
            if mention.kind is not Kind.PROPERTY or i in self.used:
                continue
            owner, name = self._choose(mention, i)
            asked.append(Item(self._owner(owner), name))
        self.asked_for = {i for i, m in enumerate(self.row) if m.kind is Kind.PROPERTY and i not in self.used}
        return asked
