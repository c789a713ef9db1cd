"""A pool of small real sources, a language model's client over the scripted server, and the likeness."""

import importlib.util
import sys
from pathlib import Path

import pytest

from helios.config import Config, LanguageModelSettings, load_config
from helios.llm.client import LlmClient
from helios.routing.likeness import Likeness


def _sources():
    name = "routing_sources"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def likeness(encoder) -> Likeness:
    return Likeness(encoder)


@pytest.fixture
def shop(tmp_path):
    """Orders of customers."""
    return _sources().SmallDatabase(
        "shop",
        tmp_path / "shop.sqlite",
        {
            "customer": (["id", "name", "country"], [(1, "Ole Group", "Norway"), (2, "Vins Dupont", "France")]),
            "purchase": (["id", "customer_id", "amount"], [(1, 1, 40.5), (2, 1, 9.5), (3, 2, 12.0)]),
        },
    )


@pytest.fixture
def branch(tmp_path):
    """Another database that says something else of the same customer."""
    return _sources().SmallDatabase(
        "branch", tmp_path / "branch.sqlite", {"client": (["name", "country"], [("Ole Group", "Denmark")])}
    )


@pytest.fixture
def films():
    """A graph of films and their directors."""
    pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed (extra sources)")
    base = "http://example.org/"
    return _sources().SmallGraph(
        "films",
        {f"{base}q1": "The Harbour", f"{base}q2": "Mira Lund", f"{base}q3": "Night Ferry"},
        {f"{base}p1": "director", f"{base}p2": "country of origin"},
        [(f"{base}q1", f"{base}p1", f"{base}q2"), (f"{base}q3", f"{base}p1", f"{base}q2")],
    )


@pytest.fixture
def papers():
    """Abstracts of papers."""
    return _sources().SmallCorpus(
        "papers",
        [
            ("Myelin and conduction", "Myelin sheaths speed up action potential propagation in axons."),
            ("Zinc and colds", "Zinc lozenges shorten the common cold in adults."),
        ],
        ["neurons", "medicine", "proteins"],
    )


@pytest.fixture
def llm_settings(config) -> LanguageModelSettings:
    return config.language_model


@pytest.fixture
def model(llm_settings):
    with LlmClient.open(llm_settings) as client:
        yield client


@pytest.fixture
def config(scripted_llm) -> Config:
    limits = ["advanced.llm.call_seconds=4", "advanced.llm.question_seconds=20"]
    return load_config(overrides=[f"llm.base_url={scripted_llm.url}", "llm.model=scripted", *limits])
