"""What a route needs: a scope, an index within the key's reach, a question left in its minute."""

import math
from typing import Annotated, Any

from fastapi import Depends, Request

from serving.keys import Access, Scope
from serving.problems import Problem
from serving.state import Serving


async def serving_of(request: Request) -> Serving:
    """The server that a request came to; `async`, since FastAPI would send a plain function to a thread and back."""
    found: Serving = request.app.state.serving
    return found


ServingOf = Annotated[Serving, Depends(serving_of)]


class Needs:
    """A dependency that gives the caller's access, or Problem `unauthorized`, `forbidden` or `too_many`.

    One of the scopes is enough; the route says which one a request of its needs.
    """

    def __init__(self, *scopes: Scope, questions: int = 0) -> None:
        self.scopes = scopes
        self.questions = questions

    async def __call__(self, request: Request, serving: ServingOf) -> Access:
        """Called by FastAPI for every request of the route."""
        access: Access | None = request.scope["state"]["access"]
        if access is None:
            raise Problem("unauthorized")
        if not access.scopes.intersection(self.scopes):
            raise Problem("forbidden", f"it needs the scope {' or '.join(self.scopes)}")
        if self.questions:
            take(serving, access, self.questions)
        return access


def needs(*scopes: Scope, questions: int = 0) -> Any:
    """`Depends` of the same."""
    return Depends(Needs(*scopes, questions=questions))


def take(serving: Serving, access: Access, questions: int) -> None:
    """Count questions against a key's minute; Problem `too_many`."""
    seconds = serving.rates.wait(access, questions)
    if seconds:
        wait = str(max(1, math.ceil(seconds)))
        raise Problem("too_many", f"{access.per_minute} questions a minute", headers={"Retry-After": wait})


def chosen_index(serving: Serving, access: Access, name: str | None) -> str:
    """The index that a request names, or the only one; Problem `index_not_found`, also for one out of reach."""
    if name is None:
        within = names_within(serving, access)
        own = [one for one in within if one in serving.indexes.folders] or within
        if len(own) == 1:
            return own[0]
        raise Problem("index_not_found", f"name one of these as `index`: {', '.join(within) or 'none'}")
    if not (serving.indexes.known(name) and access.may_ask(name)):
        raise Problem("index_not_found")
    return name


def names_within(serving: Serving, access: Access) -> list[str]:
    """The names that a caller may ask: indexes, then aliases."""
    return [one for one in (*serving.indexes.names, *serving.indexes.aliases.named) if access.may_ask(one)]
