"""Queries written by a language model from the descriptor, value hints and, after a failure, the error (2.3).

`LlmFormulator` writes; who runs the queries and asks for repairs is `helios.routing.interrogation`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from helios.config import LanguageModelSettings
from helios.errors import SourceError
from helios.executors.base import Language, NativeQuery
from helios.executors.values import Iri
from helios.llm.budget import Budget
from helios.llm.client import LanguageModel
from helios.llm.outcome import Answer, Failure
from helios.llm.request import Request
from helios.routing.formulation import llm_prompts as prompts
from helios.routing.formulation.base import Candidate
from helios.routing.formulation.properties import described
from helios.routing.keyword import named_values
from helios.routing.likeness import Likeness
from helios.routing.stored import WHOLE
from helios.sources.base import Source, Taught, ValueHit
from helios.sources.descriptor import Descriptor, RdfSchema, RdfTerm, RelationalSchema
from helios.sources.descriptor_text import text as descriptor_text
from helios.sources.relevance import relevance

CONFIDENCE = 0.7
"""What a model's query counts; models do not say how sure they are."""
HYDE_CONFIDENCE = 0.5
ENTITY_CHARACTERS = 400
ENTITIES = 3
"""Linked entities whose predicates are shown."""
PREDICATES = 30
"""Predicates of each entity (the paper's number)."""
FRAME_TOKENS = 1500
"""Tokens around the descriptor: instructions, hints, queries that were tried."""
HYDE_CHARACTERS = 600
PREDICATES_OF = "SELECT DISTINCT ?p WHERE {{ {{ <{iri}> ?p ?o }} UNION {{ ?s ?p <{iri}> }} }} LIMIT 500"


@dataclass(frozen=True, slots=True)
class Tried:
    """A query that gave nothing, and why."""

    query: NativeQuery
    outcome: str


@dataclass(frozen=True, slots=True)
class NotHere:
    """The model's word that a source does not hold what the question asks for, and what is missing."""

    reason: str


class LlmFormulator:
    """Writes queries of every language with one model; threads may share it."""

    def __init__(self, model: LanguageModel, settings: LanguageModelSettings, likeness: Likeness | None = None) -> None:
        self.model = model
        self.settings = settings
        self.likeness = likeness

    def formulate(self, question: str, source: Source) -> Sequence[Candidate]:
        """One query, or none where the model fails; see `Formulator`."""
        written = self.write(question, source, budget=self.model.budget())
        return (written,) if isinstance(written, Candidate) else ()

    def write(
        self, question: str, source: Source, *, tried: Sequence[Tried] = (), budget: Budget
    ) -> Candidate | NotHere | Failure:
        """A query, maybe one of those `tried` once more; that the source cannot answer; or why there is neither.

        SourceError where the source is gone.
        """
        descriptor = source.descriptor()
        hits = () if source.language is Language.TEXT else named_values(question, source, limit=12)
        hints = prompts.value_hints(hits)
        if isinstance(descriptor.schema, RdfSchema):
            hints = self.entity_hints(question, source, descriptor.schema, hits)
        room = max(300, self.settings.prompt_tokens - FRAME_TOKENS)
        described = descriptor_text(descriptor, budget_tokens=room, question=question)
        if source.language is Language.TEXT:
            return self._rewrite(question, described, budget)
        failed = [(t.query.text, t.outcome) for t in tried]
        examples = source.examples(question) if isinstance(source, Taught) else ()
        asked = prompts.messages(source.language, question, described, hints, failed, _dialect(descriptor), examples)
        request = Request(asked, prompts.WrittenQuery, self.settings.reply_tokens)
        (outcome,) = self.model.ask([request], budget=budget)
        if isinstance(outcome, Failure):
            return outcome
        query = NativeQuery(source.language, outcome.value.query.strip())
        if not query.text:
            return NotHere(" ".join(outcome.value.explanation.split()))
        return Candidate(query, CONFIDENCE, outcome.value.explanation)

    def entity_hints(self, question: str, source: Source, schema: RdfSchema, hits: Sequence[ValueHit]) -> list[str]:
        """Entities that the question names, each with the predicates that resemble the question most (A.3)."""
        whole = [hit for hit in hits if hit.entity and hit.score >= WHOLE]
        named = whole or [hit for hit in hits if hit.entity]
        entities = list(dict.fromkeys((hit.entity, hit.value, hit.phrase) for hit in named))
        if not entities:
            return [*prompts.value_hints(hits), *self._predicates(question, schema.predicates)]
        hints = []
        for iri, label, phrase in entities[:ENTITIES]:
            hints.append(
                prompts.shortened(f"{phrase!r} of the question is the entity <{iri}> ({label!r})", ENTITY_CHARACTERS)
            )
            used = self._used(iri, source)
            near = list(described(schema, used).values()) if used else schema.predicates
            hints += [f"  {line}" for line in self._predicates(question, near)]
        return hints

    def _predicates(self, question: str, terms: Sequence[RdfTerm]) -> list[str]:
        names = [term.label or term.iri for term in terms]
        if len(terms) > PREDICATES:
            if self.likeness is not None:
                scores = self.likeness.containment(question, names)
            else:
                scores = relevance(question, [(name, "") for name in names])
            order = sorted(range(len(terms)), key=lambda i: -scores[i])[:PREDICATES]
        else:
            order = list(range(len(terms)))
        return [f"predicate <{terms[i].iri}> {names[i]!r}" for i in order]

    def _used(self, iri: str, source: Source) -> set[str]:
        """Predicates of an entity's triples; empty where the source does not say."""
        if iri.startswith("_:") or ">" in iri:
            return set()
        try:
            result = source.execute(NativeQuery(Language.SPARQL, PREDICATES_OF.format(iri=iri)))
        except SourceError:
            return set()
        return {row[0].value for row in result.rows if row and isinstance(row[0], Iri)}

    def _rewrite(self, question: str, described: str, budget: Budget) -> Candidate | Failure:
        """The question followed by the passage that would answer it, for a corpus (HyDE)."""
        asked = prompts.messages(Language.TEXT, question, described, ())
        request = Request(asked, prompts.WrittenPassage, self.settings.reply_tokens)
        (outcome,) = self.model.ask([request], budget=budget)
        if isinstance(outcome, Answer):
            passage = " ".join(outcome.value.passage.split())[:HYDE_CHARACTERS]
            query = NativeQuery(Language.TEXT, f"{question} {passage}")
            return Candidate(query, HYDE_CONFIDENCE, "the question with a passage that would answer it")
        return outcome


def normalised(query: NativeQuery) -> str:
    """A query without what makes no difference: white space, a last semicolon, and in SQL case outside quotations.

    Labels, prefixed names and variables of the other languages differ by case: `:person` is not `:Person`.
    """
    parts = re.split(r"('(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|<[^<>\s]*>)", query.text.strip().rstrip(";"))
    blind = query.language is Language.SQL
    plain = [re.sub(r"\s+", " ", part.lower() if blind else part) for part in parts[::2]]
    folded = [plain[i // 2] if i % 2 == 0 else part for i, part in enumerate(parts)]
    return re.sub(r"\s*([(),.{}=<>])\s*", r"\1", "".join(folded)).strip()


def _dialect(descriptor: Descriptor) -> str:
    schema = descriptor.schema
    return schema.dialect if isinstance(schema, RelationalSchema) else ""
