"""The refiner that asks a language model (HELIOS 4.3, appendix C): aggregation over whole tables, then verification.

The local refiner always goes first: it costs little, its report decides whether the model is worth asking, and it
answers for every part on which the model fails or contradicts itself. A failure is a line in `report.problems`,
never a `no`. Every step asks about the best first, is told what the steps before it found, and asks no more once the
model says that the evidence is enough:

    survey      does the question aggregate, and which tables are about it? One call over the titles
    aggregate   the rows that are the result: one call for each table, until one has them
    verify      rows with the passages that they link to: a few in each call, until they are enough
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
from helios.retrieval.refinement.wording import states_rank
from helios.retrieval.report import RefinementMode
from helios.retrieval.state import SearchState
from helios.types import Edge, Origin, Passage, ScoredEdge, Star

LIKELY = 0.5
"""From this probability of an aggregation query on, the local stage counts as saying yes."""
LISTED_TABLES = 12
"""Tables of the best stars whose titles the model sees."""
_RIVALS = 10
"""Stars that `confidence` compares."""
_READ_FOR_RANKS = 10
"""Best edges whose passages may state the rank that a question names."""
VERDICT = 2.5
"""What the model's word on an edge is worth, in log-odds, beside half of what was known of it before. Declared and not
fitted: no model was at hand to fit it on."""


def chosen(score: float) -> float:
    """The log-odds of an edge of a row that the model chose."""
    return score / 2 + VERDICT


def worth_more(scored: ScoredEdge) -> ScoredEdge:
    """An edge that the model named: never worth less by that."""
    return replace(scored, score=max(scored.score, chosen(scored.score)))


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
        gate, likely = self.settings.gate, likely_aggregation(state, local)
        if gate >= 1.0:
            return True, "advanced.refinement.gate is 1"
        if likely >= LIKELY:
            return True, f"likely an aggregation ({likely:.2f})"
        sure = confidence(local.subgraph)
        if sure < gate:
            return True, f"no row stands out (confidence {sure:.2f}, gate {gate:.2f})"
        return False, f"the best row stands out (confidence {sure:.2f}, gate {gate:.2f})"


def likely_aggregation(state: SearchState, local: SearchState) -> float:
    """What the local stage says; 0 where a passage among the best edges states the rank that the question names.

    "the 4th-oldest university of the country" is a fact about the university, which its passage tells, and no order of
    a table's rows.
    """
    passages = [scored.edge.passage for scored in state.subgraph.edges[:_READ_FOR_RANKS]]
    texts = (state.index.corpus.passages[passage].text for passage in passages if passage is not None)
    return 0.0 if any(states_rank(text, state.question) for text in texts) else local.report.aggregation


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
class _StarsQuestion:
    """A request over some stars; its first numbers stand for `segments`, the others for `passages`."""

    request: Request[prompts.Verdict]
    segments: tuple[int, ...]
    passages: tuple[tuple[int, ...], ...]
    pairs: tuple[Edge, ...]
    """The edges that the prompt shows, best first."""

    def kept(self, numbers: Sequence[int]) -> tuple[list[Edge], list[Edge]]:
        """The edges that a reply keeps: of the rows that it names, and of other rows that link to a named passage.

        Of a named row without any named passage its best edge is kept, for the row's own sake.
        """
        rows = [self.segments[number - 1] for number in numbers if number <= len(self.segments)]
        named = {
            passage
            for number in numbers
            if number > len(self.segments)
            for passage in self.passages[number - 1 - len(self.segments)]
        }
        first = [edge for edge in self.pairs if edge.segment in rows and edge.passage in named]
        found = {edge.segment for edge in first}
        first += [next(self._edges_of(row)) for row in rows if row not in found and any(self._edges_of(row))]
        return first, [edge for edge in self.pairs if edge.segment not in rows and edge.passage in named]

    def _edges_of(self, row: int) -> Iterator[Edge]:
        return (edge for edge in self.pairs if edge.segment == row)


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
        self.before = self.budget.spent
        self.problems: list[str] = list(local.report.problems)
        self.answers = 0
        self.degraded = False
        self.unavailable = False
        self.named: set[int] = set()
        """Tables that may help; empty where no title told."""
        self.off_topic: set[int] = set()
        """Tables that are about something else."""
        self.settled: set[int] = set()
        """Tables whose rows were all compared."""
        self.segments: list[int] = []
        self.plans: list[str] = []
        self.cut = 0
        """Texts that were shortened for verification."""
        self.left_out = 0
        """Passages that found no room there."""

    def refine(self) -> SearchState:
        """Survey, aggregate, verify; the local result where the model gave nothing."""
        aggregation = self.survey()
        aggregated = self.aggregate() if aggregation and not self.unavailable else self.subgraph
        unasked = (aggregated, set[Edge](), set[Edge]())
        aggregated, by_model, locally = unasked if self.unavailable else self.verify(aggregated)
        rejected = by_model | locally
        calls = self.budget.spent.calls - self.before.calls
        tokens = self.budget.spent.tokens - self.before.tokens
        report = replace(
            self.local.report, calls=calls, tokens=tokens, problems=tuple(self.problems), degraded=self.degraded
        )
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
            chance=1 / (1 + math.exp(-VERDICT)) if self.segments else 0.0,
            promoted=tuple(promoted),
            rejected=tuple(scored.edge for scored in aggregated.edges if scored.edge in rejected),
        )
        told = (
            replace(scored, score=scored.score / 2 - VERDICT) if scored.edge in by_model else scored
            for scored in aggregated.edges
        )
        judged = (replace(scored, rejected=scored.edge in rejected) for scored in told)
        return replace(self.state.with_edges(judged), report=report)

    def survey(self) -> bool:
        """Whether the question needs an aggregation; the local stage's opinion if the model has none.

        Tables that the model takes for off topic go to `off_topic`; none does where it names no table at all.
        """
        tables = list(self._tables())[:LISTED_TABLES]
        listed = [self.index.corpus.tables[table] for table in tables]
        (outcome,) = self._ask([prompts.survey(self.question, listed, max_tokens=self.llm.reply_tokens)])
        if isinstance(outcome, Answer):
            self.named = {tables[number - 1] for number in outcome.value.tables}
            self.off_topic = set(tables) - self.named if self.named else set()
            return outcome.value.aggregation
        self.unavailable = outcome.kind is FailureKind.UNAVAILABLE
        stands = "nothing more was asked, the local stage stands" if self.unavailable else "the local stage decided"
        self._fail(f"aggregation query: {outcome}; {stands}")
        return likely_aggregation(self.state, self.local) >= LIKELY

    def aggregate(self) -> Subgraph:
        """The subgraph with the edges of the rows that the model chose raised or added (column-wise aggregation)."""
        subgraph = self.subgraph
        unsettled: list[int] = []
        for question in self._table_questions():
            if question.left_out:
                self.problems.append(question.left_out)
            (outcome,) = self._ask([question.request])
            if isinstance(outcome, Failure):
                self._fail(f"{self._names(question.tables)}: {outcome}; the local aggregation stands")
                unsettled += question.tables
                continue
            self.settled.update(question.tables)
            segments = [question.segments[number - 1] for number in outcome.value.distinct()]
            if segments:
                subgraph = subgraph.merge(self._raised(segments))
                self.segments += segments
                self.plans.append(f"language model: {self._rows(segments)}")
                break
        if self.settled and not unsettled and not self.segments:
            self._fail("aggregation: contradictory: no table holds a row of the result; the local aggregation stands")
            unsettled = list(self.settled)
        return subgraph.merge(self._chosen_locally(unsettled))

    def verify(self, subgraph: Subgraph) -> tuple[Subgraph, set[Edge], set[Edge]]:
        """The subgraph with edges of named rows raised, edges that the model rejects, and those rejected locally.

        The local verdict holds where the model gave none.
        """
        judged: set[Edge] = set()
        kept: set[Edge] = set()
        named: set[Edge] = set()
        failed: list[tuple[int, Failure]] = []
        for question in self._star_questions(subgraph):
            (outcome,) = self._ask([question.request])
            if isinstance(outcome, Failure):
                failed.append((len(question.segments), outcome))
                if outcome.kind is FailureKind.OVER_BUDGET:
                    break
                continue
            first, others = question.kept(outcome.value.distinct())
            judged |= set(question.pairs)
            kept |= {*first, *others}
            named |= set(first)
            if kept and outcome.value.enough:
                break
        for count, words in ((self.cut, "texts were shortened"), (self.left_out, "passages did not fit")):
            if count:
                self.problems.append(f"{count} {words} for verification")
        if failed:
            rows = sum(count for count, _ in failed)
            self._fail(f"verification of {rows} row{'s' * (rows > 1)}: {failed[0][1]}; the local verdict stands")
        kept |= self._chosen_but_rejected(judged, kept)
        if judged and not kept:
            words = f"none of {len(judged)} pairs was kept"
            self._fail(f"verification: contradictory: {words}; the local verdict stands")
            judged = set()
        sorted_out = {scored.edge for scored in subgraph.edges if self._is_off_topic(scored.edge)}
        raised = subgraph.merge(worth_more(scored) for scored in subgraph.edges if scored.edge in named)
        return raised, (judged - kept) | sorted_out, set(self.local.report.rejected) - judged - sorted_out

    def _is_off_topic(self, edge: Edge) -> bool:
        return edge.segment is not None and self.index.corpus.table_of(edge.segment) in self.off_topic

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

    def _room(self) -> int:
        """Tokens of evidence for the next prompt: less where the budget is short, and then a call may still not fit."""
        room = self.budget.room(self.llm.evidence_tokens, reply=self.llm.reply_tokens)
        return max(prompts.FEWEST_PROMPT_TOKENS, room)

    def _tables(self) -> dict[int, list[int]]:
        """The tables of the stars, best first, with their rows that were retrieved; where some were named, those."""
        found: dict[int, list[int]] = {}
        for star in self.subgraph.stars():
            found.setdefault(self.index.corpus.table_of(star.segment), []).append(star.segment)
        return {table: segments for table, segments in found.items() if table in (self.named or found)}

    def _table_questions(self) -> Iterator[_TableQuestion]:
        """A request for every table of the best stars, or one for them all (graph prompting)."""
        tables = dict(list(self._tables().items())[: self.settings.tables])
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
        corpus, room = self.index.corpus, self._room()
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
        titles = [corpus.tables[table] for table in tables]
        texts.append(prompts.show_linked(self._linked(segments, known), titles, self.question, tokens=room))
        request = prompts.aggregate(
            self.question,
            "\n".join(filter(None, texts)),
            count=len(segments),
            max_tokens=self.llm.reply_tokens,
        )
        return _TableQuestion(request, tuple(tables), tuple(segments), "; ".join(left_out))

    def _linked(self, segments: Sequence[int], known: set[int]) -> list[tuple[int, list[Passage]]]:
        """(row number, passages) for rows of the stars, then for the rest."""
        numbered = sorted(enumerate(segments, start=1), key=lambda row: (row[1] not in known, row[0]))
        passages = self.index.corpus.passages
        return [(n, [passages[int(p)] for p in self.index.graph.passages_of(segment)]) for n, segment in numbered]

    def _star_questions(self, subgraph: Subgraph) -> Iterator[_StarsQuestion]:
        """Requests over the stars that have passages, `rows` in each and best first, or one over all of them.

        Rows of a table that was compared as a whole are asked about only if they were chosen.
        """
        stars = [star for star in subgraph.stars() if star.passages and self._is_open(star)][: self.settings.stars]
        size = self.settings.rows if self.settings.prompting == "star" else len(stars)
        for start in range(0, len(stars), max(1, size)):
            question = self._stars_question(stars[start : start + size])
            if question.segments:
                yield question

    def _is_open(self, star: Star) -> bool:
        """Whether no step has settled what this star is worth."""
        table = self.index.corpus.table_of(star.segment)
        compared = bool(self.segments) and table in self.settled
        return table in (self.named or {table}) and (star.segment in self.segments or not compared)

    def _stars_question(self, stars: Sequence[Star]) -> _StarsQuestion:
        corpus = self.index.corpus
        texts = [(corpus.segment(star.segment), [corpus.passages[p] for p in star.passages]) for star in stars]
        shown = prompts.show_stars(texts, self.question, tokens=self._room())
        stars = stars[: shown.rows]
        numbers = {corpus.passages[p].passage_id: p for star in stars for p in star.passages}
        passages = tuple(tuple(numbers[passage_id] for passage_id in ids) for ids in shown.passages)
        visible = {passage for group in passages for passage in group}
        pairs = tuple(Edge(star.segment, p) for star in stars for p in star.passages if p in visible)
        self.cut += shown.cut
        self.left_out += shown.left_out
        request = prompts.verify(
            self.question,
            shown.text,
            count=shown.rows + len(passages),
            max_tokens=self.llm.reply_tokens,
            chosen=bool(self.segments) and all(star.segment in self.segments for star in stars),
        )
        return _StarsQuestion(request, tuple(star.segment for star in stars), passages, pairs)

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
        return [worth_more(scored) for scored in raised]

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
