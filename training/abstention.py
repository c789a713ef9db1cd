"""When should the extractive reader say nothing? Its confidence on train questions that its trees have not seen.

    python -m training.abstention runs/reader/examples --precision 0.1

`runs/reader/examples` is what `helios train reader` mined. Trees and calibration are fitted five times, each time
without a fifth of the tables, which they then answer. The rule: an answer is given from the lowest confidence on at
which answers are right at least with `--precision`, where the chance of being right is made monotone in the
confidence (isotonic regression); `reading.least` is that confidence, rounded down to a hundredth.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from helios.reading.ranker import chance, shares_of
from training.reader import ReaderSettings, best_answer, calibrate, fit_trees, predict
from training.reader_examples import Example, read_examples

FOLDS = 5
STEPS = (0.0, 0.02, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """What answering from one confidence on gives; EM and F1 over all questions, abstentions count as wrong."""

    confidence: float
    answered: float
    precision: float
    em: float
    f1: float


def main(
    examples: Annotated[Path, typer.Argument(help="Folder of mined examples.")],
    precision: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of right answers to answer from.")] = 0.1,
    trees: Annotated[int, typer.Option(min=1, help="As many as the reader has.")] = 300,
) -> None:
    """Print the curve and the confidence that the rule chooses, as JSON."""
    mined = read_examples(examples)
    if not mined:
        raise typer.BadParameter(f"{examples}: holds no mined examples")
    confidences, exact, f1 = out_of_fold(mined, ReaderSettings(trees=trees))
    report = {
        "questions": len(mined),
        "precision": precision,
        "least": least_confidence(confidences, exact, precision=precision),
        "curve": [asdict(point) for point in curve(confidences, exact, f1, steps=STEPS)],
    }
    typer.echo(json.dumps(report, indent=2))


def out_of_fold(examples: Sequence[Example], settings: ReaderSettings) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Confidence, exact match and F1 of every question's answer, (N) each, from trees that never saw its table.

    Of the other tables a fold calibrates and the rest grows the trees.
    """
    folds = np.minimum((np.array([example.fold for example in examples]) * FOLDS).astype(int), FOLDS - 1)
    measured = np.zeros((3, len(examples)))
    for fold in range(FOLDS):
        calibrating = (fold + 1) % FOLDS
        held = [e for e, at in zip(examples, folds, strict=True) if at == calibrating and len(e.f1)]
        learned = [e for e, at in zip(examples, folds, strict=True) if at not in (fold, calibrating)]
        trees = fit_trees(learned, settings, settings.trees)
        calibration = calibrate([predict(trees, example, settings.trees) for example in held], held)
        for number in np.flatnonzero(folds == fold).tolist():
            example = examples[number]
            if not len(example.f1):
                continue
            shares = shares_of(predict(trees, example, settings.trees), calibration.temperature)
            at, share = best_answer(example, shares)
            measured[:, number] = chance(share, calibration), example.exact[at], example.f1[at]
    return measured[0], measured[1], measured[2]


def curve(confidences: FloatArray, exact: FloatArray, f1: FloatArray, *, steps: Sequence[float]) -> list[Point]:
    """What answering from each of these confidences on gives."""
    points = []
    for step in steps:
        kept = confidences >= step
        precision = float(exact[kept].mean()) if kept.any() else 0.0
        em, overlap = float((exact * kept).mean()), float((f1 * kept).mean())
        points.append(Point(step, round(float(kept.mean()), 4), round(precision, 4), round(em, 4), round(overlap, 4)))
    return points


def least_confidence(confidences: FloatArray, exact: FloatArray, *, precision: float) -> float:
    """The lowest confidence, down to a hundredth, from which on the isotonic chance is at least `precision`; else 1."""
    order = np.argsort(confidences, kind="stable")
    for confidence, fitted in zip(confidences[order], isotonic(exact[order]), strict=True):
        if fitted >= precision:
            return math.floor(float(confidence) * 100) / 100
    return 1.0


def isotonic(values: FloatArray) -> FloatArray:
    """The nearest sequence (N) that never falls: neighbours that do are pooled into their mean."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            mean, size = means.pop(), sizes.pop()
            means[-1] = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            sizes[-1] += size
    return np.repeat(means, sizes)


if __name__ == "__main__":
    typer.run(main)
