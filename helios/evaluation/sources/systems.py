"""The systems that are compared over sources: the layer itself and its baselines (OmniRetrieval 3.2)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helios.config import Config
from helios.evaluation.sources.options import Method
from helios.evaluation.sources.questions import SourceQuestion
from helios.evaluation.sources.reply import Layered, Reply, System, omni_reply
from helios.executors.base import Language
from helios.sources.base import Source

if TYPE_CHECKING:
    from helios.routing.omni import OmniEngine
    from helios.routing.selection import Selector


@dataclass(frozen=True, slots=True)
class Omni:
    """The whole layer as a system."""

    engine: "OmniEngine"
    k: int

    def __call__(self, question: SourceQuestion) -> Reply:
        return omni_reply(self.engine.ask(question.text, k=self.k))


class Oracle:
    """The whole layer on the gold source of each question."""

    def __init__(self, engine: "OmniEngine") -> None:
        self.engine = engine

    def __call__(self, question: SourceQuestion) -> Reply:
        from helios.routing.selection import OracleSelector

        gold = OracleSelector({question.text: [question.source]})
        return omni_reply(_with(self.engine, gold).ask(question.text, k=1))


@contextmanager
def open_layer(sources: Sequence[Source], config: Config) -> Iterator["OmniEngine"]:
    """The layer as configured, over open sources; all systems share its models and what it read of the sources."""
    from helios.routing.omni import OmniEngine

    engine = OmniEngine.over(lambda: sources, config)
    try:
        yield engine
    finally:
        engine.close()


def build_system(method: Method, engine: "OmniEngine", *, k: int) -> System:
    """A method's system; all but the layer ask one source."""
    from helios.routing.selection import KbRouting, SingleBackendSelector

    match method:
        case Method.LAYER:
            return Omni(engine, k)
        case Method.ORACLE:
            return Oracle(engine)
        case Method.GENERATORS:
            return Layered(engine.selector, engine.interrogator.formulators, engine.sources(), gold=True)
        case Method.KB_ROUTING:
            return Omni(_with(engine, KbRouting(engine.selector)), 1)
    return Omni(_with(engine, SingleBackendSelector(engine.selector, Language(method.value))), 1)


def _with(engine: "OmniEngine", selector: "Selector") -> "OmniEngine":
    """The same layer with another selector."""
    return type(engine)(
        engine.sources, selector, engine.interrogator, engine.consolidator, engine.config, model=engine.model
    )
