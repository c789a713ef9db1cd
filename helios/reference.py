"""Every setting and every command in words, made from the code: `helios init`, and docs/reference.md.

python -m helios.reference > docs/reference.md          (`make docs`)
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from helios import config
from helios.config import Config
from helios.errors import ConfigError
from helios.terminal import one_line

WIDTH = 110
LIMITS = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section of the settings: its dotted name, what it is about, and its settings."""

    name: str
    about: str
    settings: tuple["SettingText", ...]


@dataclass(frozen=True, slots=True)
class SettingText:
    """A setting: its name, its default as YAML, what it may be, and what it means (may be empty)."""

    name: str
    default: str
    expected: str
    meaning: str


def init_command(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to write.")] = Path("helios.yaml"),
    advanced: Annotated[bool, typer.Option("--advanced", help="Also what few will ever change.")] = False,
) -> None:
    """Write a config file that explains every setting and changes none.

    Example: helios init my.yaml, take the # away before a setting, then helios ask FOLDER "question" --config my.yaml
    """
    try:
        with file.open("x", encoding="utf-8") as handle:
            handle.write(config_file(one_line(file.name), advanced=advanced))
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no folder {file.parent}; make it first") from None
    except FileExistsError:
        raise ConfigError(f"{file}: is there already; give another name, as in `helios init other.yaml`") from None
    shown = one_line(str(file))
    typer.echo(f"{shown}: change a setting by taking the # away before it; use it with --config {shown}")


def config_file(name: str = "helios.yaml", *, advanced: bool = False) -> str:
    """A config file in which every setting is a comment: with its meaning, what it may be, and its default."""
    head = (
        f"Settings of HELIOS. Each one is shown with its default. To change one, take the # away before its name and "
        f"write another value. Use the file with --config {name}."
    )
    lines = _comment(head, "")
    entered: list[str] = []
    for section in sections():
        *parents, own = section.name.split(".")
        if parents and not advanced:
            continue
        if parents != entered and parents:
            lines += ["", *_comment("What hardly anyone needs to change.", ""), f"{parents[0]}:"]
        entered, indent = parents, "  " * len(parents)
        lines += ["", *_comment(section.about, indent), f"{indent}{own}:"]
        for setting in section.settings:
            lines += _comment(setting.meaning, f"{indent}  ") + _comment(f"May be {setting.expected}.", f"{indent}  ")
            lines.append(f"{indent}  #{setting.name}: {setting.default}")
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}# {line}" for line in wrap(text, WIDTH - len(indent))]


def sections(schema: type[BaseModel] = Config, prefix: str = "") -> Iterator[SectionText]:
    """Every section with settings of its own, in the order of their definition."""
    meanings = _meanings(schema)
    settings = tuple(
        SettingText(name, _yaml(field.default), _expected(field), re.sub(r"\bNone\b", "null", meanings.get(name, "")))
        for name, field in schema.model_fields.items()
        if _section(field) is None
    )
    if settings:
        yield SectionText(prefix, inspect.cleandoc(schema.__doc__ or ""), settings)
    for name, field in schema.model_fields.items():
        if (section := _section(field)) is not None:
            yield from sections(section, f"{prefix}.{name}".lstrip("."))


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The section that a field holds; None for a setting."""
    kind: Any = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


@cache
def _meanings(schema: type[BaseModel]) -> dict[str, str]:
    """What stands below each setting of a section in the code."""
    (body,) = (node.body for node in _classes() if node.name == schema.__name__)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in zip(body, body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


@cache
def _classes() -> tuple[ast.ClassDef, ...]:
    return tuple(node for node in ast.parse(inspect.getsource(config)).body if isinstance(node, ast.ClassDef))


def _yaml(value: object) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=sys.maxsize)
    return text.removesuffix("\n...\n").strip()


def _expected(field: FieldInfo) -> str:
    """What a setting may be: `a or b`, `an integer, 1 or more`, `text or null`."""
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not type(None)]
    if get_origin(field.annotation) is Literal:
        words = " or ".join(_yaml(value).strip("'\"") for value in get_args(field.annotation))
    else:
        names = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
        words = names[kinds[0]] + _range(field)
    return f"{words}, or null" if type(None) in get_args(field.annotation) else words


def _range(field: FieldInfo) -> str:
    """The limits of a number, as ` from 1 to 50`."""
    limits = {name: f"{getattr(one, name):g}" for one in field.metadata for name in LIMITS if hasattr(one, name)}
    if limits.keys() == {"ge"}:
        return f", {limits['ge']} or more"
    return "".join(f" {LIMITS[name]} {limit}" for name, limit in limits.items())


def reference() -> str:
    """docs/reference.md: every command with its options, every setting with its default."""
    parts = ["# Reference", "Made from the code by `make docs`; do not edit.", "## Commands"]
    for path, command in commands():
        parts += [f"### `{' '.join(('helios', *path))}`", *_command_text(command)]
    parts.append("## Settings")
    parts.append(
        "`helios init` writes these into a config file for `--config FILE.yaml`; `--set search.k=20` changes one for "
        "one command."
    )
    for section in sections():
        rows = [
            f"| `{one.name}` | `{one.default}` | {one.expected} | {_cell(one.meaning)} |" for one in section.settings
        ]
        parts += [f"### `{section.name}`", section.about]
        parts.append("\n".join(["| setting | default | may be | meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of this installation that does something itself, with the words that call it."""
    from helios.cli import load_target, own_and_sibling_commands

    for name, target, _ in own_and_sibling_commands():
        yield from _within((name,), load_target(target, name))


def _within(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    if command.invoke_without_command:
        yield path, command
    for name, inner in command.commands.items():
        yield from _within((*path, name), inner)


def _command_text(command: Any) -> Iterator[str]:
    """What a command does, and a table of its arguments and options."""
    yield _plain(command.help or "")
    rows = [_parameter_row(one) for one in command.params if not getattr(one, "hidden", False)]
    if rows:
        yield "\n".join(["| argument or option | default | meaning |", "|---|---|---|", *rows])


def _parameter_row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    names = ", ".join(f"`{name}`" for name in parameter.opts) if is_option else f"`{_argument_name(parameter)}`"
    default = parameter.default
    if parameter.required:
        default = "*required*"
    else:
        default = f"`{default}`" if default not in (None, False, [], ()) and not callable(default) else ""
    return f"| {names} | {default} | {_cell(_plain(getattr(parameter, 'help', '') or ''))} |"


def _argument_name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _plain(text: str) -> str:
    return inspect.cleandoc(text)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    sys.stdout.write(reference())
