"""The shipped weights on a few tables of our own, and what happens to bad folders."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from helios.errors import IndexFormatError, ModelError
from helios.models.linker import Linker, TableLinker
from helios.types import Passage, Table

PASSAGES = (
    Passage("1", "Defender (association football)", "In football , a defender is an outfield player ."),
    Passage("2", "Midfielder", "A midfielder is an outfield position in association football ."),
    Passage("3", "Ontario", "Ontario is a province of Canada in the east-central part of the country ."),
    Passage("4", "Maren Holt (footballer)", "Maren Holt is a Norwegian footballer who plays as a defender ."),
    Passage("5", "Maren Holt (painter)", "Maren Holt was a Danish painter of coastal landscapes ."),
    Passage("6", "Vestby F.K.", "Vestby F.K. is a football club from Vestby , Norway ."),
    Passage("7", "Toronto", "Toronto is the capital city of the province of Ontario ."),
)
SQUAD = Table(
    "squad",
    "Vestby F.K.",
    ("No", "Pos", "Player", "Born"),
    (("4", "DF", "Maren Holt", "Toronto , ON"), ("8", "MF", "Nobody Known", "—"), ("", "", "", "")),
    section="Current squad",
    intro="Vestby F.K. is a football club .",
)


@dataclass
class Passages:
    passages: list[Passage] = field(default_factory=lambda: list(PASSAGES))


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> TableLinker:
    return Linker.load().prepare(Passages(), tmp_path_factory.mktemp("linker") / "work")


def found(linker: TableLinker, table: Table, threshold: float | None = None) -> list[tuple[int, str, str]]:
    links = linker.link(table, threshold=threshold)
    return [
        (int(row), table.rows[row][column][start:end], PASSAGES[passage].title)
        for row, column, start, end, passage in zip(
            links.rows, links.columns, links.starts, links.ends, links.passages, strict=True
        )
    ]


def best(linker: TableLinker, row: int, column: int) -> str:
    links = linker.link(SQUAD, threshold=0.0)
    cell = [
        (float(score), int(passage))
        for r, c, passage, score in zip(links.rows, links.columns, links.passages, links.scores, strict=True)
        if (r, c) == (row, column)
    ]
    return PASSAGES[max(cell)[1]].title


def test_abbreviations_names_and_parts_of_a_cell(linker: TableLinker) -> None:
    links = found(linker, SQUAD)
    assert (0, "DF", "Defender (association football)") in links
    assert (0, "Maren Holt", "Maren Holt (footballer)") in links
    assert (0, "Toronto", "Toronto") in links
    assert (1, "MF", "Midfielder") in links


def test_context_chooses_between_namesakes(linker: TableLinker) -> None:
    assert best(linker, 0, 2) == "Maren Holt (footballer)"


def test_cells_that_name_nothing_get_nothing(linker: TableLinker) -> None:
    assert not [link for link in found(linker, SQUAD, threshold=0.2) if link[1] in {"4", "8", "Nobody Known"}]
    assert not [link for link in found(linker, SQUAD) if link[0] == 2]


def test_a_higher_threshold_gives_a_subset(linker: TableLinker) -> None:
    assert set(found(linker, SQUAD, threshold=0.5)) <= set(found(linker, SQUAD, threshold=0.05))
    assert found(linker, SQUAD, threshold=1.01) == []


def test_results_do_not_depend_on_what_was_linked_before(linker: TableLinker) -> None:
    before = linker.link(SQUAD).scores.tolist()
    linker.link(Table("t", "Painters", ("Name",), (("Maren Holt",), ("Vestby",))))
    assert linker.link(SQUAD).scores.tolist() == before


@pytest.mark.parametrize(
    "table",
    [
        Table("t", "", (), ()),
        Table("t", "", ("",), ()),
        Table("t", "", ("", ""), (("", "—"),)),
        Table("t", "x " * 5000, ("h " * 500,), (("word " * 5000,),)),
        Table("t", "日本", ("名前",), (("東京 (都市)",), ("\x00",), ("a" * 10_000,))),
        Table("t", "wide", tuple("c" for _ in range(300)), (tuple("Ontario" for _ in range(300)),)),
    ],
)
def test_odd_tables_are_linked_without_complaint(linker: TableLinker, table: Table) -> None:
    links = linker.link(table)
    for row, column, start, end in zip(links.rows, links.columns, links.starts, links.ends, strict=True):
        assert 0 <= start < end <= len(table.rows[row][column])


def test_no_passages_no_links(tmp_path: Path) -> None:
    empty = Linker.load().prepare(Passages([]), tmp_path / "work")
    assert len(empty.link(SQUAD)) == 0


def test_preparing_again_does_nothing_until_the_passages_change(tmp_path: Path) -> None:
    linker, work = Linker.load(), tmp_path / "work"
    linker.prepare(Passages(), work)
    written = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    linker.prepare(Passages(), work)
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()} == written
    assert linker.prepare(Passages(list(PASSAGES[:3])), work).index.passage_count == 3


def test_an_interrupted_preparation_is_done_again(tmp_path: Path) -> None:
    linker, work = Linker.load(), tmp_path / "work"
    linker.prepare(Passages(), work)
    (work / "complete.json").unlink()
    with pytest.raises(ModelError, match="call Linker.prepare first"):
        linker.open(work)
    assert linker.prepare(Passages(), work).index.passage_count == len(PASSAGES)


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    linker, work = Linker.load(), tmp_path / "work"
    linker.prepare(Passages(), work)
    (work / "passages" / "title_tokens.npy").unlink()
    with pytest.raises(IndexFormatError, match="not a linker passage index"):
        linker.open(work)


def test_weights_that_are_missing_or_foreign_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no linker weights"):
        Linker.load(tmp_path)
    linker = Linker.load()
    linker.save(tmp_path / "copy")
    text = (tmp_path / "copy" / "first.txt").read_text()
    (tmp_path / "copy" / "first.txt").write_text(text.replace("popularity", "fame"))
    with pytest.raises(ModelError, match="other features"):
        Linker.load(tmp_path / "copy")
    (tmp_path / "copy" / "scorer.json").write_text(json.dumps({"limit": 1}))
    with pytest.raises(ModelError, match="cannot be read"):
        Linker.load(tmp_path / "copy")
