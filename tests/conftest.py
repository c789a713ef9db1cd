"""Real parts that many tests share, made once per session: the encoder of the installed package, a sample index,
a language model behind an OpenAI-compatible server, and a server that misbehaves as a test wants it.
"""

import fcntl
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from helios.config import load_config
from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.models.encoder import MiniLMEncoder
from indexing.pipeline import build_index

os.environ.setdefault("OMP_NUM_THREADS", "1")  # on a busy machine torch's threads mostly wait for each other
if importlib.util.find_spec("xllamacpp") is not None:
    import_module("xllamacpp")  # first of the libraries with a C++ run time: after ladybug's its start aborts
BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How long an example takes says nothing where other work runs beside the tests."""
settings.register_profile("same everywhere", BUSY, derandomize=True)
settings.register_profile("random", BUSY)  # other examples every time: `pytest --hypothesis-profile random`
settings.load_profile("same everywhere")


LONGEST = (
    "test_corpus_bombs.py", "test_typed_pages.py", "test_living_soak.py", "test_index_damage.py", "test_crashes.py",
    "test_faults.py",
)  # fmt: skip
"""Files that take longest: where processes share the tests, none of these is left for one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, all others in their order; what promises a time may be run again (tests/clock.py)."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
    again = pytest.mark.flaky(reruns=2, reruns_delay=2, only_rerun="TooSlow")
    for item in items:
        if not {"within", "quick"}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(again)


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory):
    """A cache that all tests of a run share, and that the commands they start find too."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
        yield shared / "cache"


@pytest.fixture(scope="session", autouse=True)
def no_authorities(tmp_path_factory: pytest.TempPathFactory):
    """No test speaks TLS, so no client, of which there are hundreds, need read who may sign certificates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("authorities")))
        patch.delenv("SSL_CERT_FILE", raising=False)
        yield


def _made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process which needs it makes, and all processes of a run share."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, made = shared / name, shared / f"{name}.made"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(folder)
            made.touch()
    return folder


@pytest.fixture(scope="session")
def encoder() -> MiniLMEncoder:
    """The embedded encoder on its slowest and most exact route."""
    return MiniLMEncoder.load(runtime="torch")


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus indexed with the default settings (predicted links); read only."""

    def build(folder: Path) -> None:
        build_index(sample_path(), folder, config=load_config(overrides=["encoder.runtime=torch"]))

    return _made_once(tmp_path_factory, "sample/index", build)


@pytest.fixture(scope="session")
def demo_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on the fastest route of the machine, as `make demo` leaves it: commands load it sooner."""
    return _made_once(tmp_path_factory, "demo/index", lambda folder: build_index(sample_path(), folder))


@pytest.fixture(scope="session")
def engine(sample_index: Path):
    """An engine over the sample index that all tests share; one thread."""
    with Engine.open(sample_index, threads=1) as engine:
        yield engine


@pytest.fixture(scope="session")
def reader_folder(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An extractive reader trained on the sample's questions by its recipe."""
    from training.reader import ReaderSettings, train_reader

    data = {"index": sample_index, "questions": (sample_path() / "questions.jsonl",), "held_out": 0.2}
    settings = ReaderSettings(trees=60, least_examples=5, edges=10, k=20, data=data)
    return _made_once(tmp_path_factory, "reader", lambda folder: train_reader(settings, folder))


@pytest.fixture(scope="session")
def tiny_llm(tmp_path_factory: pytest.TempPathFactory):
    """The base URL of a real server (llama.cpp) with a random model; its model is called `tiny`."""
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra dev)", exc_type=ImportError)
    tiny_model = _module("tiny_model")
    path = tmp_path_factory.mktemp("tiny-llm") / "tiny.gguf"
    tiny_model.write_tiny_model(path)
    with tiny_model.serve(path) as url:
        yield url


@pytest.fixture
def scripted_llm():
    """A server on loopback that replies as the test scripts it; see tests/llm/scripted_server.py."""
    with _module("scripted_server").ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
def shared_scripted_llm():
    """The same for all tests of a module; each scripts it anew."""
    with _module("scripted_server").ScriptedServer() as server:
        yield server


@pytest.fixture(scope="session")
def oxigraph_server():
    """Starts a SPARQL server over a store's folder, gives its address (tests/executors/oxigraph_server.py)."""
    module = _module("oxigraph_server", "executors")
    if (program := module.program()) is None:
        pytest.skip("no oxigraph program: pip install oxigraph")
    servers = module.OxigraphServers(program)
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def within():
    """A block that takes less than some seconds (tests/clock.py)."""
    return _module("clock", ".").within


@pytest.fixture(scope="session")
def quick():
    """A call whose fast tenth takes less than some seconds (tests/clock.py)."""
    return _module("clock", ".").quick


@pytest.fixture
def serve():
    """Starts a real HTTP server whose POST is the given function (tests/executors/http_server.py)."""
    with _module("http_server", "executors").servers() as start:
        yield start


def _module(name: str, folder: str = "llm") -> ModuleType:
    """A module beside the tests of a folder: they are no packages, so it is loaded by its path."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / folder / f"{name}.py")
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
