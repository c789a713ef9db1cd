"""Tasks of every layout: what is relevant, what is context, and what never is."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from helios.errors import EvaluationError
from helios.evaluation.augment.purchases import product_to_product, review_to_product
from helios.evaluation.augment.stackexchange import any_answer, best_answer
from helios.evaluation.augment.tables import open_tables
from helios.evaluation.augment.tasks import RowQuestion, SplitBy, Task, folds, split

FIRST, SECOND = "100", "200"
"""The first user's questions, the 10th of the site months after the first."""


def by_id(task: Task, question_id: str) -> RowQuestion:
    return next(one for one in task.questions if one.question_id == question_id)


def test_any_answer_in_every_layout(site: Path):
    with open_tables(site) as tables:
        task = any_answer(tables)
    assert len(task.questions) == 20 and len(task.documents) == 40
    first, second = by_id(task, FIRST), by_id(task, SECOND)
    assert first.text == "Which brake pads for case 0?"
    assert set(second.qrels) >= {"201"} and task.documents["201"].startswith("Take these")
    assert first.context["body"] == ("I need brake pads & more, case 0.",)
    assert set(first.context["tags"]) == {"brake pads", "help"}
    assert first.context["about_me"] == ("I am user 0.",)
    assert "earlier_questions" not in first.context
    assert second.context["earlier_questions"] == (
        "Which brake pads for case 0?\nI need brake pads & more, case 0.",
    ) or second.context["earlier_questions"][0].startswith("Which brake pads for case 0?")
    assert second.context["accepted_answers"] == ("Take these brake pads: number 0.",)
    assert second.context["earlier_comments"] == ("late remark 0",)


def test_nothing_later_than_the_question_and_nothing_of_its_answers(site: Path):
    with open_tables(site) as tables:
        task = any_answer(tables)
        paper = any_answer(tables, later=True)
    for one in task.questions:
        texts = [text for own in one.context.values() for text in own]
        number = one.text.removesuffix("?").rpartition(" ")[2]
        assert not any(f"number {number}." in text or text == f"late remark {number}" for text in texts)
        assert not set(one.context) & {"question_comments", "answer_comments"}
    assert by_id(paper, FIRST).context["question_comments"] == ("late remark 0",)


def test_a_row_from_the_future_changes_nothing(site_file: Path):
    with open_tables(site_file) as tables:
        before = any_answer(tables)
    with closing(sqlite3.connect(site_file)) as connection:
        connection.execute(
            "INSERT INTO posts (id, post_type_id, creation_date, title, body, owner_user_id, score) "
            "VALUES (9000, 1, '2030-01-01T00:00:00', 'leak', 'leak', 0, 1)"
        )
        connection.execute("INSERT INTO comments VALUES (900, 100, 0, '2030-01-01T00:00:00', 'leak')")
        connection.execute("INSERT INTO votes VALUES (900, 102, 1, '2030-01-01T00:00:00', NULL)")
        connection.commit()
    with open_tables(site_file) as tables:
        assert any_answer(tables).questions == before.questions


def test_best_answer_is_the_accepted_one(site: Path):
    with open_tables(site) as tables:
        task = best_answer(tables)
    assert {tuple(one.qrels.items()) for one in task.questions} == {
        ((str(int(one.question_id) + 1), 1),) for one in task.questions
    }
    assert task.measures[0] == "MRR"


def test_a_column_is_capped_by_the_seed(site: Path):
    with open_tables(site) as tables:
        one, again, other = (any_answer(tables, cap=1, seed=seed) for seed in (3, 3, 4))
    assert one.questions == again.questions != other.questions
    assert all(len(own) == 1 for question in one.questions for own in question.context.values())


def test_users_are_never_on_two_sides(site: Path):
    with open_tables(site) as tables:
        questions = any_answer(tables).questions
    found = folds(questions, 3, validation=0.3, seed=1)
    assert sorted(one.question_id for own in found for one in own.test) == sorted(one.question_id for one in questions)
    for own in found:
        parts = [{one.user_id for one in part} for part in (own.train, own.validation, own.test)]
        assert not parts[0] & parts[1] and not parts[0] & parts[2] and not parts[1] & parts[2]
    by_time = split(questions, SplitBy.TIME, shares=(0.5, 0.25, 0.25))
    assert max(one.time for one in by_time.train) < min(one.time for one in by_time.test)
    with pytest.raises(EvaluationError, match="at least 2"):
        folds(questions, 1)
    with pytest.raises(EvaluationError, match="no question is for validation"):
        split(questions[:1], SplitBy.TIME)


def test_reviews_and_what_is_bought_later(amazon: Path):
    with open_tables(amazon) as tables:
        task, products = review_to_product(tables), product_to_product(tables)
    assert {one.part for one in task.questions} == {"train", "validation", "test"}
    first = next(one for one in task.questions if one.text == "I liked brake pads 0" and one.user_id == "C0")
    assert set(first.qrels) == {"B1", "B2", "B3"} and "earlier_review" not in first.context
    assert set(first.context["product_category"]) == {"Books", "brake pads"}
    third = next(one for one in task.questions if one.user_id == "C0" and one.text.endswith("2"))
    assert set(third.qrels) == {"B3"}
    assert set(third.context["earlier_review"]) == {"I liked brake pads 0", "I liked qubit states 1"}
    described = next(one for one in products.questions if one.user_id == "C0")
    assert described.text == "A book about brake pads, part 0." and described.context["review"]
    assert split(task.questions, SplitBy.GIVEN).test


def test_shirts_and_what_is_bought_later(shirts: Path):
    with open_tables(shirts) as tables:
        task = product_to_product(tables)
    assert {one.part for one in task.questions} == {"train", "validation", "test"}
    last = next(one for one in task.questions if one.user_id == "c0" and set(one.qrels) == {"103"})
    assert len(last.context["earlier_description"]) == 2 and last.context["customer_age"] == ("age 20",)
    assert last.context["product_sectionname"] == ("section_name 2",)


def test_other_files_are_refused_with_what_is_lacking(tmp_path: Path):
    with pytest.raises(EvaluationError, match="no such file"):
        open_tables(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EvaluationError, match="expected .parquet, .csv or .xml"):
        open_tables(tmp_path / "empty")
    (tmp_path / "bad.sqlite").write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(EvaluationError, match="cannot be read as tables"):
        open_tables(tmp_path / "bad.sqlite")
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "Posts.xml").write_text("<posts><row Id='1'")
    with pytest.raises(EvaluationError, match="not the XML"):
        open_tables(tmp_path / "dump")
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "posts.csv").write_text("Id,Title\n1,x\n")
    with open_tables(tmp_path / "csv") as tables, pytest.raises(EvaluationError, match="posts.posttypeid.*comments"):
        any_answer(tables)
