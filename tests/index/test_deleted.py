"""Deleted nodes: nothing shows, reads or counts them; a search is one of an index that was made without them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helios.config import load_config
from helios.corpus import CorpusStore, CorpusWriter
from helios.corpus.sample import QUESTIONS, sample_path
from helios.engine import Engine
from helios.errors import IndexFormatError
from helios.evaluation.questions import read_questions
from helios.graph import DataGraph
from helios.graph.data import LINK_COLUMNS
from helios.index.fsck import check_index
from helios.index.lexical import Postings, write_postings
from helios.index.manifest import Counts, Part, read_manifest, write_manifest
from helios.index.reader import IndexReader
from helios.index.snapshot import Snapshot
from helios.index.titles import TitleTerms
from helios.index.tokens import write_tokens
from helios.index.tombstones import Tombstones
from helios.models.encoder import MiniLMEncoder
from helios.retrieval.pipeline import Models
from helios.types import Evidence, Hyperlink, SegmentId
from indexing.commit import write_tombstones
from indexing.cut import cut_index
from indexing.encoding import node_texts, token_frequencies
from indexing.stage import file_entries

WHOLE_TABLE = "european-rivers"
GOLD_PASSAGE = "gallium"


@pytest.fixture(scope="module")
def gone(engine: Engine) -> list[int]:
    """A whole table, some rows of others, and a quarter of the passages, with one that questions ask for."""
    random, corpus = np.random.default_rng(5), engine.corpus
    offsets = corpus.segment_offsets
    table = corpus.tables.number(WHOLE_TABLE)
    rows = set(range(int(offsets[table]), int(offsets[table + 1])))
    rows |= set(random.choice(corpus.segment_count, 12, replace=False).tolist())
    passages = {corpus.passages.number(GOLD_PASSAGE)}
    passages |= set(random.choice(len(corpus.passages), len(corpus.passages) // 4, replace=False).tolist())
    return sorted(rows | {passage + corpus.segment_count for passage in passages})


@pytest.fixture(scope="module")
def deleted_index(sample_index: Path, gone, encoder: MiniLMEncoder, tmp_path_factory) -> Path:
    """The sample index with these nodes deleted."""
    index = Path(shutil.copytree(sample_index, tmp_path_factory.mktemp("deleted") / "index"))
    delete(index, gone, encoder)
    return index


@pytest.fixture(scope="module")
def deleted_parts(sample_index: Path, gone, encoder: MiniLMEncoder, tmp_path_factory) -> Path:
    """The same nodes deleted of the sample index in five parts."""
    index = tmp_path_factory.mktemp("deleted-parts") / "index"
    cut_index(sample_index, index, 5)
    delete(index, gone, encoder)
    return index


@pytest.fixture(scope="module")
def index_without(sample_index: Path, gone, encoder: MiniLMEncoder, tmp_path_factory) -> Path:
    """An index of the other records alone, with the vectors and links that they have in the sample index."""
    index = tmp_path_factory.mktemp("without") / "index"
    write_without(sample_index, index, set(gone), encoder)
    return index


def delete(index: Path, gone: list[int], encoder: MiniLMEncoder) -> None:
    """A new snapshot in which these nodes of all parts together are deleted."""
    manifest, parts = read_manifest(index), []
    with Snapshot.open(index) as snapshot:
        reader = IndexReader.of(snapshot)
        own = {part: nodes for part, _, nodes in reader.numbering.by_part(np.array(gone))}
        for number, part in enumerate(manifest.parts):
            nodes, store = own.get(number, np.zeros(0, np.int64)), reader.parts[number].corpus
            texts = [next(node_texts(store, node, node + 1)) for node in nodes.tolist()]
            frequencies = token_frequencies(texts, encoder)
            held = np.flatnonzero(frequencies)
            tombstones = Tombstones(nodes, held.astype(np.int32), frequencies[held])
            entry = write_tombstones(index, part.name, tombstones, revision=1)
            counts = part.counts.model_copy(update={"deleted": len(nodes)})
            parts.append(part.model_copy(update={"tombstones": entry, "counts": counts}))
    update = {"parts": tuple(parts), "counts": sum((part.counts for part in parts), Counts())}
    write_manifest(index, manifest.model_copy(update=update | {"generation": manifest.generation + 1}))


def write_without(source: Path, out: Path, gone: set[int], encoder: MiniLMEncoder) -> None:
    """Store the records of a one-part index that are not gone as a build of them alone would."""
    manifest = read_manifest(source)
    with Snapshot.open(source) as snapshot:
        whole = IndexReader.of(snapshot)
        kept = np.array([node for node in range(whole.node_count) if node not in gone])
        folder = out / "parts" / "0001"
        store = write_records(whole, folder / "corpus", gone)
        stored = [whole.parts[0].tokens.quantised(*span_of(whole, node)) for node in kept.tolist()]
        np.savez(
            out / "chunk.npz",
            counts=whole.tokens.lengths_of(kept),
            frequencies=token_frequencies(list(node_texts(store, 0, len(kept))), encoder),
            pooled=whole.parts[0].tokens.pooled[kept[kept >= whole.segment_count] - whole.segment_count],
            **{
                name: np.concatenate([getattr(own, name) for own in stored])
                for name in ("codes", "scales", "residuals")
            },
        )
        tokens = write_tokens(
            [out / "chunk.npz"], whole.parts[0].tokens.quantiser, folder / "tokens", encoder=whole.encoder
        )
        (out / "chunk.npz").unlink()
        write_postings(node_texts(store, 0, len(kept)), folder / "lexical", segment_count=store.segment_count)
        TitleTerms.of(store.passages.titles(), Postings(folder / "lexical").idf).write(folder / "lexical")
        graph = write_graph(whole, kept, out / "links" / "0001", store)
        shutil.copytree(source / manifest.codebooks[0].folder, out / "codebooks" / "0001")
    counts = Counts(
        tables=len(store.tables), segments=store.segment_count, passages=len(store.passages), edges=graph.edge_count,
        tokens=tokens,
    )  # fmt: skip
    (links,) = manifest.links
    part = Part(
        name="0001", folder="parts/0001", counts=counts, corpus_sha256="", inputs_sha256="",
        files=file_entries(folder), tombstones=write_tombstones(out, "0001", Tombstones.none()), codebook="0001",
    )  # fmt: skip
    layer = links.model_copy(update={"edges": graph.edge_count, "files": file_entries(out / "links" / "0001")})
    update = {"counts": counts, "parts": (part,), "links": (layer,), "generation": manifest.generation + 1}
    write_manifest(out, manifest.model_copy(update=update))


def write_records(whole: IndexReader, folder: Path, gone: set[int]) -> CorpusStore:
    """Tables with the rows that are left, and passages; a table of which nothing is left is gone too."""
    corpus, segments = whole.corpus, whole.segment_count
    with CorpusWriter(folder) as writer:
        for number, table in enumerate(corpus.tables):
            first = int(corpus.segment_offsets[number])
            rows = [row for row in range(len(table.rows)) if first + row not in gone]
            links = [
                Hyperlink(rows.index(link.row), link.column, link.passage_id)
                for link in table.hyperlinks
                if link.row in rows
            ]
            if rows:
                writer.add(replace(table, rows=tuple(table.rows[row] for row in rows), hyperlinks=tuple(links)))
        for number, passage in enumerate(corpus.passages):
            if number + segments not in gone:
                writer.add(passage)
    return CorpusStore.open(folder)


def write_graph(whole: IndexReader, kept: np.ndarray, folder: Path, store: CorpusStore) -> DataGraph:
    graph, segments = whole.graph, whole.segment_count
    number = {node: place for place, node in enumerate(kept.tolist())}
    rows: list[tuple] = []
    for edge in range(graph.edge_count):
        left, right = int(graph.edge_segments[edge]), int(graph.edge_passages[edge]) + segments
        if left in number and right in number:
            span = range(int(graph.link_offsets[edge]), int(graph.link_offsets[edge + 1]))
            pair = number[left], number[right] - store.segment_count
            rows += [(*pair, *(getattr(graph, name)[link] for name in LINK_COLUMNS)) for link in span]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return DataGraph.write(folder, *columns, segment_count=store.segment_count, passage_count=len(store.passages))


def span_of(whole: IndexReader, node: int) -> tuple[int, int]:
    offsets = whole.parts[0].tokens.offsets
    return int(offsets[node]), int(offsets[node + 1])


@pytest.fixture(scope="module")
def opened(engine: Engine):
    """Engines over other folders, with the models of the shared one."""
    snapshots = []

    def open_index(index: Path, **options: Any) -> Engine:
        snapshots.append(Snapshot.open(index))
        return Engine(snapshots[-1], engine.config, models=engine.models, **options)

    yield open_index
    for snapshot in snapshots:
        snapshot.close()


def content(evidence: Evidence) -> list[tuple]:
    """What was found, without the row numbers: those of a table with deleted rows have gaps."""
    computed = evidence.computed
    return [
        *(
            (
                edge.rank, edge.score, edge.probability, edge.origin, edge.links, edge.rejected, edge.matches,
                edge.segment and (edge.segment.segment_id.table_id, edge.segment.cells), edge.passage,
            )
            for edge in evidence.edges
        ),
        evidence.present,
        computed and (computed.operation, computed.chance, [text for _, _, text in computed.cells], len(computed.rows)),
    ]  # fmt: skip


def test_both_indexes_are_sound(deleted_index: Path, index_without: Path, gone):
    assert [finding for finding in check_index(deleted_index) if finding.severity == "error"] == []
    assert check_index(index_without) == []
    counts, others = read_manifest(deleted_index).counts, read_manifest(index_without).counts
    assert counts.segments + counts.passages - len(gone) == others.segments + others.passages
    assert counts.deleted == len(gone)


def test_statistics_are_of_what_is_left(deleted_index: Path, index_without: Path, opened):
    one, other = opened(deleted_index).index, opened(index_without).index
    assert (one.segment_count, one.passage_count) == (other.segment_count, other.passage_count)
    np.testing.assert_array_equal(one.tokens.frequencies, other.tokens.frequencies)
    assert one.tokens.counted == other.tokens.counted
    hashes = other.parts[0].postings.terms
    np.testing.assert_array_equal(one.statistics.holders(hashes), other.statistics.holders(hashes))
    for name in ("mean_edge_length", "mean_passage_length", "node_count"):
        assert getattr(one.statistics, name) == getattr(other.statistics, name)
    np.testing.assert_array_equal(one.titles.shares, other.titles.shares)
    np.testing.assert_array_equal(one.titles.hashes, other.titles.hashes)
    for mine, theirs in zip(one.pooled_nodes(), other.pooled_nodes(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_search_is_one_of_an_index_without_them(deleted_index: Path, index_without: Path, opened):
    one, other = opened(deleted_index), opened(index_without)
    for question in read_questions(sample_path() / QUESTIONS)[::2]:
        found, expected = (engine.search(question.text, k=30, explain=True) for engine in (one, other))
        assert content(found) == content(expected), question.text


def test_they_may_be_in_any_part(deleted_index: Path, deleted_parts: Path, opened):
    one, other = opened(deleted_index), opened(deleted_parts)
    assert len(other.index.parts) == 5
    assert [finding for finding in check_index(deleted_parts) if finding.severity == "error"] == []
    np.testing.assert_array_equal(one.index.tokens.frequencies, other.index.tokens.frequencies)
    for question in read_questions(sample_path() / QUESTIONS)[1::4]:
        found, expected = (replace(engine.search(question.text), timings_ms={}) for engine in (other, one))
        assert found == expected, question.text


def test_nothing_of_them_is_shown(deleted_index: Path, engine: Engine, opened, gone):
    """No id of a deleted row or passage, whatever was asked for: results, links, computations, notes."""
    corpus, segments = engine.corpus, engine.index.segment_count
    rows = {str(corpus.segment_id(node)) for node in gone if node < segments}
    passages = {corpus.passages.id(node - segments) for node in gone if node >= segments}
    deleted = opened(deleted_index)
    seen_rows, seen_passages = set(), set()
    for question in read_questions(sample_path() / QUESTIONS)[::3]:
        evidence = deleted.search(question.text, k=1000)
        shown = json.loads(json.dumps(evidence.to_dict()))
        seen_rows |= {edge["segment"]["id"] for edge in shown["edges"] if edge["segment"]}
        seen_passages |= {edge["passage"]["id"] for edge in shown["edges"] if edge["passage"]}
        if shown["computed"]:
            seen_rows |= {*shown["computed"]["rows"], *(cell["segment"] for cell in shown["computed"]["cells"])}
        assert WHOLE_TABLE not in json.dumps([shown["edges"], shown["computed"]])
    assert not rows & seen_rows
    assert not passages & seen_passages
    assert len(seen_rows) == segments - len(rows)  # everything else is
    assert len(seen_passages) == len(corpus.passages) - len(passages)


def test_they_cannot_be_asked_for(deleted_index: Path, engine: Engine, opened, gone):
    deleted = opened(deleted_index)
    corpus, whole, segments = deleted.corpus, engine.corpus, engine.index.segment_count
    assert corpus.tables.find(WHOLE_TABLE) is None
    assert corpus.passages.find(GOLD_PASSAGE) is None
    for node in gone:
        if node < segments:
            with pytest.raises(KeyError):
                corpus.segment_number(whole.segment_id(node))
    offsets = whole.segment_offsets
    for number, table in enumerate(whole.tables):
        rows = [row for row in range(len(table.rows)) if int(offsets[number]) + row not in gone]
        if rows:
            assert corpus.tables.get(table.table_id).rows == tuple(table.rows[row] for row in rows)
            for row in rows:
                segment = corpus.segment(corpus.segment_number(SegmentId(table.table_id, row)))
                assert segment.cells == table.rows[row]
    assert deleted.view(f"id = '{WHOLE_TABLE}'").segment_count == 0
    assert deleted.view("kind = 'passage'").node_count == len(corpus.passages)


def test_a_language_model_is_shown_nothing_of_them(deleted_index: Path, index_without: Path, engine, scripted_llm):
    """The prompts are those of an index without them: tables, siblings and passages."""
    pytest.importorskip("openai", reason="openai is not installed (extra llm)")
    settings = [
        "refinement.mode=llm", f"llm.base_url={scripted_llm.url}", "llm.model=scripted", "advanced.refinement.gate=1.0",
        "encoder.runtime=torch",
    ]  # fmt: skip

    def reply(body: dict[str, Any]):
        fields = body["response_format"]["json_schema"]["schema"]["properties"]
        return scripted_llm.as_json({name: [1] if one["type"] == "array" else True for name, one in fields.items()})

    scripted_llm.script = reply
    prompts, models = [], Models(threads=1)
    for index in (deleted_index, index_without):
        scripted_llm.requests.clear()
        with Snapshot.open(index) as snapshot:
            asking = Engine(snapshot, load_config(overrides=settings), models=models)
            found = asking.search("Where does the longest river in the table of European rivers rise?", k=10)
        assert not found.degraded, found.notes
        prompts.append(sorted(json.dumps(body["messages"]) for body in scripted_llm.requests))
    models.close()
    assert prompts[0] == prompts[1]
    assert prompts[0]


class TestFiles:
    @pytest.fixture
    def tombstones(self) -> Tombstones:
        return Tombstones(np.array([1, 5]), np.array([3, 7], np.int32), np.array([2, 1], np.int32))

    def test_round_trip(self, tmp_path: Path, tombstones: Tombstones):
        tombstones.write(tmp_path / "a.npz")
        found = Tombstones.read(tmp_path / "a.npz")
        assert (found.nodes.tolist(), found.tokens.tolist(), found.counts.tolist()) == ([1, 5], [3, 7], [2, 1])
        assert found.frequencies(9).tolist() == [0, 0, 0, 2, 0, 0, 0, 1, 0]
        with pytest.raises(IndexFormatError, match="the tombstones name token 7, the encoder has 7"):
            found.frequencies(7)
        tombstones.write(tmp_path / "b.npz")
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
        assert (len(found), len(Tombstones.none())) == (2, 0)

    def test_those_of_format_1(self, tmp_path: Path):
        np.save(tmp_path / "a.npy", np.array([1, 5]))
        found = Tombstones.read(tmp_path / "a.npy")
        assert (found.nodes.tolist(), found.frequencies(3).tolist()) == ([1, 5], [0, 0, 0])

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: path.write_bytes(b"nothing"),
            lambda path: path.write_bytes(path.read_bytes()[:-40]),
            lambda path: path.unlink(),
            lambda path: np.savez(path, nodes=np.array([1])),
            lambda path: save(path, [1.5], [], []),
            lambda path: save(path, [2, 1], [], []),
            lambda path: save(path, [1], [3], []),
            lambda path: save(path, [1], [3], [-1]),
            lambda path: save(path, [1], [-3], [1]),
            lambda path: save(path, [[1]], [], []),
        ],
    )
    def test_damage_is_told(self, tmp_path: Path, tombstones: Tombstones, damage: Callable[[Path], None]):
        tombstones.write(tmp_path / "a.npz")
        damage(tmp_path / "a.npz")
        with pytest.raises(IndexFormatError, match=r"a\.npz: cannot read the tombstones"):
            Tombstones.read(tmp_path / "a.npz")


def save(path: Path, nodes: list, tokens: list[int], counts: list[int]) -> None:
    held = {"tokens": np.array(tokens, np.int32), "counts": np.array(counts, np.int32)}
    np.savez(path, nodes=np.array(nodes), **held)
