"""Collections of documents alone: is the search better at finding them than BM25?

    COLLECTIONS/NAME/corpus/      what the index INDEXES/NAME was built from: documents whose ids the judgements name
    COLLECTIONS/NAME/queries.jsonl, COLLECTIONS/NAME/qrels/SPLIT.tsv      as BEIR has them

Both rank the documents of one index: HELIOS by its whole search, in the order in which documents first appear among
its edges, BM25 as `helios eval retrieval --baseline bm25-edge` has it.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from helios.errors import EvaluationError
from helios.evaluation.evaluate import MeasureResult
from helios.evaluation.sources.loaders.beir import load_beir
from helios.evaluation.sources.measures import mean, ndcg
from helios.evaluation.sources.questions import SourceQuestion

if TYPE_CHECKING:
    from helios.engine import Engine
    from helios.evaluation.edges import RankedEdge

DEPTH = 10
"""Documents of each list that are looked at."""


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """nDCG@10 of both systems on one collection, and how many times BM25's that of HELIOS is."""

    name: str
    helios: MeasureResult
    bm25: MeasureResult
    ratio: float
    ratio_low: float
    """Both ends of the ratio's 95 % interval, of a paired bootstrap over questions."""
    ratio_high: float
    p50_ms: float
    """Of a search by HELIOS."""


def read_collection(folder: Path, *, split: str) -> list[SourceQuestion]:
    """The judged queries of a split; EvaluationError where there are none."""
    asked = list(load_beir(folder, split=split))
    if not asked:
        raise EvaluationError(f"{folder}: no query of {split} has a relevant document: see qrels/{split}.tsv")
    return asked


def measure_collection(
    engine: "Engine",
    name: str,
    queries: Sequence[SourceQuestion],
    *,
    k1: float,
    b: float,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> CollectionReport:
    """Ask an index of the collection all of its queries.

    EvaluationError where the index has none of the judged documents: it is of another corpus.
    """
    from helios.evaluation.baselines import Bm25Baseline
    from helios.evaluation.edges import ranked_edges
    from helios.evaluation.units import RetrievalUnit

    _check_judged(engine, name, queries)
    bm25 = Bm25Baseline(engine.corpus, engine.graph, unit=RetrievalUnit.EDGE, k1=k1, b=b)
    engine.warm_up()
    ours, theirs, seconds = [], [], []
    for done, query in enumerate(queries, start=1):
        started = time.perf_counter()
        found = engine.search(query.text, k=DEPTH)
        seconds.append(time.perf_counter() - started)
        ours.append(ndcg(_documents(ranked_edges(found)), query.qrels, k=DEPTH))
        theirs.append(ndcg(_documents(bm25.search(query.text, k=DEPTH)), query.qrels, k=DEPTH))
        progress(done)
    low, high = _ratio_interval(ours, theirs, seed=seed)
    return CollectionReport(
        name, mean(f"nDCG@{DEPTH}", ours, seed=seed), mean(f"nDCG@{DEPTH}", theirs, seed=seed),
        float(np.mean(ours)) / max(float(np.mean(theirs)), 1e-9), low, high, 1e3 * float(np.median(seconds)),
    )  # fmt: skip


def _documents(edges: "Iterable[RankedEdge]") -> list[str]:
    """Ids of documents in the order of their first edge."""
    return list(dict.fromkeys(edge.passage.passage_id for edge in edges if edge.passage is not None))


def _check_judged(engine: "Engine", name: str, queries: Sequence[SourceQuestion]) -> None:
    judged: Mapping[str, int] = {document: 1 for query in queries for document in query.qrels}
    if not any(passage.passage_id in judged for passage in engine.corpus.passages):
        raise EvaluationError(
            f"{engine.snapshot.directory}: none of the judged documents of {name} is in this index: build it from the "
            "collection's corpus/ folder"
        )


def _ratio_interval(ours: Sequence[float], theirs: Sequence[float], *, seed: int) -> tuple[float, float]:
    """95 % of the ratios of the two means over resampled questions."""
    numbers = np.random.default_rng(seed).integers(len(ours), size=(1000, len(ours)))
    ratios = np.array(ours)[numbers].mean(axis=1) / np.maximum(np.array(theirs)[numbers].mean(axis=1), 1e-9)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)
