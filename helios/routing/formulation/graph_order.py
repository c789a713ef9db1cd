"""The order and the counts of a graph question: superlatives, `by …`, what is counted for each root."""

from abc import ABC, abstractmethod
from dataclasses import replace

from helios.routing.formulation.graph_columns import number_as_text
from helios.routing.formulation.graph_conditions import ConditionReading
from helios.routing.formulation.graph_plan import Aggregate, Item
from helios.routing.formulation.graph_vocabulary import PERSON_WORDS, Kind
from helios.routing.formulation.question_cues import (
    COMMON,
    LEAST,
    MOST,
    Superlative,
    aggregate_of,
    counted,
    names_of,
    superlatives,
)  # fmt: skip
from helios.routing.formulation.word_forms import singular


class OrderReading(ConditionReading, ABC):
    """A question whose order or count is being read; conditions come before."""

    order: Item | None = None
    descending = True
    measure: Item | None = None
    """The aggregate that is returned beside what is grouped, or alone."""
    alone = False
    """True where the aggregate is over everything."""
    group: Item | None = None
    """A property that rows are grouped by in place of the root."""

    spread: bool | None = None
    """Whether rows go from the highest to the lowest, or the other way, with nothing said of what."""
    beside: Item | None = None
    """A second extreme: "the smallest and the largest size"."""

    def _orders(self) -> None:
        self._spread()
        if self._extremes():
            return
        for superlative in superlatives(self.row):
            if self.order is None and self.measure is None and superlative.at not in self.used:
                limit = self.limit
                self._order(superlative)
                if limit is None and any(m.word == "first" for m in self.row[superlative.at + 1 : superlative.at + 4]):
                    self.limit = None  # "most members first" orders all rows
        if self.order is None and self.measure is None:
            self._order_by()

    def _spread(self) -> None:
        """ "From highest to lowest" as the order of what is measured."""
        for i in range(len(self.row) - 2):
            words = [m.word for m in self.row[i : i + 6] if m.word != "the"]
            if words[0] == "from" and len(words) > 3 and words[2] == "to" and {words[1], words[3]} <= MOST | LEAST:
                self.spread = words[1] in MOST
                self.used |= {j for j in range(i, min(i + 6, len(self.row))) if self.row[j].word in MOST | LEAST}

    def _extremes(self) -> bool:
        """Both ends of a number over everything: "the lowest and the highest price of a room"."""
        places = [i for i, m in enumerate(self.row) if m.word in MOST | LEAST and i not in self.used]
        if len(places) < 2 or "and" not in [m.word for m in self.row[places[0] : places[1]]]:
            return False
        first, second = (self.row[i].word in MOST for i in places[:2])
        between = {m.word for m in self.row[places[0] + 1 : places[1]]}
        number = next((j for j in range(places[1] + 1, len(self.row)) if self.row[j].kind is Kind.PROPERTY), None)
        if first == second or not between <= {"and", "the"} or number is None or self._each():
            return False
        item = self._number_item(self.row[number], number)
        self.measure = replace(item, aggregate="max" if first else "min")
        self.beside = replace(item, aggregate="max" if second else "min")
        self.alone = True
        self.used.update((*places[:2], number))
        return True

    def _order(self, superlative: Superlative) -> None:
        at = superlative.at
        following = self.row[at + 1] if at + 1 < len(self.row) else None
        named = following is not None and following.kind is Kind.PROPERTY and at + 1 not in self.used
        if superlative.compares and not named:
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
        kept = self._kept_count(j)
        if kept is not None:
            self.order = kept
        else:
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

    @abstractmethod
    def _each(self) -> bool:
        """Whether something is asked for each of several."""

    @abstractmethod
    def _aggregated(self, j: int, aggregate: Aggregate) -> None:
        """An aggregate of a property over everything or for each root."""
