"""The systems that are compared over sources: the layer itself and its baselines (OmniRetrieval 3.2)."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from helios.config import Config
from helios.errors import EvaluationError
from helios.evaluation.sources.options import Method
from helios.evaluation.sources.reply import Formulator, Layered, Selector, System
from helios.executors.base import Language
from helios.sources.base import Source

SELECTOR = "helios.routing.lexical_selection:LexicalDenseSelector"
LIKENESS = "helios.routing.likeness:Likeness"
FORMULATORS = {
    Language.SQL: "helios.routing.formulation.generator:SqlGenerator",
    Language.SPARQL: "helios.routing.formulation.sparql_generator:SparqlGenerator",
    Language.CYPHER: "helios.routing.formulation.cypher_generator:CypherGenerator",
}


def build_system(
    method: Method,
    sources: Sequence[Source],
    selector: Selector,
    formulators: Mapping[Language, Formulator],
    *,
    k: int = 3,
) -> System:
    """A method over open sources; single backends choose one source, as routing does."""
    language = Language(method) if method.value in list(Language) else None
    depth = k if method is Method.LAYER else 1
    return Layered(selector, formulators, sources, k=depth, gold=method is Method.ORACLE, language=language)


def open_selector(config: Config, *, dense: bool = True) -> Selector:
    """The selector that needs no language model; `dense` also compares token vectors."""
    likeness = _named(LIKENESS)(_encoder(config)) if dense else None
    selector: Selector = _named(SELECTOR)(likeness)
    return selector


def open_formulators() -> dict[Language, Formulator]:
    """The generators that need no language model."""
    return {language: _named(name)() for language, name in FORMULATORS.items()}


def _encoder(config: Config) -> Any:
    from helios.models.encoder import MiniLMEncoder

    settings = config.encoder
    return MiniLMEncoder.load(
        settings.model, adapter=settings.adapter, runtime=settings.runtime, max_tokens=settings.max_tokens,
        batch_tokens=settings.batch_tokens,
    )  # fmt: skip


def _named(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise EvaluationError(f"{name} needs {error.name}, which is not installed") from error
