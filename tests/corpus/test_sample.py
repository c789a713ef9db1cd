"""The sample corpus is consistent: links, questions and answers fit together."""

import json

import pytest

from helios.corpus import CorpusStore, CorpusWriter, read_corpus
from helios.corpus.sample import QUESTIONS, sample_path
from helios.types import SegmentId, TableKind


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sample")
    with CorpusWriter(directory) as writer:
        for record in read_corpus(sample_path()):
            writer.add(record)
    return CorpusStore.open(directory)


@pytest.fixture(scope="module")
def questions():
    lines = (sample_path() / QUESTIONS).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_size_and_kinds(store, questions):
    assert len(store.tables) >= 12
    assert len(store.passages) >= 60
    assert len(questions) >= 20
    assert {table.kind for table in store.tables} == set(TableKind)
    assert len({question["id"] for question in questions}) == len(questions)


def test_every_link_leads_to_a_passage_and_every_passage_is_linked(store):
    linked = {link.passage_id for table in store.tables for link in table.hyperlinks}
    assert linked - set(store.passages.ids()) == set()
    unlinked = set(store.passages.ids()) - linked
    assert unlinked == set()


def test_every_answer_is_in_its_gold_edge(store, questions):
    for question in questions:
        table = store.tables.get(question["table"])
        assert question["gold"], question["id"]
        for gold in question["gold"]:
            row, column = gold["cell"]
            edge = (row, column, gold["passage"])
            links = {(link.row, link.column, link.passage_id) for link in table.hyperlinks}
            assert edge in links, question["id"]
            segment = store.segment(store.segment_number(SegmentId(table.table_id, row)))
            passage = store.passages.get(gold["passage"])
            where = passage.text if gold["answer_in"] == "passage" else " | ".join(segment.cells)
            assert question["answer"] in where, question["id"]


def test_most_questions_need_row_and_passage_and_some_need_abbreviations(store, questions):
    from_passages = [question for question in questions if question["gold"][0]["answer_in"] == "passage"]
    assert len(from_passages) > len(questions) / 2
    abbreviated = 0
    for question in questions:
        row, column = question["gold"][0]["cell"]
        cell = store.tables.get(question["table"]).rows[row][column]
        abbreviated += cell.isupper() and len(cell) <= 3
    assert abbreviated >= 3
