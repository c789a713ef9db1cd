"""Lessons of human and synthetic questions: kept, resumed, and never of a table that is held out."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from helios.engine import Engine
from training import mining
from training.errors import TrainingError
from training.holdout import is_held_out
from training.mining import LessonData, divide, epoch_order, gather_lessons, read_asked
from training.reranker_lessons import Lesson, load_lessons

HELD_OUT = 0.4


def question(number: int, table: str, text: str, cell: str) -> str:
    gold = [{"cell": [0, 0], "passage": None}]
    return json.dumps({"id": f"q{number}", "question": text, "answer": cell, "table": table, "gold": gold})


@pytest.fixture(scope="module")
def files(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> LessonData:
    """One human and one synthetic question for every table of the sample."""
    folder = tmp_path_factory.mktemp("questions")
    tables = [engine.corpus.tables[n] for n in range(len(engine.corpus.tables))]
    for kind, words in (("human", "Who or what comes first in"), ("synthetic", "What is listed at the top of")):
        lines = [
            question(n, table.table_id, f"{words} {table.title} {table.section} ?", table.rows[0][0])
            for n, table in enumerate(tables)
        ]
        (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "splits.json").write_text(json.dumps({"train": [table.table_id for table in tables], "dev": []}))
    return LessonData(
        questions=(folder / "human.jsonl",), synthetic=(folder / "synthetic.jsonl",), held_out=HELD_OUT,
        splits=folder / "splits.json",
    )  # fmt: skip


def test_no_synthetic_question_is_about_a_held_out_table(files: LessonData) -> None:
    asked = read_asked(files)
    human = [one for one, is_synthetic in asked if not is_synthetic]
    made = [one for one, is_synthetic in asked if is_synthetic]
    assert 0 < len(made) < len(human)
    assert not any(is_held_out(one.table_id or "", share=HELD_OUT) for one in made)


def test_a_table_of_another_split_is_refused(files: LessonData, tmp_path: Path) -> None:
    tables = json.loads(files.splits.read_text())["train"]  # type: ignore[union-attr]
    (tmp_path / "splits.json").write_text(json.dumps({"train": tables[1:], "dev": tables[:1]}))
    with pytest.raises(TrainingError, match="2 questions are about tables outside the train split, the first is q0"):
        read_asked(files.model_copy(update={"splits": tmp_path / "splits.json"}))
    with pytest.raises(TrainingError, match="no readable split 'train'"):
        read_asked(files.model_copy(update={"splits": tmp_path / "absent.json"}))


def test_mining_goes_on_where_a_kill_stopped(
    files: LessonData, sample_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mining, "CHUNK", 4)
    data = files.model_copy(update={"index": sample_index})
    path = tmp_path / "lessons.parquet"
    mined, real = [], mining._mined

    def counted(*arguments, stop: int | None = None):
        if stop is not None and len(mined) == stop:
            raise KeyboardInterrupt
        mined.append(1)
        return real(*arguments)

    monkeypatch.setattr(mining, "_mined", lambda *arguments: counted(*arguments, stop=1))
    with pytest.raises(KeyboardInterrupt):
        gather_lessons(data, "edge", path, ranking=None, depth=10)
    assert not path.exists()
    monkeypatch.setattr(mining, "_mined", counted)
    lessons = gather_lessons(data, "edge", path, ranking=None, depth=10)
    assert len(mined) == -(-len(read_asked(data)) // 4)
    assert {lesson.synthetic for lesson in lessons} == {False, True}
    assert all(lesson.answers for lesson in lessons)
    assert load_lessons(path) == lessons == gather_lessons(data, "edge", path, ranking=None, depth=10)
    assert [entry.name for entry in tmp_path.iterdir()] == ["lessons.parquet"]


def test_lessons_of_edges_teach_a_node_reranker(files: LessonData, sample_index: Path, tmp_path: Path) -> None:
    data = files.model_copy(update={"index": sample_index})
    of_edges = gather_lessons(data, "edge", tmp_path / "edges.parquet", ranking=None, depth=10)
    mined = gather_lessons(data, "node", tmp_path / "nodes.parquet", ranking=None, depth=10)
    assert of_edges != mined == gather_lessons(data, "node", tmp_path / "edges.parquet", ranking=None, depth=10)
    with pytest.raises(TrainingError, match=r"lessons are of edges: set data\.index"):
        gather_lessons(LessonData(), "node", tmp_path / "edges.parquet", ranking=None, depth=10)


def test_what_to_mine_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"set data\.index and data\.questions, or lessons"):
        gather_lessons(LessonData(), "edge", tmp_path / "x.parquet", ranking=None, depth=10)


def test_an_epoch_has_all_human_lessons_and_a_share_of_the_others() -> None:
    human = [Lesson("q", f"t{n}", 1, (), ()) for n in range(10)]
    made = [replace(lesson, synthetic=True) for lesson in human * 5]
    lessons = human + made
    order = epoch_order(lessons, random.Random(1), synthetic_share=1.5)
    assert len(order) == 25 == len(set(order))
    assert set(range(10)) < set(order)
    assert order == epoch_order(lessons, random.Random(1), synthetic_share=1.5)
    assert len(epoch_order(made, random.Random(1), synthetic_share=0.1)) == 50
    learned, measured = divide(lessons, LessonData(held_out=HELD_OUT))
    assert not any(lesson.synthetic for lesson in measured)
    assert not any(is_held_out(lesson.table, share=HELD_OUT) for lesson in learned)
    with pytest.raises(TrainingError, match="none of the 0 lessons"):
        divide([], LessonData(held_out=HELD_OUT))


def test_two_halves_hold_each_other_out() -> None:
    lessons = [Lesson("q", f"t{n}", 1, (), ()) for n in range(50)]
    first, second = (divide(lessons, LessonData(held_out=0.5, held_from=start)) for start in (0.0, 0.5))
    assert first == second[::-1]
    assert 10 < len(first[0]) < 40
