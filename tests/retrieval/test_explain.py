"""Explanations name words that are really in the text, at the place that they say."""

import json
import re
from pathlib import Path

import pytest

from helios.config import load_config
from helios.engine import Engine
from helios.models.text import passage_text
from helios.retrieval.explain import _word
from helios.retrieval.state import pairs_of, run_stages
from helios.types import EvidenceEdge, TokenMatch
from indexing.pipeline import build_index

QUESTION = "In which town did the chemist who discovered the element with atomic number 32 teach?"


def text_at(edge: EvidenceEdge, match: TokenMatch) -> list[str]:
    """The texts that `where` may mean: a segment's and a passage's title have the same name."""
    kind, _, number = match.where.partition(":")
    if kind == "sentence":
        assert edge.passage is not None
        node = passage_text(edge.passage)
        piece = next(piece for piece in node.pieces if piece.where == match.where)
        return [node.text[piece.start : piece.end]]
    if kind == "title":
        return [node.title for node in (edge.segment, edge.passage) if node is not None]
    assert edge.segment is not None
    if kind == "section":
        return [edge.segment.section]
    return [{"header": edge.segment.header, "cell": edge.segment.cells}[kind][int(number)]]


@pytest.mark.parametrize("question", [QUESTION, "Wer entdeckte Germanium — und wann?", "Kraków " * 40])
def test_every_match_is_where_it_says(engine: Engine, question):
    evidence = engine.search(question, k=20, explain=True)
    tokens = engine.encoder.encode_question(question)
    for edge in evidence.edges:
        assert len(edge.matches) == len(tokens.ids)
        for match, (start, end) in zip(edge.matches, tokens.spans, strict=True):
            assert match.query_token == question[start:end]
            assert match.word
            assert any(match.word in re.split(r"[\W_]+", text) for text in text_at(edge, match)), match
            assert -1.01 <= match.similarity <= 1.01


def test_words_of_the_question_match_themselves(engine: Engine):
    best = engine.search(QUESTION, k=1, explain=True).edges[0]
    matches = {match.query_token: match for match in best.matches}
    assert matches["chemist"].word == "chemist"
    assert matches["atomic"].word.lower() == "atomic"
    assert (matches["32"].word, matches["32"].where) == ("32", "cell:1")


def test_matches_add_up_to_the_edges_maxsim(engine: Engine):
    """Weighted by their tokens' rarity, similarities are the exact MaxSim of the edge."""
    evidence = engine.search(QUESTION, k=5, explain=True)
    state = run_stages(engine.begin(QUESTION, k=5), engine.pipeline.stages)
    pairs = pairs_of(engine.index, [scored.edge for scored in state.subgraph.edges[:5]])
    state = state.with_maxima(pairs.nodes(engine.index.node_count))
    maxsim, _ = state.search.maxsim(state.query, pairs, state.maxima)
    for score, edge in zip(maxsim.tolist(), evidence.edges, strict=True):
        matched = sum(
            float(weight) * match.similarity for weight, match in zip(state.query.weights_Q, edge.matches, strict=False)
        )
        assert len(edge.matches) == len(state.query.tokens.ids)
        assert score == pytest.approx(matched, rel=5e-3)  # residuals count as whole numbers of small steps


def test_unasked_nothing_is_explained(engine: Engine):
    assert engine.search(QUESTION, k=1).edges[0].matches == ()


@pytest.mark.parametrize("question", ["", "?!"])
def test_a_question_without_words_has_nothing_to_explain(engine: Engine, question):
    evidence = engine.search(question, k=3, explain=True)
    assert [edge.matches for edge in evidence.edges] == [(), (), ()]


def test_a_row_that_is_read_in_windows_is_found_and_explained_by_its_last_cells(tmp_path: Path):
    header = [*(f"Event {number}" for number in range(1, 40)), "Keeper"]
    keepers = {"Porto": "Murchison", "Gdansk": "Vandermeer"}
    rows = [[*[f"{town} festival of {town} folk music"] * 39, keeper] for town, keeper in keepers.items()]
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    table = {"id": "wide", "title": "Lighthouses", "header": header, "rows": rows}
    (corpus / "tables.jsonl").write_text(json.dumps(table))
    (corpus / "passages.jsonl").write_text(json.dumps({"id": "p", "title": "Music", "text": "Music of many towns."}))
    build_index(corpus, tmp_path / "index", config=load_config(overrides=["encoder.runtime=torch"]))
    question = "Which lighthouse had Vandermeer as its keeper?"
    plain = ["search.ranker=none", "refinement.mode=off", "expansion.enabled=false"]
    with Engine.open(tmp_path / "index", threads=1, overrides=plain) as engine:
        wide = engine.corpus.segment(1)
        assert len(engine.index.tokens.vectors(1)) > engine.encoder.max_tokens
        best = engine.search(question, k=2, explain=True).edges[0]
    assert best.segment == wide
    matches = {match.query_token: (match.word, match.where) for match in best.matches}
    assert matches["keeper"] == ("Keeper", "header:39")
    assert {matches[token] for token in matches if token in "Vandermeer"} == {("Vandermeer", "cell:39")}


@pytest.mark.parametrize(
    ("text", "span", "word"),
    [
        ("the Rhine's", (4, 6), "Rhine"),
        ("长江是河", (1, 2), "江"),
        ("长江Yangtze是", (2, 4), "Yangtze"),
        ("", (0, 0), ""),
    ],
)
def test_words_end_where_scripts_without_blanks_begin(text, span, word):
    start, end = _word(text, *span)
    assert text[start:end] == word
