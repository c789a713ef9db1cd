"""Cursors of paged searches: where the next page begins, of which snapshot, and of which question.

A page is searched again with the same k, so it is cut from the very same ranking: nothing is kept between pages.
"""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass

from serving.problems import Problem

MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Cursor:
    """The first edge of a page (0 is the best) in the ranking of one question over one snapshot."""

    offset: int
    generation: int
    question: str
    """A digest of the question and all that its ranking depends on."""
    served: str
    """A digest of the index that was asked: its name, or its folder, may be another one's by now."""

    def __str__(self) -> str:
        packed = json.dumps([self.offset, self.generation, self.question, self.served], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> "Cursor":
        """A cursor that a client sent; Problem `cursor_invalid`."""
        try:
            if len(text) > MOST_CHARACTERS:
                raise ValueError
            packed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
            offset, generation, question, served = json.loads(packed)
        except (ValueError, TypeError, binascii.Error, RecursionError):
            raise Problem("cursor_invalid") from None
        whole = all(type(number) is int and 0 <= number < 1 << 31 for number in (offset, generation))
        if not whole or type(question) is not str or type(served) is not str:
            raise Problem("cursor_invalid")
        return cls(offset, generation, question, served)

    def check(self, *, generation: int, question: str, served: str) -> None:
        """Problem where it is another question's, or the snapshot is gone."""
        if self.question != question:
            raise Problem("cursor_invalid", "it is the cursor of another question, filter, k or index")
        if self.generation != generation:
            raise Problem("snapshot_gone", f"the cursor is of snapshot {self.generation}, the index is at {generation}")
        if self.served != served:
            raise Problem("snapshot_gone", "another index has this name by now")


def digest(*parts: object) -> str:
    """Sixteen characters that stand for a question and what its ranking depends on."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
