"""An index whose texts were read by other word lists than the installed ones: it searches, changes and compacts."""

import numpy as np
import pytest

from helios import Engine
from helios.index.manifest import read_manifest
from helios.models import encoder as encoders
from helios.models import glossary as glossaries
from indexing.living.index import Index
from indexing.values import build_from

QUESTION = "Wann beginnt die Besprechung?"
TEXTS = [
    {"id": f"p{n}", "title": f"Besprechung {n}", "text": f"Die Besprechung {n} beginnt um {n} Uhr in der Bibliothek."}
    for n in range(8)
]


@pytest.fixture
def other_words(tmp_path, monkeypatch):
    """An index that was built with the installed lists, and then a list in which some words are others."""
    build_from([], TEXTS, tmp_path / "index")
    german = glossaries.glossary("de")
    changed = dict(german.words) | {"besprechung": "palaver talk", "bibliothek": "house of many books", "uhr": "bell"}
    other = glossaries.Glossary(german.code, changed, german.folded, german.stems, german.phrases, german.longest)
    known = {code: glossaries.glossary(code) for code in glossaries.LANGUAGES} | {"de": other}
    monkeypatch.setattr(glossaries, "glossary", known.__getitem__)
    for module in (glossaries, encoders):
        monkeypatch.setattr(module, "glossaries_digest", lambda: "another lists")
    return tmp_path / "index"


def test_it_deletes_compacts_and_searches(other_words):
    living = Index.open(other_words)
    living.delete([f"p{n}" for n in range(5)])
    with Engine.open(other_words) as engine:
        assert np.isfinite([edge.score for edge in engine.search(QUESTION).edges]).all()
    living.compact(whole=True)
    with Engine.open(other_words) as engine:
        found = engine.search(QUESTION, k=10)
        assert {edge.passage.passage_id for edge in found.edges} == {"p5", "p6", "p7"}
    living.delete(["p5"])
    with Engine.open(other_words) as engine:
        assert {edge.passage.passage_id for edge in engine.search(QUESTION, k=10).edges} == {"p6", "p7"}


def test_what_is_added_is_noted_as_the_rest_was(other_words):
    before = Engine.open(other_words).index.encoder["glossary"]
    Index.open(other_words).add(passages=[{"id": "p9", "title": "Neu", "text": "Die Besprechung fällt aus."}])
    with Engine.open(other_words) as engine:
        assert {part.tokens.encoder["glossary"] for part in engine.index.parts} == {before}
    assert len(read_manifest(other_words).parts) == 2


def test_explanations_leave_out_what_they_cannot_place(other_words):
    with Engine.open(other_words) as engine:
        for edge in engine.search(QUESTION, explain=True).edges:
            assert edge.matches == ()
