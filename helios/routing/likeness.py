"""The token encoder as routing uses it: many threads, short texts, late interaction as one number."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from helios.models.encoder import TokenEncoder

FloatArray = NDArray[np.float32]
LONGEST_TEXT = 1200
"""Characters of a text that are read."""


class Likeness:
    """Compares texts with a question; documents are encoded one thread at a time, as the encoder demands."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder = encoder
        self._lock = Lock()

    def question(self, question: str) -> FloatArray:
        """Unit vectors (Q, D) of a question's tokens."""
        with self._lock:
            return self.encoder.encode_question(question).vectors

    def texts(self, texts: Sequence[str]) -> list[FloatArray]:
        """Unit vectors (T, D) of each text's tokens."""
        if not texts:
            return []
        with self._lock:
            encoded = self.encoder.encode_documents([text[:LONGEST_TEXT] or "-" for text in texts])
            return [tokens.vectors.astype(np.float32) for tokens in encoded]

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """The mean over the question's tokens of the best cosine in each text."""
        asked_QD = self.question(question)
        return [maxsim(asked_QD, text_TD) for text_TD in self.texts(texts)]

    def containment(self, question: str, names: Sequence[str]) -> list[float]:
        """The same the other way round, for short names: the mean over the name's tokens."""
        asked_QD = self.question(question)
        return [maxsim(name_TD, asked_QD) for name_TD in self.texts(names)]


def maxsim(left_QD: FloatArray, right_TD: FloatArray) -> float:
    """Mean over the left's tokens of the best cosine with the right's."""
    return float((left_QD @ right_TD.T).max(axis=1).mean())
