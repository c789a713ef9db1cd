"""The reader of tables over the sample index, with the packaged weights."""

import pytest

from helios.errors import ModelError
from helios.reading.tables.reader import Sheets, TableReader, all_programs, table_facts, table_question


@pytest.fixture(scope="module")
def sheets(engine):
    return Sheets(engine.corpus, engine.encoder)


@pytest.fixture(scope="module")
def reader(sheets):
    return TableReader.load(sheets)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the length of the Rhine?", "1,230"),
        ("Which river flows into the Black Sea?", "Danube"),
    ],
)
def test_a_table_answers(engine, reader, question, text):
    answers = reader.read(question, engine.encoder.encode_question(question), engine.search(question))
    assert answers[0].text == text
    assert answers[0].confidence > 0.3
    for citation in answers[0].citations():
        segment = engine.corpus.segment(engine.corpus.segment_number(citation.segment_id))
        assert segment.cells[citation.column] == citation.text


def test_an_answer_that_several_readers_give_is_said_by_the_surest(engine):
    question = "Which is the longest river of Europe?"
    evidence = engine.search(question)
    assert evidence.edges[0].passage is not None
    vectors = engine.encoder.encode_question(question)
    assert engine.reader.tables.read(question, vectors, evidence)[0].text == "Volga"
    said = {one: answers[0].answer for one, answers in engine.reader.readings(question, evidence).items()}
    surest = max((answer for answer in said.values() if answer.text == "Volga"), key=lambda answer: answer.confidence)
    answer = engine.ask(question)
    assert (answer.text, answer.reader) == ("Volga", surest.reader)


def test_tables_are_kept(sheets, engine):
    table_id = next(iter(engine.corpus.tables.ids()))
    assert sheets.get(table_id) is sheets.get(table_id)


def test_facts_are_of_the_first_tables(engine):
    facts = table_facts(engine.search("length of the Rhine", k=20), tables=2)
    assert len(facts) == 2
    assert [one.rank for _, one in facts] == [0, 1]
    assert facts[0][1].share >= 0.1


def test_damaged_weights_are_refused(sheets, tmp_path):
    with pytest.raises(ModelError):
        TableReader.load(sheets, tmp_path)


def test_other_answers_are_others(engine):
    answer = engine.ask("Which is the longest river of Europe?")
    others = [text.casefold() for text, _ in answer.alternatives]
    assert answer.text == "Volga"
    assert "volga" not in others
    assert len(set(others)) == len(others)


def test_nothing_beyond_a_filter_is_read(engine, reader):
    question = "What is the length of the Rhine?"
    assert not engine.search(question).filtered
    evidence = engine.search(question, where="kind = 'table'")
    assert evidence.filtered
    asked = table_question(question, engine.encoder.encode_question(question))
    found = {one.sheet.table.table_id for one in all_programs(asked, evidence, reader.sheets, reader.columns)}
    assert found <= {edge.segment.segment_id.table_id for edge in evidence.edges if edge.segment}
    assert all(not one.sheet.joined for one in all_programs(asked, evidence, reader.sheets, reader.columns))
