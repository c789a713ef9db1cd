"""`helios index build|info|fsck` as a user runs them."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from helios.cli import build_app
from helios.corpus.sample import sample_path

GOLD = ("linking.source=hyperlinks", "encoder.runtime=torch")


def helios(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("cli") / "index"
    result = helios("index", "build", sample_path(), "--out", index, *GOLD, "--workers", "1")
    assert result.exit_code == 0, result.output
    assert "ingest" in result.stdout
    assert "12 tables" in result.stdout
    return index


def test_build_reports_json(index: Path):
    result = helios("index", "build", sample_path(), "--out", index, *GOLD, "--workers", "1", "--json")
    document = json.loads(result.stdout)
    assert document["counts"]["tables"] == 12
    assert [stage["ran"] for stage in document["stages"]] == [False] * len(document["stages"])
    assert {"stage", "seconds", "peak_rss", "counts"} <= set(document["stages"][0])


def test_info(index: Path):
    assert "12 tables" in helios("index", "info", index).stdout
    document = json.loads(helios("index", "info", index, "--json").stdout)
    assert document["config"]["linking"]["source"] == "hyperlinks"
    assert document["parts"][0]["files"]
    assert [stage["stage"] for stage in document["stages"]][:2] == ["ingest", "link"]


def test_fsck(index: Path):
    assert helios("index", "fsck", index).stdout.endswith("sound\n")
    assert json.loads(helios("index", "fsck", index, "--json").stdout) == {"sound": True, "findings": []}
    path = index / "parts" / "0001" / "corpus" / "segments.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    try:
        result = helios("index", "fsck", index)
        assert result.exit_code == 1
        assert "error: parts/0001/corpus/segments.npy: SHA-256" in result.stdout
        assert "--fresh" in result.stdout
    finally:
        path.write_bytes(content)


def test_backup_snapshots_and_restore(index: Path, tmp_path: Path):
    result = helios("index", "backup", index, tmp_path / "backup")
    assert (result.exit_code, "snapshot 1" in result.stdout) == (0, True)
    report = json.loads(helios("index", "backup", index, tmp_path / "copied", "--copy", "--json").stdout)
    assert list(report["files"]) == ["copy"]
    assert "was complete already" in helios("index", "backup", index, tmp_path / "backup").stdout
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "mine").touch()
    again = helios("index", "backup", index, tmp_path / "used")
    assert (again.exit_code, "give a folder that is empty" in again.stderr) == (1, True)
    listing = helios("index", "snapshots", tmp_path / "backup").stdout
    assert "66 segments, 67 passages" in listing
    assert json.loads(helios("index", "snapshots", index, "--json").stdout)["counts"]["tables"] == 12
    restored = helios("index", "restore", tmp_path / "backup", tmp_path / "new")
    assert (restored.exit_code, restored.stdout.endswith("sound\n")) == (0, True)
    path = tmp_path / "copied" / "codebooks" / "0001" / "centroids.npy"
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    damaged = helios("index", "restore", tmp_path / "copied", tmp_path / "other", "--json")
    assert (damaged.exit_code, json.loads(damaged.stdout)["sound"]) == (1, False)


def test_config_file_and_overrides(index: Path, tmp_path: Path):
    shutil.copytree(index, tmp_path / "index")
    (tmp_path / "mine.yaml").write_text("linking:\n  source: none\nsearch:\n  k: 9\n", encoding="utf-8")
    arguments = ["--out", tmp_path / "index", "--config", tmp_path / "mine.yaml", "--json", "--workers", "1"]
    result = helios("index", "build", sample_path(), *arguments, "search.k=8", "encoder.runtime=torch")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["counts"]["edges"] == 0
    assert [stage["stage"] for stage in document["stages"] if stage["ran"]] == ["link", "graph"]
    config = json.loads(helios("index", "info", tmp_path / "index", "--json").stdout)["config"]
    assert (config["linking"]["source"], config["search"]["k"]) == ("none", 8)


def test_wrong_settings_and_choices(tmp_path: Path):
    out = tmp_path / "index"
    wrong_key = helios("index", "build", sample_path(), "--out", out, "linking.sauce=none")
    assert wrong_key.exit_code == 1
    assert "did you mean linking.source" in wrong_key.stderr
    assert helios("index", "build", sample_path(), "--out", out, "--on-error", "cry").exit_code == 2
    assert helios("index", "build", sample_path(), "--out", out, "--workers", "0").exit_code == 2
    assert not out.exists()


def test_dry_run_writes_nothing(tmp_path: Path):
    out = tmp_path / "index"
    arguments = ["index", "build", sample_path(), "--out", out, *GOLD, "--dry-run", "--workers", "1"]
    document = json.loads(helios(*arguments, "--json").stdout)
    assert (document["tables"], document["exact"]) == (12, True)
    assert document["seconds"] > 0
    assert document["disk"] > 10_000
    assert document["memory"] > 10**7
    assert [stage["name"] for stage in document["stages"]][:3] == ["ingest", "link", "graph"]
    assert not out.exists()


def test_records_of_any_shape_by_their_fields(tmp_path: Path):
    """The estimate and the build read them so; another map is another index, and a wrong one is an error at once."""
    news = [{"headline": f"Bridge {number}", "body": "It opened.", "lead": "It rained."} for number in range(3)]
    (tmp_path / "news.json").write_text(json.dumps(news), encoding="utf-8")
    arguments = ["index", "build", tmp_path / "news.json", "--out", tmp_path / "index", *GOLD, "--workers", "1"]
    for more in ((), ("--dry-run",)):
        wrong = helios(*arguments, "--map", "title=headlin,text=body", *more)
        assert wrong.exit_code == 1 and "'headlin' (title)" in wrong.output and "headline, body, lead" in wrong.output
    estimate = json.loads(helios(*arguments, "--map", "title=headline,text=body", "--dry-run", "--json").stdout)
    assert (estimate["tables"], estimate["passages"]) == (0, 3)
    for text, ran in (("body", True), ("body", False), ("lead", True)):
        built = json.loads(helios(*arguments, "--map", f"title=headline,text={text}", "--json").stdout)
        assert (built["counts"]["tables"], built["counts"]["passages"]) == (0, 3)
        assert built["stages"][0]["ran"] is ran


def test_dry_run_refuses_what_the_build_would(tmp_path: Path):
    (tmp_path / "photo").write_bytes(b"x")
    result = helios("index", "build", sample_path(), "--out", tmp_path, *GOLD, "--dry-run")
    assert result.exit_code == 1
    assert "not a HELIOS index" in result.stderr


def test_another_corpus_does_not_replace_an_index_unasked(tmp_path: Path):
    for name in ("boats", "bikes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.csv").write_text("name,price\nHeron,12\nSwift,9\n")
    built = ("--out", tmp_path / "index", *GOLD, "--workers", "1")
    assert helios("index", "build", tmp_path / "boats", *built).exit_code == 0
    refused = helios("index", "build", tmp_path / "bikes", *built)
    assert refused.exit_code == 1
    assert "is the index of other files (boats.csv), none of which is in" in refused.stderr
    (tmp_path / "boats" / "more.csv").write_text("name,price\nGannet,18\nTern,7\n")
    assert helios("index", "build", tmp_path / "boats", *built).exit_code == 0
    assert helios("index", "build", tmp_path / "bikes", *built, "--replace").exit_code == 0


def test_fields_inside_of_the_corpus_are_refused(tmp_path: Path):
    corpus = Path(shutil.copytree(sample_path(), tmp_path / "corpus", ignore=shutil.ignore_patterns("*.py")))
    (corpus / "fields.csv").write_text("id,year\nrhine,1990\n", encoding="utf-8")
    for more in ((), ("--dry-run",)):
        arguments = ["--metadata", corpus / "fields.csv", "--workers", "1", *more]
        result = helios("index", "build", corpus, "--out", tmp_path / "index", *GOLD, *arguments)
        assert result.exit_code == 1
        assert "fields.csv: lies in the corpus" in result.stderr
        assert "move the file" in result.stderr
    assert not (tmp_path / "index").exists()


def test_silent_without_a_terminal(index: Path):
    command = [sys.executable, "-m", "helios.cli", "index", "fsck", str(index)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0
    assert result.stderr == ""


def test_bars_on_a_terminal(index: Path):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "helios.cli", "index", "fsck", str(index)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 4096):
                shown += block
        except OSError:
            pass
        finally:
            os.close(ours)
    assert process.returncode == 0
    for part in (b"fsck", b" kB (100%)", b"kB/s"):
        assert part in shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as people have them: a good file, one that is damaged, one that is empty, and a picture."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, content in {"a.csv": "name,age\nAnn,3\n", "b.xlsx": "no workbook", "c.csv": "", "d.png": "x"}.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_a_build_says_what_became_of_every_file(folder: Path, tmp_path: Path):
    build = ["index", "build", folder, "--out", tmp_path / "index", *GOLD, "--workers", "1"]
    result = helios(*build)
    assert result.exit_code == 0, result.output
    reject, counts = result.stdout.splitlines()[-2:]
    assert reject.startswith("rejected   b.xlsx: not a readable XLSX file")
    listed = tmp_path / "index" / "files.jsonl"
    assert counts == f"files      1 read, 1 rejected, 2 passed over; {listed} says what became of each"
    lines = [json.loads(line) for line in listed.read_text(encoding="utf-8").splitlines()]
    assert [(line["file"], line["outcome"]) for line in lines] == [
        ("a.csv", "read"),
        ("b.xlsx", "rejected"),
        ("c.csv", "passed over"),
        ("d.png", "passed over"),
    ]
    (folder / "d.png").unlink()
    (folder / "e.jpg").write_bytes(b"x")
    document = json.loads(helios(*build, "--json").stdout)
    assert not document["stages"][0]["ran"]
    assert document["files"] == {"list": str(listed), "read": 1, "rejected": 1, "passed over": 2}
    assert '"e.jpg"' in listed.read_text() and '"d.png"' not in listed.read_text()


def test_what_stops_a_build(folder: Path, tmp_path: Path):
    out = ["--out", tmp_path / "index", *GOLD, "--workers", "1"]
    for corpus, options in ((folder, ["--on-error", "stop"]), (folder / "b.xlsx", [])):
        result = helios("index", "build", corpus, *out, *options)
        assert result.exit_code == 1
        assert "b.xlsx: not a readable XLSX file" in result.stderr
    (folder / "a.csv").unlink()
    result = helios("index", "build", folder, *out)
    assert "no table and no passage could be read; b.xlsx: not a readable XLSX file" in result.stderr
