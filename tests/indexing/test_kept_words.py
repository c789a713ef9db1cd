"""A build leaves the words of its passages, so that the first addition does not read all passages again."""

import pytest

from helios.index.manifest import read_manifest
from helios.models.linker.forward import PassageWords
from helios.types import Passage, Table
from indexing.kept_words import words_folder, words_path
from indexing.living import links
from indexing.living.index import Index
from indexing.values import build_from

PASSAGES = [Passage(f"p{n}", f"Ridge Ferry {n}", f"Ridge Ferry {n} is a ferry across the lake.") for n in range(6)]
TABLE = Table("routes", "Routes", ("Ferry", "Minutes"), (("Ridge Ferry 1", "20"), ("Ridge Ferry 4", "35")))


@pytest.fixture
def index(tmp_path):
    build_from([TABLE], PASSAGES, tmp_path / "index")
    return tmp_path / "index"


def test_a_build_leaves_the_words_of_its_part(index):
    (part,) = read_manifest(index).parts
    words = PassageWords.load(words_path(words_folder(index), part))
    assert words is not None
    assert words.passage_count == len(PASSAGES)
    assert [path.name for path in words_folder(index).iterdir()] == [words_path(words_folder(index), part).name]


@pytest.mark.slow
def test_the_first_addition_reads_the_words_of_its_own_passages_alone(index, monkeypatch):
    read, words_of = [], links.words_of

    def counted(passages):
        found = list(passages)
        read.extend(title for title, _ in found)
        return words_of(found)

    monkeypatch.setattr(links, "words_of", counted)
    more = Table("times", "Times", ("Ferry", "First"), (("Ridge Ferry 2", "06:10"), ("Ridge Ferry 9", "07:00")))
    change = Index.open(index).add([more], [Passage("p9", "Ridge Ferry 9", "Ridge Ferry 9 is new.")])
    assert change.links >= 2
    assert read == ["Ridge Ferry 9"]


@pytest.mark.slow
def test_words_that_were_removed_are_read_again(index):
    for path in words_folder(index).iterdir():
        path.unlink()
    assert Index.open(index).add([Table("b", "B", ("Ferry",), (("Ridge Ferry 2",),))]).links == 1
    assert list(words_folder(index).iterdir())
