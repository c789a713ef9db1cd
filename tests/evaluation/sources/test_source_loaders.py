"""Every layout, read from small files of our own in the form that the data sets have."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helios.errors import EvaluationError, RecordError
from helios.evaluation.sources.loaders import Layout, load_questions, unknown_sources
from helios.evaluation.sources.loaders.base import WIKIDATA_PREFIXES, with_prefixes
from helios.evaluation.sources.loaders.relational import databases
from helios.evaluation.sources.questions import TIES, UNORDERED_LISTS, UNTYPED
from helios.executors.base import Language
from helios.executors.values import GraphNode, Iri, Literal

SHARED = Path(__file__).parents[3].parent / "shared" / "data"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def lines(*records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_spider(tmp_path):
    record = {
        "db_id": "town",
        "question": "How many?",
        "query": "SELECT count(*) FROM t ORDER  BY 1",
        "question_toks": [],
    }
    write(
        tmp_path / "dev.json",
        json.dumps([record, record | {"question": "Which?", "query": "SELECT a FROM t"}], indent=1),
    )
    write(tmp_path / "database/town/town.sqlite", "")
    write(tmp_path / "database/town/other.sqlite", "")
    first, second = load_questions(tmp_path, Layout.SPIDER)
    assert (first.paradigm, first.source, first.ordered, first.gold_answers) == (Language.SQL, "town", True, None)
    assert not second.ordered and first.question_id != second.question_id
    assert databases(tmp_path) == {"town": tmp_path / "database/town/town.sqlite"}
    (only,) = load_questions(write(tmp_path / "train_spider.json", json.dumps([record])), Layout.SPIDER)
    assert only.question_id.startswith("spider-train_spider-")


def test_bird(tmp_path):
    record = {
        "question_id": 7, "db_id": "bank", "question": "Which?", "evidence": "rich means > 9",
        "SQL": "SELECT 1", "difficulty": "simple",
    }  # fmt: skip
    write(tmp_path / "dev.json", json.dumps([record]))
    write(tmp_path / "dev_databases/bank/bank.sqlite", "")
    (question,) = load_questions(tmp_path, Layout.BIRD)
    assert (question.question_id, question.hint, question.flags) == ("bird-dev-7", "rich means > 9", ("simple",))
    assert list(databases(tmp_path)) == ["bank"]


def test_spider4sparql(tmp_path):
    text = 'kg_name,question,query\ntown,"Names, and ages?","select ?n where { ?t a :person . ?t :person\\#name ?n }"\n'
    write(tmp_path / "nl_sparql_pairs/dev/dev_nl_sparql.csv", text)
    (question,) = load_questions(tmp_path, Layout.SPIDER4SPARQL)
    assert (question.source, question.text) == ("town", "Names, and ages?")
    assert question.gold_query.startswith("PREFIX : <http://valuenet/ontop/>\nselect")


def test_simple_questions(tmp_path):
    path = write(tmp_path / "annotated_wd_data_test.txt", "Q1\tP2\tQ3\twho is it?\nQ1\tR2\tQ3\twhose is it?\n")
    forward, inverse = load_questions(path, Layout.SIMPLEQUESTIONS)
    assert "wd:Q1 wdt:P2 ?answer" in forward.gold_query and "?answer wdt:P2 wd:Q1" in inverse.gold_query
    assert forward.gold_query.count("PREFIX") == 2 and forward.source == "wikidata"
    write(path, "Q1\tP2\tQ3\twho?\nQ1 P2\tQ3\n")
    with pytest.raises(RecordError, match=r"test\.txt:2: expected 4 fields"):
        load_questions(path, Layout.SIMPLEQUESTIONS)
    write(path, "m.02\tpeople/person\tm.03\twho?\n")
    with pytest.raises(RecordError, match="expected identifiers"):
        load_questions(path, Layout.SIMPLEQUESTIONS)


def test_qald(tmp_path):
    integer = {"type": "literal", "datatype": "http://www.w3.org/2001/XMLSchema#integer", "value": "4"}
    named = {"type": "literal", "xml:lang": "en", "value": "Bern"}
    uri = {"type": "uri", "value": "http://e/x"}

    def record(number, answers, **more):
        asked = [{"language": "de", "string": "Was?"}, {"language": "en", "string": "What?"}]
        return {
            "id": number,
            "question": asked,
            "query": {"sparql": "SELECT ?x { ?x wdt:P1 wd:Q1 }"},
            "answers": answers,
        } | more

    bindings = {"head": {"vars": ["x", "n"]}, "results": {"bindings": [{"x": uri, "n": integer}, {"n": named}]}}
    dataset = {
        "dataset": {"id": "d", "questions": "not these"},
        "questions": [record("1", [bindings]), record(2, [{"head": {}, "boolean": True}]), record(3, [])],
    }
    path = write(tmp_path / "qald_10.json", json.dumps(dataset, indent=2))
    rows, truth, unanswered = load_questions(path, Layout.QALD)
    assert rows.gold_answers == ((Iri("http://e/x"), 4), (None, Literal("Bern", "", "en")))
    assert truth.gold_answers == ((True,),) and unanswered.gold_answers is None
    assert (rows.text, rows.question_id) == ("What?", "qald_10-1")
    assert rows.gold_query.startswith("PREFIX wd: ")
    only_german = dataset | {"questions": [record(9, [], question=[{"language": "de", "string": "Was?"}])]}
    with pytest.raises(RecordError, match="not asked in 'en'"):
        load_questions(write(path, json.dumps(only_german)), Layout.QALD)


def test_lcquad(tmp_path):
    one = [{"_id": "5", "corrected_question": "Who?", "sparql_query": "SELECT DISTINCT ?u WHERE { ?u ?p ?o }"}]
    (first,) = load_questions(write(tmp_path / "lc1.json", json.dumps(one)), Layout.LCQUAD)
    assert (first.question_id, first.source) == ("lcquad1-5", "dbpedia")
    two = [
        {
            "uid": 6,
            "question": None,
            "NNQT_question": "What is the {head} of <it>?",
            "sparql_wikidata": "ASK { wd:Q1 wdt:P2 ?o }",
        }
    ]
    (second,) = load_questions(write(tmp_path / "lc2.json", json.dumps(two)), Layout.LCQUAD)
    assert (second.question_id, second.source, second.text) == ("lcquad2-6", "wikidata", "What is the head of it?")


def test_text2cypher(tmp_path):
    rows = [
        {"question": "Who?", "schema": "", "cypher": "MATCH (n) RETURN n", "data_source": "x", "instance_id": "i1",
         "database_reference_alias": "neo4jlabs_demo_db_recipes"},
        {"question": "Where?", "schema": "", "cypher": "MATCH (n) RETURN n", "data_source": "x", "instance_id": "i2",
         "database_reference_alias": None},
    ]  # fmt: skip
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data/test-00000.parquet")
    rejects: list[RecordError] = []
    (question,) = load_questions(tmp_path, Layout.TEXT2CYPHER, rejects=rejects)
    assert (question.source, question.question_id, question.paradigm) == ("recipes", "text2cypher-i1", Language.CYPHER)
    assert [error.line for error in rejects] == [2]
    (again,) = load_questions(write(tmp_path / "t.jsonl", lines(rows[0])), Layout.TEXT2CYPHER)
    assert again == question
    write(tmp_path / "data/test-00001.parquet", "no parquet")
    with pytest.raises(RecordError, match="cannot be read as Parquet"):
        load_questions(tmp_path, Layout.TEXT2CYPHER, rejects=[])


def test_beir(tmp_path):
    folder = tmp_path / "tiny"
    write(
        folder / "queries.jsonl",
        lines({"_id": "1", "text": "one"}, {"_id": "2", "text": "two"}, {"_id": "3", "text": "three"}),
    )
    write(folder / "qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n2\td1\t0\n")
    (question,) = load_questions(folder, Layout.BEIR)
    assert (question.source, question.qrels, question.paradigm) == ("tiny", {"d1": 2, "d2": 0}, Language.TEXT)
    write(folder / "qrels/test.tsv", "1\td1\tyes\n")
    with pytest.raises(RecordError, match=r"test\.tsv:1: expected a whole number"):
        load_questions(folder, Layout.BEIR)


def test_plain(tmp_path):
    good = {
        "id": 1,
        "question": "How many?",
        "paradigm": "sql",
        "source": "shop",
        "query": "SELECT 1 ORDER BY 1",
        "answers": [[1]],
    }
    text = {"id": "b", "question": "Where?", "paradigm": "text", "source": "notes", "qrels": {"d": 1}}
    first, second = load_questions(write(tmp_path / "q.jsonl.gz", lines(good, text)))
    assert (first.question_id, first.ordered, first.gold_answers) == ("1", True, ((1,),))
    assert second.qrels == {"d": 1}
    assert unknown_sources((first, second), ["shop"]) == ["notes"]
    (renamed,) = load_questions(write(tmp_path / "r.jsonl", lines(good)), source="elsewhere")
    assert renamed.source == "elsewhere"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"question": "?", "paradigm": "sql", "source": "s", "query": "q"}, "'id' is missing"),
        ({"id": "1", "question": " ", "paradigm": "sql", "source": "s", "query": "q"}, "'question'"),
        ({"id": "1", "question": "?", "paradigm": "graphql", "source": "s"}, "'paradigm' must be one of"),
        ({"id": "1", "question": "?", "paradigm": "sql", "source": "s"}, "needs 'query' or 'answers'"),
        ({"id": "1", "question": "?", "paradigm": "text", "source": "s", "qrels": {"d": 0}}, "relevant document"),
        ({"id": "1", "question": "?", "paradigm": "sql", "source": "s", "answers": [1]}, "list of rows"),
        ({"id": "1", "question": "?", "paradigm": "sql", "source": "s", "answers": [[1], [1, 2]]}, "differ in length"),
        ({"id": "1", "question": "\ud800", "paradigm": "sql", "source": "s", "answers": [[1]]}, "surrogates"),
        ({"id": "1", "question": "?", "paradigm": "sql", "source": "s", "query": "q", "ordered": 1}, "'ordered'"),
        ([1], "expected an object"),
    ],
)
def test_bad_records_name_file_line_and_reason(tmp_path, record, reason):
    path = write(tmp_path / "q.jsonl", "\n" + json.dumps(record) + "\n")
    with pytest.raises(RecordError, match=reason) as caught:
        load_questions(path)
    assert (caught.value.path, caught.value.line) == (path, 2)
    rejects: list[RecordError] = []
    with pytest.raises(EvaluationError, match="holds no questions"):
        load_questions(path, rejects=rejects)
    assert len(rejects) == 1


def test_a_json_array_tells_the_line_of_each_element(tmp_path):
    path = write(
        tmp_path / "dev.json", '[\n {"db_id": "d", "question": "q", "query": "s"},\n\n {"db_id": "d", "question": 4}\n]'
    )
    with pytest.raises(RecordError) as caught:
        load_questions(path, Layout.SPIDER)
    assert caught.value.line == 4
    for broken, line in (('[\n {"a": 1}\n {"b": 2}]', 3), ('{"a": 1}', 1), ('[{"a": 1}', 1), ("[\n{", 2)):
        with pytest.raises(RecordError) as caught:
            load_questions(write(path, broken), Layout.SPIDER, rejects=[])
        assert caught.value.line == line


def test_files_that_are_not_there_or_not_readable(tmp_path):
    with pytest.raises(EvaluationError, match="does not exist"):
        load_questions(tmp_path / "none.jsonl")
    with pytest.raises(EvaluationError, match="does not exist"):
        load_questions(tmp_path / "none")
    with pytest.raises(EvaluationError, match=r"dev\.json"):
        load_questions(tmp_path, Layout.SPIDER)
    with pytest.raises(EvaluationError, match="ends in"):
        load_questions(write(tmp_path / "q.txt", "x"))
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(b"{}")[:-4])
    with pytest.raises(RecordError, match="cannot be read"):
        load_questions(tmp_path / "q.jsonl.gz")
    twice = lines(*[{"id": "1", "question": "?", "paradigm": "sql", "source": "s", "query": "q"}] * 2)
    with pytest.raises(RecordError, match="appears twice"):
        load_questions(write(tmp_path / "q.jsonl", twice))


def test_prefixes_are_declared_once_and_only_where_used():
    assert with_prefixes("ASK { wd:Q1 ?p ?o }", WIKIDATA_PREFIXES) == (
        "PREFIX wd: <http://www.wikidata.org/entity/>\nASK { wd:Q1 ?p ?o }"
    )
    declared = "prefix  wd: <http://x/> ASK { wd:Q1 ?p ?o }"
    assert with_prefixes(declared, WIKIDATA_PREFIXES) == declared
    assert with_prefixes("SELECT ?a { ?a a :t }", {"": "http://v/"}).startswith("PREFIX : <http://v/>")


def test_the_folder_of_public_data(tmp_path):
    write(
        tmp_path / "spider/dev.jsonl.gz",
        lines({"id": "a", "db_id": "town", "question": "?", "query": "SELECT 1", "answers": [[1]]}),
    )
    sparql = {"id": "b", "db_id": "town", "question": "?", "sparql": "select ?a { ?a a :t }", "sparql_answers": [["1"]]}
    write(tmp_path / "spider4sparql/dev.jsonl.gz", lines(sparql))
    write(
        tmp_path / "wikidata_sq/dev.jsonl.gz",
        lines(
            {"id": "c", "question": "?", "sparql": "SELECT ?answer { wd:Q1 wdt:P1 ?answer }", "answers": [{"id": "Q2"}]}
        ),
    )
    cypher = {
        "id": "d", "database": "films", "question": "?",
        "cypher": "MATCH (n) RETURN n, collect(n.a) ORDER BY n.b LIMIT 2",
        "answers": [[{"_node": "x", "_label": "Film"}, [1, 2]]], "flags": ["order_limit_ties_possible"],
    }  # fmt: skip
    write(tmp_path / "graphs/dev.jsonl.gz", lines(cypher))
    write(tmp_path / "sportreason/dev.jsonl.gz", lines({"id": "e", "question": "?", "gold_evidence_ids": ["u1"]}))
    write(tmp_path / "ottqa9k/dev.jsonl.gz", lines({"id": "f", "question": "?", "table": "T_0"}))
    sql, rdf, wikidata, graph, sport, table = load_questions(tmp_path, Layout.SHARED)
    assert (sql.twins, rdf.twins, rdf.source) == (("town_rdf",), ("town",), "town_rdf")
    assert rdf.flags == (UNTYPED,) and rdf.gold_answers == (("1",),)
    assert wikidata.gold_answers == ((Iri("http://www.wikidata.org/entity/Q2"),),)
    assert graph.gold_answers == ((GraphNode("x", ("Film",)), [1, 2]),)
    assert set(graph.flags) == {TIES, UNORDERED_LISTS} and graph.ordered
    assert (sport.qrels, table.qrels, table.source) == ({"u1": 1}, {"T_0": 1}, "ottqa")


@pytest.mark.skipif(not SHARED.exists(), reason="../shared/data is not here")
def test_all_of_the_public_data_can_be_read():
    found = load_questions(SHARED, Layout.SHARED)
    assert {question.paradigm for question in found} == set(Language)
    assert len({question.source for question in found}) == 14 + 15 + 3 + 3
