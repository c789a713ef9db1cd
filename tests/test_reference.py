"""Settings and commands in words: `helios init`, and that docs/reference.md is what the code says."""

import re
from pathlib import Path

import yaml
from typer.testing import CliRunner

from helios.cli import build_app
from helios.config import Config, known_keys, load_config
from helios.reference import commands, config_file, reference, sections

ROOT = Path(__file__).parents[1]


def uncommented(text: str) -> str:
    return re.sub(r"^( *)#(\w+: )", r"\1\2", text, flags=re.MULTILINE)


def test_the_file_of_init_changes_nothing(tmp_path: Path):
    result = CliRunner().invoke(build_app(), ["init", str(tmp_path / "helios.yaml")])
    assert result.exit_code == 0
    assert load_config(tmp_path / "helios.yaml") == Config()


def test_without_its_comment_marks_it_sets_every_setting_to_its_default(tmp_path: Path):
    path = tmp_path / "helios.yaml"
    path.write_text(uncommented(config_file(advanced=True)))
    assert load_config(path).resolved() == Config().resolved()
    keys = {f"{section.name}.{setting.name}" for section in sections() for setting in section.settings}
    assert keys == set(known_keys())
    shown = yaml.safe_load(path.read_text())["advanced"]["corpus"]
    assert shown == Config().advanced.corpus.model_dump()


def test_a_setting_comes_with_its_meaning_and_what_it_may_be():
    text = config_file()
    assert "  # Sources that are asked, at most.\n  # May be an integer from 1 to 50.\n  #k: 3\n" in text
    assert "  # May be off or local or llm.\n  #mode: local\n" in text
    assert "None" not in text
    assert "advanced:" not in text
    assert max(map(len, text.splitlines())) <= 110


def test_init_overwrites_nothing(tmp_path: Path):
    (path := tmp_path / "mine.yaml").write_text("search: {k: 3}\n")
    result = CliRunner().invoke(build_app(), ["init", str(path)])
    assert result.exit_code == 1
    assert "is there already" in result.output
    assert path.read_text() == "search: {k: 3}\n"


def test_the_reference_is_what_the_code_says():
    assert (ROOT / "docs" / "reference.md").read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_the_help_of_every_command_has_an_example():
    without = [" ".join(path) for path, command in commands() if "Example: helios " not in (command.help or "")]
    assert without == []
