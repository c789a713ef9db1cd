"""Which ids were seen: exact enough for any corpus (128-bit hashes) at about 30 bytes an id."""

import hashlib
from array import array


class SeenIds:
    """A set of ids as an open-addressing table of 128-bit hashes; it can grow but not forget."""

    def __init__(self) -> None:
        self._count = 0
        self._mask = (1 << 10) - 1
        self._low = array("Q", bytes(8 << 10))
        self._high = array("Q", bytes(8 << 10))

    def __len__(self) -> int:
        return self._count

    def add(self, record_id: str) -> bool:
        """Remember an id; False if it was there already."""
        digest = hashlib.blake2b(record_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        low = int.from_bytes(digest[:8], "little") | 1
        high = int.from_bytes(digest[8:], "little")
        slot = self._slot(low, high)
        if self._low[slot]:
            return False
        self._low[slot], self._high[slot] = low, high
        self._count += 1
        if self._count * 3 > self._mask * 2:
            self._grow()
        return True

    def _slot(self, low: int, high: int) -> int:
        """The slot that holds this hash, or the free one where it belongs (a free slot has low 0)."""
        slot = high & self._mask
        while self._low[slot] and (self._low[slot] != low or self._high[slot] != high):
            slot = (slot + 1) & self._mask
        return slot

    def _grow(self) -> None:
        low, high = self._low, self._high
        self._mask = 2 * self._mask + 1
        self._low = array("Q", bytes(8 * (self._mask + 1)))
        self._high = array("Q", bytes(8 * (self._mask + 1)))
        for one, other in zip(low, high, strict=True):
            if one:
                slot = self._slot(one, other)
                self._low[slot], self._high[slot] = one, other
