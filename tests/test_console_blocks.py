"""The documents' commands: every one is a command with options that exist."""

import re
import shlex
from pathlib import Path

import pytest

from helios.cli import load_target, own_and_sibling_commands

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = [
    path for path in DOCUMENTS if path.name != "benchmarks-log.md"
]  # commands of earlier versions, as they were
BLOCK = re.compile(r"^```(?:console|sh|bash)\n(.*?)^```$|((?:^ {4}helios .*\n)+)", re.MULTILINE | re.DOTALL)


def commands_of(text: str) -> list[str]:
    """Lines of console blocks that begin with `$ helios` or `helios`, with what goes on after a backslash."""
    found = []
    for block in BLOCK.finditer(text):
        lines = (block[1] or block[2]).replace("\\\n", " ").splitlines()
        found += [line.strip().removeprefix("$ ") for line in lines]
    return [line for line in found if line.startswith("helios ")]


def words_of(command: str) -> list[str]:
    """The words up to a comment, a pipe or a redirection, without the first."""
    words = shlex.split(command, comments=True)
    ends = [place for place, word in enumerate(words) if word in ("|", ">", "&&", ";", "<", "&")]
    return words[1 : min(ends, default=len(words))]


COMMANDS = {command: path.name for path in DOCUMENTS for command in commands_of(path.read_text(encoding="utf-8"))}


def test_the_documents_have_commands():
    assert len(COMMANDS) > 80


def test_every_command_and_option_of_the_documents_exists():
    assert [f"{document}: {line}: {why}" for line, document in COMMANDS.items() if (why := wrong_with(line))] == []


@pytest.mark.parametrize(
    "line", ["helios search --nonsense 3 x", "helios sources lead x", "helios serve keys addd", "helios nope"]
)
def test_a_command_that_does_not_exist_is_found(line):
    assert wrong_with(line)


def wrong_with(line: str) -> str:
    """What is wrong with a command; nothing where it leaves words out on purpose."""
    words = words_of(line)
    if not words or words[0].startswith("-") or "..." in line or "…" in line:
        return ""
    loaded = {name: target for name, target, _ in own_and_sibling_commands()}
    if words[0] not in loaded:
        return f"there is no command {words[0]!r}"
    command, words = load_target(loaded[words[0]], words[0]), words[1:]
    context = None
    while True:
        context = command.context_class(command, parent=context, info_name=command.name)
        try:
            _, rest, _ = command.make_parser(context).parse_args(list(words))
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            return error.format_message()
        if not rest or not hasattr(command, "get_command"):
            return ""
        inner = command.get_command(context, rest[0])
        if inner is None:
            return f"there is no command {rest[0]!r}"
        command, words = inner, rest[1:]
