"""Replies measured, kept and summed up; gold queries checked; all over real engines."""

import json
from contextlib import closing
from dataclasses import dataclass, replace
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from helios.errors import EvaluationError, QueryFailed, QueryRejected, QueryTimeout, SourceUnavailable
from helios.evaluation.kept import KeptRows
from helios.evaluation.sources.gold import gold_rows, run_gold
from helios.evaluation.sources.outcomes import Outcome
from helios.evaluation.sources.questions import TIES
from helios.evaluation.sources.reply import Layered, Reply, omni_reply
from helios.evaluation.sources.report import document, render, render_gold, summarise
from helios.evaluation.sources.run import run_system, warm
from helios.executors.base import Language, Limits, NativeQuery


@dataclass(frozen=True)
class Ranked:
    name: str
    probability: float


class FixedSelector:
    """Always the same order of names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def select(self, question, sources, *, k=3):
        known = {source.name for source in sources}
        chosen = [name for name in self.names if name in known][:k]
        return SimpleNamespace(sources=tuple(Ranked(name, 1 / (2 + n)) for n, name in enumerate(chosen)))


@dataclass(frozen=True)
class Written:
    query: NativeQuery
    confidence: float


class FixedFormulator:
    """Texts of queries by question, with a confidence."""

    def __init__(self, language: Language, texts: dict[str, list[tuple[str, float]]]) -> None:
        self.language, self.texts = language, texts

    def formulate(self, question, source):
        return [Written(NativeQuery(self.language, text), sure) for text, sure in self.texts.get(question, [])]


LENGTH = "SELECT ?l WHERE { <http://e/aare> <http://e/length> ?l }"
FORMULATORS = {
    Language.SQL: FixedFormulator(
        Language.SQL,
        {
            "How many bridges are there?": [("SELEC", 1.0), ("SELECT count(name) FROM bridge WHERE 1=0", 0.9),
                                            ("SELECT count(name) FROM bridge", 0.8)],
            "Which bridge is the oldest?": [("SELECT name FROM bridge WHERE opened = 1408", 0.4)],
        },
    ),
    Language.SPARQL: FixedFormulator(Language.SPARQL, {"How long is the Aare?": [(LENGTH, 0.9)]}),
}  # fmt: skip


@pytest.fixture
def layer(sources):
    return Layered(FixedSelector("bridges", "rivers", "notes"), FORMULATORS, list(sources.values()), k=3)


class TestRun:
    def test_figures_of_each_question(self, layer, sources, questions):
        count, oldest, length, text = run_system(layer, questions, sources)
        assert count.values["selection@1"] == 1.0
        assert count.values["execution match"] == 0.0 and count.values["match in pool"] == 0.0
        assert any("QueryFailed" in problem for problem in count.problems)
        assert oldest.values["answered"] == 0.0 or oldest.tried[0].source != "bridges"
        assert length.values["selection@1"] == 0.0 == 1 - length.values["selection@1 or twin"]
        assert length.values["selection@3"] == length.values["match in pool"] == 1.0
        assert text.values["nDCG@10"] == text.values["retrieval"] > 0.0
        assert count.values["paradigms asked"] == count.values["sources asked"] == 3.0
        assert "execution match" not in text.values

    def test_a_query_that_gives_rows_is_taken_before_an_empty_one(self, sources, questions):
        texts = {
            questions[1].text: [
                ("SELECT name FROM bridge WHERE 1=0", 0.9),
                ("SELECT name FROM bridge WHERE opened = 1408", 0.6),
            ]
        }
        oracle = Layered(
            FixedSelector(), {Language.SQL: FixedFormulator(Language.SQL, texts)}, list(sources.values()), gold=True
        )
        (outcome,) = run_system(oracle, questions[1:2], sources, threshold=0.5)
        assert outcome.ranked == (("bridges", 1.0),)
        assert outcome.values["execution match"] == outcome.values["precision of answered"] == 1.0
        (unsure,) = run_system(oracle, questions[1:2], sources, threshold=0.7)
        assert unsure.values["answered"] == 0.0 and "precision of answered" not in unsure.values

    def test_systems_of_one_source(self, sources, questions):
        selector, opened = FixedSelector("notes", "rivers", "bridges"), list(sources.values())
        systems = [
            (Layered(selector, FORMULATORS, opened, k=1), "notes"),
            (Layered(selector, FORMULATORS, opened, k=1, language=Language.SQL), "bridges"),
            (Layered(selector, FORMULATORS, opened, k=1, gold=True), "bridges"),
        ]
        for system, name in systems:
            assert [chosen for chosen, _ in system(questions[0]).ranked] == [name]

    def test_documents_of_other_sources_take_ranks(self, sources, questions):
        alone = Layered(FixedSelector("notes"), {}, list(sources.values()))
        (first,) = run_system(alone, questions[3:], sources)
        renamed = replace(questions[3], source="elsewhere")
        (second,) = run_system(alone, [renamed], sources)
        assert first.values["nDCG@10"] > 0.6 and second.values["nDCG@10"] == 0.0

    def test_sources_that_fail_are_problems_not_errors(self, sources, questions, unreachable):
        broken = [unreachable("bridges", SourceUnavailable("gone")), sources["rivers"]]
        system = Layered(FixedSelector("bridges", "rivers"), FORMULATORS, broken)
        by_name = {source.name: source for source in broken}
        count, oldest = run_system(system, questions[:2], by_name)
        assert count.tried == () and "SourceUnavailable: gone" in count.problems[0]
        assert "execution match" not in oldest.values, "a gold query that does not run leaves nothing to compare"

    def test_warming_up_opens_every_source_and_tells_which_fail(self, sources, unreachable):
        gone = unreachable("gone", SourceUnavailable("no such file"))
        gone.descriptor = lambda: gone.execute(None)
        assert warm([*sources.values(), gone]) == ["gone: SourceUnavailable: no such file"]
        assert sources["notes"].executed == 1

    def test_no_questions(self, layer, sources):
        with pytest.raises(EvaluationError):
            run_system(layer, [], sources)


class TestResume:
    def test_a_killed_run_goes_on(self, layer, sources, questions, tmp_path):
        path = tmp_path / "out" / "layer.jsonl"
        with closing(KeptRows(path, {"k": 3}, Outcome.from_json)) as file:
            whole = run_system(layer, questions, sources, file=file)
        kept = path.read_text().splitlines(keepends=True)
        path.write_text("".join(kept[:3]) + kept[3][:20])
        asked = []

        def counting(question):
            asked.append(question.question_id)
            return layer(question)

        with closing(KeptRows(path, {"k": 3}, Outcome.from_json)) as file:
            again = run_system(counting, questions, sources, file=file)
        assert asked == ["r1", "t1"]
        assert [row.values for row in again] == [row.values for row in whole]
        assert again[:2] == whole[:2], "lines are read back as they were"

    def test_a_changed_question_is_asked_again(self, layer, sources, questions, tmp_path):
        with closing(KeptRows(tmp_path / "layer.jsonl", {}, Outcome.from_json)) as file:
            run_system(layer, questions[:1], sources, file=file)
            (first,) = run_system(no_reply, questions[:1], sources, file=file)
            (again,) = run_system(no_reply, [replace(questions[0], gold_answers=((4,),))], sources, file=file)
        assert first.ranked and not again.ranked


def no_reply(question):
    return Reply(())


class TestGold:
    def test_report_and_causes(self, sources, questions, unreachable):
        everything = {
            **sources,
            "slow": unreachable("slow", QueryTimeout(1.0)),
            "strict": unreachable("strict", QueryRejected("not allowed", "PRAGMA")),
            "bad": unreachable("bad", QueryFailed("no such table")),
        }
        asked = [
            *questions,
            *(replace(questions[0], question_id=name, source=name) for name in ("slow", "strict", "bad", "nowhere")),
            replace(questions[0], question_id="wrong", gold_answers=((4,),)),
            replace(questions[0], question_id="tied", ordered=True, flags=(TIES,),
                    gold_query="SELECT name, river FROM bridge ORDER BY river LIMIT 2",
                    gold_answers=(("Untertor", "Aare"), ("Other", "Aare"))),
        ]  # fmt: skip
        spans, lengths = run_gold(asked, everything)
        assert (spans.queries, spans.executed, spans.matched, spans.without_answers) == (8, 4, 1, 1)
        causes = {row.question_id: row.cause for row in spans.exceptions}
        assert causes == {
            "slow": "timeout", "strict": "rejected", "bad": "failed", "nowhere": "unavailable", "wrong": "other rows",
            "tied": "ties",
        }  # fmt: skip
        assert (lengths.dataset, lengths.matched, lengths.exceptions) == ("lengths", 1, ())
        assert spans.to_json()["causes"]["ties"] == 1
        console = Console(width=160, record=True, file=StringIO())
        console.print(render_gold([spans, lengths]))
        assert "not allowed: PRAGMA" in console.export_text()

    def test_rows_cut_by_a_cap_match_nothing(self, sources, questions):
        cut = replace(questions[0], gold_query="SELECT name FROM bridge", gold_answers=(("Kirchenfeld",),))
        (report,) = run_gold([cut], sources, limits=Limits(max_rows=1))
        assert report.exceptions[0].cause == "truncated"
        unstored = replace(cut, gold_answers=None)
        assert gold_rows(unstored, sources, limits=Limits(max_rows=1)) is None
        assert len(gold_rows(unstored, sources)) == 3
        assert gold_rows(cut, {}) == cut.gold_answers

    def test_nothing_to_check(self, sources, questions):
        with pytest.raises(EvaluationError, match="no question has a gold query"):
            run_gold(questions[3:], sources)


class TestReport:
    def test_macro_paradigms_datasets_and_coverage(self, layer, sources, questions):
        outcomes = run_system(layer, questions, sources)
        report = summarise("layer", outcomes, questions, config={"k": 3})
        assert report.value("macro", "selection@3") == 1.0
        assert report.value("sql", "selection@1") == 1.0 and report.value("lengths", "selection@1") == 0.0
        assert report.value("macro", "selection@1") == pytest.approx(1 / 3)
        retrieval = [report.value(name, "retrieval") for name in ("sql", "sparql", "text")]
        assert report.value("macro", "retrieval") == pytest.approx(sum(retrieval) / 3)
        assert report.coverage[0][1] == 1.0 and report.coverage[0][0] == 0.0
        plain = json.loads(json.dumps(document([report], [], {"seed": 0})))
        assert plain["systems"][0]["paradigms"]["text"]["nDCG@10"]["questions"] == 1
        assert set(report.latency_ms) == {"p50", "p95"}
        console = Console(width=200, record=True, file=StringIO())
        console.print(render(report))
        assert "selection@3" in console.export_text()


def test_the_reply_of_the_whole_layer():
    def execution(source, text, made_by="generator"):
        result = SimpleNamespace(columns=("x",), rows=((1,),))
        return SimpleNamespace(
            source=source, query=NativeQuery(Language.SQL, text), made_by=made_by, result=result, confidence=0.5
        )

    first, second, keyword = execution("a", "q1"), execution("b", "q2"), execution("a", "q3", "keyword")
    attempt = SimpleNamespace(query=first.query, outcome="no rows")
    answer = SimpleNamespace(
        selection=SimpleNamespace(sources=(Ranked("a", 0.6), Ranked("b", 0.3))),
        replies=(
            SimpleNamespace(source="a", executions=(first, keyword), attempts=(attempt,)),
            SimpleNamespace(source="b", executions=(second,), attempts=()),
        ),
        evidence=(keyword, second, first), parts=(), declined=False, notes=("a note",),
    )  # fmt: skip
    reply = omni_reply(answer)
    assert [ran.query.text for ran in reply.results] == ["q2", "q1"]
    assert reply.ranked == (("a", 0.6), ("b", 0.3)) and reply.problems == ("a note", "a: no rows")
    answer.parts, answer.declined = (first,), True
    assert [ran.query.text for ran in omni_reply(answer).results] == ["q1", "q2"] and omni_reply(answer).declined
