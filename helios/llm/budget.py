"""What one question may spend on a language model: calls, tokens and seconds."""

import time
from threading import Lock

from helios.llm.outcome import Usage

_BYTES_PER_TOKEN = 3
"""Tables and names take more tokens than prose, where a token has about four bytes."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes, rather too many than too few; the model's tokenizer is not at hand."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


class Budget:
    """A ledger that all calls of one question share; safe between threads.

    A call reserves what it may take before it is sent, and gives back what it did not take.
    """

    def __init__(self, *, calls: int, tokens: int, seconds: float, deadline: float | None = None) -> None:
        """`deadline` is an instant of time.monotonic() that ends the budget earlier than `seconds` from now."""
        self._calls = calls
        self._tokens = tokens
        ends = time.monotonic() + seconds
        self._ends = ends if deadline is None else min(ends, deadline)
        self._spent = Usage()
        self._reserved = 0
        self._lock = Lock()

    @property
    def spent(self) -> Usage:
        """What the calls that are over have taken."""
        return self._spent

    def seconds_left(self) -> float:
        """Seconds until the budget ends; 0 once it has."""
        return max(0.0, self._ends - time.monotonic())

    def reserve(self, tokens: int) -> str:
        """Set aside a call and its tokens; empty if there is room, else in words what is spent."""
        with self._lock:
            if self._calls <= 0:
                return "all calls of this question are spent"
            if self.seconds_left() <= 0.0:
                return "the time for this question is over"
            free = self._tokens - self._spent.tokens - self._reserved
            if tokens > free:
                return f"the call may take {tokens} tokens, {max(0, free)} are left for this question"
            self._calls -= 1
            self._reserved += tokens
            return ""

    def settle(self, reserved: int, usage: Usage) -> None:
        """Replace a reservation by what the call took."""
        with self._lock:
            self._reserved -= reserved
            self._spent += usage
