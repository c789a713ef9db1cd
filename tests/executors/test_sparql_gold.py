"""Gold queries through the guarded executor: they run and give their stored answers.

python -m pytest tests/executors/test_sparql_gold.py -s         prints what was measured, of every third of them
HELIOS_GOLD=all python -m pytest tests/executors/test_sparql_gold.py -s                                of all
"""

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from helios.errors import SourceError
from helios.executors.base import Language, Limits, NativeQuery
from helios.executors.rdf import RdfExecutor
from helios.executors.values import Iri, Literal, Value

DATA = Path(__file__).parents[3] / "shared/data"
LIMITS = Limits(timeout=30.0, max_rows=100_000)
WIKIDATA = {"wd": "http://www.wikidata.org/entity/", "wdt": "http://www.wikidata.org/prop/direct/"}


def lines(name: str) -> list[dict[str, Any]]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path}: the evaluation data is not here")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file][:: 1 if os.environ.get("HELIOS_GOLD") == "all" else 3]


def canonical(value: Any) -> Any:
    """A cell to compare by: numbers by value to nine digits, all else as text."""
    match value:
        case bool():
            return float(value)
        case int() | float() | Decimal():
            return float(f"{float(value):.9g}")
        case Iri() | Literal():
            return canonical(value.value)
        case datetime() | date():
            return value.isoformat()
        case str():
            try:
                return float(f"{float(value):.9g}")
            except ValueError:
                return value
    return value


def same(found: list[tuple[Value, ...]], expected: list[list[Any]], *, ordered: bool) -> bool:
    rows = [tuple(map(canonical, row)) for row in found]
    gold = [tuple(map(canonical, row)) for row in expected]
    return rows == gold if ordered else Counter(rows) == Counter(gold)


def report(name: str, milliseconds: list[float], exceptions: list[str]) -> None:
    milliseconds.sort()
    print(
        f"\n{name}: {len(milliseconds)} gold queries, {len(exceptions)} exceptions, "
        f"p50 {milliseconds[len(milliseconds) // 2]:.1f} ms, max {milliseconds[-1]:.1f} ms (guard and worker)"
    )
    print(*exceptions, sep="\n")


def test_spider4sparql() -> None:
    taken, exceptions = [], []
    for database, questions in by_database(lines("spider4sparql/dev.jsonl.gz")):
        kg = DATA / f"spider4sparql/kg/{database}.nt.gz"
        executor = RdfExecutor([kg], prefixes={"": "http://valuenet/ontop/"}, limits=LIMITS, workers=1)
        executor.warm_up()
        for question in questions:
            started = perf_counter()
            try:
                rows = list(executor.execute(NativeQuery(Language.SPARQL, question["sparql"])).rows)
            except SourceError as error:
                exceptions.append(f"{question['id']}: {type(error).__name__}: {error}")
                continue
            taken.append((perf_counter() - started) * 1e3)
            if not same(rows, question["sparql_answers"], ordered=False):
                exceptions.append(f"{question['id']}: {rows[:3]} is not {question['sparql_answers'][:3]}")
        executor.close()
    report("spider4sparql dev", taken, exceptions)
    assert exceptions == []


def test_wikidata_simple_questions() -> None:
    questions = lines("wikidata_sq/dev.jsonl.gz")
    executor = RdfExecutor([DATA / "wikidata_sq/kg.nt.gz"], prefixes=WIKIDATA, limits=LIMITS, workers=1)
    started = perf_counter()
    executor.warm_up()
    print(f"\nopened in {perf_counter() - started:.2f} s")
    taken, exceptions = [], []
    for question in questions:
        started = perf_counter()
        try:
            rows = executor.execute(NativeQuery(Language.SPARQL, question["sparql"])).rows
        except SourceError as error:
            exceptions.append(f"{question['id']}: {type(error).__name__}: {error}")
            continue
        taken.append((perf_counter() - started) * 1e3)
        found = sorted(str(value).removeprefix(WIKIDATA["wd"]) for (value,) in rows)
        if found != sorted(answer["id"] for answer in question["answers"]):
            exceptions.append(f"{question['id']}: {found} is not {question['answers']}")
    executor.close()
    report("wikidata_sq dev", taken, exceptions)
    assert exceptions == []


def by_database(questions: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for database in dict.fromkeys(question["db_id"] for question in questions):
        yield database, [question for question in questions if question["db_id"] == database]
