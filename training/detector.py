"""The detector of aggregation questions: a logistic regression on the words of a question."""

from collections.abc import Sequence

import numpy as np

from helios.retrieval.refinement.detector import SIZE, Detector, detector_features


def train_detector(
    texts: Sequence[str], labels: Sequence[bool], *, steps: int = 400, learning_rate: float = 0.05, decay: float = 2e-3
) -> Detector:
    """A logistic regression by full-batch Adam with weight decay; the same input gives the same weights."""
    rows = np.stack([detector_features(text) for text in texts]).astype(np.float64)
    wanted = np.asarray(labels, np.float64)
    weights = np.zeros(SIZE + 1)
    mean, square = np.zeros(SIZE + 1), np.zeros(SIZE + 1)
    for step in range(1, steps + 1):
        error = 1 / (1 + np.exp(-(rows @ weights[:-1] + weights[-1]))) - wanted
        gradient = np.append(rows.T @ error, error.sum()) / len(wanted)
        gradient[:-1] += decay * weights[:-1]
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        rate = learning_rate / (1 + step / 200)
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return Detector(weights[:-1].astype(np.float16).astype(np.float32), float(np.float32(weights[-1])))


def area_under_curve(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The chance that a positive scores above a negative, ties half; NaN without both."""
    positive = np.array([s for s, label in zip(scores, labels, strict=True) if label])
    negative = np.array([s for s, label in zip(scores, labels, strict=True) if not label])
    if not len(positive) or not len(negative):
        return float("nan")
    above = (positive[:, None] > negative[None]).mean() + 0.5 * (positive[:, None] == negative[None]).mean()
    return float(above)
