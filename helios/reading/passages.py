"""The reader of passages: a small model reads the question beside each passage of the evidence, and says whether it
answers and from which word to which.

    how long may we park there? | House rules: Parking is limited to 40 minutes. … | 40 minutes, 0.6

It is the shared encoder with an adapter: the first vector says whether the passage answers, and each token's whether
the answer begins or ends there.

Shape legend: L tokens, n tokens of the passage, D hidden size.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.models.base import BaseModel, find_base_model
from helios.models.card import read_card
from helios.models.headed import HeadedEncoder, PlainTokenizer
from helios.models.routes import Runtime
from helios.reading.base import Citation
from helios.reading.features import span_key
from helios.reading.spans import CARDINALS, ReadNode, Shape, Span, citation_of, read_nodes
from helios.reading.tables.wording import wording_of
from helios.reading.windows import Window, windows_of
from helios.types import Evidence

FloatArray = NDArray[np.float32]
FILE = "passages.safetensors"
ROLE = "passage-reader"
MAX_TOKENS, QUESTION_TOKENS = 256, 48
LONGEST = 24
"""Tokens of an answer."""
SPANS = 12
"""Spans that are looked at in each passage; those that overlap count as one answer."""
WEIGHTS = Path(__file__).parent / "weights" / "passages"
FEATURES = ("chance", "answers", "lead", "rank", "probability", "present", "words", "computes")
"""Of an answer: the logarithm of its chance over all passages that say it, the best log-odds that a passage answers,
how far it is ahead of the best other answer, the logarithm of its edge's rank, the log-odds of edge and presence, its
words, and whether the question asks for something that is counted, added up or compared."""
COMPUTES = ("count", "sum", "average", "difference", "most", "least")
ALONE = 5.0
"""How far an answer without a rival is ahead."""
EDGES = " \t\n.,;:!?"
"""What no answer begins or ends with."""
HEADS = {"span": (1, 2), "answers": (1, 1)}
"""Of a token, whether the answer begins and ends there; of the first, whether the passage answers."""


_AMOUNT = re.compile(
    r"\bhow (?:much|many|long|far|old|high|deep|heavy|tall|wide|big)\b|\bwie (?:viele?|lange|weit|alt|hoch|schwer)\b"
    r"|\bcombien\b|\bcu[áa]nt[oa]s?\b", re.IGNORECASE,
)  # fmt: skip
"""Questions for one amount."""
_NUMERAL = re.compile(rf"\d[\d.,]*|\b(?:{'|'.join(sorted(CARDINALS))})\b", re.IGNORECASE)
_PARTED = re.compile(
    r"\s*[,;]\s+(?=[^\W\d])|\s+(?:and|but|und|aber|et|mais|y|pero)\s+(?=[^\W\d])(?!a half|a quarter|half)"
)
"""What stands between an amount and words about another one; a number that follows at once goes on with it."""


@dataclass(frozen=True, slots=True)
class TokenisedWindow:
    """A question and a text as token numbers, where the text's begin, and their characters [start, end) (n, 2)."""

    ids: list[int]
    first: int
    spans: NDArray[np.int32]


class WindowTokeniser:
    """Questions and texts as token numbers, cut to `MAX_TOKENS`; threads may share it."""

    def __init__(self, base: BaseModel) -> None:
        self._plain = PlainTokenizer(base)

    def of(self, question: str, texts: Sequence[str]) -> list[TokenisedWindow]:
        """One sequence a text."""
        return self.pairs([(question, text) for text in texts])

    def pairs(self, asked: Sequence[tuple[str, str]]) -> list[TokenisedWindow]:
        """One sequence for each question with its text."""
        questions = list(dict.fromkeys(question for question, _ in asked))
        heads = {
            question: [self._plain.opening, *one.ids[:QUESTION_TOKENS], self._plain.separator]
            for question, one in zip(questions, self._plain.tokens(questions), strict=True)
        }
        found = []
        for (question, _), text in zip(asked, self._plain.tokens([text for _, text in asked]), strict=True):
            head = heads[question]
            room = MAX_TOKENS - len(head) - 1
            spans = np.array(text.offsets[:room], np.int32).reshape(-1, 2)
            found.append(TokenisedWindow([*head, *text.ids[:room], self._plain.separator], len(head), spans))
        return found


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """Characters [start, end) of a text, and the logarithm of the chance that they are the answer."""

    start: int
    end: int
    chance: float
    answers: float
    """Log-odds that the text answers."""


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """What the model says of a text: of each token (n, 2) the logarithms of the chances that the answer begins and ends
    there, if the text answers, and the log-odds that it does."""

    spans: NDArray[np.int32]
    """Characters [start, end) of the tokens (n, 2)."""
    chances: FloatArray
    answers: float

    @property
    def answering(self) -> float:
        """The logarithm of the chance that the text answers."""
        return -float(np.logaddexp(0.0, -self.answers))

    def chances_of(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> FloatArray:
        """The logarithms of the chances (S) of the characters [start, end), from their first and last tokens; not a
        number where the text was cut before."""
        found = np.full(len(starts), np.nan, np.float32)
        first = np.searchsorted(self.spans[:, 1], starts, side="right")
        last = np.searchsorted(self.spans[:, 0], ends, side="left") - 1
        here = np.flatnonzero((first <= last) & (ends <= self.spans[:, 1].max(initial=0)))
        found[here] = self.chances[first[here], 0] + self.chances[last[here], 1] + self.answering
        return found

    def best(self, length: int) -> list[ReadSpan]:
        """The likeliest answers within the first characters, best first."""
        count = int((self.spans[:, 1] <= length).sum())
        pairs = self.chances[:count, 0][:, None] + self.chances[:count, 1][None]
        pairs[~np.triu(np.tri(count, k=LONGEST - 1, dtype=bool))] = -np.inf
        found = []
        for at in np.argsort(-pairs, axis=None, kind="stable")[:SPANS].tolist():
            first, last = divmod(at, count)
            if np.isfinite(pairs[first, last]):
                start, end = int(self.spans[first, 0]), int(self.spans[last, 1])
                found.append(ReadSpan(start, end, float(pairs[first, last]) + self.answering, self.answers))
        return found


class SpanFinder:
    """The model with its heads; threads may share it."""

    def __init__(self, base: BaseModel, weights: Path, *, runtime: Runtime = "auto", threads: int = 1) -> None:
        self._encoder = HeadedEncoder(base, weights, HEADS, runtime=runtime, threads=threads)
        self._tokeniser = WindowTokeniser(base)

    def read(self, question: str, texts: Sequence[str]) -> list[ReadWindow]:
        """What the model says of each text; ModelError for weights that cannot be used."""
        windows = self._tokeniser.of(question, texts)
        vectors = self._encoder.encode([window.ids for window in windows])
        return [self._read(*one) for one in zip(windows, vectors, strict=True)]

    def _read(self, window: TokenisedWindow, vectors_LD: FloatArray) -> ReadWindow:
        answers = float(self._encoder.head("answers", vectors_LD[0])[0])
        logits_n2 = self._encoder.head("span", vectors_LD[window.first : window.first + len(window.spans)])
        least = np.logaddexp.reduce(logits_n2, axis=0) if len(logits_n2) else 0.0
        return ReadWindow(window.spans, logits_n2 - least, answers)


@dataclass(frozen=True, slots=True)
class ReadPassages:
    """The passages of the best edges, each with the row that links to it, as the model read them."""

    nodes: list[ReadNode]
    windows: list[Window]
    read: list[ReadWindow]


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """Words of a passage, where they stand, and what is known of them (`FEATURES`)."""

    text: str
    node: ReadNode
    span: Span
    features: tuple[float, ...]
    confidence: float = 0.0

    def citation(self) -> Citation:
        """The sentence, or the title, with the words."""
        return citation_of(self.node, self.span)


class PassageReader:
    """Answers from the passages of the evidence; holds no state of a question, so threads may share it."""

    def __init__(self, finder: SpanFinder, weights: Mapping[str, float], intercept: float) -> None:
        """`weights` of features, by name, make log-odds."""
        self.finder, self.intercept = finder, intercept
        self._weights = np.array([weights.get(name, 0.0) for name in FEATURES])

    @classmethod
    def load(cls, folder: Path | None = None, *, runtime: Runtime = "auto", threads: int = 1) -> "PassageReader":
        """The packaged weights, or those of a folder; ModelError for damaged or foreign files."""
        folder = folder or WEIGHTS
        values = read_card(folder, ROLE).values
        try:
            weights, intercept = dict(values["weights"]), float(values["intercept"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder}: its card lacks the confidence ({error}); train it again") from error
        finder = SpanFinder(find_base_model(), folder / FILE, runtime=runtime, threads=threads)
        return cls(finder, weights, intercept)

    def passages(self, question: str, evidence: Evidence, *, edges: int) -> ReadPassages:
        """The passages of the best edges, read beside the question."""
        nodes = read_nodes(evidence, edges=edges)
        windows = [one for one in windows_of(evidence, nodes) if nodes[one.nodes[0][0]].passage is not None]
        return ReadPassages(nodes, windows, self.finder.read(question, [one.text for one in windows]))

    def read(self, question: str, evidence: Evidence, passages: ReadPassages) -> list[PassageAnswer]:
        """Answers from passages, likeliest first; none where there is no passage."""
        found = self.answers(question, evidence, passages)
        found = [replace(one, confidence=self._chance(one.features)) for one in found]
        return sorted(found, key=lambda one: -one.confidence)

    def answers(self, question: str, evidence: Evidence, passages: ReadPassages) -> list[PassageAnswer]:
        """What the passages say, each answer once, where it is likeliest."""
        nodes = passages.nodes
        amount = _AMOUNT.search(question) is not None
        said: dict[str, list[tuple[ReadSpan, int]]] = {}
        for window, read in zip(passages.windows, passages.read, strict=True):
            number, _, length = window.nodes[0]
            text = nodes[number].text.text
            likely = (trimmed(span, text) for span in read.best(length))
            for span in merged(one_amount(span, text) if amount else span for span in likely):
                said.setdefault(span_key(text[span.start : span.end]), []).append((span, number))
        said.pop("", None)
        sums = {key: float(np.logaddexp.reduce([span.chance for span, _ in all_of])) for key, all_of in said.items()}
        computes = float(any(wording_of(question).has(cue) for cue in COMPUTES))
        found = []
        for key, all_of in said.items():
            best, number = max(all_of, key=lambda one: one[0].chance)
            node = nodes[number]
            place = next(at for at, piece in enumerate(node.text.pieces) if best.start < piece.end)
            cited = Span(number, place, best.start, min(best.end, node.text.pieces[place].end), Shape.PHRASE)
            text = node.text.text[cited.start : cited.end]
            rival = max((chance for other, chance in sums.items() if other != key), default=sums[key] - ALONE)
            edge = evidence.edges[node.ranks[0] - 1]
            features = (
                sums[key], best.answers, sums[key] - rival, float(np.log(node.ranks[0])),
                log_odds(edge.probability), log_odds(evidence.present), float(len(text.split())), computes,
            )  # fmt: skip
            found.append(PassageAnswer(text, node, cited, features))
        return found

    def _chance(self, features: Sequence[float]) -> float:
        odds = self.intercept + float((self._weights * features).sum())
        return float(1 / (1 + np.exp(-odds)))


def trimmed(span: ReadSpan, text: str) -> ReadSpan:
    """A span without spaces and punctuation at its ends."""
    said = text[span.start : span.end]
    start = span.start + len(said) - len(said.lstrip(EDGES))
    return replace(span, start=start, end=max(start, span.start + len(said.rstrip(EDGES))))


def one_amount(span: ReadSpan, text: str) -> ReadSpan:
    """A span up to where a second amount is spoken of: of "£40 fitted, a new one £90" the first."""
    said = text[span.start : span.end]
    first, second = (*_NUMERAL.finditer(said), None, None)[:2]
    if first is None or second is None:
        return span
    parted = _PARTED.search(said, first.end(), second.start())
    return span if parted is None else replace(span, end=span.start + parted.start())


def merged(spans: Iterable[ReadSpan]) -> list[ReadSpan]:
    """Spans best first, each with the chances of the lesser ones that overlap it."""
    kept: list[ReadSpan] = []
    for span in spans:
        over = next((at for at, one in enumerate(kept) if span.start < one.end and one.start < span.end), None)
        if over is None:
            kept.append(span)
        else:
            kept[over] = replace(kept[over], chance=float(np.logaddexp(kept[over].chance, span.chance)))
    return kept


def log_odds(chance: float) -> float:
    """Of a chance that is no nearer than a thousandth to 0 or 1."""
    kept = min(max(chance, 1e-3), 1 - 1e-3)
    return float(np.log(kept / (1 - kept)))
