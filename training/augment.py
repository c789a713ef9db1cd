"""The recipe of DAQu: what a question's context is worth, learned from questions and what they look for (3.2, 4.4).

    helios train augment --recipe augment --out runs/augment "data.tables=[site.sqlite]"
    helios eval augment site.sqlite --weights runs/augment

`few` trains how much the question and each column count, and a low-rank map of the vectors; the encoder stays as it is
and its vectors are made once. `lora` and `full` train the encoder too: of each column `with_gradients` attributes are
encoded for the gradient and `without_gradients` more without. The loss is InfoNCE over what is right for the batch's
other questions and mined wrong documents. Searching takes all attributes.

Shape legend: B questions of a batch, P parts (the question, then columns), E documents of a batch, D dimension.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from helios.augment.encoding import AttributeVectors, PooledTokens, load_vectors, save_vectors
from helios.augment.model import ADAPTER, ATTRIBUTE_ADAPTER, WEIGHTS
from helios.augment.model import ROLE as CARD_ROLE
from helios.config import Section
from helios.evaluation.augment.command import split_record, text_encoder
from helios.evaluation.augment.expansions import Expansion
from helios.evaluation.augment.measures import depth_of, measure
from helios.evaluation.augment.run import SHARES
from helios.models.adapters import save_adapter
from helios.models.bert import Bert, load_bert
from helios.models.card import ModelCard, data_file, write_card
from helios.models.encoder import MiniLMEncoder
from training.augment_lessons import QUESTION, AugmentData, Batch, ReadTask, Site, draw_batches, make_site, read_tasks
from training.checkpoints import load_best
from training.errors import TrainingError
from training.log import LogRow
from training.parallel_encoding import ParallelEncoder, one_thread_an_operation
from training.recipes import Role
from training.settings import TrainSettings
from training.trainer import ParameterGroup, train
from training.updates import export, prepare

MEGABYTES = 4096
NOTHING = -1e4


class AugmentSettings(Section):
    """What is trained, on what, and how."""

    data: AugmentData = AugmentData()
    train: TrainSettings = TrainSettings(epochs=5, learning_rate=1e-3, best_by="last")
    update: Literal["few", "lora", "full"] = "few"
    """`few`: column weights and a map of the vectors. `lora`, `full`: the encoder's weights too, at about 2e-5."""
    attributes: Literal["shared", "separate"] = "shared"
    """With `lora` and `full`: whether attributes are encoded by the encoder of questions, or by one of their own."""
    encoder: str | None = None
    """For sentence-transformers, with `few`: DPR, Contriever, BGE-M3. With `lora` and `full` a folder of a BERT-shaped
    base. None is the packaged encoder."""
    vectors: Path | None = None
    """File of vectors that are kept between runs."""
    expansion: Expansion | None = None
    """Append words of the context instead of encoding it as a set: the trained forms of the baselines."""
    map_rank: int = Field(default=32, ge=0)
    """Rank of the map of the vectors; 0 has none."""
    column_rate: float = Field(default=10.0, gt=0.0)
    """The column weights' learning rate, as a multiple of the others'."""
    column_steps: int = Field(default=120, ge=0)
    """Steps that fit the column weights alone before anything else is trained; 0 begins with the paper's mean."""
    with_gradients: int = Field(default=3, ge=1)
    without_gradients: int = Field(default=30, ge=0)
    batch: int = Field(default=128, ge=2)
    """Questions of a batch; all of one site."""
    negatives: int = Field(default=16, ge=0)
    """Mined wrong documents for each question."""
    pool: int = Field(default=100, ge=1)
    """The best wrong documents, from which they are drawn."""
    logit_scale: float = Field(default=20.0, gt=0.0)
    share: Literal["learned", "searched"] = "learned"
    """λ: as the column weights have it, or the one of 0.1 to 0.9 that is best on validation questions."""
    rank: int = Field(default=32, ge=1)
    scale: float = Field(default=2.0, gt=0.0)
    max_tokens: int = Field(default=256, ge=16)


class AugmentRecipe:
    """The augmenter under training (a recipe of `training.trainer`)."""

    def __init__(
        self, sites: Sequence[Site], columns: Sequence[str], measures: Sequence[str], settings: AugmentSettings, *,
        device: torch.device | str = "cpu", lanes: int = 1,
    ) -> None:  # fmt: skip
        torch.manual_seed(settings.train.seed)
        self.sites, self.columns, self.measures, self.settings = sites, tuple(columns), tuple(measures), settings
        self.device = torch.device(device)
        self.parts = [torch.from_numpy(site.parts_NPD).to(self.device) for site in sites]
        self.documents = [torch.from_numpy(site.documents_MD).to(self.device) for site in sites]
        dimension = sites[0].documents_MD.shape[1]
        even = torch.full((1 + len(self.columns),), 0.5413)  # softplus of it is 1
        self.raw_P = nn.Parameter(even.to(self.device))
        rank = settings.map_rank
        self.down_DR = nn.Parameter((0.05 * torch.randn(dimension, rank)).to(self.device))
        self.up_RD = nn.Parameter(torch.zeros(rank, dimension, device=self.device))
        self.encoders: list[Trained] = []
        if settings.update != "few":
            count = 2 if settings.attributes == "separate" else 1
            self.encoders = [Trained(settings, self.device, lanes) for _ in range(count)]
        if settings.column_steps and self.columns:
            self._fit_columns()

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        groups = [ParameterGroup([self.raw_P], scale=self.settings.column_rate)] if self.columns else []
        if self.settings.map_rank:
            groups.append(ParameterGroup([self.down_DR, self.up_RD]))
        return [*groups, *(ParameterGroup(one.parameters) for one in self.encoders)]

    def batches(self, epoch: int, *, seed: int) -> Sequence[Batch]:
        settings = self.settings
        return draw_batches(self.sites, epoch, size=settings.batch, negatives=settings.negatives, seed=seed)

    def size(self, batch: Batch) -> int:
        return len(batch.questions)

    def step(self, batch: Batch) -> Tensor:
        """InfoNCE; of a question with several right documents each counts alone, without the others beside it."""
        site = self.sites[batch.site]
        if self.encoders:
            parts_BPD = self._encoded_parts(site, batch)
            documents_ED = self.encoders[0].encode([site.texts[number] for number in batch.documents])
        else:
            parts_BPD = self.parts[batch.site][list(batch.questions)]
            documents_ED = self.documents[batch.site][list(batch.documents)]
        place = {document: column for column, document in enumerate(batch.documents)}
        gold = [[place[one] for one in site.gold[question]] for question in batch.questions]
        return info_nce(self.settings.logit_scale * self._scores(parts_BPD, documents_ED), gold)

    def evaluate(self) -> Mapping[str, float]:
        """The task's measures on validation questions, over all documents; the first is what decides."""
        return self.measure(self.weights(), "validation")

    def measure(self, weights_P: Tensor, which: Literal["train", "validation"]) -> dict[str, float]:
        """Means over the questions of all sites."""
        values: dict[str, list[float]] = {name: [] for name in self.measures}
        depth = depth_of(self.measures)
        with torch.no_grad():
            for number, site in enumerate(self.sites):
                asked = list(getattr(site, which))
                parts, documents = self._all(number, asked)
                scores = self._scores(parts, documents, weights_P).cpu().numpy()
                for question, own in zip(asked, scores, strict=True):
                    ranked = [str(at) for at in np.argsort(-own, kind="stable")[:depth]]
                    right = {str(at) for at in site.gold[question]}
                    for name in self.measures:
                        values[name].append(measure(name, ranked, right))
        return {name: float(np.mean(own)) for name, own in values.items() if own}

    def weights(self) -> Tensor:
        """What the question and every column count; they sum to 1."""
        positive = F.softplus(self.raw_P)
        return positive / positive.sum()

    def state_dict(self) -> Mapping[str, Any]:
        own = {"raw": self.raw_P, "down": self.down_DR, "up": self.up_RD}
        trained = {f"{at}.{name}": p for at, one in enumerate(self.encoders) for name, p in one.trained.items()}
        return {name: tensor.detach().cpu().clone() for name, tensor in {**own, **trained}.items()}

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        own = {"raw": self.raw_P, "down": self.down_DR, "up": self.up_RD}
        trained = {f"{at}.{name}": p for at, one in enumerate(self.encoders) for name, p in one.trained.items()}
        with torch.no_grad():
            for name, parameter in {**own, **trained}.items():
                parameter.copy_(state[name])

    def by_share(self) -> dict[float, float]:
        """The first measure on validation questions by λ, the columns' weights among each other as they are."""
        weights_P = self.weights().detach()
        rest_P = weights_P[1:] / weights_P[1:].sum().clamp_min(1e-9)
        return {
            share: self.measure(torch.cat([weights_P.new_tensor([share]), (1 - share) * rest_P]), "validation")[
                self.measures[0]
            ]
            for share in SHARES
        }

    def _scores(self, parts_BPD: Tensor, documents_ED: Tensor, weights_P: Tensor | None = None) -> Tensor:
        weights = self.weights() if weights_P is None else weights_P
        questions_BD = self._mapped(F.normalize(torch.einsum("bpd,p->bd", parts_BPD, weights), dim=-1))
        return questions_BD @ self._mapped(documents_ED).T

    def _mapped(self, vectors: Tensor) -> Tensor:
        if not self.settings.map_rank:
            return vectors
        return F.normalize(vectors + vectors @ self.down_DR @ self.up_RD, dim=-1)

    def _fit_columns(self) -> None:
        """Column weights alone, over all mined documents, with the untrained encoder: seconds, the same every time.

        A mix's cosine comes from the products of its parts, which are made once.
        """
        tables = [self._products(number) for number in range(len(self.sites))]
        optimizer = torch.optim.Adam([self.raw_P], lr=0.1)
        for _ in range(self.settings.column_steps):
            optimizer.zero_grad()
            weights_P = self.weights()
            losses = []
            for products_NPE, grams_NPP, gold in tables:
                norms_N = torch.einsum("npr,p,r->n", grams_NPP, weights_P, weights_P).clamp_min(1e-9).sqrt()
                cosines_NE = torch.einsum("npe,p->ne", products_NPE, weights_P) / norms_N[:, None]
                losses.append(info_nce(self.settings.logit_scale * cosines_NE, gold))
            torch.stack(losses).mean().backward()
            optimizer.step()

    def _products(self, number: int) -> tuple[Tensor, Tensor, list[list[int]]]:
        """Of a site's train questions: parts by documents, parts by parts, and the columns of what is right."""
        site = self.sites[number]
        asked = list(site.train)
        wanted = sorted({one for at in asked for one in (*site.gold[at], *site.wrong[at])})
        place = {document: column for column, document in enumerate(wanted)}
        parts_NPD, documents_ED = self.parts[number][asked], self.documents[number][wanted]
        gold = [[place[one] for one in site.gold[at]] for at in asked]
        return parts_NPD @ documents_ED.T, parts_NPD @ parts_NPD.transpose(1, 2), gold

    def _all(self, number: int, asked: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Parts of questions and all documents of a site, as they are encoded now."""
        site = self.sites[number]
        if not self.encoders:
            return self.parts[number][list(asked)], self.documents[number]
        batch = Batch(number, tuple(asked), ())
        return self._encoded_parts(site, batch, everything=True), self.encoders[0].encode(site.texts)

    def _encoded_parts(self, site: Site, batch: Batch, *, everything: bool = False) -> Tensor:
        """Parts of a batch (B, P, D): some attributes with gradients, some without, the rest left out."""
        settings, questions = self.settings, [site.questions[at] for at in batch.questions]
        most = settings.with_gradients + settings.without_gradients
        drawn = [
            [_some(one.context.get(name, ()), most, everything=everything) for name in self.columns]
            for one in questions
        ]
        first = [own[:] if everything else own[: settings.with_gradients] for row in drawn for own in row]
        later = [() if everything else own[settings.with_gradients :] for row in drawn for own in row]
        asked_BD = self.encoders[0].encode([one.text for one in questions])
        sums = self._sums(first)
        with torch.no_grad():
            sums = sums + self._sums(later)
        counts = torch.tensor([len(a) + len(b) for a, b in zip(first, later, strict=True)], device=self.device)
        means = sums / counts.clamp_min(1)[:, None]
        return torch.cat([asked_BD[:, None], means.view(len(questions), len(self.columns), -1)], dim=1)

    def _sums(self, groups: Sequence[Sequence[str]]) -> Tensor:
        """The sum of the attributes' vectors of every group."""
        texts = [text for group in groups for text in group]
        owner = torch.tensor([at for at, group in enumerate(groups) for _ in group], device=self.device)
        zeros = torch.zeros(len(groups), self.documents[0].shape[1], device=self.device)
        return zeros.index_add(0, owner, self.encoders[-1].encode(texts)) if texts else zeros


class Trained:
    """An encoder whose weights are trained: texts to the unit mean of their token vectors, as `PooledTokens` has it."""

    def __init__(self, settings: AugmentSettings, device: torch.device, lanes: int) -> None:
        self.settings = settings
        self.reader = MiniLMEncoder.load(settings.encoder, adapter="none", max_tokens=settings.max_tokens)
        self.bert: Bert = load_bert(self.reader.base.folder)
        update: Literal["lora", "full"] = "full" if settings.update == "full" else "lora"
        self.parameters = prepare(self.bert, update, rank=settings.rank, scale=settings.scale, words=False)
        self.bert.to(device)
        self.trained = {name: p for name, p in self.bert.named_parameters() if p.requires_grad}
        self.parallel = ParallelEncoder(self.bert, lanes=lanes)

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors (N, D)."""
        encoded = self.parallel.encode(self.reader.tokenise(list(texts)))
        pooled = []
        for vectors_NLD, kept_NL in encoded.chunks():
            kept = kept_NL.unsqueeze(-1).to(vectors_NLD.dtype)
            pooled.append(F.normalize((vectors_NLD * kept).sum(1) / kept.sum(1).clamp_min(1), dim=-1).T)
        return encoded.in_order(pooled).T

    def save(self, path: Path) -> None:
        """Write the file that `helios.models.encoder` reads."""
        settings = self.settings
        update: Literal["lora", "full"] = "full" if settings.update == "full" else "lora"
        exported = export(
            self.bert, update, base=self.reader.base.folder, rank=settings.rank, scale=settings.scale, words=False
        )
        metadata = {"role": "token encoder", "base": self.reader.base.sha256}
        save_adapter(path, exported.tensors, scale=exported.scale, metadata=metadata)


def info_nce(scores_BE: Tensor, gold: Sequence[Sequence[int]]) -> Tensor:
    """Mean over questions of the cross-entropy of each right document among all that are not right."""
    right_BE = torch.zeros_like(scores_BE, dtype=torch.bool)
    for row, own in enumerate(gold):
        right_BE[row, list(own)] = True
    wrong_B = torch.logsumexp(scores_BE.masked_fill(right_BE, NOTHING), dim=1)
    losses_BE = F.softplus(wrong_B[:, None] - scores_BE) * right_BE
    return (losses_BE.sum(1) / right_BE.sum(1).clamp_min(1)).mean()


def _some(texts: Sequence[str], most: int, *, everything: bool) -> tuple[str, ...]:
    """Attributes of a column: all of them, or some by chance (the trainer seeds it for every batch)."""
    return tuple(texts) if everything else tuple(random.sample(list(texts), min(most, len(texts))))


def train_augment(
    settings: AugmentSettings, out: Path, *, device: Any = "cpu", on_log: Callable[[LogRow], None] = lambda row: None
) -> Mapping[str, float]:
    """Train one augmenter, or one for each fold; measures on validation questions.

    Raises TrainingError for settings without data.
    """
    if settings.update != "few" and settings.encoder is not None and not Path(settings.encoder).is_dir():
        raise TrainingError(
            f"encoder={settings.encoder}: update={settings.update} trains a BERT-shaped base in a folder; this is none"
        )
    read = read_tasks(settings.data, settings.expansion)
    vectors = AttributeVectors(_encoder(settings), megabytes=MEGABYTES)
    known = load_vectors(settings.vectors, vectors) if settings.vectors else 0
    found: dict[str, float] = {}
    for fold in range(len(read[0].splits)):
        folder = out / f"fold-{fold}" if settings.data.folds else out
        scores = _train_fold(read, fold, vectors, settings, folder, device=torch.device(device), on_log=on_log)
        prefix = f"fold {fold}, " if settings.data.folds else ""
        found |= {f"{prefix}{name}": value for name, value in scores.items()}
        if settings.vectors and len(vectors) > known:
            save_vectors(settings.vectors, vectors)
            known = len(vectors)
    return found


def _encoder(settings: AugmentSettings) -> Any:
    if settings.update == "few":
        return text_encoder(settings.encoder)
    return PooledTokens(MiniLMEncoder.load(settings.encoder, adapter="none", max_tokens=settings.max_tokens))


def _train_fold(
    read: Sequence[ReadTask], fold: int, vectors: AttributeVectors, settings: AugmentSettings, out: Path, *,
    device: torch.device, on_log: Callable[[LogRow], None],
) -> Mapping[str, float]:  # fmt: skip
    started = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    columns = [column.name for column in read[0].task.columns]
    sites = [make_site(one, fold, vectors, columns, pool=settings.pool) for one in read]
    with one_thread_an_operation(device) as lanes:
        recipe = AugmentRecipe(sites, columns, read[0].task.measures, settings, device=device, lanes=lanes)
        described = {
            "recipe": settings.model_dump(mode="json", exclude={"vectors": True, "data": {"tables"}}), "fold": fold,
            "sites": {site.name: [len(site.train), len(site.validation)] for site in sites},
            "encoder": vectors.encoder.name,
        }  # fmt: skip
        result = train(recipe, settings.train, out, device=device, description=described, on_log=on_log)
        if result.best is not None:
            recipe.load_state_dict(load_best(out)[1])
        return _write(recipe, settings, out, vectors.encoder.name, fold, time.monotonic() - started)


def _write(
    recipe: AugmentRecipe, settings: AugmentSettings, out: Path, encoder: str, fold: int, seconds: float
) -> Mapping[str, float]:
    """Weights and card of what was learned; measures on validation questions."""
    from safetensors.torch import save_file

    data, weights = settings.data, recipe.weights().detach().cpu()
    split = split_record(data.task, data.by, folds_count=data.folds, shares=data.shares, seed=data.seed, fold=fold)
    by_share = recipe.by_share() if recipe.columns else {}
    searched = settings.share == "searched" and bool(by_share)
    share = max(by_share, key=lambda one: by_share[one]) if searched else float(weights[0])
    rest = float(weights[1:].sum()) or 1.0
    files = []
    if settings.map_rank:
        tensors = {"map.down": recipe.down_DR.detach().cpu(), "map.up": recipe.up_RD.detach().cpu()}
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, out / WEIGHTS)
        files.append(WEIGHTS)
    for name, trained in zip((ADAPTER, ATTRIBUTE_ADAPTER), recipe.encoders, strict=False):
        trained.save(out / name)
        files.append(name)
    scores = {f"validation {name}": value for name, value in recipe.evaluate().items()}
    curve = {f"validation {recipe.measures[0]} at λ = {share:g}": value for share, value in by_share.items()}
    names = (QUESTION, *recipe.columns)
    card = ModelCard(
        name="helios-augmenter", role=CARD_ROLE,
        summary="What a question and the columns of its context count, and a map of their vectors (DAQu).",
        base=encoder, data=tuple(data_file(path) for path in settings.data.tables),
        settings=settings.model_dump(mode="json", exclude={"data": {"tables"}, "vectors": True}, exclude_none=True),
        scores={**scores, **curve},
        limits="Learned from questions of the sites that are named; columns are known by their names.", seconds=seconds,
        needs={"encoder": encoder, "split": split},
        values={
            "share": share, "weights": {n: float(w) / rest for n, w in zip(names[1:], weights[1:], strict=True)},
            "expansion": settings.expansion.value if settings.expansion else None,
        },
    )  # fmt: skip
    write_card(out, card, weights=files)
    return scores


ROLE = Role(AugmentSettings, train_augment)
