"""Mining over the sample index: positives are gold, negatives are wrong, a store survives a kill and other data."""

from pathlib import Path

import pytest

from helios.corpus.sample import sample_path
from helios.engine import Engine
from helios.evaluation.measures import contains_answer
from helios.evaluation.questions import Question, read_questions
from training.errors import TrainingError
from training.examples import ABSENT, Example, ExampleStore, edge_text, gold_pairs, mine_examples, split
from training.holdout import is_held_out


@pytest.fixture(scope="module")
def questions() -> tuple[Question, ...]:
    return read_questions(sample_path() / "questions.jsonl")


@pytest.fixture(scope="module")
def store(engine: Engine, questions: tuple[Question, ...], tmp_path_factory: pytest.TempPathFactory) -> ExampleStore:
    return mine_examples(engine, questions, tmp_path_factory.mktemp("examples"), depth=20)


def test_positives_are_gold_and_negatives_are_not(
    engine: Engine, questions: tuple[Question, ...], store: ExampleStore
) -> None:
    asked = {question.question_id: question for question in questions}
    assert len(store) > 0.8 * len(questions)
    for example in store:
        gold = gold_pairs(engine.corpus, asked[example.question_id])
        assert len(example.positives) and len(example.negatives) == len(example.scores)
        assert list(example.scores) == sorted(example.scores, reverse=True)
        for segment, passage in example.positives:
            assert any(left in (ABSENT, segment) and right in (ABSENT, passage) for left, right in gold)
        for pair in example.negatives:
            assert pair not in gold
            assert not contains_answer(edge_text(engine.corpus, pair), example.answers)


def test_a_stopped_run_goes_on_and_gives_the_same(
    engine: Engine, questions: tuple[Question, ...], store: ExampleStore, tmp_path: Path
) -> None:
    mine_examples(engine, questions, tmp_path, depth=20, threads=2)
    (part,) = tmp_path.glob("part-*.arrow")
    part.rename(tmp_path / "part-00000.arrow.tmp")
    done: list[int] = []
    again = mine_examples(engine, questions, tmp_path, depth=20, advance=done.append)
    assert sum(done) == len(questions)
    assert list(again) == list(store)
    assert again[0] == store[0] and again[-1] == list(store)[-1] and store[:2] == list(store)[:2]
    with pytest.raises(IndexError):
        store[len(store)]


def test_another_origin_is_refused(engine: Engine, questions: tuple[Question, ...], store: ExampleStore) -> None:
    with pytest.raises(TrainingError, match="examples of another depth"):
        mine_examples(engine, questions, store.folder, depth=7)
    with pytest.raises(TrainingError, match="examples of another questions"):
        mine_examples(engine, questions[1:], store.folder, depth=20)


def test_an_absent_store_is_named(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no examples.json"):
        ExampleStore.open(tmp_path, engine.corpus)


def test_the_store_is_a_dataset(store: ExampleStore) -> None:
    pytest.importorskip("datasets")
    dataset = store.dataset()
    assert len(dataset) == len(store)
    assert dataset[0]["question"] == store[0].question
    assert [tuple(pair) for pair in dataset[0]["positives"]] == list(store[0].positives)


def test_all_questions_of_a_table_are_on_one_side() -> None:
    examples = [Example(f"q{n}", "?", f"t{n % 50}", (), (), (), ()) for n in range(200)]
    trained, held = split(examples, held_out=0.2)
    assert len(trained) + len(held) == 200
    assert not {example.table_id for example in trained} & {example.table_id for example in held}
    assert 0.05 < sum(is_held_out(f"t{n}", share=0.2) for n in range(2000)) / 2000 < 0.25
