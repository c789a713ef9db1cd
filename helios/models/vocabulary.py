"""The tokenizer of a base model and what its words hold, read once a process and shared by all that use the base."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helios.errors import ModelError
from helios.once import once

LETTER = re.compile(r"[^\W_]")
"""A letter or a digit of any alphabet."""
BLANKS = ("▁", "Ġ")
"""What tokenizers write for the blank before a word; the second, of byte-level ones, is a letter of Maltese."""


class Vocabulary:
    """A tokenizer that neither pads nor truncates; nobody changes it, and threads may share it."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        try:
            self.tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing more special
            raise ModelError(f"{path}: no readable tokenizer ({error}); restore the file") from error
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    @classmethod
    def of(cls, folder: Path) -> "Vocabulary":
        """That of `tokenizer.json` in a folder, as the file is now; ModelError where it cannot be read."""
        path = folder / "tokenizer.json"
        try:
            found = path.stat()
        except OSError as error:
            raise ModelError(f"{path}: no readable tokenizer ({error.strerror}); restore the file") from error
        return _vocabulary(path, found.st_mtime_ns, found.st_size)

    @once
    def numbers(self) -> dict[str, int]:
        """The number of every token."""
        found: dict[str, int] = self.tokenizer.get_vocab()
        return found

    @once
    def keep(self) -> NDArray[np.bool_]:
        """For every token number, whether it holds a letter or a digit."""
        special = {token.content for token in self.tokenizer.get_added_tokens_decoder().values() if token.special}
        keep = np.zeros(max(self.numbers.values()) + 1, bool)
        for token, number in self.numbers.items():
            keep[number] = token not in special and LETTER.search(token.removeprefix(BLANKS[1])) is not None
        return keep

    @once
    def blank(self) -> NDArray[np.bool_]:
        """For every token number, whether it begins with a blank, which is then the first character of its span."""
        blank = np.zeros(max(self.numbers.values()) + 1, bool)
        blank[[number for token, number in self.numbers.items() if token.startswith(BLANKS)]] = True
        return blank


@lru_cache(maxsize=4)
def _vocabulary(path: Path, changed: int, size: int) -> Vocabulary:
    return Vocabulary(path)
