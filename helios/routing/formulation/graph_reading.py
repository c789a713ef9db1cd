"""A question over a property graph into a plan: pattern and conditions, then order, counts and what is returned."""

from dataclasses import replace

from helios.routing.formulation.graph_columns import dated, is_list
from helios.routing.formulation.graph_order import OrderReading
from helios.routing.formulation.graph_plan import Aggregate, Condition, GraphPlan, Item
from helios.routing.formulation.graph_vocabulary import PERSON_WORDS, Kind
from helios.routing.formulation.plan import PlanError
from helios.routing.formulation.question_cues import (
    ADJECTIVES,
    FILLERS,
    LEAST,
    MOST,
    aggregate_of,
    counted,
)  # fmt: skip
from helios.routing.formulation.word_forms import IRREGULAR, singular

REQUESTS = ("give", "show", "list", "return", "need", "please")
"""Words of a sentence that says what is wanted."""


class GraphReading(OrderReading):
    """One question read to the end."""

    shape = "list"
    dropped = 0
    """Properties that were asked for and that the shape has no place for."""
    asked_for: frozenset[int] | set[int] = frozenset()

    def read(self) -> GraphPlan | None:
        """The plan; None where no label is found, parts cannot be connected, or no query can say it."""
        label, at = self._root()
        if label is None:
            return None
        self.root, self.root_at = self.builder.root(label), at
        try:
            self._numbered()
            self._relationships()
            self._values()
            self._comparisons()
            self._flags()
            self._orders()
            self._aggregates()
            self._labels()
            self._havings()
            return self._plan()
        except (LookupError, PlanError):
            return None

    def unread(self) -> list[str]:
        """The telling words that the plan did not use."""
        telling = [i for i, m in enumerate(self.row) if m.kind is not Kind.WORD or m.word not in FILLERS]
        used = self.used | self.asked_for | {self.root_at, self.limit_at}
        return [self.row[i].text for i in telling if i not in used] + ["…"] * self.dropped

    # aggregates

    def _aggregates(self) -> None:
        """`how many movies`, `average rating of …`, with `for each` or `per` a group."""
        if self.measure is not None:
            return
        for j, mention in enumerate(self.row):
            if self._measured_in(j):
                continue
            if mention.kind in (Kind.LABEL, Kind.RELATIONSHIP) and counted(self.row, j) and (
                self.order is None or self._each_property()
            ):  # fmt: skip
                order, by = self.order, self._said_direction()
                self._counted(j)
                if order is not None and order == self.group:
                    self.order, self.descending = order, by
                return
            if mention.kind is Kind.VALUE and j == self.root_at and counted(self.row, j) and self.order is None:
                self.measure, self.alone = Item(self.root, None, "count"), True
                return
            if mention.kind is Kind.PROPERTY and j not in self.used and self.order is None and (
                self._different() and counted(self.row, j) and not self._each()
            ):  # fmt: skip
                owner, name = self._choose(mention, j)
                self.measure, self.alone = Item(self._owner(owner), name, "count", distinct=True), True
                self.used.add(j)
                return
            if mention.kind is Kind.PROPERTY and j not in self.used:
                aggregate = aggregate_of(self.row, j) or ("sum" if self._added_up(j) else None)
                if aggregate is not None:
                    self._aggregated(j, aggregate)
                    return

    def _measured_in(self, j: int) -> bool:
        """Whether a label only says of what an amount is that follows at once: "how many survey hours"."""
        after = self.row[j + 1] if j + 1 < len(self.row) else None
        if self.row[j].kind is not Kind.LABEL or after is None or after.kind is not Kind.PROPERTY:
            return False
        return counted(self.row, j) and self._added_up(j + 1)

    def _added_up(self, j: int) -> bool:
        """Whether amounts that are stored are asked for altogether: "how many units does it stock in total"."""
        said = any(m.word in ("altogether", "overall") or m.text.lower() == "total" for m in self.row[j + 1 :])
        related = all(owner in self.vocabulary.relationships for owner, _ in self.row[j].places)
        if not ((said or related) and counted(self.row, j)):
            return False
        return any(
            self.vocabulary.column(*place).type.upper().startswith(("INT", "DOUBLE", "FLOAT", "LONG", "NUMBER"))
            for place in self.row[j].places
        )

    def _counted(self, j: int) -> None:
        mention = self.row[j]
        distinct = any(m.word in ("different", "distinct", "unique") for m in self.row[max(0, j - 2) : j])
        following = self.row[j + 1] if j + 1 < len(self.row) else mention
        if mention.kind is Kind.LABEL and distinct and following.kind is Kind.PROPERTY:
            owner, name = self._choose(following, j + 1)
            self.measure, self.alone = Item(self._owner(owner), name, "count", distinct=True), True
            self.used.add(j + 1)
        elif mention.kind is Kind.LABEL and mention.name == self.builder.label(self.root):
            self.measure, self.alone = Item(self.root, None, "count", distinct=distinct), True
            if self._each_property():
                self._group_by()
                self.alone = self.group is None
        else:
            self._count(j)
            self.order = None
            self.alone = self.root_at > j and not self._each()
        self.used.add(j)

    def _said_direction(self) -> bool:
        """Whether the largest come first, where a direction is said."""
        return any(m.word in ("descending", "desc", "decreasing", "latest", "newest", "highest") for m in self.row)

    def _each_property(self) -> bool:
        """Whether a property stands behind "each"."""
        return any(
            self.row[j].kind is Kind.PROPERTY and self.row[j - 1].word in ("each", "per", "every")
            for j in range(1, len(self.row))
        )

    def _aggregated(self, j: int, aggregate: Aggregate) -> None:
        item = self._number_item(self.row[j], j)
        self.measure = replace(item, aggregate=aggregate)
        self.used.add(j)
        self.alone = not self._each() and (self.root_at >= j or self._measured_in(j - 1)) and not self.limit
        if self._each():
            self._group_by()

    def _each(self) -> bool:
        return any(m.word in ("each", "per", "every") for m in self.row)

    def _group_by(self) -> None:
        for j in range(1, len(self.row)):
            if self.row[j - 1].word not in ("each", "per", "every"):
                continue
            own = self.row[j + 1] if j + 1 < len(self.row) else self.row[j]
            if self.row[j].kind is Kind.LABEL and own.kind is Kind.PROPERTY and j + 1 not in self.used and any(
                owner == self.row[j].name for owner, _ in own.places
            ):  # fmt: skip
                name = next(name for owner, name in own.places if owner == self.row[j].name)
                self.group = Item(self.builder.reach(self.row[j].name), name)  # "for each survey method"
                self.used.add(j + 1)
            elif self.row[j].kind is Kind.LABEL:
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
        self.conditions += [Condition(item, "IS NOT NULL") for item in self._stored()]
        if order is None and self.measure is not None and not self.alone and self.limit:
            order = self.measure
        if order is None and self.spread is not None and not self.alone:
            numbers = [item for item in select if item.aggregate or (item.property and self._is_number(item))]
            order, self.descending = (numbers[-1] if numbers else None), self.spread
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

    def _is_number(self, item: Item) -> bool:
        column = self.vocabulary.column(self._owner_name(item.alias), item.property or "")
        return column.type.upper().startswith(("INT", "DOUBLE", "FLOAT", "LONG", "NUMBER")) or item.number

    def _against_average(self) -> bool:
        """Whether something is compared with an average in place of a number."""
        words = [mention.word for mention in self.row]
        averages = [i for i, word in enumerate(words) if word in ("average", "mean")]
        return any("than" in words[max(0, i - 3) : i] or "above" in words[max(0, i - 2) : i] for i in averages)

    def _distinct(self) -> bool:
        """Whether equal rows are one: where it is said, and where a list's root may match more than once."""
        if self.measure is not None:
            return False
        return self._different() or (self.shape == "list" and bool(self.builder.hops) and self.limit is None)

    def _different(self) -> bool:
        return any(m.word in ("distinct", "unique", "different") for m in self.row)

    def _select(self) -> list[Item]:
        if self.alone and self.measure is not None:
            self.shape = "aggregate"
            return [self.measure, *([self.beside] if self.beside is not None else [])]
        asked = self._asked()
        if self.measure is not None:
            self.shape = "group"
            self.dropped = sum(item.alias != self.root for item in asked)
            own = [item for item in asked if item.alias == self.root]
            shown = self.group or self._shown(self.root)
            return [*([] if self.group is None and self._told(shown, own) else [shown]), *own, self.measure]
        if self.order is not None:
            self.shape = "order"
            column = self.vocabulary.column(self._owner_name(self.order.alias), self.order.property or "")
            measured = self.order.length and is_list(column)
            if not asked and self._amount_asked():
                return [self.order]
            return self._listed(asked, [self.order if measured else replace(self.order, length=False)])
        return self._listed(asked, [])

    def _amount_asked(self) -> bool:
        """Whether an amount itself is asked for: "what is the highest fee of an actor"."""
        first = next((i for i, m in enumerate(self.row) if m.word in MOST | LEAST | ADJECTIVES.keys()), None)
        if first is None or self.order is None or first > 3 or self.row[0].word != "what":
            return False
        after = next((m for m in self.row[first + 1 :] if m.kind is not Kind.WORD), None)
        return (
            after is not None and after.kind is Kind.PROPERTY and any(p == self.order.property for _, p in after.places)
        )

    def _listed(self, asked: list[Item], order: list[Item]) -> list[Item]:
        shown = self._shown(self.root)
        if asked:
            display = [shown] if shown not in asked and self._root_named() and not self._told(shown, asked) else []
            return [*display, *asked, *order]
        if not self._beyond_root() and not order and not self._different():
            self.shape += " whole"
            return [Item(self.root)]
        if any(m.word == "same" for m in self.row) and len(self.builder.nodes) > 1:
            self.shape += " same"
            return [shown, self._shown(self.builder.nodes[1].alias)]
        extra = [item for item in self.compared if item.alias in (self.root, *(h.alias for h in self.builder.hops))]
        return [shown, *(order or extra)]

    def _told(self, shown: Item, asked: list[Item]) -> bool:
        """Whether the properties that are asked for need no node beside them: different ones, or codes."""
        own = [item for item in asked if item.alias == self.root]
        return bool(own) and (self._different() or shown.property is None)

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
            if mention.kind is not Kind.PROPERTY or i in self.used or self._only_when(i):
                continue
            called = self._name_of(i)
            if called is None:
                owner, name = self._choose(mention, i)
                own = owner == self.builder.label(self.root)
                called = Item(self.root if own else self._owner(owner), name)
            asked.append(called)
        asked += [*self._asked_beside(), *(item for item in self._listed_labels() if item not in asked)]
        self.asked_for = {i for i, m in enumerate(self.row) if m.kind is Kind.PROPERTY and i not in self.used}
        return asked

    def _only_when(self, i: int) -> bool:
        """Whether "year" or "date" stands for another property: "in which year was it opened"."""
        if self.row[i].word not in ("year", "date", "when"):
            return False
        others = [m for m in self.row[i + 1 : i + 8] if m.kind is Kind.PROPERTY and _past(m.word)]
        return any(dated(self.vocabulary.column(*place)) for m in others for place in m.places)

    def _name_of(self, i: int) -> Item | None:
        """What "the names of the movies" means where movies have titles."""
        if singular(self.row[i].word) not in ("name", "title"):
            return None
        following = [m for m in self.row[i + 1 : i + 4] if m.word not in ("of", "the", "all")]
        label = following[0].name if following and following[0].kind is Kind.LABEL else None
        alias = self.builder.find(label) if label is not None else None
        if alias is None or any(owner == label for owner, _ in self.row[i].places):
            return None
        shown = self._shown(alias)
        return shown if shown.property is not None else None

    def _listed_labels(self) -> list[Item]:
        """What a request of its own lists: "Give the landowner, the weir and the river"."""
        at = next((i for i, m in enumerate(self.row) if i > self.root_at and m.word in REQUESTS), len(self.row))
        labels = [(i, m) for i, m in enumerate(self.row) if i > at and m.kind is Kind.LABEL and not self._owns(i)]
        found = [(i, alias) for i, m in labels if (alias := self.builder.find(m.name)) is not None]
        self.used |= {i for i, _ in found}
        return [self._shown(alias) for _, alias in found]

    def _owns(self, i: int) -> bool:
        """Whether a label says whose a property is that follows: "the river's name", "the survey reference"."""
        after = self.row[i + 1] if i + 1 < len(self.row) else None
        return after is not None and after.kind is Kind.PROPERTY

    def _asked_beside(self) -> list[Item]:
        """Who else is asked for: "and who reviewed them"."""
        found = []
        for i in range(self.root_at + 1, len(self.row)):
            if self.row[i].word != "who" or self.row[i - 1].word != "and":
                continue
            verb = next((m for m in self.row[i + 1 :] if m.kind is Kind.RELATIONSHIP), None)
            hop = self.builder.hop_of(verb.name) if verb is not None else None
            if hop is not None and self.root in (hop.start, hop.end):
                found.append(self._shown(hop.end if hop.start == self.root else hop.start))
                self.used.add(i)
        return found

    def _stored(self) -> list[Item]:
        """Properties that rows are sorted or grouped by: nodes that lack them come neither first nor last."""
        items = [self.order if self.limit is not None else None, self.group]
        plain = [item for item in items if item is not None and item.property is not None and item.aggregate is None]
        return [replace(item, number=False, length=False) for item in plain]


def _past(word: str) -> bool:
    return word.endswith("ed") or word in IRREGULAR
