"""`helios chat`: a loop over a warm engine that a mistake or an interrupt does not end."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.corpus.sample_files import write_sample_files
from helios.engine import Engine
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
    assert " 1  " in first, "/evidence shows the ranks"
    assert "longest → " in first, "/explain shows the words that matched"
    assert "did you mean /where?" in first
    assert "ends too early" in first
    assert "Rivers of Europe, row" not in narrowed, "the filter holds for the next question"
    assert "asking everything" in narrowed
    assert "/quit      leave" in narrowed
    assert "never read" not in said


def test_the_end_of_the_input_ends_the_chat(sample_index: Path):
    assert chat(sample_index, "/help").endswith("anything else is a question\n")


@pytest.mark.parametrize("seconds", [0.2, 0.5, 0.6])
def test_an_interrupt_ends_the_question_and_not_the_chat(demo_index: Path, seconds: float):
    code = (
        "import signal, sys\n"
        "from helios.__main__ import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored\n"
        "sys.argv[1:] = ['chat', '--index', sys.argv[1]]\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(demo_index)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("Which is the longest river of Europe?\n")
        assert process.stdout.readline().startswith("> Which")
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)  # while modules and models are loaded
        assert process.stdout.readline().startswith("stopped; ask another question")
        said, errors = process.communicate("/help\n", timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert said.endswith("anything else is a question\n")


def test_an_interrupt_that_a_library_swallows_comes_again():
    code = (
        "import signal, time\n"
        "from helios.reading.chat import _Interrupts\n"
        "interrupts = _Interrupts()\n"
        "signal.signal(signal.SIGINT, interrupts)\n"
        "heard = 0\n"
        "while heard < 2:\n"
        "    try:\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(20)\n"
        "    except KeyboardInterrupt:\n"
        "        heard += 1  # the first time as a library would, which does not heed it\n"
        "interrupts.heeded()\n"
        "time.sleep(1)\n"
        "print(heard)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "ready\n2\n"


def test_a_changed_index_is_opened_again_with_the_models_that_are_loaded(sample_index: Path):
    with Chat(None, sample_index, overrides=["encoder.runtime=torch"]) as conversation:
        engine = conversation.engine()
        assert conversation.engine() is engine
        encoder = engine.encoder
        conversation._engine = Engine(engine.snapshot, engine.config, models=conversation._models)
        assert conversation._engine.encoder is encoder


@pytest.mark.slow
def test_a_folder_is_followed_between_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_sample_files(tmp_path / "sample")
    folder = tmp_path / "sample" / "bridges"
    with Chat(folder, None, overrides=["encoder.runtime=torch"]) as conversation:
        conversation.take("Who designed the Forth Bridge?")
        assert capsys.readouterr().out.startswith("John Fowler  likely, "), "the first example of the README"
        table = folder / "bridges.csv"
        table.write_text(table.read_text().replace("John Fowler", "Benjamin Baker"))
        conversation.take("Who designed the Forth Bridge?")
        assert capsys.readouterr().out.startswith("Benjamin Baker  likely, ")


def test_what_is_asked_is_one_thing(tmp_path: Path):
    for arguments in ([], [str(tmp_path), "--index", str(tmp_path)], [str(tmp_path / "none")]):
        assert CliRunner().invoke(build_app(), ["chat", *arguments]).exit_code == 2
