"""Spider4SPARQL, SimpleQuestions over Wikidata, QALD and LC-QuAD: questions over RDF graphs, as they are published.

- Spider4SPARQL: `dev_nl_sparql.csv` with kg_name, question, query; the source is the name of the graph.
- SimpleQuestions over Wikidata: `annotated_wd_data_*.txt`, subject, property, object, question with tabs between;
  a property `R…` is the inverse of `P…`.
- QALD-9 and QALD-10: an object with `questions`, each with texts by language, a query and answers in the form of the
  SPARQL results format.
- LC-QuAD 1: an array with corrected_question and sparql_query; LC-QuAD 2: question and sparql_wikidata.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from helios.errors import RecordError
from helios.evaluation.sources.loaders.base import (
    WIKIDATA_PREFIXES,
    Rejects,
    first_existing,
    questions_of,
    with_prefixes,
)  # fmt: skip
from helios.evaluation.sources.loaders.records import (
    Record,
    any_records,
    id_field,
    json_array,
    separated,
    text_field,
)  # fmt: skip
from helios.evaluation.sources.match import is_ordered
from helios.evaluation.sources.questions import Row, SourceQuestion
from helios.executors.base import Language
from helios.executors.values import Iri, Literal

SPIDER4SPARQL_PREFIXES = {"": "http://valuenet/ontop/"}
TRIPLE = ("subject", "property", "object", "question")
XSD = "http://www.w3.org/2001/XMLSchema#"
INTEGERS = {f"{XSD}{name}" for name in ("integer", "int", "long", "short", "nonNegativeInteger", "positiveInteger")}
FRACTIONS = {f"{XSD}{name}" for name in ("decimal", "double", "float")}


def load_spider4sparql(path: Path, *, rejects: Rejects | None = None) -> Iterator[SourceQuestion]:
    """Questions of the repository, of its folder of pairs, or of one CSV file."""
    names = ("dev_nl_sparql.csv", "dev/dev_nl_sparql.csv", "nl_sparql_pairs/dev/dev_nl_sparql.csv")
    file = first_existing(path, *names) if path.is_dir() else path
    return questions_of(file, separated(file), _spider4sparql, rejects)


def load_simple_questions(
    path: Path, *, source: str = "wikidata", rejects: Rejects | None = None
) -> Iterator[SourceQuestion]:
    """Questions of the folder (its answerable test questions) or of one file; `source` is the name of the graph.

    The object is the one answer that is known; a graph may hold others, so the gold query has to be run.
    """
    names = tuple(f"annotated_wd_data_{name}.txt" for name in ("test_answerable", "test", "valid_answerable", "valid"))
    file = first_existing(path, *names) if path.is_dir() else path
    return questions_of(file, separated(file, TRIPLE), partial(_simple, source), rejects)


def load_qald(
    path: Path, *, source: str = "wikidata", language: str = "en", rejects: Rejects | None = None
) -> Iterator[SourceQuestion]:
    """Questions of a QALD file, in one language."""
    return questions_of(path, json_array(path, member="questions"), partial(_qald, source, language), rejects)


def load_lcquad(path: Path, *, source: str = "", rejects: Rejects | None = None) -> Iterator[SourceQuestion]:
    """Questions of a file of LC-QuAD 1 (over DBpedia) or 2 (over Wikidata)."""
    return questions_of(path, any_records(path), partial(_lcquad, source), rejects)


def _spider4sparql(path: Path, line: int, record: Record) -> SourceQuestion:
    query = text_field(path, line, record, "query")
    return SourceQuestion(
        question_id=f"spider4sparql-{path.name.partition('_')[0]}-line{line}",
        text=text_field(path, line, record, "question"),
        paradigm=Language.SPARQL,
        source=text_field(path, line, record, "kg_name").strip(),
        gold_query=with_prefixes(query, SPIDER4SPARQL_PREFIXES),
        ordered=is_ordered(query),
        dataset="spider4sparql",
    )


def _simple(source: str, path: Path, line: int, record: Record) -> SourceQuestion:
    subject, name = (text_field(path, line, record, field) for field in TRIPLE[:2])
    if not re.fullmatch(r"Q\d+", subject) or not re.fullmatch(r"[PR]\d+", name):
        raise RecordError(
            path, line, f"expected identifiers such as Q42 and P31 or R31, found {subject!r} and {name!r}"
        )
    triple = f"?answer wdt:P{name[1:]} wd:{subject}" if name[0] == "R" else f"wd:{subject} wdt:{name} ?answer"
    return SourceQuestion(
        question_id=f"simplequestions-{path.name.removesuffix('.txt').removeprefix('annotated_wd_data_')}-{line}",
        text=text_field(path, line, record, "question"),
        paradigm=Language.SPARQL,
        source=source,
        gold_query=with_prefixes(f"SELECT DISTINCT ?answer WHERE {{ {triple} }}", WIKIDATA_PREFIXES),
        dataset="simplequestions",
    )


def _qald(source: str, language: str, path: Path, line: int, record: Record) -> SourceQuestion:
    texts = record.get("question")
    spoken = [text for text in texts if isinstance(text, dict)] if isinstance(texts, list) else []
    said = [text["string"] for text in spoken if text.get("language") == language and text.get("string")]
    if not said:
        raise RecordError(path, line, f"the question is not asked in {language!r}")
    query = record.get("query")
    sparql = query.get("sparql") if isinstance(query, dict) else None
    if not isinstance(sparql, str) or not sparql.strip():
        raise RecordError(path, line, "field 'query' holds no SPARQL")
    kind = record.get("answertype")
    return SourceQuestion(
        question_id=f"{path.name.partition('.')[0]}-{id_field(path, line, record, 'id')}",
        text=said[0],
        paradigm=Language.SPARQL,
        source=source,
        gold_query=with_prefixes(sparql, WIKIDATA_PREFIXES),
        gold_answers=_bindings(path, line, record.get("answers")),
        ordered=is_ordered(sparql),
        flags=(kind,) if isinstance(kind, str) else (),
        dataset="qald",
    )


def _lcquad(source: str, path: Path, line: int, record: Record) -> SourceQuestion:
    first = "corrected_question" in record
    prefix = "lcquad1" if first else "lcquad2"
    if first:
        text, query = (
            text_field(path, line, record, *names) for names in (("corrected_question",), ("sparql_query", "query"))
        )
    else:
        text = text_field(path, line, record, "question", "paraphrased_question", "NNQT_question")
        query = text_field(path, line, record, "sparql_wikidata")
    return SourceQuestion(
        question_id=f"{prefix}-{id_field(path, line, record, '_id' if first else 'uid')}",
        text=re.sub(r"[{}<>]", "", text) if not first else text,
        paradigm=Language.SPARQL,
        source=source or ("dbpedia" if first else "wikidata"),
        gold_query=query if first else with_prefixes(query, WIKIDATA_PREFIXES),
        ordered=is_ordered(query),
        dataset=prefix,
    )


def _bindings(path: Path, line: int, answers: Any) -> tuple[Row, ...] | None:
    """Rows of answers in the SPARQL results format; None for no answers at all."""
    if not answers:
        return None
    result = answers[0] if isinstance(answers, list) else answers
    if not isinstance(result, dict):
        raise RecordError(path, line, "field 'answers' must hold objects")
    if "boolean" in result:
        return ((bool(result["boolean"]),),)
    results = result.get("results")
    bindings = results.get("bindings") if isinstance(results, dict) else None
    if bindings is None:
        return ()
    head = result.get("head")
    names = list((head or {}).get("vars") or dict.fromkeys(name for row in bindings for name in row))
    return tuple(tuple(rdf_value(row[name]) if name in row else None for name in names) for row in bindings)


def rdf_value(term: dict[str, Any]) -> Any:
    """A term of the SPARQL results format as a value: numbers as numbers, resources as IRIs."""
    text, datatype = str(term.get("value", "")), str(term.get("datatype", ""))
    if term.get("type") == "uri":
        return Iri(text)
    if term.get("type") == "bnode":
        return Iri(f"_:{text}")
    try:
        if datatype in INTEGERS:
            return int(text)
        if datatype in FRACTIONS:
            return float(text)
    except ValueError:
        return Literal(text, datatype)
    if datatype == f"{XSD}boolean":
        return text in ("true", "1")
    return Literal(text, datatype, str(term["xml:lang"])) if term.get("xml:lang") else text
