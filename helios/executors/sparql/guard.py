"""What a SPARQL query may be: one SELECT or ASK, of SPARQL 1.1's own words and functions, about this source alone.

text  →  tokens (strict)  →  words on the allow-list  →  parameters and prefixes  →  rdflib's parse tree, node by node

What comes out is the query written anew from its tokens: the engine gets the text that was checked, without comments
and escapes. CONSTRUCT and DESCRIBE are refused, since a result is rows: SELECT gives the same triples as columns.
Queries that are merely expensive pass: the deadline and the memory cap are for those.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from helios.bounded import Bounded
from helios.errors import QueryRejected
from helios.executors.base import NEVER, Deadline, Language, NativeQuery
from helios.executors.parameters import check_sizes
from helios.executors.sparql.allowed import (
    AGGREGATES,
    CASTS,
    ENGINE_SCHEMES,
    FUNCTIONS,
    NODES,
    REASONS,
    STRUCTURE,
)
from helios.executors.sparql.grammar import parse
from helios.executors.sparql.terms import IRI, term_text
from helios.executors.sparql.tokens import Kind, Token, tokenise, written
from helios.executors.values import Value

MAX_CHARACTERS = 50_000
MAX_TOKENS = 1000
"""The parser needs about half a millisecond a token."""
MAX_DIGITS = 1000
KEPT_VERDICTS = 512
SERVICE_PREFIXES = {"wikibase": "http://wikiba.se/ontology#", "bd": "http://www.bigdata.com/rdf#"}
"""Lent to queries of a source that allows services: Wikidata's label service needs both."""


class SparqlGuard:
    """The guard of one source, which may lend its prefixes to queries; threads may share it."""

    def __init__(self, prefixes: Mapping[str, str] | None = None, *, services: Iterable[str] = ()) -> None:
        """`services`: what SERVICE may call, as IRIs or by a prefix of the source; QueryRejected for what is none."""
        self.prefixes = {name.removesuffix(":"): iri for name, iri in (prefixes or {}).items()}
        services = tuple(services)
        if services:
            self.prefixes = {**SERVICE_PREFIXES, **self.prefixes}
        for name, iri in self.prefixes.items():
            check_prefix(name, iri)
        self.services = frozenset(self._service(service) for service in services)
        self._passed: Bounded[str, str] = Bounded(KEPT_VERDICTS)

    def checked(self, query: NativeQuery, *, deadline: Deadline = NEVER) -> str:
        """The text that may run; QueryRejected for anything that is not on the allow-list, QueryTimeout."""
        if query.language is not Language.SPARQL:
            raise QueryRejected("this source is asked in SPARQL", query.language.value)
        if query.parameters:
            return self._checked(query.text, query.parameters, deadline)
        return self._passed.of(query.text, lambda: self._checked(query.text, {}, deadline))

    def _checked(self, text: str, parameters: Mapping[str, Value], deadline: Deadline) -> str:
        _check_text(text)
        tokens = tokenise(text)
        _check_words(tokens, services=bool(self.services))
        tokens = _bound(tokens, parameters)
        declared = _declared(tokens)
        lent = self._lent(tokens, declared)
        _check_iris(tokens)
        self._check_services(tokens, {**lent, **declared})
        passed = written([*_declarations(lent), *tokens])
        _check_tree(parse(passed, deadline), {**lent, **declared}, self.services)
        return passed

    def _service(self, service: str) -> str:
        """The IRI of what SERVICE may call."""
        prefix, _, local = service.partition(":")
        iri = service.strip("<>") if prefix not in self.prefixes else self.prefixes[prefix] + local
        if IRI.fullmatch(iri) is None or _scheme(iri) not in ("http", "https"):
            raise QueryRejected("not an IRI that SERVICE may call", service[:80])
        return iri

    def _check_services(self, tokens: Sequence[Token], prefixes: Mapping[str, str]) -> None:
        """Each SERVICE names one that the source allows, without SILENT and without a variable."""
        for token, following in zip(tokens, tokens[1:], strict=False):
            if token.word != "SERVICE":
                continue
            prefix, _, local = following.text.partition(":")
            named = prefixes.get(prefix, "") + local if following.kind is Kind.NAME else following.text[1:-1]
            if following.kind not in (Kind.NAME, Kind.IRI) or named not in self.services:
                raise QueryRejected("a service that this source does not allow", following.text[:80])

    def _lent(self, tokens: Sequence[Token], declared: Mapping[str, str]) -> dict[str, str]:
        """The source's prefixes that a query uses without declaring them."""
        used = {token.text.partition(":")[0] for token in tokens if token.kind is Kind.NAME}
        missing = sorted(used - set(declared))
        for name in missing:
            if name not in self.prefixes:
                raise QueryRejected("a prefix that neither the query nor the source declares", f"{name}:")
        return {name: self.prefixes[name] for name in missing}


def check_prefix(name: str, iri: str) -> None:
    """QueryRejected for a prefix that cannot be declared or that some engine takes for its own."""
    tokens = tokenise(f"{name}:")
    if len(tokens) != 1 or tokens[0].kind is not Kind.NAME or name.casefold() in ENGINE_SCHEMES:
        raise QueryRejected("not a prefix that a query may use", f"{name}:")
    if IRI.fullmatch(iri) is None or _scheme(iri) in ENGINE_SCHEMES:
        raise QueryRejected("not an IRI that a prefix may stand for", iri[:80])


def _check_text(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise QueryRejected(f"longer than {MAX_CHARACTERS:,} characters", text[:40])
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryRejected("no Unicode text", repr(text[error.start : error.end])) from None


def _check_words(tokens: Sequence[Token], *, services: bool = False) -> None:
    if len(tokens) > MAX_TOKENS:
        raise QueryRejected(f"longer than {MAX_TOKENS:,} words and marks", written(tokens[:8]))
    for token in tokens:
        if token.kind is Kind.NUMBER and len(token.text) > MAX_DIGITS:
            raise QueryRejected(f"a number longer than {MAX_DIGITS:,} digits", token.text[:40])
        word = token.word
        known = word in STRUCTURE or word in FUNCTIONS or word in AGGREGATES or (services and word == "SERVICE")
        if word and not known:
            raise QueryRejected(REASONS.get(word, "not a word or function of SPARQL 1.1 queries"), token.text[:40])
        if token.kind is Kind.WORD and word == "A" and token.text != "a":
            raise QueryRejected("not a word or function of SPARQL 1.1 queries", token.text)
    form = next((token.word for token in tokens if token.word in ("SELECT", "ASK")), "")
    if not form:
        raise QueryRejected("neither SELECT nor ASK", written(tokens[:8]))


def _bound(tokens: Sequence[Token], parameters: Mapping[str, Value]) -> list[Token]:
    """Variables that are parameters replaced by their values, as terms."""
    if not parameters:
        return list(tokens)
    check_sizes(parameters)
    names = {token.text[1:] for token in tokens if token.kind is Kind.VARIABLE}
    for name in parameters:
        if name not in names:
            raise QueryRejected("a parameter that is no variable of the query", name[:40])
    terms = {name: tokenise(term_text(value)) for name, value in parameters.items()}
    bound: list[Token] = []
    for token in tokens:
        term = terms.get(token.text[1:]) if token.kind is Kind.VARIABLE else None
        bound += [token] if term is None else [replace(term[0], spaced=True), *term[1:]]
    return bound


def _declared(tokens: Sequence[Token]) -> dict[str, str]:
    """Prefixes that a query declares."""
    declared: dict[str, str] = {}
    for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word.word != "PREFIX":
            continue
        prefix = name.text.removesuffix(":")
        check_prefix(prefix, iri.text[1:-1])
        if declared.setdefault(prefix, iri.text[1:-1]) != iri.text[1:-1]:
            raise QueryRejected("a prefix declared twice", name.text[:40])
    return declared


def _check_iris(tokens: Sequence[Token]) -> None:
    for before, token in pairwise([Token(Kind.MARK, ""), *tokens]):
        if token.kind is Kind.IRI and _scheme(token.text[1:-1]) in ENGINE_SCHEMES:
            raise QueryRejected("an IRI that makes some engines run code", token.text[:80])
        if before.word == "BASE" and IRI.fullmatch(token.text[1:-1]) is None:
            raise QueryRejected("not an absolute IRI", token.text[:80])


def _scheme(iri: str) -> str:
    return iri.partition(":")[0].casefold()


def _declarations(prefixes: Mapping[str, str]) -> Iterator[Token]:
    for name, iri in prefixes.items():
        yield Token(Kind.WORD, "PREFIX", spaced=True)
        yield Token(Kind.NAME, f"{name}:", spaced=True)
        yield Token(Kind.IRI, f"<{iri}> ", spaced=True)


def _check_tree(tree: Any, prefixes: Mapping[str, str], services: Collection[str] = ()) -> None:
    """Every node of rdflib's parse tree is one that we know, every function one that computes a value."""
    from pyparsing import ParseResults
    from rdflib.plugins.sparql.parserutils import CompValue

    left: list[Any] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, CompValue):
            _check_node(node, prefixes, services)
            left.extend(node.values())
        elif isinstance(node, (ParseResults, list, tuple)):  # of ParseResults, values() would be the named parts alone
            left.extend(node)
        elif not isinstance(node, (str, type(None))):
            raise QueryRejected("a part of the query that the guard cannot read", type(node).__name__)


def _check_node(node: Any, prefixes: Mapping[str, str], services: Collection[str]) -> None:
    kind, _, rest = node.name.partition("_")
    if kind == "Builtin" and rest.upper() in FUNCTIONS:
        return
    if kind == "Aggregate" and {"GroupConcat": "GROUP_CONCAT"}.get(rest, rest.upper()) in AGGREGATES:
        return
    if node.name == "ServiceGraphPattern":
        if _resolved(node.term, prefixes) not in services:
            raise QueryRejected("a service that this source does not allow", str(node.term)[:80])
        return
    if node.name not in NODES:
        raise QueryRejected("not a part of SPARQL 1.1 queries that may be used", node.name)
    if node.name == "Function":
        iri = _resolved(node.iri, prefixes)
        if iri not in CASTS:
            raise QueryRejected("a function that is not SPARQL's own", iri[:80])


def _resolved(iri: Any, prefixes: Mapping[str, str]) -> str:
    """The IRI of a function, which the tree has as it was written."""
    if isinstance(iri, str):
        return str(iri)
    return prefixes.get(iri.prefix or "", "") + str(iri.localname or "")
