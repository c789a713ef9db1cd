"""The reader's recipe on the sample index: mining resumes, fitting beats chance, passages are read beside it."""

import numpy as np
import pytest

from helios.corpus.sample import sample_path
from helios.evaluation.questions import read_questions
from helios.reading.extractive import ExtractiveReader
from helios.reading.features import FEATURES, READ_FEATURES
from helios.reading.passages import PassageReader
from helios.reading.vectors import StoredVectors
from training.errors import TrainingError
from training.reader import ReaderSettings, fit_reader, train_reader
from training.reader_examples import Example, mine_examples, table_fold


@pytest.fixture(scope="module")
def questions():
    return read_questions(sample_path() / "questions.jsonl")


@pytest.fixture(scope="module")
def examples(engine, questions, tmp_path_factory):
    return mine_examples(engine, questions, tmp_path_factory.mktemp("examples"), edges=5, k=20, seed=13)


def settings(**changes) -> ReaderSettings:
    return ReaderSettings(**{"trees": 50, "least_examples": 5, "data": {"held_out": 0.3}} | changes)


def synthetic(count: int = 60) -> list[Example]:
    """Questions whose right candidate is the one with the largest first feature."""
    chance = np.random.default_rng(5)
    made = []
    for number in range(count):
        features = chance.random((30, len(FEATURES))).astype(np.float16)
        exact = features[:, 0] == features[:, 0].max()
        made.append(
            Example(
                str(number), number / count, features, exact.astype(np.float32), exact, np.arange(30, dtype=np.int32)
            )
        )
    return made


def test_mining_reads_what_it_has(engine, questions, tmp_path):
    first = mine_examples(engine, questions[:2], tmp_path, edges=2, k=5, seed=1)
    done = []
    again = mine_examples(engine, questions[:2], tmp_path, edges=2, k=5, seed=1, advance=done.append)
    assert not done
    assert all(np.array_equal(a.f1, b.f1) and a.fold == b.fold for a, b in zip(first, again, strict=True))


def test_answers_of_the_sample_are_among_the_candidates(examples):
    assert np.mean([example.exact.any() for example in examples]) > 0.5


def test_fitting_finds_the_rule_and_is_the_same_again():
    ranker, scores = fit_reader(synthetic(200), settings())
    assert scores["held-out EM"] > 0.5  # one candidate in thirty is right
    again, same = fit_reader(synthetic(200), settings())
    assert scores == same
    assert ranker.trees.text == again.trees.text
    assert 0 < ranker.confidence(0.5) < 1


def test_too_little_to_learn_from():
    with pytest.raises(TrainingError, match="too few"):
        fit_reader(synthetic(3)[2:], settings())


def test_a_recipe_needs_an_index_and_questions(tmp_path):
    with pytest.raises(TrainingError, match=r"data\.questions"):
        train_reader(ReaderSettings(), tmp_path)


class Told:
    """A reader of passages that keeps what it is asked."""

    def __init__(self, reader: PassageReader) -> None:
        self.reader, self.asked = reader, []

    def passages(self, question, evidence, *, edges):
        self.asked.append(question)
        return self.reader.passages(question, evidence, edges=edges)


def test_each_share_of_the_tables_is_read_by_the_one_that_did_not_learn_from_it(engine, questions, tmp_path):
    reader = PassageReader.load()
    two = [Told(reader), Told(reader)]
    found = mine_examples(engine, questions, tmp_path, edges=2, k=5, seed=1, passages=two)
    shares = [{q.text for q in questions if int(table_fold(q, seed=1) * 2) == number} for number in range(2)]
    assert all(shares)
    assert [set(one.asked) for one in two] == shares
    columns = np.concatenate([one.features[:, -len(READ_FEATURES) :] for one in found])
    assert np.isnan(columns).any()  # rows without a passage
    assert np.nanmax(columns[:, 0]) == 0.0  # the best candidate of what was read
    assert (columns[~np.isnan(columns[:, 1]), 1] <= 0.0).all()  # logarithms of chances


@pytest.mark.slow
def test_trees_that_read_passages_do_without_them_too(engine, questions, tmp_path):
    """Where the reader of passages is left out, its features are not numbers."""
    mined = mine_examples(engine, questions, tmp_path, edges=5, k=10, seed=13, passages=[PassageReader.load()])
    ranker, _ = fit_reader(mined, settings(passages=(tmp_path,), data={"held_out": 0.5}))
    assert ranker.reads_passages
    vectors = StoredVectors(engine.index, engine.encoder)
    asked = questions[0].text
    evidence = engine.search(asked, k=10)
    for reader in (None, PassageReader.load()):
        assert ExtractiveReader(ranker, vectors, passages=reader).read(asked, evidence).text
