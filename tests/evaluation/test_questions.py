"""Reading questions: what is accepted, and what the messages say."""

import gzip
import json
from pathlib import Path

import pytest

from helios.errors import EvaluationError, RecordError
from helios.evaluation.edges import EdgeId
from helios.evaluation.measures import distinct_gold, linked_gold
from helios.evaluation.questions import read_questions
from helios.types import SegmentId

GOOD = {
    "id": "q1", "question": "Where?", "answer": "Bern", "table": "t",
    "gold": [
        {"cell": [2, 1], "passage": "/wiki/Bern", "answer_in": "passage"},
        {"cell": [2, 3], "passage": "/wiki/Bern", "answer_in": "passage"},
        {"cell": [0, 0], "passage": None, "answer_in": "table"},
    ],
}  # fmt: skip


def write(tmp_path, *records, name="questions.jsonl"):
    path = tmp_path / name
    text = "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["questions.jsonl", "questions.jsonl.gz"])
def test_a_question_and_its_gold_edges(tmp_path, name):
    other = {"id": "q2", "question": "Who?", "answer": ["A", "B"]}
    first, second = read_questions(write(tmp_path, GOOD, "", other, name=name))
    assert first.answers == ("Bern",)
    assert first.table_id == "t"
    assert first.gold_edges == (EdgeId(SegmentId("t", 2), "/wiki/Bern"), EdgeId(SegmentId("t", 0), None))
    assert second.answers == ("A", "B")
    assert (second.table_id, second.gold_edges) == (None, ())


def test_gold_may_name_its_own_table_or_a_passage_alone(tmp_path):
    gold = [{"cell": [1, 0], "passage": None, "table": "other"}, {"cell": None, "passage": "p"}]
    (question,) = read_questions(write(tmp_path, GOOD | {"gold": gold}))
    assert question.gold_edges == (EdgeId(SegmentId("other", 1), None), EdgeId(None, "p"))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "expected an object, found list"),
        ({"id": "q", "question": "?"}, "field 'answer' is missing"),
        (GOOD | {"question": " "}, "field 'question' must be text"),
        (GOOD | {"id": 7}, "field 'id' must be text"),
        (GOOD | {"answer": []}, "string or a list of strings"),
        (GOOD | {"answer": 1990}, "string or a list of strings"),
        (GOOD | {"table": 3}, "field 'table'"),
        (GOOD | {"gold": "x"}, "field 'gold' must be a list"),
        (GOOD | {"gold": ["x"]}, "must be an object"),
        (GOOD | {"gold": [{"cell": [1], "passage": "p"}]}, "gold cell must be"),
        (GOOD | {"gold": [{"cell": [-1, 0], "passage": "p"}]}, "gold cell must be"),
        (GOOD | {"gold": [{"cell": [1, 0], "passage": 5}]}, "gold passage must be"),
        (GOOD | {"gold": [{"cell": None, "passage": None}]}, "needs a cell or a passage"),
        (GOOD | {"table": None}, "needs the id of its table"),
        (GOOD, "appears twice"),
    ],
)
def test_bad_records_name_file_line_and_reason(tmp_path, record, reason):
    path = write(tmp_path, GOOD, record)
    with pytest.raises(RecordError, match=reason) as caught:
        read_questions(path)
    assert str(caught.value).startswith(f"{path}:2: ")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(EvaluationError, match="does not exist"):
        read_questions(tmp_path / "nowhere.jsonl")
    with pytest.raises(EvaluationError, match="holds no questions"):
        read_questions(write(tmp_path, "", name="empty.jsonl"))
    path = write(tmp_path, *[GOOD | {"id": str(n)} for n in range(500)], name="cut.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match="cannot be read on"):
        read_questions(path)
    (tmp_path / "latin.jsonl").write_bytes('{"id": "é"}'.encode("latin-1"))
    with pytest.raises(RecordError, match="cannot be read on"):
        read_questions(tmp_path / "latin.jsonl")


OTTQA = Path(__file__).parents[2].parent / "shared" / "data" / "ottqa9k" / "dev.jsonl.gz"


@pytest.mark.skipif(not OTTQA.exists(), reason="../shared/data/ottqa9k is not here")
def test_ottqa_dev_questions():
    questions = read_questions(OTTQA)
    gold = [edge for question in questions for edge in question.gold_edges]
    assert len(questions) == 1037
    assert len(gold) == 2766
    assert sum(len(distinct_gold(question.gold_edges)) for question in questions) == 2600
    assert sum(not linked_gold(question.gold_edges) for question in questions) == 171
