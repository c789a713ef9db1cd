"""The recipe of the token encoder f_e (HELIOS B.1): the score that search computes is the score that is learned.

`factored` learns edge MaxSim plus a share of the row's MaxSim, question tokens weighted by rarity; `joint` reads row
and passage in one sequence, as the paper does. The loss is the softmax cross-entropy of the right edge among mined
wrong ones and the edges of the batch's other questions; with a teacher, the KL divergence from g_e is mixed in.

Shape legend: B questions of a batch, E edges of a batch, Q question tokens, N texts, D hidden size.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from helios.config import Section
from helios.engine import Engine
from helios.index.reader import Corpus
from helios.models.adapters import apply_adapter, save_adapter
from helios.models.bert import Bert, load_bert
from helios.models.card import ModelCard, data_file, write_card
from helios.models.encoder import MiniLMEncoder
from helios.models.runtime import supports_bf16
from helios.models.text import passage_text, segment_text
from training.checkpoints import load_best
from training.distributed import world
from training.encoder_lessons import Draw, contrast, draw, edge_text
from training.errors import TrainingError
from training.log import LogRow, read_log
from training.mining import LessonData, divide, epoch_order, gather_lessons
from training.parallel_encoding import Encoded, ParallelEncoder, one_thread_an_operation
from training.recipes import Role
from training.reranker_evaluation import list_accuracy, measure_orders
from training.reranker_lessons import Lesson, Pair
from training.settings import TrainSettings
from training.teacher import Teacher, divergence
from training.trainer import ParameterGroup, TrainResult, train
from training.updates import Update, export, prepare

LESSONS = "lessons.parquet"
WEIGHTS = "token-encoder.safetensors"
NOTHING = -1e4
"""The score of what is not there."""
TokenWeights = Callable[[NDArray[np.int32]], NDArray[np.float32]]


class EncoderSettings(Section):
    """What is trained, on what, and how."""

    mode: Literal["factored", "joint"] = "factored"
    data: LessonData = LessonData()
    train: TrainSettings = TrainSettings(epochs=2, learning_rate=3e-5)
    lessons: Path | None = None
    """Edge lessons that an earlier run mined (a reranker's do); None mines them into the run's folder."""
    ranking: Path | None = None
    """Folder that `helios train ranker` wrote: lists then are of rankings that never saw the question's table."""
    base: str | None = None
    """Folder of the base encoder; None is that of the index."""
    start: Path | None = None
    """Adapter to begin from, for a second phase; None begins from the base."""
    update: Update = "full"
    """`full` trains all weights; its file is the truncated SVD of their change. `lora` trains what the file holds."""
    words: bool = True
    """Whether a full run trains the word embeddings too."""
    rank: int = Field(default=64, ge=1)
    scale: float = Field(default=2.0, gt=0.0)
    """Of low-rank updates while they are trained."""
    max_tokens: int = Field(default=176, ge=32)
    segment_weight: float | None = Field(default=None, ge=0.0)
    """Share of the row's own MaxSim (factored); None is that of the fused score."""
    logit_scale: float = Field(default=1.5, gt=0.0)
    """Scores times this are logits: MaxSim sums over a dozen tokens of mean weight 1."""
    depth: int = Field(default=100, ge=1)
    """Edges that are mined for a question."""
    pool: int = Field(default=40, ge=1)
    """Wrong edges are drawn from so many of the best, the better ones more often."""
    negatives: int = Field(default=3, ge=0)
    """Mined wrong edges beside each right one."""
    questions: int = Field(default=16, ge=1)
    """Questions of one batch, each of which has the others' edges as wrong ones too."""
    teacher: Path | None = None
    """Weights of g_e to distil from."""
    teacher_temperature: float = Field(default=2.0, gt=0.0)
    """The teacher's logits are divided by it."""
    teacher_weight: float = Field(default=0.5, ge=0.0, le=1.0)
    """Share of the KL divergence in the loss; the rest is the cross-entropy."""
    chunk_tokens: int = Field(default=2048, ge=1)
    """Tokens that go through the encoder together, on each core."""
    recompute: bool = False
    """Encode again in the backward pass instead of keeping activations: less memory, a third slower."""
    k1: int = Field(default=40, ge=1)
    """Edges that are ranked when measuring."""
    measured: int = Field(default=120, ge=1)
    """Held-out questions that choose the checkpoint; the end measures all of them."""


class EncoderRecipe:
    """The encoder under training, with its lists (a recipe of `training.trainer`)."""

    def __init__(
        self, corpus: Corpus, lessons: Sequence[Lesson], settings: EncoderSettings, token_weights: TokenWeights,
        *, device: torch.device | str = "cpu", lanes: int = 1,
    ) -> None:  # fmt: skip
        torch.manual_seed(settings.train.seed)
        self.corpus, self.settings, self.device = corpus, settings, torch.device(device)
        self.token_weights = token_weights
        self.lessons, self.held_out = divide(lessons, settings.data)
        self.reader = MiniLMEncoder.load(settings.base, adapter="none", max_tokens=settings.max_tokens)
        self.base = self.reader.base
        self.lanes = lanes
        bert = load_bert(self.base.folder)
        self.adapted = prepare(
            bert, settings.update, rank=settings.rank, scale=settings.scale, start=settings.start, words=settings.words
        )  # fmt: skip
        self.use(bert)
        self.trained = {name: p for name, p in bert.named_parameters() if p.requires_grad}
        self.teacher = (
            Teacher(settings.teacher, self.base, corpus, device=self.device, lanes=lanes) if settings.teacher else None
        )

    def use(self, bert: Bert) -> None:
        """Encode with these weights from now on."""
        settings = self.settings
        self.bert = bert.to(self.device)
        self.parallel = ParallelEncoder(
            self.bert, lanes=self.lanes, chunk_tokens=settings.chunk_tokens, recompute=settings.recompute
        )

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        return [ParameterGroup(self.adapted)]

    def batches(self, epoch: int, *, seed: int) -> Sequence[tuple[Draw, ...]]:
        """Every human question once, and synthetic ones, with edges drawn anew each epoch."""
        chance, settings = random.Random(f"{seed} {epoch}"), self.settings
        order = epoch_order(self.lessons, chance, synthetic_share=settings.data.synthetic_share)
        draws = [
            draw(self.lessons, number, chance, negatives=settings.negatives, pool=settings.pool) for number in order
        ]
        return [tuple(draws[at : at + settings.questions]) for at in range(0, len(draws), settings.questions)]

    def size(self, batch: tuple[Draw, ...]) -> int:
        return len(batch)

    def step(self, batch: tuple[Draw, ...]) -> Tensor:
        """Cross-entropy of the right edges, mixed with the divergence from the teacher where there is one."""
        self.bert.train()
        contrasted = contrast(self.lessons, batch, self.corpus)
        questions = [self.lessons[one.lesson].question for one in batch]
        logits_BE = self.settings.logit_scale * self.scores(questions, contrasted.edges)
        masked_BE = logits_BE.masked_fill(contrasted.ignored_BE.to(self.device), NOTHING)
        loss = F.cross_entropy(masked_BE, contrasted.target_B.to(self.device))
        if self.teacher is None:
            return loss
        weight = self.settings.teacher_weight
        return (1.0 - weight) * loss + weight * self._divergence(batch, contrasted.edges, logits_BE, self.teacher)

    def scores(self, questions: Sequence[str], edges: Sequence[Pair]) -> Tensor:
        """Scores of every question and edge (B, E), as search computes them from vectors."""
        texts, left_E, right_E = self._texts(edges)
        tokens = self.reader.tokenise([*questions, *texts])
        asked = self.parallel.encode(tokens[: len(questions)])
        read = self.parallel.encode(tokens[len(questions) :])
        question_QD, weights_Q, owner_Q = self._questions(tokens[: len(questions)], asked)
        with torch.autocast(self.device.type, enabled=False):  # a score is a sum of small differences
            maxima_QN = read.in_order([_maxima(question_QD, *chunk) for chunk in read.chunks()])
            return factored_scores(
                maxima_QN, weights_Q, owner_Q, left_E.to(self.device), right_E.to(self.device),
                questions=len(questions), segment_weight=self._segment_weight,
            )  # fmt: skip

    def evaluate(self) -> Mapping[str, float]:
        """Measures of some held-out questions; the first decides."""
        return self.measure(self.held_out[: self.settings.measured])

    def measure(self, lessons: Sequence[Lesson]) -> dict[str, float]:
        """Rank the lists of lessons by the score alone, and mixed with retrieval's own."""
        if not lessons:
            return {}
        values = [self.values(lesson) for lesson in lessons]
        found = measure_orders(lessons, values, "edge")
        alone = (found["alone AR@2"] + found["alone nDCG@50"]) / 2
        return {
            "score": alone, "reciprocal rank": reciprocal_rank(lessons, values), "AR@2": found["alone AR@2"],
            "nDCG@50": found["alone nDCG@50"], "list accuracy": list_accuracy(lessons, values),
            "mixed AR@2": found["AR@2"], "mixed nDCG@50": found["nDCG@50"], "mixed weight": found["weight"],
            "retrieval AR@2": found["retrieval AR@2"], "retrieval nDCG@50": found["retrieval nDCG@50"],
        }  # fmt: skip

    def values(self, lesson: Lesson) -> NDArray[np.float32]:
        """Logits of a lesson's first k1 candidates."""
        self.bert.eval()
        pairs = [candidate.pair for candidate in lesson.candidates[: self.settings.k1]]
        bf16 = self.device.type != "cpu" or supports_bf16()
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            scores = self.scores([lesson.question], pairs)[0] * self.settings.logit_scale
        return np.asarray(scores.cpu().numpy(), np.float32)

    def state_dict(self) -> Mapping[str, Any]:
        return {name: parameter.detach().cpu().clone() for name, parameter in self.trained.items()}

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        with torch.no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(state[name])

    def save(self, path: Path) -> Mapping[str, float]:
        """Write the file that `helios.models.encoder` reads; the errors of `training.updates.export`."""
        settings = self.settings
        exported = export(self.bert, settings.update, base=self.base.folder, rank=settings.rank, scale=settings.scale)
        metadata = {"role": "token encoder", "mode": settings.mode, "base": self.base.sha256}
        save_adapter(path, exported.tensors, scale=exported.scale, metadata=metadata)
        return exported.errors

    @property
    def _segment_weight(self) -> float:
        return 0.0 if self.settings.mode == "joint" else (self.settings.segment_weight or 0.0)

    def _texts(self, edges: Sequence[Pair]) -> tuple[list[str], Tensor, Tensor]:
        """Different texts, and for every edge the numbers of its sides, -1 for none; a joint edge is one text."""
        if self.settings.mode == "joint":
            texts = [edge_text(self.corpus, pair) for pair in edges]
            return texts, torch.arange(len(edges)), torch.full((len(edges),), -1)
        nodes = dict.fromkeys(node for s, p in edges for node in (("row", s), ("passage", p)) if node[1] >= 0)
        column = {node: i for i, node in enumerate(nodes)}
        texts = [
            segment_text(self.corpus.segment(number)).text if kind == "row"
            else passage_text(self.corpus.passages[number]).text
            for kind, number in nodes
        ]  # fmt: skip
        left = [column.get(("row", segment), -1) for segment, _ in edges]
        right = [column.get(("passage", passage), -1) for _, passage in edges]
        return texts, torch.tensor(left), torch.tensor(right)

    def _questions(self, tokens: Sequence[Any], asked: Encoded) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors, weights and owners of all kept question tokens."""
        vectors, weights, owners = [], [], []
        numbers = iter(asked.order)
        for vectors_NLD, kept_NL in asked.chunks():
            for row_LD, kept_L in zip(vectors_NLD, kept_NL, strict=True):
                number = next(numbers)
                ids, kept = tokens[number]
                vectors.append(row_LD[kept_L])
                weights.append(torch.from_numpy(self.token_weights(np.array(ids, np.int32)[kept])))
                owners += [number] * len(kept)
        owner = torch.tensor(owners, device=self.device)
        return torch.cat(vectors), torch.cat(weights).to(self.device), owner

    def _divergence(
        self, batch: Sequence[Draw], edges: Sequence[Pair], logits_BE: Tensor, teacher: Teacher
    ) -> Tensor:  # fmt: skip
        """Mean over questions of the divergence on their own lists."""
        column = {pair: i for i, pair in enumerate(edges)}
        taught = teacher.logits([(self.lessons[one.lesson].question, one.pairs) for one in batch])
        own = [logits_BE[row, [column[pair] for pair in one.pairs]] for row, one in enumerate(batch)]
        temperature = self.settings.teacher_temperature
        return torch.stack([divergence(s, t, temperature=temperature) for s, t in zip(own, taught, strict=True)]).mean()


def factored_scores(
    maxima_QN: Tensor, weights_Q: Tensor, owner_Q: Tensor, left_E: Tensor, right_E: Tensor, *, questions: int,
    segment_weight: float,
) -> Tensor:  # fmt: skip
    """Scores of every question and edge (B, E): MaxSim of the edge and its row's share.

    `left` and `right` are columns of the maxima, -1 where an edge has no such node, and an edge without a row has
    its passage's share; `owner` is each token's question.
    """
    padded_QN = F.pad(maxima_QN, (0, 1), value=NOTHING)  # column -1 is nothing
    left_QE, right_QE = padded_QN[:, left_E], padded_QN[:, right_E]
    centre_QE = torch.where(left_E >= 0, left_QE, right_QE)
    score_QE = (torch.maximum(left_QE, right_QE) + segment_weight * centre_QE) * weights_Q[:, None]
    return score_QE.new_zeros(questions, len(left_E)).index_add(0, owner_Q, score_QE)


def _maxima(question_QD: Tensor, vectors_NLD: Tensor, kept_NL: Tensor) -> Tensor:
    """m_q(X) of every question token and text of a chunk: (Q, N)."""
    similarity_QNL = torch.einsum("qd,nld->qnl", question_QD, vectors_NLD)
    return similarity_QNL.masked_fill(~kept_NL, NOTHING).amax(-1)


def reciprocal_rank(lessons: Sequence[Lesson], values: Sequence[NDArray[np.float32]]) -> float:
    """Mean of 1 / rank of the best gold candidate, over lists that hold one; ties count against it."""
    found = []
    for lesson, scores in zip(lessons, values, strict=True):
        gold = np.array([candidate.gold >= 0 for candidate in lesson.candidates[: len(scores)]])
        if gold.any():
            found.append(1.0 / (1 + int((scores[~gold] >= scores[gold].max()).sum())))
    return float(np.mean(found)) if found else 0.0


def train_encoder(
    settings: EncoderSettings, out: Path, *, device: Any = "cpu", on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Mine, train (or go on), write `token-encoder.safetensors` and a card to `out`; measures of what was written."""
    if settings.data.index is None:
        raise TrainingError("an encoder learns from what an index finds: set data.index")
    out.mkdir(parents=True, exist_ok=True)
    device = torch.device(device)
    with (
        world(device) as here, Engine.open(settings.data.index, threads=1) as engine,
        one_thread_an_operation(device) as lanes,
    ):  # fmt: skip
        settings = _of_index(settings, engine)
        if here.leads:
            _lessons(settings, out)
        here.share(None)  # the others read what the leader mined
        recipe = EncoderRecipe(
            engine.corpus, _lessons(settings, out), settings, engine.index.tokens.token_weights, device=device,
            lanes=lanes,
        )  # fmt: skip
        described = {
            "recipe": settings.model_dump(mode="json"),
            "lessons": len(recipe.lessons), "held_out": len(recipe.held_out), "base": recipe.base.sha256,
        }  # fmt: skip
        result = train(recipe, settings.train, out, device=device, description=described, on_log=on_log)
        return _finish(recipe, result, settings, out) if here.leads else {}


def _of_index(settings: EncoderSettings, engine: Engine) -> EncoderSettings:
    """What the index decides where the recipe leaves it open."""
    config = engine.config
    weight = engine.models.fused(config).fusion.segment if settings.segment_weight is None else settings.segment_weight
    return settings.model_copy(update={"base": settings.base or config.encoder.model, "segment_weight": weight})


def _lessons(settings: EncoderSettings, out: Path) -> list[Lesson]:
    path = settings.lessons or out / LESSONS
    return gather_lessons(settings.data, "edge", path, ranking=settings.ranking, depth=settings.depth)


def _finish(recipe: EncoderRecipe, result: TrainResult, settings: EncoderSettings, out: Path) -> dict[str, float]:
    """Write the best checkpoint and measure the written file itself."""
    if result.best is not None:
        recipe.load_state_dict(load_best(out)[1])
    errors = recipe.save(out / WEIGHTS)
    bert = load_bert(recipe.base.folder)
    apply_adapter(bert, out / WEIGHTS)
    recipe.use(bert)
    scores = {f"held-out train {name}": value for name, value in recipe.measure(recipe.held_out).items()}
    first = {name: value for step, _, _, name, value in read_log(out / "log.csv") if step == 0}
    before = {
        f"held-out train {name} before, first {settings.measured}": value
        for name, value in first.items()
    }  # fmt: skip
    lost = {f"share of the change of {part} lost by rank {settings.rank}": value for part, value in errors.items()}
    questions = (*settings.data.questions, *settings.data.synthetic)
    card = ModelCard(
        name=f"Token encoder ({settings.mode})", role="encoder",
        summary="Token vectors for late interaction over rows and passages, trained with the score of search.",
        base=f"{recipe.reader.name} {recipe.base.sha256}", data=tuple(data_file(path) for path in questions),
        settings=settings.model_dump(
            mode="json", exclude={"data", "lessons", "ranking", "base", "start", "teacher"}, exclude_none=True
        ),
        scores={**scores, **before, **lost},
        limits="An index must be built with the encoder that searches it.", seconds=result.seconds,
    )  # fmt: skip
    write_card(out, card, weights=[WEIGHTS])
    return scores


ROLE = Role(EncoderSettings, train_encoder)
