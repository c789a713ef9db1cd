"""The recipe of the choice between answers (`helios.reading.choice`): a reader of rivals, and trees.

    helios train answer-choice --recipe answer-choice --out DIR \\
        "indexes=[OTTQA-INDEX,FOLDER-INDEX]" "questions=[train.jsonl,questions.jsonl]"

Each index is asked its questions, and every reader says its answers with its own confidence. The readers must not have
learned from these tables and texts, or they are believed too much. Some readers of rivals are trained, each without a
part of the sources, and read what they have not seen; trees learn from that. One that is trained on everything is
written beside the trees. Each source counts the same, or as `shares` says; 0 leaves it to the readers of rivals alone.
What was said is kept, and a recipe that is run again into the same folder does not ask again.
"""

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from helios.engine import Engine
from helios.evaluation.folders import is_right
from helios.evaluation.questions import read_records
from helios.index.durable import write_atomically
from helios.models.base import find_base_model
from helios.models.card import ModelCard, data_file, write_card
from helios.models.trees import Trees
from helios.reading.choice import FEATURES, TREES, add_read, candidates_of, choice_features
from helios.reading.choice import ROLE as CARD_ROLE
from helios.reading.extractive import ExtractiveReader
from helios.reading.rivals import FILE as RIVALS_FILE
from helios.reading.rivals import RIVALS, Rival, RivalReader
from training.answer_rivals import RivalLesson, RivalRecipe, RivalSettings
from training.distributed import World, world
from training.errors import TrainingError
from training.log import LogRow
from training.recipes import Role
from training.trainer import train

FloatArray = NDArray[np.float32]
LEAST = (0.3, 0.4, 0.5)
"""Chances from which answers are measured."""
LISTS = "lists.jsonl"


class AnswerChoiceSettings(RivalSettings):
    """Everything that the result depends on beside the code."""

    indexes: tuple[Path, ...] = ()
    """Indexes whose tables and texts no reader has learned from."""
    questions: tuple[Path, ...] = ()
    """Questions about each of them; the answer a string, or items in their accepted forms."""
    limit: int = Field(default=500, ge=1)
    """Questions of a file, drawn at random."""
    shares: tuple[float, ...] = ()
    """How much each index counts, whatever its number of questions; all the same by default. From one that counts 0 the
    reader of rivals learns alone, as from tables that other readers have learned from."""
    parts: int = Field(default=3, ge=2)
    """Parts that the sources are dealt out to, each left out of one reader of rivals."""
    trees: int = Field(default=120, ge=1)
    leaves: int = Field(default=15, ge=2)
    learning_rate: float = Field(default=0.04, gt=0.0)
    seed: int = 13


@dataclass(frozen=True, slots=True)
class AnswerList:
    """The answers to a question, as they are read and weighed (A, F), and which of them are right."""

    source: str
    question: str
    answerable: bool
    rivals: tuple[Rival, ...]
    """The first ones."""
    features: FloatArray
    right: NDArray[np.bool_]

    @property
    def lesson(self) -> RivalLesson:
        """What the reader of rivals learns from it."""
        return RivalLesson(self.question, self.rivals, tuple(map(bool, self.right[: len(self.rivals)])))


def train_answer_choice(
    settings: AnswerChoiceSettings, out: Path, *, device: Any = "cpu",
    on_log: Callable[[LogRow], None] = lambda row: None,
) -> Mapping[str, float]:  # fmt: skip
    """Ask, train, fit, and write a card with the weights; returns measures of sources that were left out.

    Raises TrainingError without two indexes with questions.
    """
    started = time.monotonic()
    names = _named(settings)

    def progress(done: int) -> None:
        on_log(LogRow(done, 0, time.monotonic() - started, {"questions asked": done}))

    with world(torch.device(device)) as here:
        if here.leads:
            _ask(settings, out / LISTS, progress)
        here.share(None)  # the others read what the leader wrote
        lists = read_lists(out / LISTS)
        shares = dict(zip(names, settings.shares or [1.0] * len(names), strict=True))
        read = [one for one in lists if shares[one.source] > 0]
        sources = sorted({one.source for one in read})
        parts = [sources[number :: settings.parts] for number in range(min(settings.parts, len(sources)))]
        for number, part in enumerate(parts):
            others = [one for one in lists if one.source not in part]
            _train(others, settings, out / f"part-{number}", here, device, on_log)
        _train(lists, settings, out, here, device, on_log)
        if not here.leads:
            return {}
    for number, part in enumerate(parts):
        reader = _reader(out / f"part-{number}")
        read = [_read(one, reader) if one.source in part else one for one in read]
    trees = Trees.of(fit_choice(read, settings, shares))
    trees.save(out / TREES)
    scores = left_out(read, settings, shares)
    card = ModelCard(
        name=CARD_ROLE, role=CARD_ROLE, base=f"all-MiniLM-L6-v2 ({find_base_model().sha256[:12]})", scores=scores,
        seconds=time.monotonic() - started,
        summary="Reads a question beside the best answers of all readers, and says how likely each is right.",
        data=tuple(data_file(path) for path in settings.questions),
        settings=settings.model_dump(mode="json", exclude={"indexes", "questions"})
        | {"start": settings.start and settings.start.name},
        limits="Learned from some dozen folders; mostly English, some German, French, Spanish and Chinese.",
    )  # fmt: skip
    write_card(out, card, weights=[TREES, RIVALS_FILE])
    return scores


def _named(settings: AnswerChoiceSettings) -> list[str]:
    """The sources; TrainingError where they cannot be told apart."""
    if len(settings.indexes) < 2 or len(settings.indexes) != len(settings.questions):
        raise TrainingError("set indexes and questions, a file each; two or more, so that one can be left out")
    if settings.shares and len(settings.shares) != len(settings.indexes):
        raise TrainingError(f"shares has {len(settings.shares)} numbers, expected one for each of the indexes")
    if settings.shares and sum(share > 0 for share in settings.shares) < 2:
        raise TrainingError("two or more shares must be above 0: the trees learn from these, each left out once")
    names = [_source(index, questions) for index, questions in zip(settings.indexes, settings.questions, strict=True)]
    if len(set(names)) < len(names):
        raise TrainingError(f"two sources are called alike ({', '.join(names)}); name the folders of the indexes apart")
    return names


def _ask(settings: AnswerChoiceSettings, path: Path, progress: Callable[[int], None]) -> None:
    """Write the lists of all sources, unless a run before has kept them."""
    if path.is_file():
        return
    found: list[AnswerList] = []
    for index, questions in zip(settings.indexes, settings.questions, strict=True):
        for one in lists_of(index, questions, settings):
            found.append(one)
            if len(found) % 50 == 0:
                progress(len(found))
    write_lists(path, found)


def lists_of(
    index: Path, questions: Path, settings: AnswerChoiceSettings, *, overrides: Sequence[str] = ()
) -> Iterator[AnswerList]:
    """What the readers say in answer to questions of a file; none for a question without evidence."""
    asked = [record for _, record in read_records(questions)]
    random.Random(settings.seed).shuffle(asked)
    plain = ["advanced.reading.choice=none", "reading.reader=extractive", *overrides]
    with Engine.open(index, overrides=plain) as engine:
        assert isinstance(engine.reader, ExtractiveReader)
        for record in asked[: settings.limit]:
            question, answer = record["question"], record["answer"]
            items = ((answer,),) if isinstance(answer, str) else tuple(tuple(forms) for forms in answer)
            evidence = engine.search(question)
            if evidence.edges:
                candidates = candidates_of(engine.reader.readings(question, evidence))
                yield AnswerList(
                    _source(index, questions),
                    question,
                    bool(items),
                    tuple(one.rival for one in candidates[:RIVALS]),
                    choice_features(question, evidence, candidates),
                    np.array([bool(items) and is_right(one.text, items) for one in candidates], bool),
                )


def write_lists(path: Path, lists: Sequence[AnswerList]) -> None:
    """Keep what was said."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(
            [one.source, one.question, one.answerable, [astuple(rival) for rival in one.rivals],
             [[float(f"{value:.6g}") for value in row] for row in one.features.tolist()], one.right.tolist()],
            ensure_ascii=False,
        )
        for one in lists
    )  # fmt: skip
    write_atomically(path, "".join(line + "\n" for line in lines).encode())


def read_lists(path: Path) -> list[AnswerList]:
    """What `write_lists` kept."""
    records = map(json.loads, path.read_bytes().splitlines())
    return [
        AnswerList(
            source, question, answerable, tuple(Rival(*one) for one in rivals),
            np.array(features, np.float32).reshape(len(right), len(FEATURES)), np.array(right, bool),
        )
        for source, question, answerable, rivals, features, right in records
    ]  # fmt: skip


def _train(
    lists: Sequence[AnswerList], settings: AnswerChoiceSettings, out: Path, here: World, device: Any,
    on_log: Callable[[LogRow], None],
) -> None:  # fmt: skip
    """A reader of rivals that learns from some lists; one that was trained before is not trained again."""
    if not (out / RIVALS_FILE).is_file():
        recipe = RivalRecipe([one.lesson for one in lists if one.rivals], settings, device=device)
        train(recipe, settings.train, out / "run", device=device, on_log=on_log)
        if here.leads:
            recipe.save(out / RIVALS_FILE)
    here.share(None)  # nobody looks for the next before this one is saved


def _reader(folder: Path) -> RivalReader:
    return RivalReader(find_base_model(), folder / RIVALS_FILE, threads=os.cpu_count() or 1)


def _read(one: AnswerList, reader: RivalReader) -> AnswerList:
    """A list with what a reader of rivals says of it."""
    features = one.features.copy()
    if len(features):
        add_read(features, reader.read(one.question, one.rivals))
    return replace(one, features=features)


def fit_choice(
    lists: Sequence[AnswerList], settings: AnswerChoiceSettings, shares: Mapping[str, float]
) -> lightgbm.Booster:
    """Trees that say how likely an answer is right; every source counts as `shares` says."""
    kept = [one for one in lists if len(one.right)]
    sources = [one.source for one in kept]
    counts = [shares.get(one.source, 1.0) / sources.count(one.source) for one in kept]
    weights = np.repeat(counts, [len(one.right) for one in kept])
    data = lightgbm.Dataset(
        np.concatenate([one.features for one in kept]),
        np.concatenate([one.right for one in kept]).astype(float),
        weight=weights / weights.mean(),
        feature_name=list(FEATURES),
    )
    parameters = {
        "objective": "binary", "num_leaves": settings.leaves, "learning_rate": settings.learning_rate,
        "min_data_in_leaf": 40, "lambda_l2": 20.0, "feature_fraction": 0.5, "bagging_fraction": 0.7,
        "bagging_freq": 1, "seed": settings.seed, "deterministic": True, "force_row_wise": True, "num_threads": 1,
        "verbose": -1,
    }  # fmt: skip
    return lightgbm.train(parameters, data, settings.trees)


def left_out(
    lists: Sequence[AnswerList], settings: AnswerChoiceSettings, shares: Mapping[str, float]
) -> dict[str, float]:
    """Measures of each source by trees that learned from the others: the likeliest answer is right, and from some
    chances on how many answers are given, right and wrong, of those to questions that have one."""
    scores: dict[str, float] = {}
    for source in sorted({one.source for one in lists}):
        trees = fit_choice([one for one in lists if one.source != source], settings, shares)
        here = [one for one in lists if one.source == source]
        best = [_best(one, trees) for one in here]
        answerable = max(1, sum(one.answerable for one in here))
        scores[f"{source}: right"] = sum(right for _, right in best) / answerable
        scores[f"{source}: said"] = float(np.mean([chance for chance, _ in best]))
        for least in LEAST:
            given = [right for chance, right in best if chance >= least]
            scores[f"{source}: right from {least:.0%} on"] = sum(given) / answerable
            scores[f"{source}: wrong from {least:.0%} on"] = (len(given) - sum(given)) / len(here)
    return scores


def _best(one: AnswerList, trees: lightgbm.Booster) -> tuple[float, bool]:
    """The likeliest answer's chance, and whether it is right."""
    if not len(one.right):
        return 0.0, False
    chances = np.asarray(trees.predict(one.features, num_threads=1))
    at = int(np.argmax(chances))
    return float(chances[at]), bool(one.right[at])


def _source(index: Path, questions: Path) -> str:
    return f"{index.name}: {questions.name}"


ROLE = Role(AnswerChoiceSettings, train_answer_choice)
