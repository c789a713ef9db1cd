"""The shared engine's stages one by one, states as they stand between them, and engines that borrow its models."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache

import pytest

from helios.config import load_config
from helios.engine import Engine
from helios.index.settings import search_settings
from helios.index.snapshot import Snapshot
from helios.retrieval.state import SearchState, Stage, run_stages

StateAfter = Callable[..., SearchState]
Reopen = Callable[..., Engine]


@pytest.fixture(scope="session")
def stages(engine: Engine) -> Mapping[str, Stage]:
    """The usual stages by name."""
    return {stage.name: stage for stage in engine.pipeline.stages}


@pytest.fixture(scope="session")
def state_after(engine: Engine, stages: Mapping[str, Stage]) -> StateAfter:
    """The state of a question after the named stages, each asked for once: states never change."""

    @cache
    def after(question: str, *names: str, k: int = 20) -> SearchState:
        return run_stages(engine.begin(question, k=k), [stages[name] for name in names])

    return after


@pytest.fixture(scope="module")
def reopen(engine: Engine) -> Iterator[Reopen]:
    """Open the sample index again with other settings or stages; what the shared engine has loaded is lent."""
    with ExitStack() as opened:

        def reopen(*overrides: str, threads: int = 1, stages=None) -> Engine:
            snapshot = Snapshot.open(engine.snapshot.directory)
            config = search_settings(snapshot, load_config(overrides=overrides))
            other = Engine(snapshot, config, threads=threads, stages=stages, models=engine.models)
            return opened.enter_context(other)

        yield reopen
