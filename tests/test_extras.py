"""Libraries of extras: the table is what pyproject.toml says, and one that is missing is named with its command."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import helios.client
from helios.cli import RootGroup, build_app
from helios.errors import ModelError
from helios.extras import EXTRAS, extra_of, import_library, installation

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def test_the_table_names_the_modules_of_every_extra():
    distributions = packages_distributions()
    for extra, modules in EXTRAS.items():
        wanted = " ".join(PROJECT["optional-dependencies"][extra]).lower().replace("_", "-")
        for module in modules:
            brought = [name.lower().replace("_", "-") for name in distributions.get(module, [module])]
            assert any(name in wanted for name in brought) or module == "pyparsing", (extra, module)


def test_doctor_says_what_the_extras_lack(monkeypatch: pytest.MonkeyPatch):
    """One extra of modules that are here, one of a module that nobody has."""
    monkeypatch.setattr("helios.doctor.EXTRAS", {"here": ("json",), "absent": ("json", "nobody_has_this")})
    readable = CliRunner().invoke(build_app(), ["doctor"]).output
    assert "extras       here\n" in readable
    assert "not there    absent (nobody_has_this)\n" in readable
    assert 'pip install "helios-retrieval[NAME]"' in readable
    report = json.loads(CliRunner().invoke(build_app(), ["doctor", "--json"]).output)
    assert report["extras_missing"] == {"here": [], "absent": ["nobody_has_this"]}


def test_all_is_every_extra():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    named = set(everything.partition("[")[2].rstrip("]").split(","))
    frameworks = {"haystack", "langchain", "llama-index"}
    assert named | {"torch"} | frameworks == set(EXTRAS), "torch comes with others; a framework is there already"


def test_what_to_type_is_exact():
    assert installation("openai.types") == 'pip install "helios-retrieval[llm]"'
    assert installation("numpy") == "pip install helios-retrieval"
    assert extra_of("numpy") is None


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "FlagEmbedding", None)
    with pytest.raises(
        ModelError, match=r"rerank.backend needs FlagEmbedding: pip install \"helios-retrieval\[flag\]\""
    ):
        import_library("FlagEmbedding")


def test_the_client_names_its_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModelError, match=r"helios.client needs httpx: pip install \"helios-retrieval\[client\]\""):
        helios.client.Client  # noqa: B018


def test_any_command_names_a_missing_extra(monkeypatch: pytest.MonkeyPatch):
    app = typer.Typer(cls=RootGroup, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    for name, missing in (("known", "openai.types"), ("unknown", "of_the_user")):

        def work(missing: str = missing) -> None:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

        app.command(name)(work)
    known, unknown = (CliRunner().invoke(app, [name]) for name in ("known", "unknown"))
    assert known.exit_code == 1
    assert 'needs openai.types, which is not installed: pip install "helios-retrieval[llm]"' in known.stderr
    assert isinstance(unknown.exception, ModuleNotFoundError)


@pytest.mark.parametrize(
    "command", ["ask q --index {index} --llm http://localhost:9/v1", "doctor --llm http://localhost:9/v1"]
)
def test_a_language_model_without_its_extra(sample_index: Path, command: str):
    arguments = command.format(index=sample_index).split()
    code = f"import sys; sys.modules['openai'] = None\nfrom helios.cli import build_app; build_app()({arguments!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the language model needs openai")
    assert 'pip install "helios-retrieval[llm]"' in done.stderr
    assert "Traceback" not in done.stderr
