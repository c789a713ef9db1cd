"""What the README and the tutorial show is what their commands print, typed in their order into an empty folder."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_RUN = {
    "pip install helios-retrieval": "the package index; `make wheel` does it",
    'pip install "helios-retrieval[serve]"': "the package index",
    "make demo": "minutes; it runs `helios demo`, which makes demo-index here",
    "make test SLOW=1": "this is it",
    "helios serve --index ../demo-index": "a server does not end; tests/serving starts it",
    "curl": "asks the server",
    "ls ": "in columns, where it prints to a terminal",
}
"""Beginnings of commands that are not run, and why."""
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELLIPSIS = "..."
VARIES = [
    (re.compile(r"else: .*"), "else: …"),
    (re.compile(r"(?<=the best is ).*"), "…"),
    (re.compile(r"\d+(?:\.\d+)?(?= ?(?:%|s\b|ms\b|[kMG]B\b))"), "#"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:+]+|\b[0-9a-f]{12,64}\b"), "#"),
    (re.compile(r"[│┃┏┡└].*"), "│"),
    (re.compile(r"(?<=generator, )-?[\d.]+|(?<=\()0\.\d+(?=\))|(?<=\()\d+(?=%\))"), "#"),
    (re.compile(r"p50.*"), "p50 …"),
    (re.compile(r"\s+"), " "),
]
"""What another machine prints otherwise: times, sizes, chances, what came next, and the cells of tables of measures."""


@dataclass
class Step:
    """A command of a page with the lines that it shows, and what is typed into it."""

    command: str
    shown: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)


def steps_of(page: str) -> list[Step]:
    """The commands of the console blocks; a block that begins with > goes on in the program before it."""
    steps: list[Step] = []
    for block in BLOCK.finditer(page):
        for line in block[1].splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:]))
            elif line.startswith("> "):
                steps[-1].typed.append(line[2:])
            else:
                steps[-1].shown.append(line)
    return steps


def told(line: str) -> str:
    """A line without what varies."""
    for pattern, text in VARIES:
        line = pattern.sub(text, line)
    return line.strip()


def differs(shown: list[str], printed: list[str]) -> str:
    """The first shown line that was not printed where it should be; `...` stands for any lines."""
    at, anywhere = 0, False
    for line in shown:
        if line.strip() == ELLIPSIS:
            anywhere = True
            continue
        wanted = told(line)
        rest = [told(one) for one in printed[at:]]
        if wanted not in (rest if anywhere else rest[:1]):
            return f"shows {line!r}, printed is {printed[at : at + 3]}"
        at, anywhere = at + rest.index(wanted) + 1, False
    return "" if anywhere or at == len(printed) else f"does not show {printed[at]!r}"


class Typist:
    """Types commands into an empty folder with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = os.environ | {
            "PATH": scripts, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "250", "NO_COLOR": "1",
        }  # fmt: skip

    def type(self, step: Step) -> list[str]:
        """The lines that a command prints; what is typed into a program is not among them."""
        if step.command.startswith("cd "):
            self.folder /= step.command[3:]
            return []
        ended = subprocess.run(
            step.command, shell=True, cwd=self.folder, env=self.environment, text=True, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, input="".join(f"{line}\n" for line in step.typed),
        )  # fmt: skip
        assert ended.returncode == 0, f"{step.command}: {ended.stdout}"
        lines = [line.rstrip() for line in ended.stdout.splitlines()]
        return (
            [line for line in lines if line.strip() and line.removeprefix("> ") not in step.typed]
            if step.typed
            else lines
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_a_page_shows_what_its_commands_print(name, demo_index, tmp_path):
    page = (ROOT / name).read_text(encoding="utf-8")
    (tmp_path / "demo-index").symlink_to(demo_index)  # as `make demo` leaves it
    typist = Typist(tmp_path)
    wrong: list[str] = []
    for step in steps_of(page):
        if any(step.command.startswith(command) for command in NOT_RUN):
            continue
        printed = typist.type(step)
        if why := differs(step.shown, printed):
            wrong.append(f"{name}: $ {step.command}\n  {why}")
            print("\n".join([f"$ {step.command}", *printed]))
    assert wrong == []


def test_every_exception_is_needed():
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tutorial.md")]
    commands = [step.command for page in pages for step in steps_of(page)]
    assert [one for one in NOT_RUN if not any(command.startswith(one) for command in commands)] == []


@pytest.mark.parametrize(
    ("shown", "printed", "right"),
    [
        (["a 3.1 s", "b"], ["a 12 s", "b"], True),
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "..."], ["a"], True),
        (["1974  likely, 93%"], ["1975  likely, 93%"], False),
        (["1974  likely, 93%"], ["1974  possible, 43%"], False),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
    ],
)
def test_what_is_compared(shown, printed, right):
    assert (differs(shown, printed) == "") is right
