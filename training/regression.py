"""Logistic regression, fitted by Newton's method."""

import numpy as np
from numpy.typing import NDArray


def fit_logistic(
    rows: NDArray[np.float64], wanted: NDArray[np.float64], *, decay: float, steps: int = 30,
    counts: NDArray[np.float64] | None = None, known: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], float]:  # fmt: skip
    """Weights (features) and intercept for rows (N, features) and labels 0 or 1 (N), the weights held small by `decay`.

    `counts` is how often each row counts (N), once by default. The probabilities are calibrated in the mean; where all
    labels are the same they go towards it. With `known`, log-odds that each row has already (N), only what the rows
    say beside it is fitted, and the intercept is 0.
    """
    design = np.column_stack([rows, np.ones(len(rows)) if known is None else np.zeros(len(rows))])
    told = np.zeros(len(rows)) if known is None else known
    counts = np.ones(len(wanted)) if counts is None else counts
    weights, yes, whole = np.zeros(design.shape[1]), counts @ wanted, counts.sum()
    weights[-1] = np.log((yes + 0.5) / (whole - yes + 0.5)) if known is None else 0.0
    ridge = decay * np.append(np.ones(rows.shape[1]), 0.0)

    def loss(weights: NDArray[np.float64]) -> float:
        odds = design @ weights + told
        return float(counts @ (np.logaddexp(0.0, odds) - wanted * odds) / whole + 0.5 * ridge @ weights**2)

    for _ in range(steps):
        chance = 0.5 * (1.0 + np.tanh(0.5 * (design @ weights + told)))
        gradient = design.T @ (counts * (chance - wanted)) / whole + ridge * weights
        curvature = (design.T * (counts * chance * (1 - chance))) @ design / whole + np.diag(ridge + 1e-9)
        move = np.linalg.solve(curvature, gradient)
        size, reached = 1.0, loss(weights)
        while loss(weights - size * move) > reached + 1e-12 and size > 1e-6:
            size /= 2  # where hardly any row is undecided a whole step leads astray
        weights -= size * move
        if np.abs(move).max() < 1e-8:
            break
    return weights[:-1], float(weights[-1])
