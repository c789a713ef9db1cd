"""The pattern and the conditions of a graph question: what is asked for, over which relationships and tests."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from helios.routing.formulation.graph_columns import dated, is_epoch, is_list, number_as_text
from helios.routing.formulation.graph_pattern import PAST, PatternBuilder
from helios.routing.formulation.graph_plan import Condition, Hop, Item, Operator
from helios.routing.formulation.graph_vocabulary import PERSON_WORDS, GraphVocabulary, Kind, Mention
from helios.routing.formulation.question_cues import (
    ADJECTIVES,
    COMMON,
    COMPARED,
    FILLERS,
    LEAST,
    LESS,
    MORE,
    MOST,
    QUOTING,
    Comparison,
    comparisons,
    counted,
    negated,
    part_operator,
    row_limit,
)  # fmt: skip
from helios.routing.formulation.word_forms import COUNTED, IRREGULAR, agent, name_words, singular

TIMELY = ("after", "before", "later", "earlier", "since")
TIMES = ("date", "year", "written", "opened", "released", "founded")
"""Words that compare times, and what properties of times are called."""
BEING = ("be", "been", "being", "is", "are", "was", "were", "get", "gets", "got")


class ConditionReading:
    """One question being read: its root, its pattern and its conditions, with what words they used."""

    def __init__(self, row: Sequence[Mention], vocabulary: GraphVocabulary) -> None:
        self.row = _literal([
            replace(m, kind=Kind.WORD) if m.kind is Kind.VALUE and not m.exact and m.word in FILLERS else m for m in row
        ])  # fmt: skip
        self.vocabulary = vocabulary
        words = [m.word for m in self.row]
        past = bool(PAST & set(words)) or any(pair == ("used", "to") for pair in pairwise(words))
        self.builder = PatternBuilder(vocabulary.schema, past=past)
        self.used: set[int] = set()
        self.conditions: list[Condition] = []
        self.absent: list[Hop] = []
        self.having: list[tuple[int, Comparison]] = []
        self.notes: list[str] = []
        self.compared: list[Item] = []
        self.limit, self.limit_at = row_limit(self.row)
        self.root = ""
        self.root_at = -1

    # what is asked for

    def _root(self) -> tuple[str | None, int]:
        """The label that is asked for and where it stands; `who` is who does the first verb."""
        if self.row and self.row[0].kind is Kind.WORD and self.row[0].word == "who":
            verb = next((mention for mention in self.row if mention.kind is Kind.RELATIONSHIP), None)
            if verb is not None and not any(m.kind is Kind.LABEL for m in self.row[: self.row.index(verb)]):
                return self._start_of(verb.name), 0
        for i, mention in enumerate(self.row):
            if mention.kind is Kind.LABEL:
                if mention.word in PERSON_WORDS and self._named_next(i) is not None:
                    continue
                if counted(self.row, i) and self._grouping_label(i) is not None:
                    continue
                following = self.row[i + 1] if i + 1 < len(self.row) else None
                if following is not None and following.kind is Kind.NUMBER and i + 2 < len(self.row) and (
                    self.row[i + 2].kind is Kind.LABEL
                ):  # fmt: skip
                    return self.row[i + 2].name, i + 2  # "zone 2 stations"
                if following is not None and following.kind is Kind.LABEL and following.word not in PERSON_WORDS:
                    return following.name, i + 1
                return mention.name, i
            if mention.kind is Kind.RELATIONSHIP and agent(mention.word):
                return self._start_of(mention.name), i
            if mention.kind is Kind.PROPERTY and i and self.row[i - 1].kind is not Kind.WORD:
                continue
        for i, mention in enumerate(self.row):
            if self._naming_of(i):
                continue
            if mention.kind in (Kind.PROPERTY, Kind.VALUE):
                owners = [owner for owner, _ in mention.places if owner in self.vocabulary.labels]
                named = {owner for m in self.row if m.kind is Kind.VALUE for owner, _ in m.places}
                if owners:
                    return next((owner for owner in owners if owner in named), owners[0]), i
            if mention.kind is Kind.PROPERTY and mention.places:
                return self._end_of(mention.places[0][0]), i
            if mention.kind is Kind.RELATIONSHIP:
                return self._end_of(mention.name), i
        return None, -1

    def _naming_of(self, i: int) -> bool:
        """Whether "the names of" stands before a value: "the names of the journals", where a kind is "journal"."""
        following = [m for m in self.row[i + 1 : i + 4] if m.word not in ("of", "the", "all")]
        return singular(self.row[i].word) in ("name", "title") and [m.kind for m in following[:1]] == [Kind.VALUE]

    def _named_next(self, i: int) -> int | None:
        """Where a label or an agent stands right after `who are the`."""
        for j in range(i + 1, len(self.row)):
            mention = self.row[j]
            if mention.kind is Kind.LABEL or (mention.kind is Kind.RELATIONSHIP and agent(mention.word)):
                return j
            if mention.kind is Kind.NUMBER or mention.word in MOST | LEAST | ADJECTIVES.keys() | COMMON:
                continue
            if mention.kind is not Kind.WORD or mention.word not in ("are", "is", "were", "was", "the", "all", "these"):
                return None
        return None

    def _grouping_label(self, i: int) -> int | None:
        """The label after `for each`, `per`, `by each`."""
        for j in range(i + 1, len(self.row)):
            if self.row[j].kind is Kind.LABEL and self.row[j - 1].word in ("each", "per", "every"):
                return j
        return None

    def _start_of(self, type_: str) -> str:
        return self.vocabulary.relationships[type_].start

    def _end_of(self, name: str) -> str:
        return self.vocabulary.relationships[name].end

    # the pattern

    def _numbered(self) -> None:
        """Nodes that a number names: "zone 3" by its number, "room 12" by its code."""
        for i, mention in enumerate(self.row[:-1]):
            number = self.row[i + 1]
            if mention.kind is not Kind.LABEL or number.kind is not Kind.NUMBER or not isinstance(number.value, int):
                continue
            numbers = [
                owned.column for owned in self.vocabulary.properties
                if owned.owner == mention.name and owned.words[-1] in ("number", "no", "nr", "id", "code")
                and owned.words[:-1] in ((), name_words(mention.name))
            ]  # fmt: skip
            typed = [column for column in numbers if column.type.upper().startswith(("INT", "LONG"))]
            if not typed or number.word.lower() in COUNTED.split():
                continue
            self.conditions.append(Condition(Item(self._owner(mention.name), typed[0].name), "=", number.value))
            self.used.update((i, i + 1))
            if self.limit_at == i + 1:
                self.limit = self.limit_at = None

    def _relationships(self) -> None:
        places = [i for i, m in enumerate(self.row) if m.kind is Kind.RELATIONSHIP]
        for i in places:
            mention = self.row[i]
            if negated(self.row, i) and i > self.root_at:
                ends = self.vocabulary.relationships[mention.name]
                if ends.start == self.builder.label(self.root) and not self._passive(i):
                    self.absent.append(Hop("", mention.name, self.root, ""))
                elif ends.end == self.builder.label(self.root):
                    self.absent.append(Hop("", mention.name, "", self.root))
                self.used.add(i)
                continue
            if self._other_object(i):
                self.used.add(i)
                continue
            if self._passive(i):
                self.builder.relate(mention.name, agent="" if self.builder.hop_of(mention.name) is None else None)
                self.used.add(i)
                continue
            start = self._start_of(mention.name)
            own = self._own_agent(i, start)
            self.builder.relate(mention.name, agent="" if own and self.builder.hops else None)
            self.used.add(i)

    def _passive(self, i: int) -> bool:
        """Whether the root is what something of its own label does something to: papers that are cited."""
        mention = self.row[i]
        ends = self.vocabulary.relationships[mention.name]
        if not ends.start == ends.end == self.builder.label(self.root):
            return False
        did = next((j for j in range(self.root_at + 1, i) if self.row[j].word in ("did", "does", "do")), None)
        if did is not None and any(m.kind is Kind.VALUE for m in self.row[did + 1 : i]):
            return True  # "which coaches did Ada Moe mentor"
        if not _participle(mention.word):
            return False
        after = self.row[i + 1].word if i + 1 < len(self.row) else ""
        graded = bool(i) and self.row[i - 1].word in MOST | LEAST
        return after == "by" or graded or any(m.word in BEING for m in self.row[max(0, i - 2) : i])

    def _other_object(self, i: int) -> bool:
        """Whether a verb's object is a label that its relationship does not reach: `provided comments`."""
        if agent(self.row[i].word) or self.row[i].text in self.vocabulary.relationships:
            return False
        fitting = [r for r in self.vocabulary.schema.relationships if r.name == self.row[i].name]
        ends = {label for r in fitting for label in (r.start, r.end)}
        for j in range(i + 1, min(i + 6, len(self.row))):
            if self.row[j].kind is Kind.LABEL:
                return self.row[j].name not in ends
            if self.row[j].kind not in (Kind.WORD, Kind.NUMBER):
                return False
        return False

    def _own_agent(self, i: int, start: str) -> bool:
        """Whether another node than the ones so far does it: a name or a new noun follows `by`."""
        if self.builder.hop_of(self.row[i].name) is not None:
            return False
        for j in range(i + 1, min(i + 4, len(self.row))):
            mention = self.row[j]
            if mention.kind is Kind.VALUE and any(owner == start for owner, _ in mention.places):
                return True
            if mention.kind is Kind.LABEL and mention.name == start and self.row[j - 1].word in ("by", "a", "the"):
                return "same" not in [m.word for m in self.row]
        return False

    def _labels(self) -> None:
        for i, mention in enumerate(self.row):
            if mention.kind is Kind.LABEL and i not in self.used:
                if i > self.root_at and self._absent_beside(mention.name):
                    self.used.add(i)  # "no reviews from any critic"
                    continue
                if negated(self.row, i) and i > self.root_at:
                    self._without(mention.name)
                else:
                    self.builder.reach(mention.name)
                self.used.add(i)

    def _absent_beside(self, label: str) -> bool:
        """Whether a relationship that must not exist would lead to a label."""
        for hop in self.absent:
            ends = self.vocabulary.relationships[hop.type]
            if label == (ends.start if hop.start == "" else ends.end):
                return True
        return False

    def _without(self, label: str) -> None:
        here = self.builder.label(self.root)
        for relationship in self.vocabulary.schema.relationships:
            if (relationship.start, relationship.end) == (here, label):
                self.absent.append(Hop("", relationship.name, self.root, ""))
                return
            if (relationship.end, relationship.start) == (here, label):
                self.absent.append(Hop("", relationship.name, "", self.root))
                return
        self.builder.reach(label)

    def _owner(self, owner: str, *, near: int | None = None) -> str:
        """The alias of a label's node or of a relationship, added where it is missing."""
        if owner in self.vocabulary.relationships:
            return self.builder.relate(owner).alias
        if near is not None:
            hop = self._nearest_hop(near, owner)
            if hop is not None:
                return hop
        here = self.builder.find(owner)
        return here if here is not None else self.builder.reach(owner)

    def _nearest_hop(self, near: int, owner: str) -> str | None:
        """The node of the label at the relationship that was named last before a place of the row."""
        for i in range(near - 1, self.root_at, -1):
            mention = self.row[i]
            if mention.kind is Kind.LABEL:
                return None
            if mention.kind is Kind.RELATIONSHIP:
                hop = self.builder.hop_of(mention.name)
                ends = [hop.start, hop.end] if hop is not None else []
                return next((a for a in ends if a != self.root and self.builder.label(a) == owner), None)
        return None

    def _choose(self, mention: Mention, at: int) -> tuple[str, str]:
        """The (owner, property) of a mention that fits its surroundings: near labels before the root before others."""
        near = [m.name for m in self.row[max(0, at - 4) : at + 4] if m.kind in (Kind.LABEL, Kind.RELATIONSHIP)]
        beside = [
            p
            for m in self.row[max(0, at - 4) : at + 3]
            if m.kind is Kind.PROPERTY and m is not mention
            for p in m.places
        ]
        present = [node.label for node in self.builder.nodes] + [hop.type for hop in self.builder.hops]
        named = [m.name for m in self.row if m.kind is Kind.LABEL]
        root = self.builder.nodes[0].label

        def fit(place: tuple[str, str]) -> tuple[int, ...]:
            display = place[0] in self.vocabulary.labels and self.vocabulary.display(place[0]) == place[1]
            return (
                place in beside, self._named_before(at) == place[0], place[0] == root and mention.kind is Kind.PROPERTY,
                place[0] in near, place[0] in named, display, place[0] in present,
            )  # fmt: skip

        return max(mention.places, key=fit)

    def _named_before(self, at: int) -> str | None:
        """The label or relationship that a word right before or behind a value names: `customers in X`."""
        for i in range(at - 1, max(-1, at - 4), -1):
            if self.row[i].kind is Kind.LABEL:
                return self.row[i].name
        if at + 1 < len(self.row) and self.row[at + 1].kind is Kind.LABEL:
            return self.row[at + 1].name
        return None

    # conditions

    def _values(self) -> None:
        for i, mention in enumerate(self.row):
            if mention.kind is not Kind.VALUE:
                continue
            operator = part_operator(self.row, i)
            if operator == "=" and (self._dated_value(i) or self._more_than_another(i)):
                continue
            if operator != "=" and self._property_near(i) is not None:
                self._text_condition(i, operator)
                continue
            if not mention.places:
                self._text_condition(i, operator)
                continue
            owner, name = self._choose(mention, i)
            self._beside(i, name)
            alias = self._owner(owner, near=i)
            column = self.vocabulary.column(owner, name)
            listed = is_list(column)
            item = Item(alias, name)
            self.used.add(i)
            if listed or negated(self.row, i) or not self._second(item, i):
                self.conditions.append(
                    Condition(item, "<>" if negated(self.row, i) and not listed else "=", mention.value, any_of=listed)
                )

    def _more_than_another(self, i: int) -> bool:
        """ "More employees than Hamilton Shop": compared with what another node of the root's kind has."""
        label, mention = self.builder.nodes[0].label, self.row[i]
        named = next((name for owner, name in mention.places if owner == label), None)
        if named is None or not i or self.row[i - 1].word not in ("than", "the") or "than" not in (
            m.word for m in self.row[max(0, i - 2) : i]
        ):  # fmt: skip
            return False
        start = next((j for j in range(i - 1, max(-1, i - 6), -1) if self.row[j].word in MORE | LESS), None)
        if start is None:
            return False
        own = {owned.column.name: owned.words for owned in self.vocabulary.properties if owned.owner == label}
        said = [n for m in self.row[start:i] if m.kind is Kind.PROPERTY for owner, n in m.places if owner == label]
        graded = ADJECTIVES.get(self.row[start + 1].word, ((), True))[0]
        meant = COMPARED.get(self.row[start].word, TIMES if self.row[start].word in TIMELY else graded)
        said += [name for name, words in own.items() if any(word in meant for word in words)]
        if not said:
            return False
        other = self.builder.add(label)
        self.conditions.append(Condition(Item(other, named), "=", mention.value))
        operator: Operator = ">" if self.row[start].word in MORE else "<"
        self.conditions.append(Condition(Item(self.root, said[0]), operator, other=Item(other, said[0])))
        self.used.update((i, *range(start, i)))
        return True

    def _second(self, item: Item, i: int) -> bool:
        """A second value of a property: either of the two, or another node of the same kind that has it."""
        value = self.row[i].value
        same = [c for c in self.conditions if c.item == item and c.operator in ("=", "IN") and not c.any_of]
        if not same or value == same[-1].value:
            return False
        before = next((j for j in range(i - 1, -1, -1) if self.row[j].kind is Kind.VALUE), 0)
        if any(m.word == "or" for m in self.row[before:i]):
            known = same[-1].values or (same[-1].value,)
            self.conditions[self.conditions.index(same[-1])] = Condition(item, "IN", values=(*known, value))
            return True
        hop = next((h for h in self.builder.hops if item.alias in (h.start, h.end)), None)
        if hop is None or self.root not in (hop.start, hop.end) or item.alias == self.root:
            return False
        twin = self.builder.twin(hop, item.alias)
        self.conditions.append(Condition(replace(item, alias=twin), "=", value))
        return True

    def _dated_value(self, i: int) -> bool:
        """A condition for a quoted date after `before` or `after`."""
        sign = next((m.word for m in reversed(self.row[max(0, i - 2) : i]) if m.word in MORE | LESS), None)
        if sign is None or re.match(r"\d{4}", self.row[i].text) is None:
            return False
        j = self._property_near(i)
        if j is None:
            return False
        owner, name = self._choose(self.row[j], j)
        self.conditions.append(
            Condition(Item(self._owner(owner), name), ">" if sign in MORE else "<", self.row[i].text)
        )
        self.used.update((i, j))
        return True

    def _beside(self, i: int, name: str) -> None:
        """Mark the property that a value explains, so that it is not returned."""
        for j in range(max(0, i - 4), min(len(self.row), i + 3)):
            if self.row[j].kind is Kind.PROPERTY and any(p[1] == name for p in self.row[j].places):
                self.used.add(j)

    def _property_near(self, i: int) -> int | None:
        order = [*range(i - 1, max(-1, i - 6), -1), *range(i + 1, min(len(self.row), i + 3))]
        return next((j for j in order if self.row[j].kind is Kind.PROPERTY), None)

    def _text_condition(self, i: int, operator: str) -> None:
        j = self._property_near(i)
        if j is not None:
            owner, name = self._choose(self.row[j], j)
            self.used.add(j)
        else:
            owner = self.builder.nodes[0].label
            display = self.vocabulary.display(owner)
            if display is None:
                raise LookupError(owner)
            name = display
        text = self.row[i].text
        self.conditions.append(Condition(Item(self._owner(owner), name), operator, text))  # type: ignore[arg-type]
        self.used.add(i)

    def _comparisons(self) -> None:
        for comparison in comparisons(self.row, self.limit_at):
            if set(range(comparison.start, comparison.end)) & self.used:
                continue
            target = self._compared(comparison)
            if target is None:
                continue
            self.used.update(range(comparison.start, comparison.end))
            if isinstance(target, int):
                self.having.append((target, comparison))
                self.used.add(target)
                continue
            self.compared.append(replace(target, number=False))
            self._compare(target, comparison)

    def _compare(self, item: Item, comparison: Comparison) -> None:
        owner = self._owner_name(item.alias)
        column = self.vocabulary.column(owner, item.property or "")
        if comparison.year and is_epoch(column):
            self._compare_epoch(item, comparison)
            return
        for operator, amount in comparison.operators:
            value: float | int | str = amount
            if comparison.year and column.type in ("STRING", "str") and not item.number:
                if operator == "=":
                    self.conditions.append(Condition(item, "STARTS WITH", str(int(amount))))
                    continue
                value = str(int(amount))
            self.conditions.append(Condition(item, operator, value))

    def _compare_epoch(self, item: Item, comparison: Comparison) -> None:
        """Years of a property that counts seconds since 1970."""
        for operator, amount in comparison.operators:
            first, next_ = (int(datetime(int(year), 1, 1, tzinfo=UTC).timestamp()) for year in (amount, amount + 1))
            if operator in ("=", ">="):
                self.conditions.append(Condition(item, ">=", first))
            if operator in ("=", "<="):
                self.conditions.append(Condition(item, "<", next_))
            if operator in ("<", ">"):
                self.conditions.append(Condition(item, operator, first if operator == "<" else next_ - 1))

    def _owner_name(self, alias: str) -> str:
        hop = next((hop for hop in self.builder.hops if hop.alias == alias), None)
        return hop.type if hop is not None else self.builder.label(alias)

    def _compared(self, comparison: Comparison) -> Item | int | None:
        """The property that is compared, or where in the row stands what is counted."""
        after = comparison.end
        if after < len(self.row) and not comparison.year:
            following = self.row[after]
            if following.kind is Kind.PROPERTY:
                self.used.add(after)
                return self._number_item(following, after)
            if following.kind in (Kind.LABEL, Kind.RELATIONSHIP) or (
                following.word in ("different", "distinct", "unique") and after + 1 < len(self.row)
            ):
                counted_at = after if following.kind is not Kind.WORD else after + 1
                return self._kept_count(counted_at) or counted_at
        for i in range(comparison.start - 1, max(-1, comparison.start - 6), -1):
            mention = self.row[i]
            if mention.kind is Kind.PROPERTY:
                self.used.add(i)
                return self._number_item(mention, i)
            if mention.kind in (Kind.LABEL, Kind.VALUE):
                break
        if comparison.year:
            return self._date_item(comparison)
        return self._graded(comparison)

    def _graded(self, comparison: Comparison) -> Item | None:
        """The number of the root that an adjective compares: "longer than 10 km"."""
        said = [m.word for m in self.row[comparison.start : comparison.end]]
        words = next((COMPARED[word] for word in said if word in COMPARED), ())
        for owned in self.vocabulary.properties:
            if owned.owner == self.builder.label(self.root) and owned.words[0] in words:
                return Item(self.root, owned.column.name, number=number_as_text(owned.column))
        own = [owned.column for owned in self.vocabulary.properties if owned.owner == self.builder.label(self.root)]
        numbers = [c for c in own if c.type.upper().startswith(("INT", "DOUBLE", "FLOAT")) and not dated(c)]
        sized = {"larger", "bigger", "greater", "smaller", "over", "above", "under", "below"} & set(said)
        return Item(self.root, numbers[0].name) if sized and len(numbers) == 1 else None

    def _kept_count(self, at: int) -> Item | None:
        """The root's property that keeps how many nodes of the label at a place it has."""
        mention, root = self.row[at], self.builder.label(self.root)
        if mention.kind is not Kind.LABEL or mention.name == root:
            return None
        column = self.vocabulary.count_of(mention.name, root)
        if column is None:
            return None
        self.used.add(at)
        return Item(self.root, column.name, number=number_as_text(column))

    def _number_item(self, mention: Mention, at: int) -> Item:
        owner, name = self._choose(mention, at)
        column = self.vocabulary.column(owner, name)
        return Item(self._owner(owner), name, number=number_as_text(column), length=is_list(column))

    def _date_item(self, comparison: Comparison) -> Item | None:
        """A property with years or dates, of the label before the number."""
        named = [m.name for m in self.row[: comparison.start] if m.kind is Kind.LABEL]
        for label in [*reversed(named), self.builder.nodes[0].label]:
            for column in self.vocabulary.labels[label].properties:
                if dated(column) or is_epoch(column):
                    return Item(self._owner(label), column.name)
        return None

    def _flags(self) -> None:
        for i, mention in enumerate(self.row):
            if mention.kind is not Kind.PROPERTY or i in self.used:
                continue
            owner, name = self._choose(mention, i)
            column = self.vocabulary.column(owner, name)
            before = self.row[i - 1].word if i else ""
            if column.type.lower().startswith("bool"):
                if before in ("by", "the") and i > 1 and self.row[i - 2].word in ("by", "and"):
                    continue
                denied = mention.word.startswith("non-") != negated(self.row, i)
                self.conditions.append(Condition(Item(self._owner(owner), name), "=", not denied))
                self.used.add(i)
            elif before in ("no", "without"):
                self.conditions.append(Condition(Item(self._owner(owner), name), "IS NULL"))
                self.used.add(i)


def _participle(word: str) -> bool:
    """Whether a word is a past participle, as far as its form tells."""
    return word.endswith("ed") or word in IRREGULAR


def _literal(row: list[Mention]) -> list[Mention]:
    """The row with what is meant literally as a quotation: "contains the word Park"."""
    for i in range(2, len(row)):
        mention = row[i]
        said = mention.kind in (Kind.WORD, Kind.VALUE, Kind.LABEL) and not mention.quoted and mention.text[:1].isupper()
        if said and row[i - 1].word in QUOTING:
            row[i] = replace(mention, kind=Kind.VALUE, name="", places=(), value=mention.text, quoted=True)
    return row
