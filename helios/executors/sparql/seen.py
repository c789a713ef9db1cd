"""What may be seen of an RDF graph: a copy in memory without the rest, so that no query can reach it.

Runs inside a worker, when it opens the graph. Names are patterns of IRIs, of classes and of predicates.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from helios.errors import SourceUnavailable
from helios.executors.sql.access import token

TYPES = ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://www.wikidata.org/prop/direct/P31")
"""Predicates that give a resource its class."""
SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
ANY = ("*", "?")


@dataclass(frozen=True, slots=True)
class SeenGraph:
    """Patterns of IRIs; `key` is what the tokens of masked values are made with."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    mask: tuple[str, ...]
    key: str

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "SeenGraph":
        """From the options of a worker."""
        include, exclude, mask = (tuple(options.get(name, ())) for name in ("include", "exclude", "mask"))
        return cls(include, exclude, mask, options["key"])

    def copied(self, store: Any) -> Any:
        """The part of a store that may be seen; SourceUnavailable for a name that fits nothing in it."""
        from pyoxigraph import Store

        quads = list(store)
        predicates = {quad.predicate.value for quad in quads}
        classes = {_name(quad.object) for quad in quads if quad.predicate.value in (*TYPES, SUBCLASS)}
        classes |= {_name(quad.subject) for quad in quads if quad.predicate.value == SUBCLASS}
        self._check(predicates, classes)
        gone = self._with_subclasses(quads, {name for name in classes if fits(name, self.exclude)})
        hidden = self._hidden(quads, classes, gone)
        closed = {name for name in predicates | classes if not self._named(name, predicates, classes)} | gone
        masked = {name for name in predicates if fits(name, self.mask)}
        kept = Store()
        kept.bulk_extend(
            self._masked(quad) if quad.predicate.value in masked else quad
            for quad in quads
            if quad.predicate.value not in closed
            and not {_name(quad.subject), _name(quad.object)} & hidden
            and not {_name(quad.subject), _name(quad.object)} & closed
            and not _within(quad, hidden, closed)
        )
        return kept

    def _named(self, name: str, predicates: Iterable[str], classes: Iterable[str]) -> bool:
        """Whether a predicate or a class may be seen."""
        if fits(name, self.exclude):
            return False
        kinds = [kind for kind in (predicates, classes) if any(fits(one, self.include) for one in kind)]
        own = [kind for kind in kinds if name in kind]
        return name in TYPES or not own or fits(name, self.include)

    def _with_subclasses(self, quads: Sequence[Any], found: set[str]) -> set[str]:
        """Classes, and those below them."""
        below: dict[str, set[str]] = {}
        for quad in quads:
            if quad.predicate.value == SUBCLASS:
                below.setdefault(_name(quad.object), set()).add(_name(quad.subject))
        left = list(found)
        while left:
            new = below.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    def _hidden(self, quads: Sequence[Any], classes: set[str], gone: set[str]) -> set[str]:
        """Resources of classes that may not be seen, and where classes are included, those of no class among them."""
        wanted = {name for name in classes if fits(name, self.include)}
        typed: dict[str, set[str]] = {}
        for quad in quads:
            if quad.predicate.value in TYPES:
                typed.setdefault(_name(quad.subject), set()).add(_name(quad.object))
        hidden = {
            name for name, own in typed.items()
            if own & gone or (wanted and not own & wanted)
        }  # fmt: skip
        if wanted:
            hidden |= {_name(quad.subject) for quad in quads} - set(typed)
        return hidden

    def _masked(self, quad: Any) -> Any:
        from pyoxigraph import Literal, Quad

        said = token(self.key, str(quad.object))
        return Quad(quad.subject, quad.predicate, Literal(said or ""), quad.graph_name)

    def _check(self, predicates: set[str], classes: set[str]) -> None:
        """A name that fits nothing is a slip that would leave open what should be closed."""
        for key in ("include", "exclude", "mask"):
            for pattern in getattr(self, key):
                known = predicates if key == "mask" else predicates | classes
                free = key != "include" and any(sign in pattern for sign in ANY)  # an empty list of what is seen is all
                if not free and not any(fits(name, (pattern,)) for name in known):
                    kind = "predicate" if key == "mask" else "class or predicate"
                    raise SourceUnavailable(f"access: {key}: there is no {kind} {pattern!r} in the graph")


def fits(iri: str, patterns: Iterable[str]) -> bool:
    """Whether an IRI is meant: by all of it, or by what stands behind its last `#`, `/` or `:`."""
    local = iri.rstrip("/#")
    for sign in "#/:":
        local = local.rpartition(sign)[2] or local
    return any(fnmatchcase(iri if ":" in pattern else local, pattern) for pattern in patterns)


def _within(quad: Any, hidden: set[str], closed: set[str]) -> bool:
    """Whether a triple that is spoken of as a term holds what may not be seen."""
    for term in (quad.subject, quad.object):
        if hasattr(term, "predicate"):
            names = {_name(term.subject), _name(term.object), term.predicate.value}
            if names & (hidden | closed) or _within(term, hidden, closed):
                return True
    return False


def _name(term: Any) -> str:
    """A term as text; IRIs as they are, all others so that none is taken for one."""
    from pyoxigraph import NamedNode

    return term.value if isinstance(term, NamedNode) else str(term)
