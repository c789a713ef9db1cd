"""An index that changes against a dictionary of what is in it, by random steps.

A few steps here; HELIOS_FUZZ=200 makes as many examples of 30 steps.
"""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from helios.config import load_config
from helios.errors import CorpusError
from helios.index.fsck import check_index
from helios.index.lexical import term_hash
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.models.encoder import MiniLMEncoder
from helios.types import Hyperlink, Passage, Table
from indexing.encoding import node_texts, token_frequencies
from indexing.living import Index
from indexing.values import build_from

CASES = int(os.environ.get("HELIOS_FUZZ", "0"))
WORDS = ("river", "bridge", "dam", "opera", "moon", "cheese")
IDS = st.sampled_from("abcdef")


@st.composite
def passages(draw: st.DrawFn) -> Passage:
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
    return Passage(draw(IDS), draw(st.sampled_from(WORDS)), " ".join(words), source=draw(st.sampled_from(("x", "y"))))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
    links = {(draw(st.integers(0, len(rows) - 1)), draw(IDS)) for _ in range(draw(st.integers(0, 3)))}
    return Table(
        draw(IDS), "things", ("thing",), tuple((row,) for row in rows), source=draw(st.sampled_from(("x", "y"))),
        hyperlinks=tuple(Hyperlink(row, 0, passage) for row, passage in sorted(links)),
    )  # fmt: skip


def unique(own: st.SearchStrategy, name: str) -> st.SearchStrategy:
    return st.lists(own, max_size=3, unique_by=lambda record: getattr(record, name))


BATCH = st.tuples(unique(tables(), "table_id"), unique(passages(), "passage_id"))


class Living(RuleBasedStateMachine):
    """Every step is one change; after each the index holds what the dictionaries hold."""

    base: Path
    encoder: MiniLMEncoder

    @initialize()
    def begin(self) -> None:
        self.place = TemporaryDirectory(prefix="living-")
        folder = Path(self.place.name) / "index"
        shutil.copytree(self.base, folder)
        self.index = Index.open(folder, wait=0)
        self.index.__dict__["encoder"] = self.encoder
        self.generation = 1
        self.tables: dict[str, Table] = {}
        self.passages: dict[str, Passage] = {}
        self.index.delete(["first"])

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.place.cleanup()

    @rule(batch=BATCH)
    def add(self, batch) -> None:
        new_tables, new_passages = batch
        known = {t.table_id for t in new_tables} & set(self.tables) | {p.passage_id for p in new_passages} & set(
            self.passages
        )
        if known or not (new_tables or new_passages):
            with pytest.raises(CorpusError):
                self.index.add(new_tables, new_passages)
            return
        self.index.add(new_tables, new_passages)
        self._keep(batch)

    @rule(batch=BATCH.filter(any))
    def update(self, batch) -> None:
        self.index.update(*batch)
        self._keep(batch)

    @rule(ids=st.sets(IDS, min_size=1, max_size=3))
    def delete(self, ids: set[str]) -> None:
        change = self.index.delete(sorted(ids))
        assert set(change.missing) == ids - set(self.tables) - set(self.passages)
        for one in ids:
            self.tables.pop(one, None)
            self.passages.pop(one, None)

    @rule(source=st.sampled_from(("x", "y")), by_filter=st.booleans())
    def delete_source(self, source: str, by_filter: bool) -> None:
        self.index.delete(**({"where": f"source = '{source}'"} if by_filter else {"source": source}))
        self.tables = {name: own for name, own in self.tables.items() if own.source != source}
        self.passages = {name: own for name, own in self.passages.items() if own.source != source}

    @rule(whole=st.booleans())
    def compact(self, whole: bool) -> None:
        self.index.compact(whole=whole)
        if whole:
            with Snapshot.open(self.index.directory) as snapshot:
                assert (len(snapshot.parts), snapshot.manifest.counts.deleted) == (1, 0)

    def _keep(self, batch) -> None:
        self.tables |= {table.table_id: table for table in batch[0]}
        self.passages |= {passage.passage_id: passage for passage in batch[1]}

    @invariant()
    def holds_what_it_should(self) -> None:
        if not hasattr(self, "place"):
            return
        with Snapshot.open(self.index.directory) as snapshot:
            assert snapshot.manifest.generation >= self.generation
            self.generation = snapshot.manifest.generation
            reader = IndexReader.of(snapshot)
            assert {table.table_id: table for table in reader.corpus.tables} == self.tables
            assert {passage.passage_id: passage for passage in reader.corpus.passages} == self.passages
            assert linked(reader) == {
                (table.table_id, link.row, link.passage_id)
                for table in self.tables.values()
                for link in table.hyperlinks
                if link.passage_id in self.passages
            }
            check_statistics(reader, self.encoder)
        assert check_index(self.index.directory) == []


def linked(reader: IndexReader) -> set[tuple[str, int, str]]:
    edges = (reader.graph.edge(number) for number in range(reader.graph.edge_count))
    pairs = ((reader.corpus.segment_id(edge.segment), reader.corpus.passages.id(edge.passage)) for edge in edges)
    return {(segment.table_id, segment.row, passage) for segment, passage in pairs}


def check_statistics(reader: IndexReader, encoder: MiniLMEncoder) -> None:
    """Counts over all parts are those of the texts that are left."""
    texts = []
    for part, segments, passages in zip(
        reader.parts, reader.numbering.segments, reader.numbering.passages, strict=True
    ):
        nodes = [*segments.tolist(), *(passages + part.corpus.segment_count).tolist()]
        texts += [text for node in nodes for text in node_texts(part.corpus, node, node + 1)]
    assert len(texts) == reader.node_count
    if texts:
        np.testing.assert_array_equal(reader.tokens.frequencies, token_frequencies(texts, encoder))
    holders = reader.statistics.holders(np.array([term_hash(word) for word in WORDS], np.uint64))
    assert holders.tolist() == [sum(word in text.split(". ", 1)[1] or text.startswith(f"{word}.") for text in texts)
                                for word in WORDS]  # fmt: skip
    lengths = reader.tokens.lengths_of(np.arange(reader.node_count))
    assert sorted(lengths.tolist()) == sorted(len(ids) for ids in encoder.token_ids(texts))


@pytest.mark.slow
def test_random_changes(tmp_path: Path, encoder: MiniLMEncoder):
    config = load_config(overrides=["encoder.runtime=torch", "linking.source=hyperlinks"])
    build_from([], [Passage("first", "first", "first")], tmp_path / "base", config=config)
    Living.base, Living.encoder = tmp_path / "base", encoder
    run_state_machine_as_test(
        Living,
        settings=settings(
            max_examples=CASES or 3,
            stateful_step_count=30 if CASES else 10,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.reuse, Phase.generate),
        ),  # fmt: skip
    )
