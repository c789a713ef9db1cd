"""The command line root: help, exit codes, errors without tracebacks, lazy commands."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from helios import __version__
from helios.cli import RootGroup, build_app, load_target
from helios.errors import HeliosError

COMMAND = [sys.executable, "-m", "helios.cli"]


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, **options)


def app_with(function) -> typer.Typer:
    app = typer.Typer(cls=RootGroup, pretty_exceptions_enable=False)

    @app.callback()
    def root(debug: bool = False) -> None:
        pass

    app.command("work")(function)
    return app


def test_version():
    assert run("--version").stdout == f"helios {__version__}\n"


def test_help_lists_every_command_without_loading_them():
    code = (
        "import sys; from typer.testing import CliRunner; from helios.cli import build_app\n"
        "result = CliRunner().invoke(build_app(), ['--help'])\n"
        "assert result.exit_code == 0, result.output\n"
        "assert all(name in result.output for name in ('search', 'eval', 'doctor', 'index', 'train'))\n"
        "loaded = {'indexing', 'training', 'helios.retrieval.cli', 'torch', 'numpy', 'pydantic'}\n"
        "assert not loaded & set(sys.modules), loaded & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_help_is_quick():
    durations = []
    for _ in range(3):
        before = os.times()
        run("--help")
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        durations.append(spent)
    assert min(durations) < 0.5


@pytest.mark.parametrize(
    "arguments", [["nonsense"], [], ["index"], ["index", "build"], ["index", "build", "x"], ["--wrong"]]
)
def test_wrong_usage_exits_2(arguments):
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 2
    assert "Usage" in result.output


def test_user_errors_are_one_message_and_exit_1(tmp_path: Path):
    result = run("index", "info", str(tmp_path / "absent"))
    assert result.returncode == 1
    assert result.stderr.startswith("error: ")
    assert "no such folder" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_debug_shows_the_traceback(tmp_path: Path):
    result = run("--debug", "index", "info", str(tmp_path / "absent"))
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_other_errors_are_not_hidden():
    def work() -> None:
        raise ZeroDivisionError

    result = CliRunner().invoke(app_with(work), ["work"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_interrupt_exits_130():
    def work() -> None:
        raise KeyboardInterrupt

    result = CliRunner().invoke(app_with(work), ["work"])
    assert result.exit_code == 130
    assert "interrupted" in result.stderr


def test_a_real_interrupt_exits_130():
    code = (
        "import signal, sys, time, typer\n"
        "from helios.cli import RootGroup\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored\n"
        "app = typer.Typer(cls=RootGroup, pretty_exceptions_enable=False)\n"
        "app.callback()(lambda: None)\n"
        "@app.command()\n"
        "def work() -> None:\n"
        "    typer.echo('started'); sys.stdout.flush(); time.sleep(30)\n"
        "app(['work'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.1, 1.5])
def test_an_interrupt_while_a_command_is_loaded_is_quiet(sample_index: Path, seconds: float):
    code = (
        "import signal, sys\n"
        "from helios.__main__ import main\n"
        "class Begins:  # the import of the commands, which is the first thing that takes time\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'helios.cli':\n"
        "            print('started', flush=True)\n"
        "sys.meta_path.insert(0, Begins())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored\n"
        "sys.argv[1:] = ['ask', 'Who?', '--index', sys.argv[1]]\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(sample_index)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    if process.returncode == 0:
        return  # it had answered by then
    assert process.returncode == 130
    assert errors.strip() in ("", "interrupted")


def test_an_interrupt_within_an_import_ends_the_process(tmp_path: Path):
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "try:\n"
        "    print('started', flush=True)\n"
        "    time.sleep(30)\n"
        "except KeyboardInterrupt:\n"
        "    pass  # as a callback of Python's does, within which it is lost\n"
    )
    code = (
        "import signal, sys\n"
        "import helios.cli\n"
        "from helios.__main__ import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored\n"
        "helios.cli.main = lambda: __import__('slow')\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "interrupted\n")


def test_a_closed_pipe_is_quiet():
    code = (
        "import typer\n"
        "from helios.cli import RootGroup\n"
        "app = typer.Typer(cls=RootGroup, pretty_exceptions_enable=False)\n"
        "app.callback()(lambda: None)\n"
        "@app.command()\n"
        "def work() -> None:\n"
        "    for number in range(100_000): typer.echo(number)\n"
        "app(['work'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_absent_command_says_so():
    with pytest.raises(HeliosError, match="`helios dance` is not part of this installation"):
        load_target("helios.dancing:app", "dance")


def test_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "needs_more.py").write_text("import a_library_that_nobody_has\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HeliosError, match="needs 'a_library_that_nobody_has'"):
        load_target("needs_more:app", "more")


def test_functions_and_apps_are_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = """
import typer
app = typer.Typer()
@app.command()
def one(n: int) -> None:
    typer.echo(n + 1)
one_function = one
"""
    (tmp_path / "plugged_in.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = load_target("plugged_in:one_function", "one")
    group = load_target("plugged_in:app", "plugged")
    assert CliRunner().invoke(_as_app(function), ["41"]).output == "42\n"
    assert CliRunner().invoke(_as_app(group), ["one", "41"]).output == "42\n"


def _as_app(command) -> typer.Typer:
    """CliRunner wants a Typer app; its command is replaced by a loaded one."""
    app = typer.Typer()

    class Loaded(typer.core.TyperCommand):
        def make_context(self, info_name, args, parent=None, **extra):
            return command.make_context(info_name, args, parent=parent, **extra)

        def invoke(self, ctx):
            return ctx.command.invoke(ctx)

    app.command(cls=Loaded)(lambda: None)
    return app


def test_doctor_reports_this_machine(tmp_path: Path):
    result = CliRunner().invoke(build_app(), ["doctor", "--json", "--dir", str(tmp_path)])
    report = json.loads(result.stdout)
    assert report["helios"] == __version__
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["disk_free"] > 0
    assert report["packages"]["numpy"]
    assert result.exit_code == (1 if report["base_model"]["error"] else 0)
    readable = CliRunner().invoke(build_app(), ["doctor"])
    assert "bf16" in readable.stdout


def test_doctor_looks_at_an_index(sample_index: Path):
    result = CliRunner().invoke(build_app(), ["doctor", "--json", "--index", str(sample_index)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["index"]
    assert (found["problem"], found["generation"], found["parts"], found["deleted"]) == ("", 1, 1, 0)
    assert (found["segments"], found["passages"], found["bits"]) == (66, 67, 1)
    assert found["stages"] == ["retrieve", "rank", "rerank", "documents", "expand", "refine", "spread"]
    readable = CliRunner().invoke(build_app(), ["doctor", "-i", str(sample_index)])
    assert "66 rows, 67 passages" in readable.stdout
    assert "searched by retrieve, rank, rerank, documents, expand, refine, spread" in readable.stdout


def test_doctor_says_what_is_wrong_with_an_index(sample_index: Path, tmp_path: Path):
    index = tmp_path / "index"
    shutil.copytree(sample_index, index)
    codes = next(index.glob("parts/*/tokens/codes.npy"))
    codes.write_bytes(codes.read_bytes()[:-1])
    for folder, words in ((index, f"{codes}: damaged"), (tmp_path, "not a HELIOS index")):
        result = CliRunner().invoke(build_app(), ["doctor", "--index", str(folder)])
        assert result.exit_code == 1
        assert "not usable: " in result.stdout
        assert words in result.stdout
    codes.unlink()
    damaged = CliRunner().invoke(build_app(), ["doctor", "--json", "--index", str(index)])
    assert damaged.exit_code == 1
    assert f"{codes}: missing; restore it" in json.loads(damaged.stdout)["index"]["problem"]


@pytest.mark.parametrize("command", ["search", "ask"])
@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("year >", "the filter 'year >' ends too early: expected a value"),
        ("colour = 'red'", "no record has the field 'colour'; fields: id, kind"),
        ("kind = ", "the filter 'kind =' ends too early: expected a value"),
        ("", "the filter is empty"),
    ],
)
def test_a_filter_that_cannot_be_used_is_an_error(sample_index: Path, command: str, where: str, words: str):
    arguments = [command, "Which river?", "--index", str(sample_index), "--set", "encoder.runtime=openvino"]
    result = CliRunner().invoke(build_app(), [*arguments, "--where", where])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert words in " ".join(result.output.split())


def test_a_filter_needs_an_index(tmp_path: Path):
    result = run("ask", "Which river?", "--sources", str(tmp_path / "sources.yaml"), "--where", "kind = 'table'")
    assert result.returncode == 2
    assert "--where selects from an index" in result.stderr


def test_a_file_that_cannot_be_used_is_named_without_a_traceback(tmp_path: Path):
    def work() -> None:
        (tmp_path / "absent" / "out").mkdir()

    result = CliRunner().invoke(app_with(work), ["work"])
    assert result.exit_code == 1
    assert f"error: {tmp_path / 'absent' / 'out'}: No such file or directory" in result.output
    assert isinstance(CliRunner().invoke(app_with(work), ["--debug", "work"]).exception, FileNotFoundError)


def test_a_folder_of_the_users_does_not_stand_in_for_ours(tmp_path: Path):
    for name in ("training", "indexing", "json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    for arguments in (["index", "info", "none"], ["train", "ranker", "--out", "x"]):
        command = [sys.executable, "-m", "helios", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert done.stderr.startswith("error: "), done.stderr


def test_an_empty_question_is_wrong_usage(tmp_path: Path):
    result = run("search", " ", "--index", str(tmp_path))
    assert result.returncode == 2
    assert "the question is empty" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    ["", "search", "ask", "eval", "eval retrieval", "eval answers", "eval ablate", "eval load", "eval sources", "index",
     "index build", "index info", "index fsck", "demo", "doctor", "train", "train ranker", "train reranker",
     "train linker", "train reader"],
)  # fmt: skip
def test_every_help_is_shown(arguments: str):
    result = CliRunner().invoke(build_app(), [*arguments.split(), "--help"])
    assert result.exit_code == 0
    assert "Usage: " in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("search q --index {file}", "not a HELIOS index"),
        ("search q --index {folder}", "not a HELIOS index"),
        ("search q --index {foreign}", "restore it or build the index again"),
        ("ask q --index {foreign}", "restore it or build the index again"),
        ("search q --index {folder} --config {file}", "not valid YAML"),
        ("search q --index {folder} --set search.kk=1", "did you mean search.k"),
        ("eval retrieval --index {folder} --questions {folder}", "cannot be read: Is a directory"),
        ("eval answers --index {folder} --questions {file}", "cannot be read on"),
        ("eval load --index {folder} --questions {folder}/none", "does not exist"),
        ("index info {foreign}", "restore it or build the index again"),
        ("index fsck {folder}", "not a HELIOS index"),
        ("index build {file} --out {folder}/new", "known formats"),
        ("index build {folder}/none --out {folder}/new", "no such file or folder"),
        ("demo --out {file}", "give a folder for the index"),
        ("train ranker --out {folder}/new", "set data.index"),
        ("train reranker --out {folder}/new --device nonsense", "expected auto, cpu, cuda"),
        ("train reranker --out {folder}/new --device cuda:99", "use cpu or auto"),
    ],
)
def test_garbage_is_told_without_a_traceback(tmp_path: Path, arguments: str, message: str):
    file, folder, foreign = tmp_path / "garbage", tmp_path / "folder", tmp_path / "foreign"
    folder.mkdir()
    foreign.mkdir()
    file.write_bytes(bytes(range(255, 0, -1)))
    (foreign / "manifest.json").write_bytes(bytes(range(255, 0, -1)))
    result = CliRunner().invoke(build_app(), arguments.format(file=file, folder=folder, foreign=foreign).split())
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert message in " ".join(result.output.split())
