"""What a change did to an index."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

MANY = 0.15
"""Share of outlying vectors from which on a new codebook is worth its time."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A record, or a file, that was left out, and why."""

    file: str
    line: int | None
    id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files of a folder against an index, by their names within the folder."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    vanished: tuple[str, ...]
    unchanged: int

    def lines(self) -> list[str]:
        """For people to read."""
        kinds = {"new": self.new, "changed": self.changed, "vanished": self.vanished}
        told = [f"{kind:10} {name}" for kind, names in kinds.items() for name in names]
        counts = ", ".join(f"{len(names):,} {kind}" for kind, names in kinds.items())
        return [*told, f"files      {counts}, {self.unchanged:,} unchanged"]


@dataclass(frozen=True, slots=True)
class Change:
    """Counts of one change; `generation` is the snapshot that has it, the one before where nothing changed."""

    generation: int
    tables: int = 0
    """Tables that came, those that replace one too."""
    segments: int = 0
    passages: int = 0
    replaced: int = 0
    """Tables and passages that another one of their id took the place of."""
    deleted_tables: int = 0
    deleted_segments: int = 0
    deleted_passages: int = 0
    links: int = 0
    """Edges that came: of new rows, and of old rows to new passages."""
    parts: int = 0
    """Parts that the index has now."""
    outliers: float = 0.0
    """Of a compaction: the share of vectors far from the codebook, a twentieth where it was fitted to the corpus."""
    missing: tuple[str, ...] = ()
    """Ids to delete that no record has."""
    rejected: tuple[Reject, ...] = ()
    files: FilePlan | None = None
    """Of a sync: what was done for which files, or would be done."""
    seconds: float = 0.0

    def record(self) -> dict[str, Any]:
        """As plain JSON data."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people to read."""
        told = [f"snapshot   {self.generation}, {_counted(self.parts, 'part')}; {self.seconds:.1f} s"]
        if self.files:
            told += self.files.lines()
        if self.tables or self.passages:
            rows = _counted(self.segments, "row")
            here = f", {self.replaced:,} of them in place of others" if self.replaced else ""
            told.append(
                f"added      {_counted(self.tables, 'table')} with {rows}, {_counted(self.passages, 'passage')}{here}"
            )
        if self.deleted_tables or self.deleted_passages:
            rows = _counted(self.deleted_segments, "row")
            tables, passages = _counted(self.deleted_tables, "table"), _counted(self.deleted_passages, "passage")
            told.append(f"deleted    {tables} with {rows}, {passages}")
        if self.links:
            told.append(f"linked     {_counted(self.links, 'edge')}")
        if self.outliers > MANY:
            told.append(f"outliers   {self.outliers:.0%} of vectors are far from the codebook; --refit fits another")
        told += [f"missing    {name}" for name in self.missing]
        told += [f"rejected   {place_of(reject)}: {reject.reason}" for reject in self.rejected]
        return told


def place_of(reject: Reject) -> str:
    """Where a reject is: file, line and id as far as they are known."""
    line = f":{reject.line}" if reject.line is not None else ""
    name = f" {reject.id!r}" if reject.id else ""
    return f"{reject.file}{line}{name}"


def named(names: Sequence[str], *, most: int = 5) -> str:
    """The first of some names, quoted, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
