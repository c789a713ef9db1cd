"""`helios search` and `helios eval` on a real index: what is printed, what JSON holds, what errors say."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus.sample import QUESTIONS, sample_path
from helios.index.manifest import read_manifest, write_manifest
from helios.types import Passage, Table
from indexing.values import build_from

PLAIN = (
    "--set", "search.ranker=none", "--set", "expansion.enabled=false", "--set", "refinement.mode=off",
    "--set", "advanced.search.spread=0",
)  # fmt: skip
"""The settings of a quick search."""
QUESTION = "In which town did the chemist who discovered the element with atomic number 32 teach?"


def helios(*arguments: str | Path):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def test_json(sample_index):
    result = helios("search", QUESTION, "--index", sample_index, "-k", "3", "--json", "--explain")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert set(document) == {
        "version", "question", "generation", "present", "edges", "computed", "notes", "degraded", "timings_ms",
        "calls", "tokens", "filtered",
    }  # fmt: skip
    assert document["question"] == QUESTION
    stages = {"begin", "retrieve", "rank", "rerank", "documents", "expand", "refine", "spread", "evidence"}
    assert set(document["timings_ms"]) == stages
    assert [edge["rank"] for edge in document["edges"]] == [1, 2, 3]
    best = document["edges"][0]
    assert set(best) == {
        "rank", "score", "probability", "origin", "rejected", "segment", "passage", "links", "matches"
    }  # fmt: skip
    assert 0 < best["probability"] < 1
    assert set(best["segment"]) == {"id", "table_id", "row", "title", "section", "kind", "header", "cells"}
    assert best["segment"]["id"] == "elements#1"
    assert (best["segment"]["table_id"], best["segment"]["row"]) == ("elements", 1)
    assert set(best["passage"]) == {"id", "title", "text", "url", "source", "metadata"}
    assert best["passage"]["id"] == "clemens-winkler"
    assert best["origin"] == "linked"
    assert set(best["links"][0]) == {"column", "start", "end", "score"}
    assert set(best["matches"][0]) == {"query_token", "word", "similarity", "where"}


def test_what_a_stranger_wrote_does_not_reach_the_terminal_as_an_escape(tmp_path: Path):
    build_from(
        [Table("t", "Red \x1b[31m title", ("Colour", "Code\x1b]0;gone\x07"), (("red\x1b[2J", "1"),))],
        [Passage("p", "red\x9b1A", "A red \u202etxet.")],
        tmp_path / "index",
    )
    for form in ((), ("--json",)):
        result = helios("search", "Which colour is red?", "-i", tmp_path / "index", *form)
        assert result.exit_code == 0, result.output
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(result.stdout)
        assert "\\u001b[2J" in result.stdout and "\\u202etxet" in result.stdout


def test_text(sample_index):
    result = helios("search", QUESTION, "-i", sample_index, "-k", "2", "--explain")
    assert result.exit_code == 0, result.output
    assert "Atomic number: 32 | Discovered: 1886" in result.stdout
    assert "Clemens Winkler  ← Discoverer: Clemens Winkler" in result.stdout
    assert "32 → 32" in result.stdout
    assert "cell Atomic number" in result.stdout
    assert "2 edges in" in result.stdout


def test_settings_can_be_overridden(sample_index):
    arguments = ("search", QUESTION, "-i", sample_index, "--json", *PLAIN)
    found = helios(*arguments)
    assert found.exit_code == 0, found.output
    assert set(json.loads(found.stdout)["timings_ms"]) == {"begin", "retrieve", "documents", "evidence"}
    wrong = helios(*arguments, "--set", "search.kk=1")
    assert wrong.exit_code == 1
    assert "search.kk" in wrong.output
    assert "search.k" in wrong.output


def test_a_filter(sample_index):
    arguments = ("search", QUESTION, "-i", sample_index, *PLAIN)
    found = json.loads(helios(*arguments, "--json", "--where", "table.id = 'elements'").stdout)["edges"]
    assert found
    assert {edge["segment"]["table_id"] for edge in found if edge["segment"]} == {"elements"}
    nothing = helios(*arguments, "--where", "id = 'no such id'")
    assert nothing.exit_code == 0
    assert "no evidence found: nothing passes the filter" in nothing.stdout
    wrong = helios(*arguments, "--where", "id ==")
    assert wrong.exit_code == 1
    assert "Traceback" not in wrong.output


@pytest.mark.parametrize("arguments", [[], ["q"], ["q", "-i", "index", "-k", "0"], ["q", "-i", "index", "--nope"]])
def test_wrong_usage(arguments):
    assert helios("search", *arguments).exit_code == 2


def test_without_an_index_the_next_step_is_said():
    assert "helios index build" in helios("search", "q").output


def test_folders_that_are_no_index(tmp_path):
    absent = helios("search", "q", "-i", tmp_path / "absent")
    assert absent.exit_code == 1
    assert "no such folder" in absent.output
    foreign = helios("search", "q", "-i", tmp_path)
    assert foreign.exit_code == 1
    assert f"{tmp_path}: not a HELIOS index" in foreign.output
    assert "Traceback" not in absent.output + foreign.output


@pytest.fixture
def index(sample_index, tmp_path) -> Path:
    """A copy of the sample index to be changed."""
    shutil.copytree(sample_index, tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.parametrize("component", ["tokens", "lexical", "corpus"])
def test_an_index_without_one_of_its_components(index, component):
    manifest = read_manifest(index)
    part = manifest.parts[0]
    files = tuple(entry for entry in part.files if not entry.path.startswith(f"{component}/"))
    write_manifest(index, manifest.model_copy(update={"parts": (part.model_copy(update={"files": files}),)}))
    result = helios("search", "q", "-i", index)
    assert result.exit_code == 1
    assert f"has no '{component}'" in result.output
    assert "build the index with all stages" in result.output


def test_an_index_without_links(index):
    write_manifest(index, read_manifest(index).model_copy(update={"links": ()}))
    result = helios("search", "q", "-i", index)
    assert result.exit_code == 1
    assert "the index holds no links; build it with all stages" in result.output


def test_an_index_with_settings_of_another_version(index):
    """An unknown setting of the build is refused; an unknown one of queries is not read at all."""
    record(index, "search", {"warp": 9})
    assert helios("search", "q", "-i", index, *PLAIN).exit_code == 0
    record(index, "linking", {"warp": 9})
    result = helios("search", "q", "-i", index)
    assert result.exit_code == 1
    assert "a setting that this code does not know (linking.warp)" in result.output


def record(index: Path, section: str, settings: dict) -> None:
    """Write settings into a manifest as another version would have."""
    manifest = read_manifest(index)
    config = manifest.config | {section: manifest.config[section] | settings}
    write_manifest(index, manifest.model_copy(update={"config": config}))


def test_an_encoder_that_is_not_the_index_own(sample_index, tmp_path):
    adapter = tmp_path / "other.safetensors"
    adapter.write_bytes(b"another adapter")
    result = helios("search", "q", "-i", sample_index, "--set", f"encoder.adapter={adapter}")
    assert result.exit_code == 1
    assert "the configured encoder is another" in result.output
    assert "set encoder.model and encoder.adapter to those that it was built with, or rebuild" in result.output


def test_a_config_file_and_overrides(sample_index, tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("search:\n  ranker: none\nadvanced:\n  expansion:\n    beam: 3\n")
    plain = helios("search", "river", "-i", sample_index, "--json", "--config", config)
    same = helios("search", "river", "-i", sample_index, "--json", "--set", "search.ranker=none",
                  "--set", "advanced.expansion.beam=3")  # fmt: skip
    other = helios("search", "river", "-i", sample_index, "--json")  # ranked by the learned ranking
    assert plain.exit_code == 0, plain.output
    assert json.loads(plain.stdout)["edges"] == json.loads(same.stdout)["edges"]
    assert json.loads(plain.stdout)["edges"] != json.loads(other.stdout)["edges"]
    absent = helios("search", "q", "-i", sample_index, "--config", tmp_path / "absent.yaml")
    assert absent.exit_code == 1
    assert "absent.yaml: cannot read the config" in absent.output


@pytest.mark.parametrize("command", [["search", "q"], ["ask", "q"]])
def test_a_setting_of_the_build_cannot_be_changed(sample_index, command):
    result = helios(*command, "-i", sample_index, "--set", "tokens.bits=2")
    assert result.exit_code == 1
    assert "tokens.bits=2" in result.output
    assert "was built with tokens.bits=1, and its files depend on it" in result.output
    assert "Traceback" not in result.output


def test_eval(sample_index, tmp_path):
    run, questions = tmp_path / "run.trec", sample_path() / QUESTIONS
    asked = ("--index", sample_index, "--questions", questions, "--limit", "5")
    result = helios("eval", "retrieval", *asked, "--run", run, "--json", *PLAIN)
    assert result.exit_code == 0, result.output
    (system,) = json.loads(result.stdout)["systems"]
    assert system["name"] == "helios"
    assert len(run.read_text().splitlines()) == 5 * 50


@pytest.mark.parametrize("unit", ["node", "star", "edge"])
def test_eval_of_units(sample_index, unit):
    questions = sample_path() / QUESTIONS
    asked = ("--index", sample_index, "--questions", questions, "--limit", "4")
    result = helios("eval", "retrieval", *asked, "--unit", unit, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["systems"][0]["config"]["unit"] == unit


def test_eval_of_dense_baselines(sample_index):
    asked = ("--index", sample_index, "--questions", sample_path() / QUESTIONS, "--limit", "4")
    result = helios("eval", "retrieval", *asked, "--baseline", "dense-edge", "--baselines-only", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["systems"][0]["name"] == "dense-edge"
