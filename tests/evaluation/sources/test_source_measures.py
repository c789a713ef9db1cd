"""Measures worked out by hand, and nDCG against ir_measures."""

import math
import random

import pytest

from helios.evaluation.sources.measures import diversity, macro, ndcg, selected_at
from helios.evaluation.sources.questions import SourceQuestion
from helios.evaluation.sources.sample import balanced_sample
from helios.executors.base import Language


def test_selection():
    assert [selected_at(["a", "b"], {"b"}, k=k) for k in (1, 2)] == [0.0, 1.0]
    assert selected_at([], {"b"}, k=3) == 0.0
    assert selected_at(["a"], {"a", "twin"}, k=1) == selected_at(["twin"], {"a", "twin"}, k=1) == 1.0


def test_ndcg_by_hand():
    gains = 2 / math.log2(2) + 1 / math.log2(4)
    ideal = 2 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(["x", "o", "y"], {"x": 2, "y": 1, "z": 0}) == pytest.approx(gains / ideal)
    assert ndcg(["x", "x", "y"], {"x": 2, "y": 1}) == 1.0
    assert ndcg([], {"x": 1}) == 0.0
    with pytest.raises(ValueError, match="relevant"):
        ndcg(["x"], {"x": 0, "y": -1})


def test_ndcg_is_that_of_ir_measures():
    ir_measures = pytest.importorskip("ir_measures", reason="needs ir_measures")
    random_ = random.Random(0)
    documents = [f"d{n}" for n in range(40)]
    for _ in range(30):
        qrels = {name: random_.randint(0, 3) for name in random_.sample(documents, 12)} | {"d0": 1}
        ranked = random_.sample(documents, random_.randint(1, 30))
        run = [ir_measures.ScoredDoc("q", name, -float(rank)) for rank, name in enumerate(ranked)]
        gold = [ir_measures.Qrel("q", name, gain) for name, gain in qrels.items()]
        theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], gold, run)[ir_measures.nDCG @ 10]
        assert ndcg(ranked, qrels) == pytest.approx(theirs, abs=1e-9)


def test_diversity():
    assert diversity([("a", "sql"), ("b", "sql"), ("c", "text")]) == (2, 3)
    assert diversity([]) == (0, 0)


def test_macro_weighs_groups_alike():
    row = macro("m", {"sql": [1.0] * 30, "text": [0.0, 0.0], "cypher": []})
    assert (row.mean, row.low, row.high, row.count) == (0.5, 0.5, 0.5, 32)
    assert macro("m", {"sql": []}) is None
    spread = macro("m", {"sql": [0.0, 1.0] * 20, "text": [1.0]}, seed=3)
    assert spread.low < spread.mean == 0.75 < spread.high
    assert macro("m", {"sql": [0.0, 1.0] * 20, "text": [1.0]}, seed=3) == spread


def questions(count):
    return [
        SourceQuestion(f"{language}-{n}", "?", language, "s", "q")
        for n in range(count)
        for language in (Language.SQL, Language.TEXT)
    ]


def ids(sample):
    return {question.question_id for question in sample}


def test_balanced_sample_depends_on_ids_and_seed_alone():
    asked = questions(30)
    small = balanced_sample(asked, per_paradigm=5, seed=1)
    assert [sum(q.paradigm is language for q in small) for language in (Language.SQL, Language.TEXT)] == [5, 5]
    assert ids(balanced_sample(asked[::-1], per_paradigm=5, seed=1)) == ids(small)
    assert ids(small) < ids(balanced_sample(asked, per_paradigm=9, seed=1))
    assert ids(balanced_sample(asked, per_paradigm=5, seed=2)) != ids(small)
    assert balanced_sample(asked, per_paradigm=99) == tuple(asked)
