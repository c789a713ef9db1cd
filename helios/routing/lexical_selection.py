"""Selection without a language model: how much of the question each source explains, by words, values and vectors.

Every content word of the question is looked for in each source: in the schema's names, among stored values (found by
the source's own lookup), in the texts that a corpus finds first. A word that many sources have tells little, so it
weighs little. To this share of the question come the likeness of token vectors and weak cues of the question's form.
A softmax over the sources and `none of them` makes probabilities of the sums.

Shape legend: Q tokens of the question, T tokens of a profile, D dimensions.
"""

import math
from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from time import monotonic

import numpy as np

from helios.config import Section
from helios.errors import SourceError
from helios.executors.base import Language, NativeQuery
from helios.index.lexical import terms_of
from helios.llm.budget import Budget
from helios.routing.documents import Document, documents_of
from helios.routing.form import form_scores
from helios.routing.likeness import FloatArray, Likeness, maxsim
from helios.routing.phrases import Phrase, Term, phrases, terms
from helios.routing.profile import Profile, Profiles
from helios.routing.selection import RankedSource, Selection
from helios.sources.base import Source, ValueHit
from helios.sources.deadline import Background
from helios.sources.descriptor import CorpusSchema


class LexicalSelectionSettings(Section):
    """Weights of the sum, in logits; they hold for all sources alike."""

    coverage: float = 9.0
    likeness: float = 8.0
    form: float = 1.0
    none: float = 1.5
    """The logit of `none of them`: about what a source has that explains a sixth of the question."""
    chance: float = 0.9
    """Taken off a corpus for every tenfold of its documents over a thousand: the more there are, the better the best
    of them resembles any question by chance."""
    text_share: float = 0.8
    """What a word found in a document counts against one found in a schema or among values."""
    least: float = 0.01
    """Sources less probable than this are not worth a query."""
    seconds: float = 15.0
    """How long a source may take to look up the question's phrases."""
    cold_seconds: float = 60.0
    """The same for a source that was never asked before: it reads its schema and builds its lookup."""
    probe_documents: int = 3


NAME = 1.5
"""What a name counts against a plain word."""
NUMBER = 0.4
"""What a number counts: structured sources compare with it, texts hold any by chance."""
LEAST_HIT = 0.7
"""Score of a stored value from which it explains the words of its phrase."""
SINGLE_WORD = 0.6
"""What a stored value counts that is one plain word of the question."""
REASONS = 5
LOOKUPS = 8
"""Sources that look up a question at the same time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a source knows of a question: how well each term is covered, by what, and its likeness to the question."""

    covered: tuple[float, ...]
    by: tuple[str, ...]
    likeness: float | None = None
    documents: int = 0
    """Of a corpus; 0 for other sources."""


class LexicalDenseSelector:
    """Ranks sources by what they explain of the question."""

    def __init__(self, likeness: Likeness | None, settings: LexicalSelectionSettings | None = None) -> None:
        self.likeness = likeness
        self.settings = settings or LexicalSelectionSettings()
        self.profiles = Profiles(likeness)
        self._warm: set[str] = set()
        """Sources that have answered before."""

    def select(
        self, question: str, sources: Sequence[Source], *, k: int = 3, budget: Budget | None = None
    ) -> Selection:
        """At most `k` sources that are each likelier than none; see `Selector.select`."""
        findings, notes = self.look(question, sources)
        known = [source for source in sources if source.name in findings]
        probabilities, none = self.probabilities(question, known, findings)
        order = sorted(known, key=lambda source: -probabilities[source.name])[:k]
        ranked = tuple(
            RankedSource(source.name, probabilities[source.name], reasons(findings[source.name], terms(question)))
            for source in order
            if probabilities[source.name] >= self.settings.least
        )
        if not ranked or ranked[0].probability < none:
            what = f"no source explains the question well enough (none of them: {none:.0%})"
            return Selection((), "lexical", (*notes, what), degraded=bool(notes))
        return Selection(ranked, "lexical", tuple(notes), degraded=bool(notes))

    def look(self, question: str, sources: Sequence[Source]) -> tuple[dict[str, Finding], list[str]]:
        """What each source knows of the question; sources that fail or are late are left out with a note."""
        findings: dict[str, Finding] = {}
        notes = []
        asked_QD = self.likeness.question(question) if self.likeness is not None else None
        background = Background(LOOKUPS, name="select")
        started = monotonic()
        futures = [
            (source, background.submit(partial(self._look_into, question, source, asked_QD))) for source in sources
        ]
        for source, future in futures:
            seconds = self.settings.seconds if source.name in self._warm else self.settings.cold_seconds
            try:
                findings[source.name] = future.result(max(0.0, started + seconds - monotonic()))
                self._warm.add(source.name)
            except FutureTimeout:
                future.cancel()
                notes.append(f"{source.name}: not considered, its lookup took over {seconds:g} s")
            except SourceError as error:
                notes.append(f"{source.name}: not considered ({error})")
        return findings, notes

    def probabilities(
        self, question: str, sources: Sequence[Source], findings: dict[str, Finding]
    ) -> tuple[dict[str, float], float]:
        """The softmax over what the sources explain, and the probability of none of them."""
        settings = self.settings
        weights = term_weights(terms(question), list(findings.values()))
        form = form_scores(question)
        centre = _centres(sources, findings)
        logits = {}
        for source in sources:
            finding = findings[source.name]
            share = float(np.dot(weights, finding.covered))
            near = 0.0 if finding.likeness is None else finding.likeness - centre[source.language is Language.TEXT]
            chance = math.log10(max(1, finding.documents) / 1000) if finding.documents else 0.0
            logits[source.name] = (
                settings.coverage * share
                + settings.likeness * near
                + settings.form * form[source.language]
                - settings.chance * chance
            )
        top = max([*logits.values(), settings.none])
        total = sum(math.exp(logit - top) for logit in [*logits.values(), settings.none])
        return (
            {name: math.exp(logit - top) / total for name, logit in logits.items()},
            math.exp(settings.none - top) / total,
        )

    def _look_into(self, question: str, source: Source, asked_QD: FloatArray | None) -> Finding:
        if source.language is Language.TEXT:
            return self._probe(question, source, asked_QD)
        profile = self.profiles.of(source)
        wanted = phrases(question)
        hits = source.find_values([phrase.text for phrase in wanted], limit=1)
        return _explain(terms(question), wanted, profile, hits, _likeness(asked_QD, profile.vectors_TD))

    def _probe(self, question: str, source: Source, asked_QD: FloatArray | None) -> Finding:
        """How well the best of the documents that a quick search finds covers the question."""
        settings = self.settings
        query = NativeQuery(Language.TEXT, question, {"k": settings.probe_documents})
        found = documents_of(source.execute(query))[: settings.probe_documents]
        wanted = terms(question)
        best: tuple[float, ...] = (0.0,) * len(wanted)
        title = ""
        for document in found:
            held = set(terms_of(f"{document.title} {document.text}"))
            covered = tuple(settings.text_share * (term.stem in held) for term in wanted)
            if sum(covered) > sum(best):
                best, title = covered, document.title
        by = tuple(f"in {title!r}" if share else "" for share in best)
        schema = source.descriptor().schema
        count = schema.document_count if isinstance(schema, CorpusSchema) else len(found)
        return Finding(best, by, self._document_likeness(asked_QD, found), count)

    def _document_likeness(self, asked_QD: FloatArray | None, documents: Sequence[Document]) -> float | None:
        if asked_QD is None or self.likeness is None or not documents:
            return None
        encoded = self.likeness.texts([f"{d.title} {d.text[:400]}" for d in documents])
        return max(maxsim(asked_QD, text_TD) for text_TD in encoded)


def term_weights(wanted: Sequence[Term], findings: Sequence[Finding]) -> list[float]:
    """What each term counts, adding up to 1: the fewer sources explain it, the more."""
    if not findings:
        return [1.0 / max(1, len(wanted))] * len(wanted)
    rarest = math.log1p(len(findings) / 0.5)
    weights = []
    for number, term in enumerate(wanted):
        holders = sum(finding.covered[number] for finding in findings)
        kind = NAME if term.name else NUMBER if term.number else 1.0
        weights.append(kind * math.log1p(len(findings) / (0.5 + holders)) / rarest)
    total = sum(weights)
    return [weight / total for weight in weights]


def reasons(finding: Finding, wanted: Sequence[Term]) -> tuple[str, ...]:
    """What of the question was found, the surest first, for people."""
    pairs = sorted(zip(finding.covered, wanted, finding.by, strict=True), key=lambda pair: -pair[0])
    return tuple(f"{term.text}: {by}" for share, term, by in pairs[:REASONS] if share > 0)


def _explain(
    wanted: Sequence[Term], runs: Sequence[Phrase], profile: Profile, hits: Sequence[ValueHit], likeness: float | None
) -> Finding:
    covered = [profile.match(term.stem) for term in wanted]
    by = ["schema" if share else "" for share in covered]
    best = {hit.phrase: hit for hit in reversed(hits)}
    for run in runs:
        hit = best.get(run.text)
        if hit is None or hit.score < LEAST_HIT:
            continue
        inside = [i for i, term in enumerate(wanted) if run.start <= term.start and term.end <= run.end]
        plain = len(inside) == 1 and not (run.quoted or wanted[inside[0]].name)
        share = hit.score**2 * (SINGLE_WORD if plain else 1.0)
        for i in inside:
            if share > covered[i]:
                covered[i], by[i] = share, f"{hit.value!r} in {' '.join(hit.place)}"
    return Finding(tuple(covered), tuple(by), likeness)


def _likeness(asked_QD: FloatArray | None, vectors_TD: FloatArray | None) -> float | None:
    return None if asked_QD is None or vectors_TD is None else maxsim(asked_QD, vectors_TD)


def _centres(sources: Sequence[Source], findings: dict[str, Finding]) -> dict[bool, float]:
    """The mean likeness of corpora (True) and of structured sources: texts of different sorts are not comparable."""
    centres = {}
    for text in (True, False):
        values = [
            likeness
            for source in sources
            if (source.language is Language.TEXT) is text and (likeness := findings[source.name].likeness) is not None
        ]
        centres[text] = sum(values) / len(values) if values else 0.0
    return centres
