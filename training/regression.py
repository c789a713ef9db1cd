"""Logistic regression, fitted by Newton's method."""

import numpy as np
from numpy.typing import NDArray


def fit_logistic(
    rows: NDArray[np.float64], wanted: NDArray[np.float64], *, decay: float, steps: int = 30
) -> tuple[NDArray[np.float64], float]:
    """Weights (features) and intercept for rows (N, features) and labels 0 or 1 (N), the weights held small by `decay`.

    The probabilities are calibrated in the mean; where all labels are the same they go towards it.
    """
    design = np.column_stack([rows, np.ones(len(rows))])
    weights = np.zeros(design.shape[1])
    weights[-1] = np.log((wanted.sum() + 0.5) / (len(wanted) - wanted.sum() + 0.5))
    ridge = decay * np.append(np.ones(rows.shape[1]), 0.0)
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-(design @ weights)))
        gradient = design.T @ (chance - wanted) / len(wanted) + ridge * weights
        curvature = (design.T * (chance * (1 - chance))) @ design / len(wanted) + np.diag(ridge + 1e-9)
        move = np.linalg.solve(curvature, gradient)
        weights -= move
        if np.abs(move).max() < 1e-8:
            break
    return weights[:-1], float(weights[-1])
