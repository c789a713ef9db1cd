"""`helios index add|update|delete|sync|compact`: the commands that change an index while it is searched."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from helios.errors import HeliosError
from helios.terminal import one_line

if TYPE_CHECKING:
    from indexing.living.change import Change
    from indexing.living.index import Index
    from indexing.living.records import Reading

NICE = 10
"""How much less a compaction is scheduled than others; of `nice`."""
WAIT = 60.0
IndexFolder = Annotated[Path, typer.Argument(help="Folder of the index.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Wait = Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for another writer.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Where models lie now, as encoder.model=FOLDER."),
]
Corpus = Annotated[
    Path, typer.Argument(metavar="CORPUS", help="File or folder with tables and passages; - reads JSON lines.")
]
OnError = Annotated[
    Literal["auto", "stop", "skip"],
    typer.Option(
        help="What to do with what cannot be read: stop, or skip and list it. auto skips files of a folder, but stops "
        "at a broken line of JSON lines, and where CORPUS is a single file."
    ),
]
Metadata = Annotated[
    Path | None, typer.Option(help="Fields of records for filters: CSV or JSON lines with a column id.")
]
FollowLinks = Annotated[
    bool, typer.Option("--follow-links", help="Read what links lead to outside of the corpus's folder.")
]
Compacting = Annotated[
    bool,
    typer.Option(
        help="Merge small parts afterwards where there are more than eight, and rewrite small ones of which more "
        "than a fifth is deleted: seconds, in which others search and write."
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="title=FIELD,text=FIELD",
        help="Records of JSON, CSV and Parquet are passages by these fields, also id=FIELD and url=FIELD; their other "
        "fields are metadata.",
    ),
]


def add(
    index: IndexFolder,
    corpus: Corpus,
    on_error: OnError = "auto",
    metadata: Metadata = None,
    follow_links: FollowLinks = False,
    fields: Fields = None,
    compact: Compacting = True,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Add tables and passages; an id that the index has already is an error, and nothing is added.

    Example: helios index add my-index more-files
    """
    reading, opened = _reading(on_error, metadata, fields, follow=follow_links), _open(index, wait, overrides)
    _done(opened, opened.add_files(_source(corpus), reading), compact=compact, as_json=as_json)


def update(
    index: IndexFolder,
    corpus: Corpus,
    on_error: OnError = "auto",
    metadata: Metadata = None,
    follow_links: FollowLinks = False,
    fields: Fields = None,
    compact: Compacting = True,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Add tables and passages in place of those that have their ids.

    Example: helios index update my-index changed.jsonl
    """
    reading, opened = _reading(on_error, metadata, fields, follow=follow_links), _open(index, wait, overrides)
    _done(opened, opened.add_files(_source(corpus), reading, replacing=True), compact=compact, as_json=as_json)


def delete(
    index: IndexFolder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of tables and passages.")] = None,
    source: Annotated[str | None, typer.Option(help="Delete what came from this file of the corpus.")] = None,
    where: Annotated[str | None, typer.Option(help='Delete what a filter lets through, as "year < 1990".')] = None,
    relink: Annotated[
        bool, typer.Option(help="Link rows anew that named a deleted passage: a mention may go to another one.")
    ] = True,
    compact: Compacting = True,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Delete tables and passages by id, by the file that they came from, or by a filter.

    Example: helios index delete my-index european-rivers gallium
    """
    if not ids and source is None and where is None:
        raise typer.BadParameter("say what to delete: ids, --source FILE or --where FILTER")
    opened = _open(index, wait, overrides)
    change = opened.delete(ids or (), source=source, where=where, relink=relink)
    _done(opened, change, compact=compact, as_json=as_json)


def compact(
    index: IndexFolder,
    whole: Annotated[bool, typer.Option("--all", help="Make the whole index one part.")] = False,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit a new codebook, and encode all again under it: scores change.")
    ] = False,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto", help="Only where there are more than eight parts, or more than a fifth of one is deleted."
        ),
    ] = False,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Merge small parts, and drop what is deleted where that is more than a fifth of a part; no score changes.

    Others search and write meanwhile. Space comes back when nobody reads the old parts any more.

    Example: helios index compact my-index
    """
    if auto and (whole or refit):
        raise typer.BadParameter("--auto decides what to merge: leave out --all and --refit")
    os.nice(NICE)
    opened = _open(index, wait, overrides)
    change = opened.compact_if_due(most=None) if auto else opened.compact(whole=whole, refit=refit)
    _print(change or opened.unchanged(), as_json=as_json)


def sync(
    index: IndexFolder,
    folder: Annotated[Path, typer.Argument(help="Folder with tables and passages.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    on_error: OnError = "auto",
    metadata: Metadata = None,
    follow_links: FollowLinks = False,
    fields: Fields = None,
    compact: Compacting = True,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Bring an index to what a folder holds now, file by file: new ones, changed ones and those that have vanished.

    Example: helios index sync my-index my-files --dry-run
    """
    reading = _reading(on_error, metadata, fields, follow=follow_links)
    opened = _open(index, wait, overrides)
    change = opened.sync(folder, reading, dry_run=dry_run)
    _done(opened, change, compact=compact and not dry_run, as_json=as_json)


CHANGES = (add, update, delete, sync, compact)


def _source(corpus: Path) -> "Path | BinaryIO":
    return sys.stdin.buffer if str(corpus) == "-" else corpus


def _done(index: "Index", change: "Change", *, compact: bool, as_json: bool) -> None:
    """Say what a change did, then merge parts if that is due; where that fails the change is still made."""
    _print(change, as_json=as_json)
    if not compact or not index.is_due():
        return
    os.nice(NICE)
    try:
        merged = index.compact_if_due()
    except HeliosError as error:
        typer.echo(f"not compacted: {one_line(str(error))}", err=True)
        return
    if merged and not as_json:
        typer.echo(f"compacted  {change.parts:,} parts into {merged.parts:,}; {merged.seconds:.1f} s")


def _reading(
    on_error: Literal["auto", "stop", "skip"], metadata: Path | None, fields: str | None, *, follow: bool
) -> "Reading":
    from helios.corpus.mapping import FieldMap
    from indexing.living.records import Reading

    return Reading(on_error, metadata, follow, FieldMap.parse(fields) if fields is not None else None)


def _open(index: Path, wait: float, overrides: list[str] | None) -> "Index":
    from indexing.cli import available_cores
    from indexing.living.index import Index
    from indexing.progress import default_progress

    return Index.open(
        index, wait=wait, workers=available_cores(), overrides=overrides or (), progress=default_progress()
    )


def _print(change: "Change", *, as_json: bool) -> None:
    typer.echo(json.dumps(change.record(), indent=2) if as_json else "\n".join(map(one_line, change.lines())))
