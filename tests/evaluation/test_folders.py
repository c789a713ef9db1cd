"""Questions about folders: what counts as right, and the figures of a run over a real index."""

import json

import pytest
from typer.testing import CliRunner

from helios.cli import build_app
from helios.errors import EvaluationError
from helios.evaluation.folders import is_right, read_folder_questions, summary


@pytest.mark.parametrize(
    ("answer", "items", "right"),
    [
        ("12 March 2024", [["12 March 2024", "2024-03-12"]], True),
        ("2024-03-12", [["12 March 2024", "2024-03-12"]], True),
        ("1,223.60", [["£1,223.60"]], True),
        ("£1223.6", [["1223.60"]], True),
        ("12", [["12 kg"]], True),
        ("12", [["120"]], False),
        ("12", [["£12", "CHF12"]], True),
        ("CHF12", [["12 francs"]], True),
        ("ca. 12 kg", [["12"]], True),
        ("-3", [["−3 °C"]], True),
        ("P03", [["3"]], False),  # a code is no number
        ("C1", [["D1"]], False),
        ("30 October", [["30 September"]], False),
        ("30", [["30 de julio"]], False),
        ("30. Oktober", [["30. September"]], False),
        ("3rd May", [["3rd June"]], False),
        ("Jun 3", [["Jul 3"]], False),
        ("共3个", [["3"]], True),
        ("kr500", [["500"]], True),
        ("Kasia Venn (KV)", [["KV"]], True),  # a code with its name
        ("Kasia Venn (KV)", [["Kasia Venn"]], True),
        ("Kasia Venn (KV)", [["Marta Brand"]], False),
        ("the Linden Ltd", [["Linden Ltd"]], True),
        ("Linden", [["Linden Ltd"]], False),
        ("Linden Ltd of Ashby in the north of it all", [["Linden Ltd"]], False),
        ("Ann, Bo", [["Bo"], ["Ann", "A. Lee"]], True),
        ("Ann and Bo", [["Ann"], ["Bo"]], True),
        ("Ann", [["Ann"], ["Bo"]], False),
        ("Ann, Bo, Cy", [["Ann"], ["Bo"]], False),
        ("九十八", [["九十八"]], True),
        ("", [["Ann"]], False),
    ],
)
def test_what_is_right(answer, items, right):
    assert is_right(answer, items) is right


QUESTIONS = [
    {"id": "1", "question": "How long is the Rhine?", "kind": "lookup", "answer": [["1,230 km", "1230"]],
     "evidence": [{"file": "tables.jsonl", "contains": ["Rhine"]}]},
    {"id": "2", "question": "What shoe size has the Rhine?", "kind": "unanswerable", "answer": [], "evidence": []},
]  # fmt: skip


@pytest.fixture
def worlds(tmp_path, sample_index):
    (tmp_path / "worlds" / "rivers").mkdir(parents=True)
    lines = "".join(json.dumps(question) + "\n" for question in QUESTIONS)
    (tmp_path / "worlds" / "rivers" / "questions.jsonl").write_text(lines)
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "rivers").symlink_to(sample_index)
    return tmp_path


def test_the_command_measures_a_folder(worlds):
    out = worlds / "outcomes.jsonl"
    arguments = [
        "eval",
        "folders",
        str(worlds / "worlds"),
        "--indexes",
        str(worlds / "indexes"),
        "--out",
        str(out),
        "--json",
    ]
    result = CliRunner().invoke(build_app(), arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    outcomes = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["id"] for one in outcomes] == ["1", "2"]
    assert outcomes[0]["rank"] is not None
    assert found["all"]["questions"] == 2
    assert found["worlds"]["rivers"] == found["all"]
    assert found["kinds"]["unanswerable"]["refused"] in (0.0, 1.0)
    assert found["all"]["right"] == float(outcomes[0]["right"])


def test_a_folder_without_questions_is_an_error(worlds):
    result = CliRunner().invoke(build_app(), ["eval", "folders", str(worlds / "indexes"), "--indexes", str(worlds)])
    assert result.exit_code == 1
    assert "no folder here has a questions.jsonl" in result.output


def test_a_line_that_is_no_question_is_named(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps(QUESTIONS[0]) + "\n{}\n")
    with pytest.raises(EvaluationError, match=r"questions\.jsonl:2"):
        read_folder_questions(path)
    path.write_text(json.dumps(QUESTIONS[0] | {"question": "How\u2028long?"}, ensure_ascii=False))
    assert [one.question for one in read_folder_questions(path)] == ["How\u2028long?"]


def test_a_summary_of_nothing_has_no_shares():
    assert summary([])["right"] is None
