"""The refiner that asks a language model (HELIOS 4.3, appendix C): aggregation over whole tables, then verification.

The local refiner always goes first: it costs little, its report decides whether the model is worth asking, and it
answers for every part on which the model fails or contradicts itself. A failure is a line in `report.problems`,
never a `no`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from helios.config import AdvancedRefinementSettings, LanguageModelSettings
from helios.graph import Subgraph
from helios.llm import Answer, Budget, Failure, FailureKind, LanguageModel, Request, estimate_tokens
from helios.llm.outcome import Outcome, Shape
from helios.retrieval.refinement import llm_prompts as prompts
from helios.retrieval.refinement.local import LocalRefinement, edges_of_row
from helios.retrieval.report import RefinementMode
from helios.retrieval.state import SearchState
from helios.types import Edge, Origin, Passage, ScoredEdge

LIKELY = 0.5
"""From this probability of an aggregation query on, the local stage counts as saying yes."""
_RIVALS = 10
"""Stars that `confidence` compares."""
VERDICT = 2.5
"""What the model's word on an edge is worth, in log-odds, beside half of what was known of it before. Declared and not
fitted: no model was at hand to fit it on."""


def chosen(score: float) -> float:
    """The log-odds of an edge of a row that the model chose."""
    return score / 2 + VERDICT


class LlmRefinement:
    """The stage: refines with a language model where it can matter, and with `local` everywhere else."""

    name = "refine"

    def __init__(
        self, model: LanguageModel, local: LocalRefinement, llm: LanguageModelSettings,
        settings: AdvancedRefinementSettings,
    ) -> None:  # fmt: skip
        self.model = model
        self.local = local
        self.llm = llm
        self.settings = settings

    def __repr__(self) -> str:
        return f"LlmRefinement({self.model!r}, {self.settings})"

    @property
    def depth(self) -> int:
        """Edges that it reads."""
        return self.local.depth

    def run(self, state: SearchState) -> SearchState:
        """Aggregate and verify; the report's mode is LLM if any of the model's answers was used.

        What a question may spend is the state's budget, a fresh one by default; the report's calls are those made here.
        """
        local = self.local.run(state)
        asked, why = self.worthwhile(state, local)
        if not asked:
            return replace(local, report=replace(local.report, model=f"language model not asked: {why}"))
        refined = _Inquiry(state, local, self).refine()
        return replace(refined, report=replace(refined.report, model=f"language model asked: {why}"))

    def worthwhile(self, state: SearchState, local: SearchState) -> tuple[bool, str]:
        """The gate and its reason: the model is asked about likely aggregations, and where no star stands out."""
        if not state.subgraph.edges:
            return False, "no edges were found"
        gate, likely = self.settings.gate, local.report.aggregation
        if gate >= 1.0:
            return True, "advanced.refinement.gate is 1"
        if likely >= LIKELY:
            return True, f"likely an aggregation ({likely:.2f})"
        sure = confidence(local.subgraph)
        if sure < gate:
            return True, f"no row stands out (confidence {sure:.2f}, gate {gate:.2f})"
        return False, f"the best row stands out (confidence {sure:.2f}, gate {gate:.2f})"


def confidence(subgraph: Subgraph) -> float:
    """How far the best star stands out, 0 to 1: its share in a softmax over the best edges of the first ten stars."""
    best: dict[int | None, float] = {}
    for scored in subgraph.edges:
        best.setdefault(scored.edge.segment, scored.score)
        if len(best) == _RIVALS:
            break
    if not best:
        return 0.0
    top = max(best.values())
    return 1.0 / sum(math.exp(score - top) for score in best.values())


@dataclass(frozen=True, slots=True)
class _TableQuestion:
    """A request over one table, or all; number n in the reply stands for `segments[n - 1]`."""

    request: Request[prompts.Numbers]
    tables: tuple[int, ...]
    segments: tuple[int, ...]
    left_out: str


@dataclass(frozen=True, slots=True)
class _StarQuestion:
    """A request over one star, or all; number n in the reply stands for `edges[n - 1]`."""

    request: Request[prompts.Numbers]
    edges: tuple[Edge, ...]


class _Inquiry:
    """What one question asks the model, and what comes of it."""

    def __init__(self, state: SearchState, local: SearchState, refiner: LlmRefinement) -> None:
        self.state = state
        self.question = state.question
        self.subgraph = state.subgraph
        self.index = state.index
        self.local = local
        self.new_edges = refiner.local.new_edges
        self.model = refiner.model
        self.llm = refiner.llm
        self.settings = refiner.settings
        self.budget: Budget = state.budget or self.model.budget(deadline=state.deadline)
        self.calls_before = self.budget.spent.calls
        self.problems: list[str] = list(local.report.problems)
        self.answers = 0
        self.degraded = False
        self.unavailable = False
        self.segments: list[int] = []
        self.plans: list[str] = []

    def refine(self) -> SearchState:
        """Classify, aggregate, verify; the local result where the model gave nothing."""
        aggregation = self.is_aggregation()
        aggregated = self.aggregate() if aggregation and not self.unavailable else self.subgraph
        by_model, locally = (set[Edge](), set[Edge]()) if self.unavailable else self.irrelevant(aggregated)
        rejected = by_model | locally
        calls = self.budget.spent.calls - self.calls_before
        report = replace(self.local.report, calls=calls, problems=tuple(self.problems), degraded=self.degraded)
        if not self.answers:
            return replace(self.local, report=report)
        before = {scored.edge: scored.score for scored in self.subgraph.edges}
        promoted = (s.edge for s in aggregated.edges if s.score > before.get(s.edge, -math.inf))
        report = replace(
            report,
            mode=RefinementMode.LLM,
            aggregation=float(aggregation),
            plans=tuple(self.plans),
            cells=(),
            segments=tuple(self.segments),
            promoted=tuple(promoted),
            rejected=tuple(scored.edge for scored in aggregated.edges if scored.edge in rejected),
        )
        told = (
            replace(scored, score=scored.score / 2 - VERDICT) if scored.edge in by_model else scored
            for scored in aggregated.edges
        )
        judged = (replace(scored, rejected=scored.edge in rejected) for scored in told)
        return replace(self.state.with_edges(judged), report=report)

    def is_aggregation(self) -> bool:
        """Whether the question needs an aggregation; the local stage's opinion if the model has none."""
        request = prompts.classify(self.question, max_tokens=self.llm.reply_tokens)
        (outcome,) = self._ask([request])
        if isinstance(outcome, Answer):
            return outcome.value.aggregation
        self.unavailable = outcome.kind is FailureKind.UNAVAILABLE
        stands = "nothing more was asked, the local stage stands" if self.unavailable else "the local stage decided"
        self._fail(f"aggregation query: {outcome}; {stands}")
        return self.local.report.aggregation >= LIKELY

    def aggregate(self) -> Subgraph:
        """The subgraph with the edges of the rows that the model chose raised or added (column-wise aggregation)."""
        questions = list(self._table_questions())
        outcomes = self._ask([question.request for question in questions])
        subgraph = self.subgraph
        unsettled: list[int] = []
        for question, outcome in zip(questions, outcomes, strict=True):
            if question.left_out:
                self.problems.append(question.left_out)
            if isinstance(outcome, Failure):
                self._fail(f"{self._names(question.tables)}: {outcome}; the local aggregation stands")
                unsettled += question.tables
                continue
            segments = [question.segments[number - 1] for number in outcome.value.distinct()]
            subgraph = subgraph.merge(self._raised(segments))
            self.segments += segments
            if segments:
                self.plans.append(f"language model: {self._rows(segments)}")
        if questions and not unsettled and not self.segments:
            self._fail("aggregation: contradictory: no table holds a row of the result; the local aggregation stands")
            unsettled = [table for question in questions for table in question.tables]
        return subgraph.merge(self._chosen_locally(unsettled))

    def irrelevant(self, subgraph: Subgraph) -> tuple[set[Edge], set[Edge]]:
        """Edges that the model rejects, and those that the local verdict rejects where the model gave none."""
        questions = list(self._star_questions(subgraph))
        outcomes = self._ask([question.request for question in questions])
        judged: set[Edge] = set()
        kept: set[Edge] = set()
        failures: dict[FailureKind, list[Failure]] = {}
        for question, outcome in zip(questions, outcomes, strict=True):
            if isinstance(outcome, Failure):
                failures.setdefault(outcome.kind, []).append(outcome)
                continue
            judged |= set(question.edges)
            kept |= {question.edges[number - 1] for number in outcome.value.distinct()}
        for failed in failures.values():
            stars = f"verification of {len(failed)} of {len(questions)}"
            self._fail(f"{stars}: {failed[0]}; the local verdict stands")
        kept |= self._chosen_but_rejected(judged, kept)
        if judged and not kept:
            words = f"none of {len(judged)} pairs was kept"
            self._fail(f"verification: contradictory: {words}; the local verdict stands")
            judged = set()
        return judged - kept, set(self.local.report.rejected) - judged

    def _chosen_but_rejected(self, judged: set[Edge], kept: set[Edge]) -> set[Edge]:
        """Edges of the rows that the aggregation chose and of which verification kept none: the aggregation stands."""
        still = {edge.segment for edge in kept}
        rows = [row for row in dict.fromkeys(self.segments) if row not in still]
        spared = {edge for edge in judged if edge.segment in rows}
        if spared:
            rejected = self._rows([row for row in rows if any(edge.segment == row for edge in spared)])
            self._fail(f"{rejected}: contradictory: chosen, but no passage was kept; the aggregation stands")
        return spared

    def _fail(self, words: str) -> None:
        """The local stage stands in for the model."""
        self.degraded = True
        self.problems.append(words)

    def _ask(self, requests: Sequence[Request[Shape]]) -> list[Outcome[Shape]]:
        outcomes = self.model.ask(requests, budget=self.budget)
        self.answers += sum(isinstance(outcome, Answer) for outcome in outcomes)
        return outcomes

    def _table_questions(self) -> Iterator[_TableQuestion]:
        """A request for every table of the best stars, or one for them all (graph prompting)."""
        found: dict[int, list[int]] = {}
        for star in self.subgraph.stars():
            found.setdefault(self.index.corpus.table_of(star.segment), []).append(star.segment)
        tables = dict(list(found.items())[: self.settings.tables])
        if self.settings.prompting == "star":
            questions = [self._table_question({table: segments}) for table, segments in tables.items()]
        else:
            questions = [self._table_question(tables)] if tables else []
        for question in questions:
            if question.segments:
                yield question
            else:
                self._fail(f"{question.left_out}; the local aggregation stands")

    def _table_question(self, tables: dict[int, list[int]]) -> _TableQuestion:
        """Whole tables, then what is left of the prompt for passages of their rows, those of the stars first."""
        corpus, room = self.index.corpus, self.llm.prompt_tokens
        most = max(1, room // prompts.FEWEST_PROMPT_TOKENS)
        left_out = [f"{self._names([table])} did not fit into the prompt" for table in list(tables)[most:]]
        tables = dict(list(tables.items())[:most])
        share = room // len(tables) - 1
        texts: list[str] = []
        segments: list[int] = []
        for table, stars in tables.items():
            first = int(corpus.segment_offsets[table])
            rows = {segment - first for segment in stars}
            shown = prompts.show_table(
                corpus.tables[table], self.question, tokens=share, first=rows, start=len(segments) + 1
            )
            texts.append(shown.text)
            segments += [first + row for row in shown.rows]
            if words := shown.left_out():
                left_out.append(f"{self._names([table])}: {words}")
        room -= sum(estimate_tokens(text) + 1 for text in texts)
        known = {segment for stars in tables.values() for segment in stars}
        texts.append(prompts.show_linked(self._linked(segments, known, room), tokens=room))
        request = prompts.aggregate(
            self.question,
            "\n".join(filter(None, texts)),
            count=len(segments),
            max_tokens=self.llm.reply_tokens,
        )
        return _TableQuestion(request, tuple(tables), tuple(segments), "; ".join(left_out))

    def _linked(self, segments: Sequence[int], known: set[int], tokens: int) -> list[tuple[int, Passage]]:
        """(row number, passage) for rows of the stars, then of the rest, about as many as `tokens` can hold."""
        numbered = sorted(enumerate(segments, start=1), key=lambda row: (row[1] not in known, row[0]))
        most = max(0, tokens) // prompts.SHORTEST_PASSAGE_TOKENS
        linked: list[tuple[int, Passage]] = []
        for number, segment in numbered:
            if len(linked) >= most:
                break
            passages = self.index.graph.passages_of(segment)
            linked += [(number, self.index.corpus.passages[int(passage)]) for passage in passages]
        return linked[:most]

    def _star_questions(self, subgraph: Subgraph) -> Iterator[_StarQuestion]:
        """A request for every star with passages, best first, or one for them all (graph prompting)."""
        stars = [star for star in subgraph.stars() if star.passages][: self.settings.stars]
        texts: list[str] = []
        edges: list[Edge] = []
        cut = 0
        room = self.llm.prompt_tokens
        for star in stars:
            passages = [self.index.corpus.passages[passage] for passage in star.passages]
            segment = self.index.corpus.segment(star.segment)
            shown = prompts.show_star(segment, passages, tokens=room, start=len(edges) + 1)
            if not shown.shown:
                self.problems.append(f"{len(stars) - len(texts)} stars did not fit into the prompt of the graph")
                break
            cut += shown.cut
            pairs = [Edge(star.segment, passage) for passage in star.passages[: shown.shown]]
            if self.settings.prompting == "star":
                yield self._star_question(shown.text, tuple(pairs))
                continue
            room -= estimate_tokens(shown.text) + 1
            texts.append(shown.text)
            edges += pairs
        if cut:
            self.problems.append(f"{cut} texts were shortened for verification")
        if texts:
            yield self._star_question("\n\n".join(texts), tuple(edges))

    def _star_question(self, text: str, edges: tuple[Edge, ...]) -> _StarQuestion:
        request = prompts.verify(
            self.question,
            text,
            count=len(edges),
            max_tokens=self.llm.reply_tokens,
            graph=self.settings.prompting == "graph",
        )
        return _StarQuestion(request, edges)

    def _raised(self, segments: Sequence[int]) -> list[ScoredEdge]:
        """All edges of the rows that an aggregation chose, worth more by that."""
        retrieved: dict[int, list[ScoredEdge]] = {}
        for scored in self.subgraph.edges:
            if scored.edge.segment is not None:
                retrieved.setdefault(scored.edge.segment, []).append(scored)
        raised = [scored for segment in segments for scored in retrieved.get(segment, ())]
        present = {scored.edge for scored in raised}
        entering = [edge for row in segments for edge in edges_of_row(self.index, row) if edge not in present]
        if entering:
            self.state, scores = self.new_edges.score(self.state, entering)
            pairs = zip(entering, scores.tolist(), strict=True)
            raised += [ScoredEdge(edge, score, Origin.AGGREGATED) for edge, score in pairs]
        return [replace(scored, score=max(scored.score, chosen(scored.score))) for scored in raised]

    def _chosen_locally(self, tables: Sequence[int]) -> list[ScoredEdge]:
        """The edges of these tables that the local stage brought to the front, as it scored them."""
        promoted = set(self.local.report.promoted)
        return [
            scored
            for scored in self.local.subgraph.edges
            if scored.edge in promoted
            and scored.edge.segment is not None
            and self.index.corpus.table_of(scored.edge.segment) in tables
        ]

    def _names(self, tables: Sequence[int]) -> str:
        return ", ".join(f'table "{self.index.corpus.tables.id(table)}"' for table in tables)

    def _rows(self, segments: Sequence[int]) -> str:
        return ", ".join(str(self.index.corpus.segment_id(segment)) for segment in segments)
