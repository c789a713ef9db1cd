"""`helios chat`: a loop over a warm engine that a mistake or an interrupt does not end."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.engine import Engine
from helios.reading import chat as module
from helios.reading.chat import Chat


def chat(index: Path, lines: str) -> str:
    arguments = ["chat", "--index", str(index), "--set", "encoder.runtime=torch"]
    result = CliRunner().invoke(build_app(), arguments, input=lines, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def test_questions_and_commands_in_one_conversation(sample_index: Path):
    said = chat(
        sample_index,
        "/evidence\n\nWhich is the longest river of Europe?\n/evidence\n/explain\n/wher x\n/where year >\n"
        "/where kind = 'passage'\nWhich is the longest river of Europe?\n/where\n/help\n/quit\nnever read\n",
    )
    assert "there is no evidence yet: ask a question first" in said
    first, narrowed = said.split("> Which is the longest river of Europe?\n")[1:]
    assert first.startswith("Volga  ")
    assert "Rivers of Europe  row 0" in first
    assert "longest → " in first, "/explain shows the words that matched"
    assert "did you mean /where?" in first
    assert "ends too early" in first
    assert "Rivers of Europe, row" not in narrowed, "the filter holds for the next question"
    assert "asked is everything" in narrowed
    assert "/quit      leave" in narrowed
    assert "never read" not in said


def test_the_end_of_the_input_ends_the_chat(sample_index: Path):
    assert chat(sample_index, "/help").endswith("anything else is a question\n")


def test_an_interrupt_ends_the_question_and_not_the_chat(
    sample_index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    class Interrupted(Chat):
        def take(self, line: str) -> bool:
            if line == "long":
                raise KeyboardInterrupt
            return super().take(line)

    lines = iter(["long\n", "/help\n", ""])
    monkeypatch.setattr(module.sys, "stdin", type("Input", (), {"isatty": lambda _: False, "readline": lambda _: next(lines)})())
    with Interrupted(None, sample_index, overrides=[]) as conversation:
        conversation.run()
    said = capsys.readouterr().out
    assert said.index("stopped; ask another question") < said.index("anything else is a question")


def test_a_changed_index_is_opened_again_with_the_models_that_are_loaded(sample_index: Path):
    with Chat(None, sample_index, overrides=["encoder.runtime=torch"]) as conversation:
        engine = conversation.engine()
        assert conversation.engine() is engine
        encoder = engine.encoder
        conversation._engine = Engine(engine.snapshot, engine.config, models=conversation._models)
        assert conversation._engine.encoder is encoder


@pytest.mark.slow
def test_a_folder_is_followed_between_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (folder := tmp_path / "files").mkdir()
    staff = folder / "staff.csv"
    staff.write_text("Name,Extension\nAnn Lee,41\nBo Hale,42\n")
    with subprocess.Popen(
        [sys.executable, "-m", "helios", "chat", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None

        def ask() -> str:
            process.stdin.write("What is the extension of Ann Lee?\n")
            assert process.stdout.readline().startswith("> What")
            return process.stdout.readline()

        assert ask().startswith("41  ")
        staff.write_text("Name,Extension\nAnn Lee,77\nBo Hale,42\n")
        while not (answer := process.stdout.readline()).startswith("    else"):
            assert answer
        assert ask().startswith("77  ")
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_what_is_asked_is_one_thing(tmp_path: Path):
    for arguments in ([], [str(tmp_path), "--index", str(tmp_path)], [str(tmp_path / "none")]):
        assert CliRunner().invoke(build_app(), ["chat", *arguments]).exit_code == 2
