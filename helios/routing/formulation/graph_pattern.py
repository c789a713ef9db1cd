"""The pattern of a graph question: the nodes and relationships that its words need, connected along the schema."""

from collections import deque
from dataclasses import dataclass, field

from helios.routing.formulation.graph_plan import Hop, Node
from helios.routing.formulation.word_forms import name_words, same_verb
from helios.sources.descriptor import GraphSchema, RelationshipType

MUTUAL = ("connect", "link", "border", "adjoin", "neighbour", "neighbor", "marry", "join")
"""Verbs of relationships that hold in both directions."""
PAST = frozenset(["former", "formerly", "past", "previous", "previously", "ex"])
"""Words of relationships that were, which are not meant where nothing is said."""


def _mutual(type_: str) -> bool:
    """Whether a relationship holds both ways, by its verb."""
    return any(same_verb(name_words(type_)[0], verb) for verb in MUTUAL)


@dataclass(slots=True)
class PatternBuilder:
    """Grows a pattern from a root; every label has one node, unless a second one is asked for."""

    schema: GraphSchema
    nodes: list[Node] = field(default_factory=list)
    hops: list[Hop] = field(default_factory=list)
    past: bool = False
    """Whether the question speaks of what was before: former players."""
    guesses: int = 0
    """Relationships that the question did not name, where there was more than one choice."""

    def root(self, label: str) -> str:
        """The first node."""
        return self.add(label)

    def add(self, label: str) -> str:
        """A new node, whose alias is made of its label; those of relationships are r0, r1 …"""
        letter = next((c for c in label.lower() if c.isalpha() and c.isascii() and c != "r"), "n")
        alias = f"{letter}{len(self.nodes)}"
        self.nodes.append(Node(alias, label))
        return alias

    def find(self, label: str, *, other_than: str | None = None) -> str | None:
        """The newest node of a label."""
        return next(
            (node.alias for node in reversed(self.nodes) if node.label == label and node.alias != other_than), None
        )  # fmt: skip

    def label(self, alias: str) -> str:
        return next(node.label for node in self.nodes if node.alias == alias)

    def hop_of(self, type_: str) -> Hop | None:
        return next((hop for hop in self.hops if hop.type == type_), None)

    def relate(self, type_: str, *, agent: str | None = None) -> Hop:
        """A relationship of the type with nodes that are there, new ones where they are not.

        `agent` is the alias of its start, or "" for a start of its own.
        """
        present = self.hop_of(type_)
        if present is not None and agent is None:
            return present
        ends = self._ends(type_)
        start = agent or (None if agent == "" else self.find(ends.start))
        end = self.find(ends.end, other_than=start if ends.start == ends.end else None)
        if start is None and end is None:
            self._join(ends)
            start = self.find(ends.start)
            end = self.find(ends.end, other_than=start)
        either_way = ends.start == ends.end and _mutual(type_)
        start, end = start or self.add(ends.start), end or self.add(ends.end)
        same = next((h for h in self.hops if (h.type, h.start, h.end) == (type_, start, end)), None)
        if same is not None:
            return same  # one relationship cannot be met twice in one match
        hop = Hop(f"r{len(self.hops)}", type_, start, end, either_way)
        self.hops.append(hop)
        return hop

    def twin(self, hop: Hop, alias: str) -> str:
        """Another node of the label of one end of a relationship, at the same other end."""
        other = self.add(self.label(alias))
        ends = (other, hop.end) if alias == hop.start else (hop.start, other)
        self.hops.append(Hop(f"r{len(self.hops)}", hop.type, *ends, either_way=hop.either_way))
        return other

    def reach(self, label: str) -> str:
        """A node of the label, connected to the pattern by the shortest way; LookupError where there is none."""
        present = self.find(label)
        if present is not None:
            return present
        came: dict[str, tuple[str, RelationshipType]] = {}
        start = {node.label for node in self.nodes}
        queue = deque(sorted(start))
        while queue:
            here = queue.popleft()
            if here == label:
                break
            for there, relationship in self._neighbours(here):
                if there not in start and there not in came:
                    came[there] = (here, relationship)
                    queue.append(there)
        if label not in came:
            raise LookupError(f"no way to {label}")
        way: list[RelationshipType] = []
        while label in came:
            label, relationship = came[label]
            way.append(relationship)
        for relationship in reversed(way):
            self._step(relationship)
        return self.nodes[-1].alias

    def _step(self, relationship: RelationshipType) -> None:
        rivals = [r for r in self.schema.relationships if {r.start, r.end} == {relationship.start, relationship.end}]
        self.guesses += len(rivals) > 1
        start, end = self.find(relationship.start), self.find(relationship.end)
        start, end = start or self.add(relationship.start), end or self.add(relationship.end)
        self.hops.append(Hop(f"r{len(self.hops)}", relationship.name, start, end))

    def _join(self, ends: RelationshipType) -> None:
        """Reach the nearer end of a relationship that touches nothing yet."""
        try:
            self.reach(ends.start)
        except LookupError:
            self.reach(ends.end)

    def _ends(self, type_: str) -> RelationshipType:
        fitting = [r for r in self.schema.relationships if r.name == type_]
        if not fitting:
            raise LookupError(f"no relationship {type_}")
        present = {node.label for node in self.nodes}
        return max(fitting, key=lambda r: ((r.start in present) + (r.end in present), r.count))

    def _neighbours(self, label: str) -> list[tuple[str, RelationshipType]]:
        by_count = sorted(
            self.schema.relationships, key=lambda r: (bool(PAST & set(name_words(r.name))) != self.past, -r.count)
        )
        return [(r.end, r) for r in by_count if r.start == label] + [(r.start, r) for r in by_count if r.end == label]
