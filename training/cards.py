"""Model cards: what a folder of weights was made from, how, and how good it is.

`card.json` is for programs and `README.md` for people; both are written from one `ModelCard`.
"""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from helios import __version__
from helios.index.durable import sha256_file, write_atomically

CARD = "card.json"
README = "README.md"
LIBRARIES = ("torch", "transformers", "peft", "numpy", "tokenizers")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that a model was trained on; the name alone, never where it lay."""

    name: str
    sha256: str
    records: int | None = None


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Everything that a reader needs to judge the weights, and to make them again."""

    name: str
    role: str
    summary: str
    base: str
    """The model it started from, with its hash."""
    data: tuple[DataFile, ...]
    settings: Mapping[str, Any]
    scores: Mapping[str, float]
    """Measures by name; the name says on what: "held-out train nDCG@50"."""
    limits: str = ""
    licence: str = "Apache-2.0"
    command: str = ""
    seconds: float | None = None
    made: str = ""
    machine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the weights by file name."""


def data_file(path: Path, *, records: int | None = None) -> DataFile:
    """A data file with its hash."""
    return DataFile(path.name, sha256_file(path), records)


def write_card(folder: Path, card: ModelCard, *, weights: Sequence[str] = ()) -> ModelCard:
    """Complete a card with this process's command, machine and versions, and write it beside the weights."""
    complete = completed(folder, card, weights=weights)
    content = json.dumps(asdict(complete), indent=2, ensure_ascii=False, default=str) + "\n"
    write_atomically(folder / CARD, content.encode())
    write_atomically(folder / README, readme(complete).encode())
    return complete


def completed(folder: Path, card: ModelCard, *, weights: Sequence[str] = ()) -> ModelCard:
    """A card with this process's command, machine and versions, and the hashes of the folder's weights."""
    return ModelCard(
        **{
            **{name: getattr(card, name) for name in card.__dataclass_fields__},
            "command": card.command or command_line(),
            "made": card.made or datetime.now(UTC).date().isoformat(),
            "machine": card.machine or _machine(),
            "versions": dict(card.versions) or _versions(),
            "files": {name: sha256_file(folder / name) for name in weights} or dict(card.files),
        }
    )


def read_card(folder: Path) -> ModelCard:
    """The card of a folder."""
    record = json.loads((folder / CARD).read_text(encoding="utf-8"))
    return ModelCard(**{**record, "data": tuple(DataFile(**data) for data in record["data"])})


def readme(card: ModelCard) -> str:
    """The card as Markdown."""
    parts = [f"# {card.name}", card.summary, f"Role: {card.role}. Base: {card.base}. Licence: {card.licence}."]
    parts += [
        "## Scores",
        _table(("measure", "value"), [(name, f"{value:.4g}") for name, value in card.scores.items()]),
    ]
    rows = [(data.name, f"{data.records:,}" if data.records is not None else "", data.sha256) for data in card.data]
    parts += ["## Data", _table(("file", "records", "SHA-256"), rows)]
    took = f" in {card.seconds / 60:.1f} minutes" if card.seconds is not None else ""
    versions = ", ".join(f"{name} {number}" for name, number in card.versions.items())
    parts += ["## How it was made", f"    {card.command}", f"{card.made}, {card.machine}{took}; {versions}."]
    parts += ["```json\n" + json.dumps(card.settings, indent=2, ensure_ascii=False, default=str) + "\n```"]
    if card.files:
        parts += ["## Files", _table(("file", "SHA-256"), list(card.files.items()))]
    if card.limits:
        parts += ["## Limits", card.limits]
    return "\n\n".join(parts) + "\n"


def command_line() -> str:
    """The command of this process as a person would type it."""
    program = Path(sys.argv[0]).name
    return shlex.join(["helios" if program == "__main__.py" else program, *sys.argv[1:]])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _machine() -> str:
    """Kind and number of processors, and the GPU if torch sees one."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
    torch = sys.modules.get("torch")
    gpu = f", {torch.cuda.get_device_name()}" if torch is not None and torch.cuda.is_available() else ""
    return f"{os.cpu_count()} × {cpu}{gpu}"


def _versions() -> dict[str, str]:
    found = {"helios": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
