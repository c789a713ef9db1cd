"""`helios index fsck|backup|restore|snapshots`: the commands that keep an index whole."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helios.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from helios.index.backup import CopyReport
    from helios.index.fsck import Finding
    from helios.index.listing import PieceOnDisk

Index = Annotated[Path, typer.Argument(help="Folder of the index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Copying = Annotated[
    bool, typer.Option("--copy", help="Copy every file, so that a bad block of one disk cannot damage both.")
]


def fsck(
    index: Index,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Make damaged parts again from their stored corpus, drop those without one, and say what is lost.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Verify every checksum and structure; exit code 1 if anything is wrong, or stays so.

    Example: helios index fsck my-index
    """
    from helios.index.fsck import check_index

    if repair:
        _repair(index, as_json=as_json)
        return

    findings = _checked(index, lambda advance: check_index(index, progress=advance))
    if as_json:
        typer.echo(
            json.dumps({"sound": not _errors(findings), "findings": [asdict(one) for one in findings]}, indent=2)
        )
    else:
        _print_findings(findings)
        damaged = "damaged: mend it with --repair, restore a backup, or build it again with --fresh"
        typer.echo(f"{index}: {damaged if _errors(findings) else 'sound'}")
    if _errors(findings):
        raise typer.Exit(1)


def backup(
    index: Index,
    out: Annotated[Path, typer.Argument(help="Folder for the backup: empty, or not there yet.")],
    copy: Copying = False,
    as_json: AsJson = False,
) -> None:
    """Copy the current snapshot while others search and write; the backup is an index of its own.

    On the same file system its files share their bytes with the index, by reflinks or hard links, so it costs seconds
    and no space. `helios index fsck BACKUP` verifies it.

    Example: helios index backup my-index /backups/my-index-1
    """
    from helios.index.backup import back_up

    report = back_up(index, out, share=not copy)
    if as_json:
        typer.echo(json.dumps(_copy_record(report), indent=2))
    else:
        typer.echo(_copy_line("backup", report))


def restore(
    backup: Annotated[Path, typer.Argument(help="Folder of a backup.")],
    out: Annotated[Path, typer.Argument(help="Folder for the index: empty, or not there yet.")],
    copy: Copying = False,
    as_json: AsJson = False,
) -> None:
    """Make an index of a backup, and verify all of it; exit code 1 if anything is wrong.

    Example: helios index restore /backups/my-index-1 my-index
    """
    from helios.index.backup import restore as restore_index

    report = _checked(backup, lambda advance: restore_index(backup, out, share=not copy, progress=advance))
    if as_json:
        checked = {"sound": not _errors(report.findings), "findings": [asdict(one) for one in report.findings]}
        typer.echo(json.dumps(_copy_record(report.copied) | checked, indent=2))
    else:
        typer.echo(_copy_line("restored", report.copied))
        _print_findings(report.findings)
        typer.echo(f"{out}: {'damaged: so is the backup' if _errors(report.findings) else 'sound'}")
    if _errors(report.findings):
        raise typer.Exit(1)


def snapshots(index: Index, as_json: AsJson = False) -> None:
    """Show the current snapshot with its parts, older pieces that are still on the disk, and who reads them.

    Example: helios index snapshots my-index
    """
    from helios.index.listing import list_snapshots
    from indexing.disk import format_bytes

    listing = list_snapshots(index)
    if as_json:
        typer.echo(json.dumps(listing.record(), indent=2))
        return
    manifest = listing.manifest
    total = format_bytes(sum(piece.bytes for piece in listing.pieces))
    typer.echo(f"snapshot   {manifest.generation} of {manifest.created}, by HELIOS {manifest.code_version}, {total}")
    for piece in listing.pieces:
        typer.echo(_piece_line(piece, "nobody reads it"))
    for piece in listing.retired:
        typer.echo(f"{_piece_line(piece, 'nobody reads it, the next writer removes it')} (no longer current)")
    if listing.unfinished:
        typer.echo(f"work       {format_bytes(listing.unfinished)} of records and unfinished work in .build")
    for holder in listing.writers:
        typer.echo(f"writer     {holder}")


def _repair(index: Path, *, as_json: bool) -> None:
    from indexing.living.repair import repair_index
    from indexing.progress import default_progress

    report = _checked(index, lambda advance: repair_index(index, progress=advance, stages=default_progress()))
    if as_json:
        typer.echo(json.dumps(report.record() | {"sound": not _errors(report.left)}, indent=2))
    else:
        _print_findings(report.findings)
        for part in report.rebuilt:
            typer.echo(f"rebuilt    part {part}, from its stored corpus: nothing of it is lost")
        if report.relinked:
            typer.echo(f"relinked   {report.relinked:,} rows")
        for lost in report.lost:
            typer.echo(
                f"lost       part {lost.part} ({lost.reason}): {lost.tables:,} tables with {lost.segments:,} rows, "
                f"{lost.passages:,} passages"
            )
            for noun, ids in (("table", lost.table_ids), ("passage", lost.passage_ids)):
                for record_id in ids:
                    typer.echo(printable(f"lost       {noun} {record_id}"))
        _print_findings(report.left)
        typer.echo(f"{index}: {'damaged' if _errors(report.left) else 'sound'}")
    if _errors(report.left):
        raise typer.Exit(1)


def _checked(index: Path, check: "Callable[[Callable[[int], None]], Any]") -> Any:
    """What a check finds, with a progress bar over the bytes of an index."""
    from helios.index.fsck import listed_bytes
    from indexing.progress import default_progress

    with default_progress().stage("fsck") as meter:
        meter.start(listed_bytes(index) // 1000, "kB")
        rest = 0

        def advance(size: int) -> None:
            nonlocal rest
            full, rest = divmod(rest + size, 1000)
            meter.advance(full)

        return check(advance)


def _errors(findings: "Sequence[Finding]") -> list["Finding"]:
    return [finding for finding in findings if finding.severity == "error"]


def _print_findings(findings: "Sequence[Finding]") -> None:
    for finding in findings:
        typer.echo(f"{finding.severity}: {finding.path}: {finding.problem}")


def _copy_record(report: "CopyReport") -> dict[str, Any]:
    return {
        "source": str(report.source),
        "out": str(report.out),
        "generation": report.manifest.generation,
        "files": {sharing.value: count for sharing, count in report.files.items()},
        "bytes": report.bytes,
        "content_sha256": report.manifest.content_hash(),
    }


def _copy_line(word: str, report: "CopyReport") -> str:
    from indexing.disk import format_bytes

    return f"{word:10} {report.out}, snapshot {report.manifest.generation}, {format_bytes(report.bytes)}: {report.way}"


def _piece_line(piece: "PieceOnDisk", unread: str) -> str:
    from indexing.disk import format_bytes

    counts = () if piece.counts is None else _counted(piece.counts.model_dump())
    held = "read by " + ", ".join(map(str, piece.holders)) if piece.holders else unread
    return "; ".join(
        [f"{piece.folder:15} {format_bytes(piece.bytes):>9}", *([", ".join(counts)] if counts else []), held]
    )


def _counted(counts: dict[str, int]) -> "Iterator[str]":
    """What there is of each kind, and always how much is deleted of a part."""
    is_part = counts["segments"] + counts["passages"] > 0
    return (f"{count:,} {name}" for name, count in counts.items() if count or (is_part and name == "deleted"))
