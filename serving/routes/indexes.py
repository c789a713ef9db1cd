"""GET /v1/indexes, and rows and passages by id."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from serving.access import ServingOf, chosen_index, needs
from serving.keys import Access, Scope
from serving.replies import json_reply
from serving.schemas import IndexesReply, IndexReply, PassageReply, RowReply
from serving.stars import passage_star, row_star

router = APIRouter(prefix="/v1/indexes", tags=["indexes"])
Reader = Annotated[Access, needs(Scope.SEARCH)]
Name = Annotated[str, Path(max_length=200)]
Id = Annotated[str, Path(max_length=2000)]


@router.get("", response_model=IndexesReply, summary="The indexes that you may ask")
async def list_indexes(serving: ServingOf, access: Reader) -> Response:
    """Their names and what they hold."""
    names = [name for name in serving.indexes.names if access.may_ask(name)]
    return json_reply(
        {"indexes": [await serving.questions.look(name, lambda index: index.describe()) for name in names]}
    )


@router.get("/{name}", response_model=IndexReply, summary="What an index holds")
async def index(name: Name, serving: ServingOf, access: Reader) -> Response:
    """Counts of what is visible, the snapshot, the models."""
    name = chosen_index(serving, access, name)
    return json_reply(await serving.questions.look(name, lambda opened: opened.describe()))


@router.get("/{name}/rows/{table:path}/{row}", response_model=RowReply, summary="A row and its star")
async def row(
    name: Name, table: Id, row: Annotated[int, Path(ge=0, lt=1 << 31)], serving: ServingOf, access: Reader
) -> Response:
    """The row with its table, and the texts that it names. Rows count from 0."""
    name = chosen_index(serving, access, name)
    return json_reply(await serving.questions.look(name, lambda opened: row_star(opened, table, row)))


@router.get("/{name}/passages/{passage_id:path}", response_model=PassageReply, summary="A passage and its rows")
async def passage(name: Name, passage_id: Id, serving: ServingOf, access: Reader) -> Response:
    """The text, and the rows that name it."""
    name = chosen_index(serving, access, name)
    return json_reply(await serving.questions.look(name, lambda opened: passage_star(opened, passage_id)))
