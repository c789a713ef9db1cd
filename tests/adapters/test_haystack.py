"""The component of Haystack in a pipeline; its package has no conformance tests."""

import pytest


def test_it_runs_in_a_pipeline(engine, monkeypatch):
    pytest.importorskip("haystack", reason="the extra haystack is not installed")  # here: it takes three seconds
    from haystack import Pipeline

    from helios.adapters.haystack import HeliosRetriever

    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    pipeline = Pipeline()
    pipeline.add_component("helios", HeliosRetriever(engine, top_k=5))
    found = pipeline.run({"helios": {"query": "Which is the longest river of Europe?", "top_k": 3}})
    documents = found["helios"]["documents"]
    assert len(documents) == 3
    assert documents[0].id == "european-rivers#0 | volga"
    assert documents[0].meta["row"] == 0
    assert 0 < documents[0].score <= 1
