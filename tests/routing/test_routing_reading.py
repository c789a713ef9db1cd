"""A short answer from a HELIOS index among the sources: the reader's, where no query gave one."""

import json
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console

from helios.config import load_config
from helios.executors.base import Language, NativeQuery
from helios.routing.cli import omni_json, print_answer
from helios.routing.consolidation import Consolidator
from helios.routing.evidence import MadeBy
from helios.routing.formulation.base import Candidate
from helios.routing.interrogation import Interrogator
from helios.routing.omni import OmniEngine
from helios.routing.selection import OracleSelector
from helios.sources.cache import SourceCache
from helios.sources.corpus import IndexCorpus, open_source
from helios.sources.spec import read_spec

QUESTION = "Into which sea does the Danube flow?"


class CountryOf:
    """Reads every question as one for a country."""

    def formulate(self, question, source):
        text = "SELECT country FROM customer WHERE name = 'Ole Group'"
        return [Candidate(NativeQuery(Language.SQL, text), 0.9, "country of Ole Group")]


@pytest.fixture
def wiki(sample_index: Path, tmp_path: Path):
    values = {"kind": "corpus", "path": str(sample_index), "limits": {"timeout": 120}}
    corpus = open_source("wiki", read_spec("wiki", values, where="test"), tmp_path, SourceCache(None, "wiki", "now"))
    assert isinstance(corpus, IndexCorpus)
    yield corpus
    corpus.engine.close()


def asked(sources, likeness, formulators=None):
    config = load_config(overrides=["advanced.routing.source_seconds=300"])
    selector = OracleSelector({QUESTION: [source.name for source in sources]})
    interrogator = Interrogator(config.advanced.routing, formulators or {}, None)
    return OmniEngine(lambda: sources, selector, interrogator, Consolidator(likeness), config).ask(QUESTION)


def test_the_reader_answers_and_cites(likeness, wiki):
    answer = asked([wiki], likeness)
    assert answer.answer is not None and answer.answer.made_by is MadeBy.READER and not answer.degraded
    assert answer.answer.text in ("Black Sea", "the Black Sea") and answer.answer.rows
    assert any("Black Sea" in citation for citation in answer.answer.citations)
    assert "read" in answer.timings_ms and not any("found instead" in note for note in answer.notes)
    document = json.loads(json.dumps(omni_json(answer)))
    assert document["answer"]["made_by"] == "reader" and document["answer"]["citations"]
    console = Console(record=True, width=200)
    print_answer(answer, console)
    assert "wiki, by the reader" in console.export_text()


def test_a_query_of_the_questions_meaning_goes_before_the_reader(likeness, wiki, shop):
    answer = asked([wiki, shop], likeness, {Language.SQL: CountryOf()})
    assert answer.answer is not None and answer.answer.made_by is MadeBy.GENERATOR
    assert "read" not in answer.timings_ms


def test_an_index_that_is_late_is_a_note(likeness, wiki, shop, monkeypatch):
    done = Event()
    monkeypatch.setattr(wiki.engine, "search", lambda *_, **__: done.wait(120))
    wiki.spec = wiki.spec.model_copy(update={"limits": wiki.spec.limits.model_copy(update={"timeout": 0.2})})
    wiki._warm = True
    answer = asked([wiki, shop], likeness, {Language.SQL: CountryOf()})
    done.set()
    assert answer.answer is not None and answer.answer.text == "Norway" and answer.degraded
    assert any(note.startswith("wiki: too slow") for note in answer.notes)
