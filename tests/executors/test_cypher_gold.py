"""Gold queries of property graphs through the guarded executor: all of them run and give their stored answers.

python -m pytest tests/executors/test_cypher_gold.py -s         prints what was measured

Where ORDER BY … LIMIT cuts ties, the stored rows are one right answer of several: those queries run again without
their limits, and the stored rows and ours must both be among the rows of that.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.cypher import syntax as s
from helios.executors.cypher.parser import parse
from helios.executors.cypher.render import Renderer
from helios.executors.property_graph import PropertyGraphExecutor
from helios.sources.graph_answers import Agreement, canonical, compare_answers
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


def test_gold_queries_give_their_stored_answers(executors: dict[str, PropertyGraphExecutor]) -> None:
    found: Counter[str] = Counter()
    wrong = []
    with gzip.open(DATA / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    for question in questions:
        outcome = judge(executors[question["database"]], question)
        found[outcome] += 1
        if outcome == Agreement.DIFFERENT:
            wrong.append((question["id"], question["cypher"]))
    print(f"\n{len(questions)} gold queries: {dict(found)}")
    assert wrong == []


def judge(executor: PropertyGraphExecutor, question: dict[str, Any]) -> str:
    """How a gold query's result compares with its stored answer."""
    cypher, answers = question["cypher"], question["answers"]
    result = executor.execute(NativeQuery(Language.CYPHER, cypher))
    if len(answers) < question["row_count"]:  # only the first rows were stored
        stored = Counter(tuple(map(canonical, row)) for row in answers)
        whole = Counter(tuple(map(canonical, row)) for row in result.rows)
        return "stored in part" if len(result) == question["row_count"] and stored <= whole else Agreement.DIFFERENT
    agreement = compare_answers(cypher, result, answers)
    if agreement != Agreement.TIES:
        return agreement
    unlimited = executor.execute(NativeQuery(Language.CYPHER, Renderer().query(without_limits(parse(cypher)))))
    whole = Counter(tuple(map(canonical, row)) for row in unlimited.rows)
    both = (Counter(tuple(map(canonical, row)) for row in rows) for rows in (answers, result.rows))
    return agreement if all(rows <= whole for rows in both) else "ties, not among the rows without limits"


def without_limits(query: s.Query) -> s.Query:
    """The query with every LIMIT taken away."""
    parts = tuple(
        tuple(replace(clause, limit=None) if isinstance(clause, s.Projection) else clause for clause in part)
        for part in query.parts
    )
    return replace(query, parts=parts)
