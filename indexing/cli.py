"""`helios index ...`: the commands that build and describe an index; those that keep it are in indexing.keeping."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from helios.terminal import one_line
from indexing.keeping import backup, fsck, restore, snapshots
from indexing.living.commands import CHANGES

if TYPE_CHECKING:
    from helios.corpus.files import FileEntry
    from helios.index.manifest import Manifest
    from indexing.estimate import Estimate
    from indexing.pipeline import BuildReport

app = typer.Typer(help="Build an index, change it, back it up and inspect it.", no_args_is_help=True)

REJECTS_SHOWN = 5
"""Rejected files that the last lines of a build name."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

for command in CHANGES:
    app.command()(command)


@app.command()
def build(
    corpus: Annotated[Path, typer.Argument(help="File or folder with tables and passages.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings, as linking.source=none.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the index.")] = ...,  # type: ignore[assignment]
    config: Annotated[Path | None, typer.Option(help="YAML file with settings that differ.")] = None,
    on_error: Annotated[
        Literal["auto", "stop", "skip"],
        typer.Option(
            help="What to do with what cannot be read: stop, or skip and list it. auto skips files of a folder, but "
            "stops at a broken line of JSON lines, and where CORPUS is a single file."
        ),
    ] = "auto",
    rejects: Annotated[
        Path | None, typer.Option(help="Where skipped records go; OUT/rejects.jsonl if not given.")
    ] = None,
    metadata: Annotated[
        Path | None, typer.Option(help="Fields of records for filters: CSV or JSON lines with a column id.")
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Read what links lead to outside of the corpus's folder.")
    ] = False,
    fields: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="title=FIELD,text=FIELD",
            help="Records of JSON, CSV and Parquet are passages by these "
            "fields, also id=FIELD and url=FIELD; their other fields are metadata.",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes to use; all cores if not given.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate time, disk and memory.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Build even if the disk seems too small.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put this corpus in the place of another one's index.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do finished work again, as after damage.")] = False,
    as_json: AsJson = False,
) -> None:
    """Index a corpus. Interrupted, the same command goes on where it stopped.

    Example: helios index build my-files --out my-index
    """
    from helios.config import load_config
    from helios.corpus.mapping import FieldMap
    from indexing.pipeline import build_index, check_places, check_same_corpus
    from indexing.progress import default_progress

    settings = load_config(config, overrides or ())
    used_workers = workers or available_cores()
    mapping = FieldMap.parse(fields) if fields is not None else None
    check_places(corpus, out, metadata)
    if dry_run:
        from indexing.estimate import estimate_build

        with default_progress().stage("sampling"):
            estimate = estimate_build(
                corpus, config=settings, workers=used_workers, follow_links=follow_links, mapping=mapping
            )
        _print_estimate(estimate, as_json=as_json)
        return
    if not replace:
        check_same_corpus(corpus, out, follow_links=follow_links)
    report = build_index(
        corpus,
        out,
        config=settings,
        workers=used_workers,
        on_error=on_error,
        rejects=rejects,
        progress=default_progress(),
        check_disk=not force,
        fresh=fresh,
        metadata=metadata,
        follow_links=follow_links,
        mapping=mapping,
    )
    _print_report(report, as_json=as_json)


@app.command()
def info(index: Annotated[Path, typer.Argument(help="Folder of the index.")], as_json: AsJson = False) -> None:
    """Show what an index holds, how it was made and what that cost.

    Example: helios index info my-index
    """
    from helios.index.manifest import BUILD_FOLDER, read_manifest
    from indexing.stage import StageRecord

    manifest = read_manifest(index)
    folders = sorted((index / BUILD_FOLDER).glob("*/"))
    records = [record for folder in folders if (record := StageRecord.read(folder))]
    records.sort(key=lambda record: record.started)
    if as_json:
        document = _summary(index, manifest) | {
            "config": manifest.config,
            "models": {name: model.model_dump() for name, model in manifest.models.items()},
            "parts": [part.model_dump(mode="json") for part in manifest.parts],
            "stages": [_stage_summary(record) for record in records],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    for line in [*_manifest_lines(index, manifest), *_stage_lines([_stage_summary(one) for one in records])]:
        typer.echo(line)


for command in (fsck, backup, restore, snapshots):
    app.command()(command)


def available_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _print_report(report: "BuildReport", *, as_json: bool) -> None:
    from indexing.stages.ingest import FILES_FILE

    stages = [_stage_summary(record) | {"ran": name in report.ran} for name, record in report.records.items()]
    if as_json:
        document = _summary(report.index, report.manifest) | {"seconds": round(report.seconds, 3)}
        document["files"] = {"list": str(report.index / FILES_FILE), **report.files.counts()}
        typer.echo(json.dumps(document | {"stages": stages}, indent=2))
        return
    for line in [*_stage_lines(stages), *_manifest_lines(report.index, report.manifest), *_file_lines(report)]:
        typer.echo(line)


def _file_lines(report: "BuildReport") -> list[str]:
    """How many files were read, rejected and passed over, the first of those that were rejected, and where all are."""
    from indexing.stages.ingest import FILES_FILE

    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in report.files.counts().items())
    lost = [entry for entry in report.files if entry.rejected]
    named = [
        f"rejected   {_loss(entry)}{one_line(entry.file)}: {one_line(entry.reason)}" for entry in lost[:REJECTS_SHOWN]
    ]
    if len(lost) > REJECTS_SHOWN:
        named.append(f"rejected   {len(lost) - REJECTS_SHOWN:,} more files, in whole or in part")
    return [*named, f"files      {counts}; {report.index / FILES_FILE} says what became of each"]


def _loss(entry: "FileEntry") -> str:
    """How much of a file was rejected, where it was not all."""
    return f"{entry.rejected:,} of " if entry.outcome == "read" else ""


def _summary(index: Path, manifest: "Manifest") -> dict[str, Any]:
    return {
        "index": str(index),
        "format_version": manifest.version,
        "generation": manifest.generation,
        "created": manifest.created,
        "code_version": manifest.code_version,
        "counts": manifest.counts.model_dump(),
        "bytes": sum(entry.size for entry in manifest.listed.values()),
        "content_sha256": manifest.content_hash(),
    }


def _stage_summary(record: Any) -> dict[str, Any]:
    return {
        "stage": record.stage,
        "seconds": record.seconds,
        "peak_rss": record.peak_rss,
        "bytes": sum(entry.size for entry in record.files),
        "workers": record.workers,
        "counts": record.counts,
    }


def _stage_lines(stages: list[dict[str, Any]]) -> list[str]:
    from indexing.disk import format_bytes

    lines = []
    for stage in stages:
        counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in stage["counts"].items())
        cost = f"{stage['seconds']:9.1f} s  {format_bytes(stage['peak_rss']):>9} peak"
        again = "" if stage.get("ran", True) else " (done before)"
        lines.append(f"{stage['stage']:10} {cost}  {format_bytes(stage['bytes']):>9}  {counts}{again}")
    return lines


def _manifest_lines(index: Path, manifest: "Manifest") -> list[str]:
    from indexing.disk import format_bytes

    counts = manifest.counts.model_dump()
    size = sum(entry.size for entry in manifest.listed.values())
    models = [f"model      {name}: {model.name} ({model.sha256[:12]})" for name, model in manifest.models.items()]
    return [
        f"index      {index}, snapshot {manifest.generation} of {manifest.created}, {format_bytes(size)}",
        f"holds      {', '.join(f'{count:,} {name}' for name, count in counts.items())}",
        *models,
        f"content    {manifest.content_hash()}",
    ]


def _print_estimate(estimate: "Estimate", *, as_json: bool) -> None:
    from indexing.disk import format_bytes
    from indexing.progress import format_duration

    if as_json:
        totals = {"seconds": estimate.seconds, "disk": estimate.disk, "memory": estimate.memory}
        typer.echo(json.dumps(asdict(estimate) | totals, indent=2))
        return
    about = "" if estimate.exact else "about "
    unread = f"; {estimate.unread} files of the sample take too long to read" if estimate.unread else ""
    typer.echo(
        f"corpus     {about}{estimate.tables:,} tables, {estimate.segments:,} segments, {estimate.passages:,} passages"
    )
    typer.echo(f"estimate   about {estimate.tokens:,} tokens, {estimate.links:,} links")
    for stage in estimate.stages:
        cost = f"{format_duration(stage.seconds):>10}  {format_bytes(stage.disk):>9} disk"
        typer.echo(f"{stage.name:10} {cost}  {format_bytes(stage.memory):>9} memory")
    if estimate.gpu:
        typer.echo("gpu        reads the texts: codebook and encode take far less than the processor's time above")
    typer.echo(
        f"build      about {format_duration(estimate.seconds)}, {format_bytes(estimate.disk)} of disk at its "
        f"peak, {format_bytes(estimate.memory)} of memory (an estimate from {estimate.sample_nodes:,} rows and passages"
        f"{unread})"
    )
