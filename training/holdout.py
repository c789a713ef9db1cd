"""Which tables are kept apart: a hash of the id decides, so that every recipe and every run agrees."""

from hashlib import sha256


def table_place(table: str, *, seed: int = 13) -> int:
    """A number in [0, 2**32), the same for all questions of a table."""
    return int.from_bytes(sha256(f"{seed} {table}".encode()).digest()[:4], "big")


def is_held_out(table: str, *, share: float, start: float = 0.0, seed: int = 13) -> bool:
    """Whether a table's questions choose checkpoints instead of training: its place is in [start, start + share)."""
    return start <= table_place(table, seed=seed) / 2**32 < start + share


def share_of(table: str, shares: int, *, seed: int = 13) -> int:
    """Which of so many equal shares a table is in: the i-th is held out with share=1/shares, start=i/shares."""
    return table_place(table, seed=seed) * shares >> 32
