"""The recipe of the span model: where in the windows of one question does the answer begin and end.

Right windows are those of gold edges that hold the answer, wrong ones are the engine's own best edges without it. The
loss is one softmax over the tokens of all windows of a question, so that logits compare between windows.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from helios.engine import Engine
from helios.evaluation.measures import exact_match, f1
from helios.evaluation.questions import Question
from helios.index.durable import write_atomically
from helios.models.adapters import adapter_tensors, add_adapter, save_adapter
from helios.models.base import find_base_model
from helios.models.bert import load_bert
from helios.models.runtime import supports_bf16
from helios.reading.spanmodel import ReadWindow, SpanModel, SpanReader, WindowReader, padded
from helios.reading.spans import read_nodes
from helios.reading.windows import windows_of
from helios.types import Evidence, EvidenceEdge, Origin
from training.reader_examples import table_fold
from training.settings import TrainSettings
from training.trainer import ParameterGroup

LESSONS = "span-lessons.jsonl"
LONGEST = 24
"""Tokens of an answer."""


@dataclass(frozen=True, slots=True)
class SpanLesson:
    """A question with its windows: those of gold edges that hold the answer, and wrong ones, best first."""

    question: str
    answers: tuple[str, ...]
    fold: float
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def mine_span_lessons(
    engine: Engine, questions: Sequence[Question], folder: Path, *, edges: int, seed: int,
    advance: Callable[[int], None] = lambda done: None,
) -> list[SpanLesson]:  # fmt: skip
    """Lessons for every question whose gold holds the answer; kept in `folder` and read from there again."""
    path = folder / LESSONS
    if not path.is_file():
        lines = []
        for number, question in enumerate(questions, start=1):
            lesson = span_lesson(engine, question, edges=edges, seed=seed)
            if lesson.right and lesson.wrong:
                lines.append(json.dumps(asdict(lesson), ensure_ascii=False))
            advance(number)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, ("\n".join(lines) + "\n").encode())
    return [_lesson(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line]


def span_lesson(engine: Engine, question: Question, *, edges: int, seed: int) -> SpanLesson:
    """Windows of the gold edges with the answer, and of what was found without it."""
    gold = _windows(Evidence(question.text, tuple(_gold(engine, question))), edges=LONGEST)
    found = _windows(engine.search(question.text, k=edges), edges=edges)
    right = tuple(dict.fromkeys(text for text in gold if answer_spans(text, question.answers)))
    wrong = tuple(text for text in dict.fromkeys(found) if not answer_spans(text, question.answers))
    return SpanLesson(question.text, question.answers, table_fold(question, seed=seed), right, wrong)


def answer_spans(text: str, answers: Sequence[str]) -> list[tuple[int, int]]:
    """Characters of every occurrence of an answer as whole words, without regard to case."""
    folded = text.lower()
    found = []
    for answer in {answer.lower().strip() for answer in answers} - {""}:
        if len(folded) != len(text):
            continue
        at = folded.find(answer)
        while at >= 0:
            end = at + len(answer)
            inside = folded[at - 1 : at].isalnum() if at else False
            if not inside and not folded[end : end + 1].isalnum():
                found.append((at, end))
            at = folded.find(answer, at + 1)
    return found


class SpanRecipe:
    """The span model under training (a recipe of `training.trainer`)."""

    def __init__(
        self, lessons: Sequence[SpanLesson], held_out: Sequence[SpanLesson], settings: TrainSettings, *,
        rank: int = 16, scale: float = 2.0, negatives: int = 4, questions: int = 4, measured: int = 100,
        device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        torch.manual_seed(settings.seed)
        self.lessons, self.held_out = list(lessons), list(held_out[:measured])
        self.negatives, self.questions, self.scale = negatives, questions, scale
        self.device = torch.device(device)
        self.base = find_base_model(None)
        bert = load_bert(self.base.folder)
        self.adapted = add_adapter(bert, rank=rank, scale=scale)
        self.model = SpanModel(bert).to(self.device)
        self.reader = WindowReader(self.base.folder)
        self.trained = {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        return [ParameterGroup([*self.adapted, *self.model.head.parameters()])]

    def batches(self, epoch: int, *, seed: int) -> Sequence[tuple[tuple[int, int], ...]]:
        """Questions in a new order, each with a seed for its windows."""
        chance = random.Random(f"{seed} {epoch}")
        order = list(range(len(self.lessons)))
        chance.shuffle(order)
        drawn = [(number, chance.randrange(2**31)) for number in order]
        return [tuple(drawn[at : at + self.questions]) for at in range(0, len(drawn), self.questions)]

    def size(self, batch: tuple[tuple[int, int], ...]) -> int:
        return len(batch)

    def step(self, batch: tuple[tuple[int, int], ...]) -> Tensor:
        """Mean over questions of the negative log of the right starts' and ends' share of all tokens."""
        self.model.train()
        windows: list[ReadWindow] = []
        marks: list[list[tuple[int, int, int]]] = []
        bounds = [0]
        for number, seed in batch:
            lesson = self.lessons[number]
            texts = self._drawn(lesson, random.Random(seed))
            read = self.reader.read(lesson.question, texts)
            marks.append([(row, *pair) for row, (text, window) in enumerate(zip(texts, read, strict=True))
                          for pair in token_pairs(window, answer_spans(text, lesson.answers))])  # fmt: skip
            windows += read
            bounds.append(len(windows))
        logits = self.model(*(tensor.to(self.device) for tensor in padded(windows)))
        losses = [_loss(logits[bounds[at] : bounds[at + 1]], found) for at, found in enumerate(marks) if found]
        return torch.stack(losses).mean() if losses else logits.sum() * 0.0

    def evaluate(self) -> Mapping[str, float]:
        """EM and F1 of the best span over the right windows and the wrong ones of held-out questions."""
        if not self.held_out:
            return {}
        reader = SpanReader(self.model, self.reader)
        scores = [self._read(reader, lesson) for lesson in self.held_out]
        exact, overlap = np.mean(scores, axis=0)
        return {"held-out span F1": float(overlap), "held-out span EM": float(exact)}

    def state_dict(self) -> Mapping[str, Any]:
        return {name: parameter.detach().cpu().clone() for name, parameter in self.trained.items()}

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        with torch.no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(state[name])

    def save(self, path: Path) -> None:
        """Write the file that `helios.reading.spanmodel.SpanReader` reads."""
        head = {f"head.{name}": tensor.detach().cpu() for name, tensor in self.model.head.state_dict().items()}
        tensors = {name: tensor.cpu() for name, tensor in adapter_tensors(self.model.bert).items()}
        save_adapter(path, tensors | head, scale=self.scale, metadata={"role": "span", "base": self.base.sha256})

    def _drawn(self, lesson: SpanLesson, chance: random.Random) -> list[str]:
        """One right window and some wrong ones, the best ones more often."""
        pool = list(lesson.wrong)
        texts = [chance.choice(lesson.right)]
        for _ in range(min(self.negatives, len(pool))):
            (at,) = chance.choices(range(len(pool)), [1.0 / (rank + 3) for rank in range(len(pool))])
            texts.append(pool.pop(at))
        return texts

    def _read(self, reader: SpanReader, lesson: SpanLesson) -> tuple[float, float]:
        texts = [*lesson.right[:1], *lesson.wrong[: self.negatives * 2]]
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=supports_bf16()):
            self.model.eval()
            best = max(_best_span(found) + (text,) for text, found in
                       zip(texts, reader.logits(lesson.question, texts), strict=True))  # fmt: skip
        text = best[3][best[1] : best[2]]
        return float(exact_match(text, lesson.answers)), f1(text, lesson.answers)


def token_pairs(window: ReadWindow, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """First and last position in the sequence of characters [start, end); those that were cut off are left out."""
    for start, end in spans:
        first = int(np.searchsorted(window.spans[:, 1], start, side="right"))
        last = int(np.searchsorted(window.spans[:, 0], end, side="left")) - 1
        if first <= last < len(window.spans) and window.spans[last, 1] >= end:
            yield window.first + first, window.first + last


def _loss(logits: Tensor, marks: Sequence[tuple[int, int, int]]) -> Tensor:
    """-log of the share of the marked starts, and of the marked ends, among all tokens (B, L, 2) of a question."""
    rows, firsts, lasts = (torch.tensor(column, device=logits.device) for column in zip(*marks, strict=True))
    start = logits[rows, firsts, 0].logsumexp(0) - logits[..., 0].flatten().logsumexp(0)
    end = logits[rows, lasts, 1].logsumexp(0) - logits[..., 1].flatten().logsumexp(0)
    return -(start + end) / 2


def _best_span(found: Any) -> tuple[float, int, int]:
    """Sum of logits and characters of a window's best span."""
    count = len(found.spans)
    if not count:
        return -np.inf, 0, 0
    table = np.full((count, count), -np.inf, np.float32)
    for width in range(min(LONGEST, count)):
        at = np.arange(count - width)
        table[at, at + width] = found.start[at] + found.end[at + width]
    first, last = divmod(int(table.argmax()), count)
    return float(table[first, last]), int(found.spans[first, 0]), int(found.spans[last, 1])


def _windows(evidence: Evidence, *, edges: int) -> list[str]:
    return [window.text for window in windows_of(evidence, read_nodes(evidence, edges=edges))]


def _gold(engine: Engine, question: Question) -> Iterator[EvidenceEdge]:
    """Gold edges that the corpus has, ranked as they come."""
    corpus, rank = engine.corpus, 0
    for edge in question.gold_edges[:LONGEST]:
        passage = None if edge.passage_id is None else corpus.passages.find(edge.passage_id)
        if edge.passage_id is not None and passage is None:
            continue
        segment_id = edge.segment_id
        if segment_id is not None and corpus.tables.find(segment_id.table_id) is None:
            continue
        rank += 1
        segment = None if segment_id is None else corpus.segment(corpus.segment_number(segment_id))
        found = None if passage is None else corpus.passages[passage]
        yield EvidenceEdge(rank, score=0.0, probability=1.0, origin=Origin.LINKED, segment=segment, passage=found)


def _lesson(record: Mapping[str, Any]) -> SpanLesson:
    answers, right, wrong = (tuple(record[name]) for name in ("answers", "right", "wrong"))
    return SpanLesson(record["question"], answers, float(record["fold"]), right, wrong)
