"""Model cards: what a folder of weights was made from, how, how good it is, and what it fits.

`card.json` is for programs and `README.md` for people; both are written from one `ModelCard`. Everything that is
learned is a folder with a card, a few numbers too. Whoever reads weights reads the card first (`read_card`): it names
the role, the files with their hashes, and what the weights need to find as it was when they were trained.
"""

import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from helios import __version__
from helios.errors import ModelError
from helios.index.durable import sha256_file, write_atomically

CARD = "card.json"
README = "README.md"
LIBRARIES = ("torch", "transformers", "peft", "lightgbm", "numpy", "tokenizers")


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
    needs: Mapping[str, Any] = field(default_factory=dict)
    """What the weights fit, by name: the encoder's fingerprint, names of features, the fused score."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Learned numbers that need no file of their own."""

    def check(self, folder: Path, **found: Any) -> None:
        """ModelError where the weights need something else than what there is; what they do not need is passed over."""
        for name in self.unmet(**found):
            raise ModelError(
                f"{folder}: these weights ({self.role}) were trained with another {name.replace('_', ' ')} "
                f"({_shown(self.needs[name])}; here it is {_shown(found[name])}); train them again (`helios train`), "
                "or leave them out"
            )

    def unmet(self, **found: Any) -> list[str]:
        """The names of what the weights need and what is something else here."""
        needed = {name: self.needs[name] for name in found if self.needs.get(name) is not None}
        return [name for name, value in needed.items() if _plain(value) != _plain(found[name])]


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


def read_card(folder: Path, role: str) -> ModelCard:
    """The card of a folder of weights, its files checked against their hashes; ModelError if anything is wrong.

    Whoever reads weights calls it before it parses any of them.
    """
    try:
        record = json.loads((folder / CARD).read_text(encoding="utf-8"))
        card = ModelCard(**{**record, "data": tuple(DataFile(**data) for data in record["data"])})
        _check_kinds(card)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{folder}: no model that `helios train` wrote ({CARD}: {error})") from error
    if card.role != role:
        raise ModelError(f"{folder}: holds a {card.role}, expected a {role}")
    for name, expected in card.files.items():
        try:
            found = sha256_file(folder / name)
        except OSError as error:
            raise ModelError(f"{folder / name}: cannot be read ({error.strerror}); its card names it") from error
        if found != expected:
            raise ModelError(
                f"{folder / name}: damaged, or not the file of its card: SHA-256 {found[:12]}…, not {expected[:12]}…"
            )
    return card


def _check_kinds(card: ModelCard) -> None:
    """ValueError for a card whose fields are of other kinds, or that names a file outside of its folder."""
    for name in ("files", "needs", "values", "scores", "versions"):
        if not isinstance(getattr(card, name), Mapping):
            raise ValueError(f"{name} must be an object")
    for name, found in card.files.items():
        if name != Path(name).name or not name.isprintable() or not isinstance(found, str):
            raise ValueError(f"files: {name!r} is not the name of a file with its SHA-256")


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return json.loads(json.dumps(value))


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


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
    if card.needs:
        parts += [
            "## Fits",
            _table(("what", "as it was"), [(name, _shown(value)) for name, value in card.needs.items()]),
        ]
    if card.files:
        parts += ["## Files", _table(("file", "SHA-256"), list(card.files.items()))]
    if card.limits:
        parts += ["## Limits", card.limits]
    return "\n\n".join(parts) + "\n"


_ROOTED = re.compile(r"(?<![^=,\[\s])/(?:[^/,\]\s]+/)*([^/,\]\s]+)")
"""A path from the root, alone or among the values of a setting: it means nothing on another machine."""


def command_line() -> str:
    """The command of this process as a person would type it; of paths from the root their last part alone."""
    program = Path(sys.argv[0]).name
    said = [_ROOTED.sub(r"\1", argument) for argument in sys.argv[1:]]
    return shlex.join(["helios" if program == "__main__.py" else program, *said])


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
