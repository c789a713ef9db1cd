"""`helios index add|update|delete|sync|compact`: the commands that change an index while it is searched."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

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
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Add tables and passages; an id that the index has already is an error, and nothing is added.

    Example: helios index add my-index more-files
    """
    _add(index, corpus, (on_error, metadata, fields), wait, overrides, follow=follow_links, as_json=as_json)


def update(
    index: IndexFolder,
    corpus: Corpus,
    on_error: OnError = "auto",
    metadata: Metadata = None,
    follow_links: FollowLinks = False,
    fields: Fields = None,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Add tables and passages in place of those that have their ids.

    Example: helios index update my-index changed.jsonl
    """
    how = (on_error, metadata, fields)
    _add(index, corpus, how, wait, overrides, follow=follow_links, replacing=True, as_json=as_json)


def delete(
    index: IndexFolder,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of tables and passages.")] = None,
    source: Annotated[str | None, typer.Option(help="Delete what came from this file of the corpus.")] = None,
    where: Annotated[str | None, typer.Option(help='Delete what a filter lets through, as "year < 1990".')] = None,
    relink: Annotated[
        bool, typer.Option(help="Link rows anew that named a deleted passage: a mention may go to another one.")
    ] = True,
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
    _print(opened.delete(ids or (), source=source, where=where, relink=relink), as_json=as_json)


def compact(
    index: IndexFolder,
    whole: Annotated[bool, typer.Option("--all", help="Make the whole index one part.")] = False,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit a new codebook, and encode all again under it: scores change.")
    ] = False,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Merge small parts, and drop what is deleted where that is more than a fifth of a part; no score changes.

    Others search and write meanwhile. Space comes back when nobody reads the old parts any more.

    Example: helios index compact my-index
    """
    os.nice(NICE)
    _print(_open(index, wait, overrides).compact(whole=whole, refit=refit), as_json=as_json)


def sync(
    index: IndexFolder,
    folder: Annotated[Path, typer.Argument(help="Folder with tables and passages.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    on_error: OnError = "auto",
    metadata: Metadata = None,
    follow_links: FollowLinks = False,
    fields: Fields = None,
    wait: Wait = WAIT,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Bring an index to what a folder holds now, file by file: new ones, changed ones and those that have vanished.

    Example: helios index sync my-index my-files --dry-run
    """
    reading = _reading(on_error, metadata, fields, follow=follow_links)
    _print(_open(index, wait, overrides).sync(folder, reading, dry_run=dry_run), as_json=as_json)


CHANGES = (add, update, delete, sync, compact)


def _add(
    index: Path, corpus: Path, how: tuple[Literal["auto", "stop", "skip"], Path | None, str | None], wait: float,
    overrides: list[str] | None, *, follow: bool, as_json: bool, replacing: bool = False,
) -> None:  # fmt: skip
    reading = _reading(*how, follow=follow)
    source = sys.stdin.buffer if str(corpus) == "-" else corpus
    _print(_open(index, wait, overrides).add_files(source, reading, replacing=replacing), as_json=as_json)


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
