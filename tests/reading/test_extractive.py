"""The extractive reader on the sample index: answers cite what the store holds; features and ranges by hand."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helios.config import AdvancedReadingSettings
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import ModelError
from helios.evaluation.questions import read_questions
from helios.models.card import CARD
from helios.reading.asking import load_reader
from helios.reading.base import Support
from helios.reading.choice import Reading, candidates_of
from helios.reading.citations import checked
from helios.reading.extractive import SURELY_LINKED, ExtractiveReader, answer_spans, rank_answers
from helios.reading.features import FEATURES, READ_FEATURES
from helios.reading.ranges import RangeMax, running
from helios.reading.ranker import TREES, AnswerRanker, Calibration, chance, shares_of
from helios.reading.vectors import EncodedVectors, StoredVectors
from helios.types import Evidence
from indexing.pipeline import build_index

QUESTION = "What is the name of the river ?"

ANSWERED = 19
"""Of the 22 sample questions, those that the corpus is taken to hold; 20 when measured."""


@pytest.fixture(scope="module")
def vectors(engine) -> StoredVectors:
    return StoredVectors(engine.index, engine.encoder)


@pytest.fixture(scope="module")
def reader(vectors, reader_folder) -> ExtractiveReader:
    return ExtractiveReader.load(vectors, reader_folder)


@pytest.fixture(scope="module")
def evidence(engine) -> Evidence:
    return engine.search(QUESTION, k=10)


def test_an_answer_cites_what_the_store_holds(engine, reader, evidence):
    answer = checked(reader.read(QUESTION, evidence), engine.corpus)
    assert answer.text
    assert answer.support is Support.CHECKED
    assert answer.citations[0].text == answer.text
    assert not answer.dropped
    assert 0.0 < answer.confidence < 1.0


def test_the_same_question_has_the_same_answer(reader, evidence):
    assert reader.read(QUESTION, evidence) == reader.read(QUESTION, evidence)


def test_below_the_least_confidence_it_abstains_and_says_what_it_had(vectors, reader_folder, evidence):
    answer = ExtractiveReader.load(vectors, reader_folder, least=1.0).read(QUESTION, evidence)
    assert answer.abstained
    assert "likely enough" in answer.reason
    assert answer.alternatives


def test_the_choice_weighs_what_all_readers_say(engine, evidence):
    """With all readers: their answers, each once, by the chances of the choice."""
    reader = load_reader(engine)
    assert isinstance(reader, ExtractiveReader)
    found = reader.readings(QUESTION, evidence)
    assert set(found) == set(Reading) - {Reading.QUERY, Reading.WHETHER}
    candidates = candidates_of(found)
    chances = reader.choice.chances(QUESTION, evidence, candidates)
    answer = replace_least(reader).read(QUESTION, evidence)
    best = candidates[int(np.argmax(chances))]
    assert (answer.text, answer.confidence) == (best.text, pytest.approx(max(chances)))
    told = [answer.text, *(text for text, _ in answer.alternatives)]
    assert len({text.casefold() for text in told}) == len(told)
    assert all(chance <= answer.confidence for _, chance in answer.alternatives)


def test_tables_are_asked_in_sql_where_no_text_is_linked_for_sure(engine):
    reader = load_reader(engine)
    linked = engine.search(QUESTION, k=10)
    assert max(link.score for link in linked.edges[0].links) >= SURELY_LINKED
    alone = replace(linked, edges=tuple(replace(edge, passage=None, links=()) for edge in linked.edges))
    assert Reading.QUERY not in reader.readings(QUESTION, linked)
    assert Reading.QUERY in reader.readings(QUESTION, alone)


def replace_least(reader: ExtractiveReader) -> ExtractiveReader:
    """The same reader, which answers however unsure it is."""
    return ExtractiveReader(
        reader.ranker, reader.vectors, tables=reader.tables, passages=reader.passages,
        queries=reader.queries, choice=reader.choice, edges=reader.edges,
    )  # fmt: skip


def test_what_the_corpus_is_not_about_is_not_answered(engine, vectors, reader_folder):
    reader = ExtractiveReader.load(vectors, reader_folder, present=AdvancedReadingSettings().present)
    for unknown in ("How do I reset the password of my router ?", "Who directed the film Casablanca ?"):
        answer = reader.read(unknown, engine.search(unknown, k=10))
        assert answer.abstained
        assert "the corpus does not seem to contain the answer" in answer.reason
    known = read_questions(sample_path() / QUESTIONS)
    answers = [reader.read(question.text, engine.search(question.text, k=10)) for question in known]
    assert sum(not answer.abstained for answer in answers) >= ANSWERED


def test_no_evidence(reader):
    assert reader.read(QUESTION, Evidence(QUESTION, ())).reason == "no evidence was found"


def test_features_are_finite_numbers_but_for_what_no_model_has_read(engine, evidence, vectors):
    found = answer_spans(QUESTION, evidence, vectors, edges=10)
    assert found.features.shape == (len(found.spans), len(FEATURES))
    assert np.isfinite(found.features[:, : -len(READ_FEATURES)]).all()
    assert np.isnan(found.features[:, -len(READ_FEATURES) :]).all()


def test_stored_vectors_give_nearly_the_features_of_encoded_ones(engine, evidence, vectors):
    stored = answer_spans(QUESTION, evidence, vectors, edges=3)
    encoded = answer_spans(QUESTION, evidence, EncodedVectors(engine.encoder), edges=3)
    assert stored.spans == encoded.spans
    column = FEATURES.index("edge_similarity")
    assert np.abs(stored.features[:, column] - encoded.features[:, column]).max() < 0.25


def test_equal_answers_are_one(engine, evidence, vectors):
    found = answer_spans(QUESTION, evidence, vectors, edges=10)
    shares = np.full(len(found.spans), 1 / len(found.spans), np.float32)
    ranked = rank_answers(found, shares)
    assert sum(share for _, share in ranked) == pytest.approx(1.0, abs=1e-3)
    assert len({found.text(number).lower() for number, _ in ranked}) == len(ranked)


def test_weights_that_cannot_be_used(reader_folder, tmp_path):
    with pytest.raises(ModelError, match="no model that `helios train` wrote"):
        AnswerRanker.load(tmp_path)
    folder = tmp_path / "reader"
    shutil.copytree(reader_folder, folder)
    assert AnswerRanker.load(folder).calibration == AnswerRanker.load(reader_folder).calibration
    with pytest.raises(ModelError, match="trained with another encoder"):
        AnswerRanker.load(folder, encoder="of another model")
    trees = (folder / TREES).read_text().replace("rank ", "rang ", 1)
    (folder / TREES).write_text(trees)
    with pytest.raises(ModelError, match="damaged, or not the file of its card"):
        AnswerRanker.load(folder)
    change_card(folder, files={})
    with pytest.raises(ModelError, match="'rang'"):
        AnswerRanker.load(folder)
    shutil.copyfile(reader_folder / TREES, folder / TREES)
    change_card(folder, values={})
    with pytest.raises(ModelError, match="lacks the calibration"):
        AnswerRanker.load(folder)


def change_card(folder: Path, **fields: object) -> None:
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(card | fields))


@given(st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=20), st.floats(0.2, 3))
def test_shares_add_up_and_keep_the_order(scores, temperature):
    shares = shares_of(np.array(scores, np.float32), temperature)
    assert float(shares.sum()) == pytest.approx(1.0, abs=1e-4)
    assert shares[int(np.argmax(scores))] == shares.max()


@given(st.floats(0, 1), st.floats(0, 1))
def test_confidence_rises_with_the_share(one, other):
    calibration = Calibration(slope=0.7, intercept=-0.2)
    low, high = sorted((one, other))
    assert 0 < chance(low, calibration) <= chance(high, calibration) < 1


@given(st.integers(1, 40), st.integers(0, 2**31))
def test_ranges_agree_with_loops(length, seed):
    chance_ = np.random.default_rng(seed)
    values = chance_.random((length, 3)).astype(np.float32)
    first = chance_.integers(0, length + 1, 12)
    last = np.minimum(length, first + chance_.integers(0, length + 1, 12))
    maxima, sums = RangeMax(values)(first, last), running(values)
    for at, (low, high) in enumerate(zip(first, last, strict=True)):
        expected = values[low:high].max(axis=0) if high > low else np.zeros(3)
        assert np.allclose(maxima[at], expected)
        assert np.allclose(sums[high] - sums[low], values[low:high].sum(axis=0), atol=1e-4)


@pytest.mark.slow
def test_a_code_and_its_name_are_one_answer(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "jobs.csv").write_text("Job,By,Hours\nFence,KV,5\nGate,MB,2\nRoof,FH,3\nShed,KV,1\n")
    staff = "Short,Name,Ext\nKV,Kasia Venn,12\nMB,Marta Brand,14\nFH,Farah Hobday,15\n"
    (tmp_path / "files" / "staff.csv").write_text(staff)
    build_index(tmp_path / "files", tmp_path / "index")
    with Engine.open(tmp_path / "index") as engine:
        answer = engine.reader.read("who did the roof?", engine.search("who did the roof?"))
        answer = checked(answer, engine.corpus)
    assert "Farah Hobday" in answer.text
    assert answer.support is Support.CHECKED
    assert {text for text, _ in answer.alternatives}.isdisjoint({"FH", "Farah Hobday", "Farah Hobday (FH)"})
