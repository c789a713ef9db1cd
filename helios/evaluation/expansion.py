"""How many gold edges that the data graph lacks are found by node expansion (HELIOS 4.2)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from helios.engine import Engine
from helios.evaluation.questions import Question
from helios.graph import DataGraph, Subgraph
from helios.index.reader import Corpus
from helios.retrieval.state import run_stages
from helios.types import Edge, Origin


@dataclass(frozen=True, slots=True)
class Recovery:
    """Gold edges without a link, and those of them that expansion added; counted over questions."""

    questions: int
    """Questions with a gold edge that is not linked."""
    missing: int
    recovered: int
    unfound: tuple[tuple[str, Edge], ...]
    """Question id and edge of every gold edge that stayed missing."""

    @property
    def share(self) -> float:
        """Recovered of missing, 1.0 where nothing is missing."""
        return self.recovered / self.missing if self.missing else 1.0


def linkable_edges(question: Question, corpus: Corpus) -> tuple[Edge, ...]:
    """The question's gold edges whose two nodes are in the corpus, in order."""
    edges = []
    for gold in question.gold_edges:
        if gold.segment_id is None or gold.passage_id is None:
            continue
        passage = corpus.passages.find(gold.passage_id)
        if passage is None or corpus.tables.find(gold.segment_id.table_id) is None:
            continue
        edges.append(Edge(corpus.segment_number(gold.segment_id), passage))
    return tuple(edges)


def missing_edges(question: Question, corpus: Corpus, graph: DataGraph) -> tuple[Edge, ...]:
    """Those of the linkable edges that are not linked."""
    return tuple(edge for edge in linkable_edges(question, corpus) if not _is_linked(edge, graph))


def _is_linked(edge: Edge, graph: DataGraph) -> bool:
    if edge.segment is None or edge.passage is None:
        return False
    return graph.edge_number(edge.segment, edge.passage) is not None


def count_recovered(
    expand: Callable[[str], Subgraph], questions: Sequence[Question], corpus: Corpus, graph: DataGraph
) -> Recovery:
    """Expand the questions that miss a link; `expand` gives a question's subgraph after expansion."""
    asked = missing = recovered = 0
    unfound: list[tuple[str, Edge]] = []
    for question in questions:
        edges = missing_edges(question, corpus, graph)
        if not edges:
            continue
        found = set(_expanded(expand(question.text)))
        asked += 1
        missing += len(edges)
        recovered += sum(edge in found for edge in edges)
        unfound += [(question.question_id, edge) for edge in edges if edge not in found]
    return Recovery(asked, missing, recovered, tuple(unfound))


def until_expanded(engine: Engine, question: str) -> Subgraph:
    """What a search has for a question right after expansion."""
    names = [stage.name for stage in engine.pipeline.stages]
    stages = engine.pipeline.stages[: names.index("expand") + 1]
    return run_stages(engine.begin(question), stages).subgraph


def _expanded(subgraph: Subgraph) -> Iterable[Edge]:
    return (scored.edge for scored in subgraph.edges if scored.origin is Origin.EXPANDED)
