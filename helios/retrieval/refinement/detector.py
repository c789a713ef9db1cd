"""Does a question need an aggregation over a column? A logistic regression over hashed words and lexical marks.

Trained by `training.aggregation` on weak labels: a question that compares, whose gold row is the extreme that a plan
over its gold table computes. It reads the question alone.
"""

from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.retrieval.refinement.wording import Sense, read_cues, words_of

BUCKETS = 2048
MARKS = 2 * len(Sense) + 4
SIZE = BUCKETS + MARKS
WEIGHTS = Path(__file__).parent / "weights" / "detector.npz"


def detector_features(question: str) -> NDArray[np.float32]:
    """(BUCKETS + MARKS): hashed words and word pairs, unit length, then marks of the cues."""
    words = words_of(question)
    cues = read_cues(question)
    values = np.zeros(SIZE, np.float32)
    around = [words[cue.start + shift] for cue in cues for shift in range(-2, 5) if 0 <= cue.start + shift < len(words)]
    pairs = [f"{a} {b}" for a, b in zip(words, words[1:], strict=False)]
    for text in (*words, *pairs, *(f"near {word}" for word in around)):
        values[crc32(text.encode()) % BUCKETS] += 1.0
    values[:BUCKETS] /= max(1e-6, float(np.linalg.norm(values[:BUCKETS])))
    for cue in cues:
        place = list(Sense).index(cue.sense)
        values[BUCKETS + place] = 1.0
        if cue.hints & set(cue.after):
            values[BUCKETS + len(Sense) + place] = 1.0
    marks = BUCKETS + 2 * len(Sense)
    values[marks] = float(bool(cues))
    values[marks + 1] = min(3, len(cues)) / 3
    values[marks + 2] = max((cue.start / max(1, len(words)) for cue in cues), default=0.0)
    values[marks + 3] = min(40, len(words)) / 40
    return values


@dataclass(frozen=True, slots=True)
class Detector:
    """Weights (SIZE) and bias of the regression."""

    weights: NDArray[np.float32]
    bias: float

    @classmethod
    def load(cls, path: Path | None = None) -> "Detector":
        """The shipped weights, or those of a file; ModelError for a file that is not a detector."""
        path = path or WEIGHTS
        try:
            with np.load(path, allow_pickle=False) as found:
                weights, bias = np.asarray(found["weights"], np.float32), float(found["bias"])
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(f"{path}: not an aggregation detector ({error})") from None
        if weights.shape != (SIZE,):
            raise ModelError(f"{path}: expected {SIZE} weights, found {weights.shape}")
        return cls(weights, bias)

    def save(self, path: Path) -> None:
        """Write the weights as half floats."""
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, weights=self.weights.astype(np.float16), bias=np.float32(self.bias))

    def probability(self, question: str) -> float:
        """From 0 to 1; a question without any cue is 0, since no plan could be laid for it."""
        if not read_cues(question):
            return 0.0
        return float(1 / (1 + np.exp(-(detector_features(question) @ self.weights + self.bias))))
