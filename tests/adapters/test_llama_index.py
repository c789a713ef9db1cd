"""The retriever of LlamaIndex in its own query engine; its package has no conformance tests."""

import pytest

pytest.importorskip("llama_index.core", reason="the extra llama-index is not installed")

from llama_index.core.schema import MetadataMode  # noqa: E402

from helios.adapters.llama_index import HeliosRetriever  # noqa: E402


def test_nodes_have_scores_and_metadata(engine):
    nodes = HeliosRetriever(engine, k=3).retrieve("Which is the longest river of Europe?")
    assert len(nodes) == 3
    assert nodes[0].node_id == "european-rivers#0 | volga"
    assert nodes[0].metadata["passage_id"] == "volga"
    assert 0 < nodes[0].score <= 1
    assert nodes[0].node.get_content(MetadataMode.LLM) == nodes[0].text
