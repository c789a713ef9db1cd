"""Sessions of browsers where the server has keys: a cookie for the page alone, in memory, that ends with its key."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

COOKIE = "helios_session"
HOURS = 12.0
MOST = 1000


@dataclass(frozen=True, slots=True)
class Session:
    """Whose it is, what its forms have to send, and when it ends."""

    key_id: str
    token: str
    ends: float


class Sessions:
    """Sessions by the value of their cookie; the oldest go when there are too many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self.token = secrets.token_urlsafe(32)
        """What forms have to send where there is no session."""

    def begin(self, key_id: str) -> str:
        """A new session; the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        self._sessions[cookie] = Session(key_id, secrets.token_urlsafe(32), self._clock() + HOURS * 3600)
        while len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, while it lasts."""
        session = self._sessions.get(cookie)
        if session is not None and session.ends <= self._clock():
            del self._sessions[cookie]
            return None
        return session

    def end(self, cookie: str) -> None:
        """Forget it."""
        self._sessions.pop(cookie, None)
