"""No secret in an address passes, and none is ever shown; what comes from data moves no terminal."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.engine import Engine
from helios.errors import ConfigError, SourceUnavailable
from helios.executors.address import shown
from helios.executors.bolt import BoltExecutor
from helios.executors.sparql_endpoint import SparqlEndpointExecutor
from helios.sources.registry import Registry
from helios.sources.registry_file import read_sources
from helios.sources.spec import BoltSpec, PostgresqlSpec, SparqlSpec, read_spec
from helios.terminal import printable

WITH_SECRETS = [
    ("postgresql", "postgresql://u:s3cr/et@h/d"),
    ("postgresql", "postgresql://u:s3cr?et@h/d"),
    ("postgresql", "postgresql://u:s3cr#et@h/d"),
    ("postgresql", "postgresql://u:s3cr@et@h/d"),
    ("postgresql", "postgresql://u:s3cret@h/d"),
    ("postgresql", "postgresql://u:s3cr%2Fet@h/d"),
    ("postgresql", "postgresql://u:s3cr\u2100et@h/d"),
    ("postgresql", "postgresql://u:s3cret\\@h/d"),
    ("postgresql", "postgresql://u@h:s3cret/d"),
    ("postgresql", "postgresql://u@h/d?sslpassword=s3cret"),
    ("postgresql", "postgresql://u@h/d?password=s3cret"),
    ("postgresql", "postgresql://u@h/d?options=-c%20x%3Ds3cret"),
    ("postgresql", "postgresql://u@h/d#s3cret"),
    ("postgresql", "postgresql:///d?user=u&PASSWORD=s3cret"),
    ("postgresql", "host=h password=s3cret"),
    ("sparql", "https://h/q?X-API-Key=s3cret"),
    ("sparql", "https://h/q?access_token=s3cret"),
    ("sparql", "https://h/q?a=1;token=s3cret&sig=s3cret"),
    ("sparql", "https://h/q#token=s3cret"),
    ("sparql", "https://s3cret@h/q"),
    ("sparql", "https://u:s3cret@h/q"),
    ("sparql", "https:u:s3cret@h/q"),
    ("sparql", "https://[s3cret/q"),
    ("bolt", "bolt://u:s3cret@h:7687"),
    ("bolt", "neo4j://s3cret@h"),
    ("bolt", "bolt://h:7687?password=s3cret"),
    ("bolt", "bolt://h:s3cret"),
]
PLAIN = [
    (
        "postgresql",
        "postgresql://reader@db.example.org:5433/shop?sslmode=require",
        "postgresql://db.example.org:5433/shop",
    ),
    ("postgresql", "postgres://db/shop", "postgres://db/shop"),
    ("sparql", "http://127.0.0.1:7200/repositories/x?infer=true", "http://127.0.0.1:7200/repositories/x"),
    ("sparql", "https://[::1]:3030/ds/query", "https://[::1]:3030/ds/query"),
    ("bolt", "neo4j+s://graph.example.org", "neo4j+s://graph.example.org"),
]
ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \u202eback\u2066"


@pytest.mark.parametrize(("kind", "url"), WITH_SECRETS, ids=[url for _, url in WITH_SECRETS])
def test_an_address_with_a_secret_is_refused_without_repeating_it(kind: str, url: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        read_spec("shop", {"kind": kind, "url": url}, where="sources.yaml")
    assert "s3cr" not in str(refusal.value)
    assert "s3cr" not in shown(url)
    with pytest.raises(ValueError, match="url") as error:
        {"postgresql": PostgresqlSpec, "sparql": SparqlSpec, "bolt": BoltSpec}[kind].model_validate(
            {"kind": kind, "url": url}
        )
    assert "s3cr" not in str(error.value)


@pytest.mark.parametrize("url", [url for kind, url in WITH_SECRETS if kind != "postgresql"])
def test_executors_refuse_it_too(url: str) -> None:
    with pytest.raises(SourceUnavailable) as refusal:
        if url.startswith("http"):
            SparqlEndpointExecutor(url)
        else:
            BoltExecutor(url)
    assert "s3cr" not in str(refusal.value)


@pytest.mark.parametrize(("kind", "url", "seen"), PLAIN)
def test_an_address_is_shown_without_its_parameters_and_user(kind: str, url: str, seen: str) -> None:
    read_spec("shop", {"kind": kind, "url": url}, where="sources.yaml")
    assert shown(url) == seen


def test_a_secret_under_another_name_is_refused() -> None:
    for key in ("password", "sslpassword", "api-key", "apiKey", "token", "x_secret"):
        with pytest.raises(ConfigError) as refusal:
            read_spec("shop", {"kind": "bolt", "url": "bolt://h", key: "s3cret"}, where="sources.yaml")
        assert "s3cret" not in str(refusal.value)


def test_listing_sources_shows_no_parameters_and_moves_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    with Registry.open(file, create=True) as registry:
        registry.add("shop", {"kind": "sparql", "url": "https://h/q?x=hidden", "description": ESCAPES})
    for options in ([], ["--json"]):
        printed = CliRunner().invoke(build_app(), ["sources", "list", "--sources", str(file), *options]).output
        assert "https://h/q" in printed
        assert "hidden" not in printed
        assert not set(printed) & set("\x1b\x07\x9b\u202e\u2066")


def test_an_error_moves_no_terminal(tmp_path: Path) -> None:
    result = CliRunner().invoke(build_app(), ["sources", "show", ESCAPES, "--sources", str(tmp_path / ESCAPES[:4])])
    assert result.exit_code == 1
    assert not set(result.output) & set("\x1b\x07\x9b\u202e")


def test_what_is_printed_stays_readable() -> None:
    assert printable("a\tb\nc\x1b[0m") == "a\tb\nc\\u001b[0m"
    assert printable("Zürich 東京 नमस्ते 👩‍👧") == "Zürich 東京 नमस्ते 👩‍👧"


REGISTRIES = {
    "depth": "sources: " + "[" * 3000 + "]" * 3000,
    "depth in blocks": "sources:\n" + "".join(f"{' ' * i}a:\n" for i in range(1, 300)),
    "zero byte": "sources:\n  a\0b: {kind: sqlite}\n",
    "zero in a path": 'sources:\n  a: {kind: sqlite, path: "a\\0b"}\n',
    "zero in a key": 'sources:\n  a: {kind: sqlite, path: x, "a\\0b": 1}\n',
    "a number of 5,000 digits": "sources:\n  a: {kind: sqlite, path: x, limits: {max_rows: " + "9" * 5000 + "}}\n",
    "a date that is none": "sources:\n  a: {kind: sqlite, path: 2020-13-45}\n",
    "not a number": "sources:\n  a: {kind: sqlite, path: x, limits: {max_rows: .nan}}\n",
    "aliases of aliases": "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12))
    + "sources: {s: {kind: *m}}\n",
    "an alias of itself": "sources: &a {s: *a}\n",
    "a key that is a list": "sources:\n  ? [a]\n  : {kind: sqlite}\n",
    "a merge of a number": "sources:\n  a:\n    <<: 1\n    kind: sqlite\n",
    "length": "#" * 5_000_000,
    "a tag": "sources: !!python/object/apply:os.system ['true']\n",
}


@pytest.mark.parametrize("text", REGISTRIES.values(), ids=REGISTRIES)
def test_a_file_of_sources_that_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refusal:
        read_sources(file)
    assert len(str(refusal.value)) < 1000


@pytest.mark.parametrize("value", ["[" * 3000, "9" * 5000, '"a\\0b"', "2020-13-45"])
def test_a_setting_that_is_none(tmp_path: Path, value: str) -> None:
    file = str(tmp_path / "sources.yaml")
    arguments = ["sources", "add", "a", "--kind", "sqlite", "--path", "x", "--sources", file, "--set", f"path={value}"]
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)


def test_the_name_of_a_file_moves_no_terminal_and_begins_no_line(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "good.csv").write_text("name,year\nAda,1815\n")
    (corpus / "\x1b]0;owned\x07\x9b2J.pdf").write_bytes(b"%PDF-junk")
    (corpus / "line\nERROR faked line.pdf").write_bytes(b"%PDF-junk")
    command = [sys.executable, "-m", "helios", "index", "build", str(corpus), "--out", str(tmp_path / "index")]
    ran = subprocess.run([*command, "linking.source=none"], capture_output=True, check=False)
    shown = (ran.stdout + ran.stderr).decode()
    assert ran.returncode == 0, shown
    assert "\\u001b]0;owned\\u0007\\u009b2J.pdf" in shown and "line\\nERROR faked line.pdf" in shown
    assert not any(control in shown for control in ("\x1b", "\x07", "\x9b", "\nERROR"))


ODD = "a\udcffb"
"""What a word on the command line becomes whose bytes are no UTF-8."""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sources", "teach", "shop", "", "SELECT 1", "--sources", "SOURCES"], "expected words that can be printed"),
        (["sources", "teach", "shop", ODD, "SELECT 1", "--sources", "SOURCES"], "expected words that can be printed"),
        (["index", "delete", "INDEX", ODD, "--no-relink"], "missing"),
        (["init", f"FOLDER/{ODD}.yaml"], "change a setting"),
        (["init", "FOLDER/absent/my.yaml"], "make it first"),
    ],
    ids=["nothing", "no text", "an id", "a file", "a folder that is not there"],
)
def test_words_that_are_no_text_end_in_words(
    arguments: list[str], says: str, sample_index: Path, tmp_path: Path
) -> None:
    sources = tmp_path / "helios-sources.yaml"
    sqlite3.connect(tmp_path / "shop.sqlite").close()
    sources.write_text("sources:\n  shop:\n    kind: sqlite\n    path: shop.sqlite\n")
    index = tmp_path / "index"
    shutil.copytree(sample_index, index)
    places = {"SOURCES": str(sources), "INDEX": str(index)}
    given = [places.get(one, one).replace("FOLDER", str(tmp_path)) for one in arguments]
    result = CliRunner().invoke(build_app(), given)
    assert says in result.output and not isinstance(result.exception, (UnicodeError, ValueError, TypeError))


def test_a_question_that_is_no_text_is_searched_for(sample_index: Path) -> None:
    with Engine.open(str(sample_index), config=None) as engine:
        assert engine.search(f"river {ODD}", k=1).edges
        assert engine.encoder.encode_question(ODD).vectors.shape[1]
