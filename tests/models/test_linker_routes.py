"""The further candidate routes on a few titles of our own, with the real encoder."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from helios.errors import IndexFormatError
from helios.models.base import find_base_model
from helios.models.encoder import MiniLMEncoder
from helios.models.linker import Linker, TableLinker
from helios.models.linker.dense import DenseTitles
from helios.models.linker.fuzzy import FuzzyTitles
from helios.models.linker.routes import Routes
from helios.types import Passage, Table

TITLES = ("Maren Holtgaard (painter)", "Automobile", "Photograph", "Vestby", "River", "")
LIST = Table(
    "list",
    "Things of a town",
    ("Name", "Thing"),
    (("Maren Holtgard", "motorcar"), ("Vestby", "1987"), ("— , —", "")),
)


@dataclass
class Passages:
    passages: list[Passage] = field(
        default_factory=lambda: [Passage(str(number), title, "") for number, title in enumerate(TITLES)]
    )


def candidates(linker: TableLinker, row: int, column: int) -> set[str]:
    encoded, pairs = linker.candidates(LIST)
    here = (encoded.rows[pairs.cells] == row) & (encoded.columns[pairs.cells] == column)
    return {TITLES[passage] for passage in pairs.passages[here]}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> TableLinker:
    return Linker.load().prepare(Passages(), tmp_path_factory.mktemp("plain") / "work")


@pytest.mark.parametrize(
    ("mention", "found"),
    [
        ("Maren Holtgard", ["Maren Holtgaard (painter)"]),
        ("maren holtgáard", ["Maren Holtgaard (painter)"]),
        ("Autombile", ["Automobile"]),
        ("Rivre", []),
        ("Hill", []),
        ("1987", []),
        ("", []),
        ("x" * 5000, []),
    ],
)
def test_titles_spelled_almost_alike(tmp_path: Path, mention: str, found: list[str]) -> None:
    titles = FuzzyTitles.build(TITLES, tmp_path)
    assert [TITLES[passage] for passage in titles.find(mention)] == found


def test_the_nearest_spelling_comes_first_and_searches_leave_no_trace(tmp_path: Path) -> None:
    titles = FuzzyTitles.build(["Vestby Town", "Vestby Towns", "Westby Town", "Vestby Town (band)"], tmp_path)
    first = titles.find("Vestby Towns").tolist()
    assert first[0] == 1
    titles.find("Westby")
    assert titles.find("Vestby Towns").tolist() == first


def test_fuzzy_finds_a_misspelled_name_that_nothing_else_finds(tmp_path: Path) -> None:
    corpus = Passages([Passage("0", "Holtgaard", ""), Passage("1", "River", "")])
    table = Table("t", "Painters", ("Name",), (("Holtgard",),))
    linker = Linker.load()
    without = linker.prepare(corpus, tmp_path / "without").candidates(table)[1]
    with_fuzzy = linker.prepare(corpus, tmp_path / "with", routes=Routes(fuzzy=True)).candidates(table)[1]
    assert without.passages.tolist() == []
    assert with_fuzzy.passages.tolist() == [0]


def test_dense_finds_another_word_for_the_same_thing(tmp_path: Path, plain: TableLinker) -> None:
    linker = Linker.load().prepare(Passages(), tmp_path / "work", routes=Routes(dense=True))
    assert "Automobile" not in candidates(plain, 0, 1)
    assert "Automobile" in candidates(linker, 0, 1)


def test_dense_ranks_by_meaning(tmp_path: Path) -> None:
    titles = DenseTitles.build(TITLES, tmp_path, MiniLMEncoder.load(threads=1))
    assert [TITLES[found[0]] for found in titles.find(["motorcar", "snapshot", "stream"])] == [
        "Automobile",
        "Photograph",
        "River",
    ]
    assert titles.find([]) == []


def test_a_mention_that_a_title_spells_gets_nothing_more(tmp_path: Path, plain: TableLinker) -> None:
    linker = Linker.load().prepare(Passages(), tmp_path / "work", routes=Routes(fuzzy=True, dense=True))
    assert candidates(linker, 1, 0) == candidates(plain, 1, 0) == {"Vestby"}


def test_both_off_changes_nothing(tmp_path: Path, plain: TableLinker) -> None:
    off = Linker.load().prepare(Passages(), tmp_path / "work", routes=Routes())
    assert not (tmp_path / "work" / "fuzzy").exists()
    assert not (tmp_path / "work" / "dense").exists()
    for one, other in zip(
        _arrays(plain.link(LIST, threshold=0.0)), _arrays(off.link(LIST, threshold=0.0)), strict=True
    ):
        assert np.array_equal(one, other)


def _arrays(links: object) -> list[np.ndarray]:
    return [getattr(links, name) for name in ("rows", "columns", "passages", "starts", "ends", "scores")]


def test_the_folder_says_which_routes_it_has(tmp_path: Path) -> None:
    linker, work = Linker.load(), tmp_path / "work"
    linker.prepare(Passages(), work, routes=Routes(fuzzy=True))
    assert "Maren Holtgaard (painter)" in candidates(linker.prepare(Passages(), work), 0, 0)
    assert (work / "fuzzy").is_dir()
    linker.prepare(Passages(), work, routes=Routes())
    assert not (work / "fuzzy").exists()


def test_no_passages(tmp_path: Path) -> None:
    empty = Linker.load().prepare(Passages([]), tmp_path / "work", routes=Routes(fuzzy=True, dense=True))
    assert len(empty.link(LIST)) == 0


def test_damaged_indexes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match="prepare it again"):
        FuzzyTitles.open(tmp_path)
    with pytest.raises(IndexFormatError, match="prepare it again"):
        DenseTitles.open(tmp_path, MiniLMEncoder.load())
    np.save(tmp_path / "vectors.npy", np.zeros((1, 3), np.float16))
    with pytest.raises(IndexFormatError, match="3 dimensions"):
        DenseTitles.open(tmp_path, MiniLMEncoder.load())


def test_the_encoder_of_the_dense_route_is_the_base_model() -> None:
    assert MiniLMEncoder.load().base == find_base_model()
