"""Real parts that many tests share, made once per session: the encoder of the installed package and a sample index."""

from pathlib import Path

import pytest

from helios.config import load_config
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.models.encoder import MiniLMEncoder
from indexing.pipeline import build_index


@pytest.fixture(scope="session")
def encoder() -> MiniLMEncoder:
    """The embedded encoder on its slowest and most exact route."""
    return MiniLMEncoder.load(runtime="torch")


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus indexed with the default settings (predicted links); read only."""
    index = tmp_path_factory.mktemp("sample-index") / "index"
    build_index(sample_path(), index, config=load_config(overrides=["encoder.runtime=torch"]))
    return index


@pytest.fixture(scope="session")
def engine(sample_index: Path):
    """An engine over the sample index that all tests share; one thread."""
    with Engine.open(sample_index, threads=1) as engine:
        yield engine
