"""Which nodes of an index a deletion means: by id, by source file, by a filter."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from helios.corpus import CorpusStore
from helios.corpus.where import Where
from helios.index.reader import Corpus, IndexReader
from indexing.living.draft import Numbers

Mask = NDArray[np.bool_]


def with_ids(corpus: Corpus, ids: Iterable[str]) -> tuple[Mask, tuple[str, ...]]:
    """The nodes (N) of tables and passages with these ids, and the ids that no record has."""
    mask, missing = _nothing(corpus), []
    for record_id in ids:
        table, passage = live_table(corpus, record_id), corpus.passages.find(record_id)
        if table is not None:
            mask[int(corpus.segment_offsets[table]) : int(corpus.segment_offsets[table + 1])] = True
        if passage is not None:
            mask[corpus.segment_count + passage] = True
        if table is None and passage is None:
            missing.append(record_id)
    return mask, tuple(missing)


def of_sources(corpus: Corpus, sources: Sequence[str]) -> Mask:
    """The nodes (N) of records from these files, and from files within them."""
    wanted, within = set(sources), tuple(f"{source}/" for source in sources)
    tables, passages = (
        np.array([one in wanted or one.startswith(within) for one in records.column("source")], bool)
        for records in (corpus.tables, corpus.passages)
    )
    return np.concatenate([np.repeat(tables, np.diff(corpus.segment_offsets)), passages]).astype(bool)


def that_pass(corpus: Corpus, where: str) -> Mask:
    """The nodes (N) that a filter lets through; WhereError if it cannot be read."""
    return Where.parse(where).nodes(corpus)


def live_table(corpus: Corpus, table_id: str) -> int | None:
    """The number of the table with this id; None where there is none, or one without a row, which nothing finds."""
    number = corpus.tables.find(table_id)
    if number is None or corpus.segment_offsets[number] == corpus.segment_offsets[number + 1]:
        return None
    return number


def of_records(corpus: Corpus, tables: Sequence[str], passages: Sequence[str]) -> Mask:
    """The nodes (N) of tables and of passages that are there, each by its id among its kind."""
    mask = _nothing(corpus)
    for name in tables:
        number = corpus.tables.number(name)
        mask[int(corpus.segment_offsets[number]) : int(corpus.segment_offsets[number + 1])] = True
    for name in passages:
        mask[corpus.segment_count + corpus.passages.number(name)] = True
    return mask


def known_ids(store: CorpusStore, corpus: Corpus, going: Mask) -> tuple[list[str], list[str]]:
    """Ids of a store's tables, and of its passages, that a corpus has too; not of nodes (N) that go."""
    tables = [
        name
        for name in store.tables.ids()
        if (number := live_table(corpus, name)) is not None and not going[int(corpus.segment_offsets[number])]
    ]
    passages = [
        name
        for name in store.passages.ids()
        if (number := corpus.passages.find(name)) is not None and not going[corpus.segment_count + number]
    ]
    return tables, passages


def by_part(reader: IndexReader, mask: Mask) -> dict[str, Numbers]:
    """The marked nodes of each part, by its name and by its own numbers."""
    nodes = np.flatnonzero(mask)
    if not len(nodes):
        return {}
    return {reader.parts[part].view.part.name: own for part, _, own in reader.numbering.by_part(nodes)}


def _nothing(corpus: Corpus) -> Mask:
    return np.zeros(corpus.segment_count + len(corpus.passages), bool)
