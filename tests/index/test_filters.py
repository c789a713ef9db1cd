"""Filters: a filtered search gives what an exhaustive one gives, filtered afterwards, and k results where k exist."""

import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus import CorpusStore, CorpusWriter
from helios.corpus.sample import QUESTIONS, sample_path
from helios.corpus.sidecar import Sidecar
from helios.corpus.where import Where
from helios.engine import Engine
from helios.errors import WhereError
from helios.evaluation.questions import read_questions
from helios.index.manifest import read_manifest, write_manifest
from helios.index.search import EdgeSearch, NodeMaxima, Pairs, PairScores
from helios.index.snapshot import Snapshot
from helios.index.visible import NodeBounds, Query
from helios.types import Edge, EvidenceEdge
from indexing.cut import cut_index
from indexing.stage import file_entries

REGIONS = ("north", "south", "east")
FILTERS = 200
EVERYTHING = ("advanced.search.candidates=100000", "advanced.search.exact=100000")


@pytest.fixture(scope="module")
def index(sample_index: Path, tmp_path_factory) -> Path:
    """The sample index, whose records have a year, a region, whether they are a draft, and a score; some lack some."""
    folder = tmp_path_factory.mktemp("filters")
    index = Path(shutil.copytree(sample_index, folder / "index"))
    manifest = read_manifest(index)
    (part,) = manifest.parts
    corpus = index / part.folder / "corpus"
    store = CorpusStore.open(corpus)
    records = [*store.tables, *store.passages]
    chance = random.Random(3)
    with (folder / "fields.jsonl").open("w") as file:
        for record_id in [*store.tables.ids(), *store.passages.ids()]:
            fields = {
                "year": chance.randrange(1990, 2000), "region": chance.choice(REGIONS), "draft": chance.random() < 0.3,
                "score": round(chance.random(), 2),
            }  # fmt: skip
            kept = {name: value for name, value in fields.items() if chance.random() < 0.8}
            file.write(json.dumps({"id": record_id, **kept}) + "\n")
    sidecar = Sidecar.read(folder / "fields.jsonl")
    shutil.rmtree(corpus)
    with CorpusWriter(corpus) as writer:
        for record in records:
            writer.add(sidecar.completed(record))
    part = part.model_copy(update={"files": file_entries(index / part.folder)})
    write_manifest(index, manifest.model_copy(update={"parts": (part,)}))
    return index


@pytest.fixture(scope="module")
def parts(index: Path, tmp_path_factory) -> Path:
    """The same in three parts."""
    folder = tmp_path_factory.mktemp("parts") / "index"
    cut_index(index, folder, 3)
    return folder


@pytest.fixture(scope="module")
def opened(engine: Engine):
    """Engines with the models of the shared one; `only` keeps so many stages."""
    snapshots = []

    def open_index(index: Path, *, only: int | None = None, overrides=()) -> Engine:
        snapshots.append(Snapshot.open(index))
        config = load_config(overrides=["encoder.runtime=torch", *overrides])
        return Engine(snapshots[-1], config, models=engine.models, stages=lambda usual: usual[:only])

    yield open_index
    for snapshot in snapshots:
        snapshot.close()


@pytest.fixture(scope="module")
def questions() -> list[str]:
    return [question.text for question in read_questions(sample_path() / QUESTIONS)]


def random_filters(count: int, corpus: CorpusStore, *, seed: int) -> list[str]:
    """Filters over all fields, as people might combine them; each lets something pass and hides something."""
    chance = random.Random(seed)
    titles = [title for title in [*corpus.tables.titles(), *corpus.passages.titles()] if "'" not in title]

    def condition() -> str:
        side = chance.choice(["", "", "table.", "passage."])
        return side + chance.choice(
            [
                f"year {chance.choice(['=', '!=', '<', '<=', '>', '>='])} {chance.randrange(1989, 2001)}",
                f"region = '{chance.choice(REGIONS)}'",
                f"region in ('{chance.choice(REGIONS)}', '{chance.choice(REGIONS)}')",
                f"draft = {chance.choice(['true', 'false'])}",
                f"score > {chance.random():.2f}",
                "score exists",
                f"title ~ '*{chance.choice('aeiourst')}{chance.choice('aeiourst')}*'",
                f"title = '{chance.choice(titles)}'",
                f"kind = '{chance.choice(['table', 'passage', 'infobox'])}'",
                f"source ~ '{chance.choice('tp')}*'",
                f"id != '{chance.choice(list(corpus.tables.ids()))}'",
            ]
        )

    def expression(depth: int) -> str:
        if depth == 0 or chance.random() < 0.3:
            return condition()
        if chance.random() < 0.25:
            return f"not ({expression(depth - 1)})"
        word = chance.choice([" and ", " or "])
        return word.join(f"({expression(depth - 1)})" for _ in range(chance.choice([2, 2, 3])))

    found: dict[str, None] = {}
    while len(found) < count:
        text = expression(2)
        shown = Where.parse(text).nodes(corpus)
        if shown.any() and not shown.all():
            found[text] = None
    return list(found)


@dataclass(frozen=True)
class Exhaustive:
    """Everything that any unit's score is made of, computed for all nodes of an index that nothing is hidden of."""

    engine: Engine
    query: Query
    search: EdgeSearch
    maxima: NodeMaxima
    bounds: NodeBounds

    @classmethod
    def of(cls, engine: Engine, question: str) -> "Exhaustive":
        state = engine.begin(question)
        every = np.arange(engine.index.node_count)
        maxima = state.search.with_maxima(state.query, state.search.no_maxima(state.query), every)
        bounds = engine.index.tokens.bounds(state.query, state.search.threads)
        return cls(engine, state.query, state.search, maxima, bounds)

    def filtered(self, shown: np.ndarray) -> list[tuple[Edge, float]]:
        """All edges and lone nodes of which nothing is hidden, best first, and their scores."""
        index, graph = self.engine.index, self.engine.graph
        segments, none = index.segment_count, index.node_count
        left, right = graph.edge_segments.astype(np.int64), graph.edge_passages.astype(np.int64) + segments
        kept = shown[left] & shown[right]
        linked = np.zeros(none, bool)
        linked[left[kept]] = linked[right[kept]] = True
        lone = np.flatnonzero(shown & ~linked)
        pairs = Pairs(
            np.concatenate([left[kept], np.where(lone < segments, lone, none)]),
            np.concatenate([right[kept], np.where(lone < segments, none, lone)]),
        )
        maxsim, segment = self.search.maxsim(self.query, pairs, self.maxima)
        star = [self.star(shown, *pair) for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)]
        words = self.search.bm25(self.query, pairs)
        fused = PairScores.of(maxsim, segment, np.array(star, np.float32), words, self.search.fusion).fused
        order = np.lexsort((np.arange(len(fused)), -fused))
        scale = self.engine.pipeline.fused.scale
        scores = scale.log_odds(fused[order], np.arange(len(fused)), best=float(fused[order[0]]))
        edges = [
            Edge(None if a == none else a, None if b == none else b - segments)
            for a, b in zip(pairs.left[order].tolist(), pairs.right[order].tolist(), strict=True)
        ]
        return list(zip(edges, scores.tolist(), strict=True))

    def star(self, shown: np.ndarray, left: int, right: int) -> np.float32:
        """The bound of a row with all of its passages that are not hidden."""
        index = self.engine.index
        if left == index.node_count:
            members = [right]
        else:
            passages = self.engine.graph.passages_of(left).astype(np.int64) + index.segment_count
            members = [left, *passages[shown[passages]].tolist()]
        return np.float32(self.bounds.bounds_NQ[members].max(axis=0).sum(dtype=np.int64) * self.bounds.step)


def names(engine: Engine, edge: Edge) -> tuple[str | None, str | None]:
    corpus = engine.corpus
    return (
        None if edge.segment is None else str(corpus.segment_id(edge.segment)),
        None if edge.passage is None else corpus.passages.id(edge.passage),
    )


def found(edge: EvidenceEdge) -> tuple[str | None, str | None]:
    return (
        None if edge.segment is None else str(edge.segment.segment_id),
        None if edge.passage is None else edge.passage.passage_id,
    )


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_filtered_search_is_an_exhaustive_one_filtered(index, parts, opened, questions, in_parts):
    """The same edges in the same order with the same scores; nothing of the view is used to check."""
    whole = opened(index, only=1)
    searching = opened(parts if in_parts else index, only=1, overrides=EVERYTHING)
    filters = random_filters(FILTERS, whole.corpus, seed=11)[:: 4 if in_parts else 1]
    exhaustive = {question: Exhaustive.of(whole, question) for question in questions[:10]}
    sizes = set()
    for number, text in enumerate(filters):
        question = questions[number % len(exhaustive)]
        expected = exhaustive[question].filtered(Where.parse(text).nodes(whole.corpus))
        evidence = searching.search(question, k=1000, where=text)
        assert [found(edge) for edge in evidence.edges] == [names(whole, edge) for edge, _ in expected], text
        assert [edge.score for edge in evidence.edges] == [score for _, score in expected], text
        sizes.add(len(expected))
    assert len(sizes) > len(filters) / 5


def test_there_are_k_results_where_there_are_k(index, opened, questions):
    """With the whole pipeline, and with fewer candidates than the filter hides."""
    engine = opened(index)
    few = opened(index, overrides=["advanced.search.candidates=4", "advanced.search.exact=4"])
    store = engine.corpus
    tables, passages = list(store.tables.ids()), list(store.passages.ids())
    for number, text in enumerate(random_filters(24, store, seed=5)):
        shown = Where.parse(text).nodes(store)
        rows = {str(store.segment_id(node)) for node in np.flatnonzero(shown[: store.segment_count]).tolist()}
        others = {passages[node] for node in np.flatnonzero(shown[store.segment_count :]).tolist()}
        for searching, k in ((engine, 8), (few, 8)):
            evidence = searching.search(questions[number % len(questions)], k=k, where=text)
            units = len(searching.view(text).units)
            assert min(k, units) <= len(evidence.edges) <= k, text
            assert {row for row, _ in map(found, evidence.edges)} <= {None, *rows}, text
            assert {passage for _, passage in map(found, evidence.edges)} <= {None, *others}, text
            if evidence.computed:
                assert {str(row) for row in evidence.computed.rows} <= rows
    assert len(tables) == 12


def test_a_filter_that_hides_nothing_changes_nothing(index, opened, questions):
    engine = opened(index)
    for question in questions[:3]:
        plain, filtered = engine.search(question, k=10), engine.search(question, k=10, where="not id = 'nothing'")
        assert (plain.edges, plain.present, plain.computed) == (filtered.edges, filtered.present, filtered.computed)


def test_a_filter_that_nothing_passes(index, opened, questions):
    engine = opened(index)
    evidence = engine.search(questions[0], where="id = 'nothing'")
    assert evidence.edges == ()
    assert evidence.present < 0.5


def test_how_rare_words_are_is_counted_over_all(index, opened, questions):
    engine = opened(index)
    view = engine.view("kind = 'passage'")
    assert view.segment_count == 0
    whole, filtered = engine.begin(questions[0]).query, engine.begin(questions[0], where="kind = 'passage'").query
    np.testing.assert_array_equal(whole.weights_Q, filtered.weights_Q)
    assert whole.terms.terms == filtered.terms.terms
    np.testing.assert_array_equal(whole.terms.idf_T, filtered.terms.idf_T)


def test_views_are_kept_and_told_apart(index, opened):
    engine = opened(index, overrides=["advanced.search.filters=2"])
    one = engine.view("year >= 1995")
    assert engine.view(" year>=1995 ") is one
    assert engine.view(Where.parse("year >= 1995")) is one
    assert engine.view("year >= 1995.5") is not one
    assert engine.view("score > 0.3").node_count != one.node_count
    assert engine.view("year >= 1995") is not one  # two were asked for since
    with pytest.raises(WhereError, match="no record has the field 'yeer'; did you mean year"):
        engine.view("yeer >= 1995")


def test_a_table_is_seen_whole_or_not_at_all(index, opened):
    engine = opened(index)
    whole = opened(index).corpus
    view = engine.view("table.year >= 1995").corpus
    years = {table.table_id: dict(table.metadata).get("year") for table in whole.tables}
    assert list(view.tables.ids()) == [name for name, year in years.items() if year is not None and year >= 1995]
    for table in view.tables:
        assert table == whole.tables.get(table.table_id)
