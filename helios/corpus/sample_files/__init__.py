"""The files of the README's and the tutorial's examples, and `helios sample`, which writes them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from helios.corpus.sample import QUESTIONS, sample_path
from helios.errors import HeliosError

FOLDERS = ("bridges", "observatory")
DATABASE = "shop"


def sample_command(
    out: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to write them.")] = Path("helios-sample"),
) -> None:
    """Write the files of the README's examples, so that its commands can be typed.

    Example: helios sample && helios ask helios-sample/bridges "Who designed the Forth Bridge?"
    """
    for path, holds in write_sample_files(out).items():
        typer.echo(f"{path}  {holds}")
    typer.echo(f'\nNow ask: helios ask {out / FOLDERS[0]} "Who designed the Forth Bridge?"')


def write_sample_files(out: Path) -> dict[Path, str]:
    """Write all into a folder; what each of them is, by its path. HeliosError where one of them is there already."""
    here = Path(__file__).parent
    written = {
        out / FOLDERS[0]: "a table of bridges and two pages about engineers",
        out / FOLDERS[1]: "tables, notes and a log of an observatory, for the tutorial",
        out / f"{DATABASE}.sqlite": "a database with customers and invoices",
        out / QUESTIONS: "questions about the sample corpus that `helios demo` indexes",
    }
    for path in written:
        if path.exists():
            raise HeliosError(f"{path}: is there already; give another folder, as in `helios sample FOLDER`")
    out.mkdir(parents=True, exist_ok=True)
    for name in FOLDERS:
        shutil.copytree(here / name, out / name)
    shutil.copyfile(sample_path() / QUESTIONS, out / QUESTIONS)
    with closing(sqlite3.connect(out / f"{DATABASE}.sqlite")) as database:
        database.executescript((here / f"{DATABASE}.sql").read_text(encoding="utf-8"))
    return written
