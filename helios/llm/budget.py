"""What one question may spend on a language model: calls, tokens and seconds."""

import time
from dataclasses import dataclass, field
from threading import Lock

from helios.llm.outcome import Usage

FRAME_TOKENS = 1000
"""Tokens of a prompt around its evidence: instructions, schema, question."""
_BYTES_PER_TOKEN = 3
"""Tables and names take more tokens than prose, where a token has about four bytes."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes, rather too many than too few; the model's tokenizer is not at hand."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


@dataclass(slots=True)
class _Ledger:
    """What is left and what is spent, for all budgets over it."""

    calls: int
    tokens: int
    ends: float
    spent: Usage = field(default_factory=Usage)
    reserved: int = 0
    lock: Lock = field(default_factory=Lock)


class Budget:
    """A ledger that all calls of one question share; safe between threads.

    A call reserves what it may take before it is sent, and gives back what it did not take.
    """

    def __init__(self, *, calls: int, tokens: int, seconds: float, deadline: float | None = None) -> None:
        """`deadline` is an instant of time.monotonic() that ends the budget earlier than `seconds` from now."""
        ends = time.monotonic() + seconds
        self._ledger = _Ledger(calls, tokens, ends if deadline is None else min(ends, deadline))
        self._kept = (0, 0, 0.0)

    def keeping(self, *, calls: int, tokens: int, seconds: float) -> "Budget":
        """The same account for work that comes first: it leaves so much for what comes later, or half if less is left.

        Without it, a stage whose every call fails and is sent again leaves nothing for the next one.
        """
        ledger = self._ledger
        first = Budget.__new__(Budget)
        first._ledger = ledger
        first._kept = (
            min(calls, ledger.calls // 2),
            min(tokens, (ledger.tokens - ledger.spent.tokens) // 2),
            min(seconds, self.seconds_left() / 2),
        )
        return first

    @property
    def spent(self) -> Usage:
        """What the calls that are over have taken, on the whole account."""
        return self._ledger.spent

    def seconds_left(self) -> float:
        """Seconds until the budget ends; 0 once it has."""
        return max(0.0, self._ledger.ends - self._kept[2] - time.monotonic())

    def room(self, tokens: int, *, reply: int) -> int:
        """How many of the wanted tokens of evidence one more prompt can have, beside its frame and its reply."""
        ledger = self._ledger
        free = ledger.tokens - ledger.spent.tokens - ledger.reserved - self._kept[1]
        return max(0, min(tokens, free - FRAME_TOKENS - reply))

    def reserve(self, tokens: int) -> str:
        """Set aside a call and its tokens; empty if there is room, else in words what is spent."""
        ledger = self._ledger
        with ledger.lock:
            if ledger.calls <= self._kept[0]:
                return "all calls of this question are spent"
            if self.seconds_left() <= 0.0:
                return "the time for this question is over"
            free = ledger.tokens - ledger.spent.tokens - ledger.reserved - self._kept[1]
            if tokens > free:
                return f"the call may take {tokens} tokens, {max(0, free)} are left for this question"
            ledger.calls -= 1
            ledger.reserved += tokens
            return ""

    def settle(self, reserved: int, usage: Usage) -> None:
        """Replace a reservation by what the call took."""
        with self._ledger.lock:
            self._ledger.reserved -= reserved
            self._ledger.spent += usage
