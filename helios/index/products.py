"""Products of matrices within a search, by one thread and with the same bits however many rows there are.

A linear-algebra library shares out what it deems large, and its threads then wait in a loop for more: with numpy's
OpenBLAS each question cost 50 ms of a second core so. It also sums in another order when a matrix has more rows.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numba.np import linalg
from numpy.typing import NDArray

from helios.index.simd import LANES, two_products

FloatArray = NDArray[np.float32]
Real = TypeVar("Real", np.float32, np.float64)


def padded(count: int) -> int:
    """The number of lanes that hold `count` query tokens."""
    return max(LANES, -(-count // LANES) * LANES)


def products(vectors_RD: FloatArray, question_QD: FloatArray) -> FloatArray:
    """What vectors reach with the tokens of a question: (R, Q)."""
    count, dimension = question_QD.shape
    columns = np.zeros((dimension, padded(count)), np.float32)
    columns[:, :count] = question_QD.T
    out = np.empty((len(vectors_RD), columns.shape[1]), np.float32)
    all_products(np.ascontiguousarray(vectors_RD, np.float32), columns, out)
    return out if columns.shape[1] == count else np.ascontiguousarray(out[:, :count])


def weighted_sums(values_XT: NDArray[Any], weights_T: NDArray[Real]) -> NDArray[Real]:
    """The sum of every row's values, each times its weight: (X)."""
    sums: NDArray[Real] = np.einsum("xt,t->x", values_XT, weights_T)
    return sums


def load_kernels() -> None:
    """Numba's own start, which the first kernel of a process waits for: to be had while encoders are compiled.

    Numba looks whether scipy brings a linear-algebra library, which takes a quarter of a second. It is told that there
    is one if there is scipy: a kernel that multiplies matrices looks for itself when it is compiled.
    """
    looks = getattr(linalg, "ensure_blas", None)
    if looks is not None and find_spec("scipy") is not None and "numba.np.arraymath" not in sys.modules:
        linalg.ensure_blas = lambda: None
        try:
            import_module("numba.np.arraymath")
        finally:
            linalg.ensure_blas = looks
    products(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32))


@njit(nogil=True, cache=True, boundscheck=False)
def all_products(vectors_RD: np.ndarray, columns_DQ: np.ndarray, out_RQ: np.ndarray) -> None:
    """out = vectors · columns, whose width is a multiple of LANES; all are float32 and contiguous."""
    rows = np.int64(vectors_RD.shape[0])
    dimension, width = np.int64(vectors_RD.shape[1]), np.int64(columns_DQ.shape[1])
    for row in range(0, rows, 2):
        other = min(np.int64(row + 1), rows - 1)
        two_products(vectors_RD, np.int64(row), other, dimension, columns_DQ, out_RQ, width)


@njit(nogil=True, cache=True, boundscheck=False)
def code_cosines(
    codes_PD: np.ndarray, rows: np.ndarray, question_D: np.ndarray, places: np.ndarray, out: np.ndarray
) -> None:
    """out[places] = cosines of rows of codes (int8) with a question (int16); sums are of whole numbers."""
    size = np.int64(0)
    for d in range(len(question_D)):
        size += np.int64(question_D[d]) * np.int64(question_D[d])
    for n in range(len(rows)):
        row = codes_PD[rows[n]]
        product, own = np.int32(0), np.int32(0)
        for d in range(len(question_D)):
            value = np.int32(row[d])
            product += value * np.int32(question_D[d])
            own += value * value
        out[places[n]] = product / np.sqrt(max(np.float64(own) * np.float64(size), 1.0))
