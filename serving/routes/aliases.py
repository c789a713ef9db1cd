"""/v1/aliases: other names of indexes, which swap at once."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from serving.access import ServingOf, chosen_index, needs
from serving.aliases import MOST, NAME
from serving.keys import Access, Scope
from serving.problems import Problem
from serving.replies import json_reply
from serving.schemas import AliasesReply, AliasReply, Body
from serving.state import Serving

router = APIRouter(prefix="/v1/aliases", tags=["indexes"])
Alias = Annotated[str, Path(max_length=100, examples=["live"])]
Admin = Annotated[Access, needs(Scope.ADMIN)]


class AliasRequest(Body):
    """What an alias is to name."""

    index: str = Field(max_length=200, examples=["demo-index"])

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"index": "demo-index"}]})


@router.get("", response_model=AliasesReply, summary="The aliases that you may ask")
async def list_aliases(serving: ServingOf, access: Annotated[Access, needs(Scope.SEARCH)]) -> Response:
    """Each with the index that it names now."""
    named = serving.indexes.aliases.named
    return json_reply(
        {"aliases": [_alias(serving, alias, index) for alias, index in named.items() if access.may_ask(alias)]}
    )


@router.put("/{alias}", response_model=AliasReply, summary="Point an alias to an index")
async def put_alias(alias: Alias, body: AliasRequest, serving: ServingOf, access: Admin) -> Response:
    """From now on questions to the alias are questions to this index; those under way end on the one before."""
    indexes = serving.indexes
    if not access.may_ask(alias):
        raise Problem("alias_not_found")
    if not NAME.fullmatch(alias):
        raise Problem("invalid", "alias: letters, digits, dots, dashes and underscores, 100 at most")
    if alias in indexes.folders:
        raise Problem("name_taken")
    index = indexes.served(chosen_index(serving, access, body.index))
    if alias not in indexes.aliases.named and len(indexes.aliases.named) >= MOST:
        raise Problem("busy", f"there are {MOST} aliases already; drop one")
    before = await run_in_threadpool(indexes.aliases.point, alias, index)
    return json_reply(_alias(serving, alias, index) | {"before": before})


@router.delete("/{alias}", response_model=AliasReply, summary="Drop an alias")
async def drop_alias(alias: Alias, serving: ServingOf, access: Admin) -> Response:
    """The index that it named stays."""
    named = serving.indexes.aliases.named
    if alias not in named or not access.may_ask(alias):
        raise Problem("alias_not_found")
    before = named[alias]
    try:
        await run_in_threadpool(serving.indexes.aliases.drop, alias)
    except KeyError:
        raise Problem("alias_not_found") from None
    return json_reply({"alias": alias, "index": None, "before": before, "kept": _kept(serving)})


def _alias(serving: Serving, alias: str, index: str) -> dict[str, object]:
    return {"alias": alias, "index": index, "before": None, "kept": _kept(serving)}


def _kept(serving: Serving) -> bool:
    return serving.indexes.aliases.path is not None
