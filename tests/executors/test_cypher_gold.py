"""Gold queries of property graphs through the guarded executor: they run and give their stored answers.

python -m pytest tests/executors/test_cypher_gold.py -s         prints what was measured, of every third of them
HELIOS_GOLD=all python -m pytest tests/executors/test_cypher_gold.py -s                                of all

Where ORDER BY … LIMIT cuts ties, the stored rows are one right answer of several: those queries run again without
their limits, and the stored rows and ours must both be among the rows of that.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from helios.evaluation.sources.agreement import Agreement, agreement, comparable_row
from helios.evaluation.sources.loaders.shared import PARTS
from helios.evaluation.sources.match import value_key
from helios.evaluation.sources.questions import SourceQuestion
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.cypher import syntax as s
from helios.executors.cypher.parser import parse
from helios.executors.cypher.render import Renderer
from helios.executors.property_graph import PropertyGraphExecutor
from helios.sources.graph_import import import_graph

DATA = Path(__file__).parents[3] / "shared/data/graphs"
LIMITS = Limits(timeout=60.0, max_rows=100_000, max_bytes=2**28)
GRAPHS = ("movies", "northwind", "stackoverflow2")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/graphs")


@pytest.fixture(scope="module")
def executors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PropertyGraphExecutor]]:
    folder = tmp_path_factory.mktemp("graphs")
    opened = {}
    for graph in GRAPHS:
        source = DATA / graph
        import_graph(source / "nodes.jsonl.gz", source / "edges.jsonl.gz", folder / f"{graph}.ladybug")
        opened[graph] = PropertyGraphExecutor(folder / f"{graph}.ladybug", LIMITS, workers=1)
    yield opened
    for executor in opened.values():
        executor.close()


@pytest.mark.slow
def test_gold_queries_give_their_stored_answers(executors: dict[str, PropertyGraphExecutor]) -> None:
    questions = list(PARTS["graphs"](DATA, None))[:: 1 if os.environ.get("HELIOS_GOLD") == "all" else 3]
    found = {question.question_id: judge(executors[question.source], question) for question in questions}
    print(f"\n{len(questions)} gold queries: {dict(Counter(found.values()))}")
    assert [name for name, outcome in found.items() if outcome == Agreement.MISMATCH] == []


def judge(executor: PropertyGraphExecutor, question: SourceQuestion) -> str:
    """How a gold query's result compares with its stored answer."""
    cypher, answers = question.gold_query or "", question.gold_answers or ()
    rows = executor.execute(NativeQuery(Language.CYPHER, cypher)).rows
    verdict = agreement(question, rows, answers)
    if verdict is not Agreement.TIES:
        return verdict
    unlimited = executor.execute(NativeQuery(Language.CYPHER, Renderer().query(without_limits(parse(cypher)))))
    stored, ours, whole = (
        Counter(tuple(map(value_key, comparable_row(row, frozenset(question.flags)))) for row in some)
        for some in (answers, rows, unlimited.rows)
    )
    return verdict if stored <= whole and ours <= whole else "ties, not among the rows without limits"


def without_limits(query: s.Query) -> s.Query:
    """The query with every LIMIT taken away."""
    parts = tuple(
        tuple(replace(clause, limit=None) if isinstance(clause, s.Projection) else clause for clause in part)
        for part in query.parts
    )
    return replace(query, parts=parts)
