"""The span model: the shared encoder with our adapter reads question and window together; every token of the window
gets a logit for being the first and one for being the last of the answer.

Shape legend: B windows, L tokens, D hidden size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from helios.errors import ModelError
from helios.models.base import find_base_model
from helios.models.bert import Bert, load_bert
from helios.models.runtime import supports_bf16
from helios.models.vocabulary import Vocabulary

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
MAX_TOKENS = 224
QUESTION_TOKENS = 64


class SpanModel(nn.Module):
    """Two logits a token: the answer begins here, the answer ends here."""

    def __init__(self, bert: Bert) -> None:
        super().__init__()
        self.bert = bert
        self.head = nn.Linear(bert.config.hidden_size, 2)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids_BL: Tensor, mask_BL: Tensor, types_BL: Tensor) -> Tensor:
        """Logits (B, L, 2); those of the question and of padding are very low."""
        logits: Tensor = self.head(self.bert(ids_BL, mask_BL, types_BL)).float()
        text_BL = (mask_BL * types_BL).bool()
        return logits.masked_fill(~text_BL.unsqueeze(-1), -1e4)


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """Token numbers of question and window, where the window's begin, and their characters [start, end) (n, 2)."""

    ids: tuple[int, ...]
    first: int
    spans: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class WindowLogits:
    """Logits of a window's tokens (n) with the tokens' characters (n, 2)."""

    start: FloatArray
    end: FloatArray
    spans: NDArray[np.int32]

    def of(self, start: int, end: int) -> tuple[float, float] | None:
        """Logits of the characters [start, end): of their first and last token; None where the window was cut off."""
        first = int(np.searchsorted(self.spans[:, 1], start, side="right"))
        last = int(np.searchsorted(self.spans[:, 0], end, side="left")) - 1
        if first > last or last >= len(self.spans) or self.spans[last, 1] < end:
            return None
        return float(self.start[first]), float(self.end[last])


class WindowReader:
    """Turns a question and texts into token numbers, cut to `max_tokens`."""

    def __init__(self, folder: Path, *, max_tokens: int = MAX_TOKENS) -> None:
        vocabulary = Vocabulary.of(folder)
        self.max_tokens = max_tokens
        self._tokenizer = vocabulary.tokenizer
        self._first, self._last = vocabulary.numbers["[CLS]"], vocabulary.numbers["[SEP]"]

    def read(self, question: str, texts: Sequence[str]) -> list[ReadWindow]:
        """One sequence a text."""
        asked = self._tokenizer.encode(question, add_special_tokens=False).ids[:QUESTION_TOKENS]
        head = (self._first, *asked, self._last)
        room = self.max_tokens - len(head) - 1
        found = []
        for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            spans = np.array(encoding.offsets[:room], np.int32).reshape(-1, 2)
            found.append(ReadWindow((*head, *encoding.ids[:room], self._last), len(head), spans))
        return found


def padded(windows: Sequence[ReadWindow]) -> tuple[Tensor, Tensor, Tensor]:
    """Token numbers, mask and types (B, L); the last [SEP] counts as no text."""
    length = max(len(window.ids) for window in windows)
    ids, mask, types = (np.zeros((len(windows), length), np.int64) for _ in range(3))
    for row, window in enumerate(windows):
        ids[row, : len(window.ids)] = window.ids
        mask[row, : len(window.ids)] = 1
        types[row, window.first : window.first + len(window.spans)] = 1
    return torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(types)


class SpanReader:
    """A trained span model; threads may share it."""

    def __init__(self, model: SpanModel, reader: WindowReader, *, batch_tokens: int = 2048) -> None:
        self.model = model.eval()
        self.reader = reader
        self.batch_tokens = batch_tokens

    @classmethod
    def load(cls, path: Path, *, base: str | None = None) -> "SpanReader":
        """The adapter and head of a file on the shared encoder; ModelError if they do not fit."""
        from helios.models.adapters import apply_adapter

        folder = find_base_model(base).folder
        bert = load_bert(folder)
        heads = apply_adapter(bert, path)
        model = SpanModel(bert)
        try:
            model.head.load_state_dict(
                {name.removeprefix("head."): heads[f"head.{name}"] for name in ("weight", "bias")}
            )
        except (KeyError, RuntimeError) as error:
            raise ModelError(f"{path}: not a span model: {error}") from error
        return cls(model, WindowReader(folder))

    def logits(self, question: str, texts: Sequence[str]) -> list[WindowLogits]:
        """Logits of every text's tokens, in order; texts of like length are read together."""
        windows = self.reader.read(question, texts)
        order = sorted(range(len(windows)), key=lambda at: len(windows[at].ids))
        results: dict[int, WindowLogits] = {}
        while order:
            size = max(1, self.batch_tokens // len(windows[order[-1]].ids))
            batch, order = order[-size:], order[:-size]
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=supports_bf16()):
                logits = self.model(*padded([windows[at] for at in batch])).float().numpy()
            for row, at in enumerate(batch):
                here = slice(windows[at].first, windows[at].first + len(windows[at].spans))
                results[at] = WindowLogits(logits[row, here, 0], logits[row, here, 1], windows[at].spans)
        return [results[at] for at in range(len(windows))]
