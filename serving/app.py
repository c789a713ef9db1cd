"""The application: every route behind the gate."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from helios.errors import HeliosError
from serving.gate import MCP_PATH, Gate
from serving.openapi import ABOUT, documented
from serving.pages import reference
from serving.pages import routes as pages
from serving.pages import sources as source_pages
from serving.pages.rendering import FORMS, PAGES, rendered
from serving.problems import Problem, problem_of, request_id_of
from serving.routes import aliases, changes, chat, health, indexes, questions, responses, sources
from serving.state import Serving
from serving.tools import make_tools
from serving.watch import Abandoned, ClientGone

log = logging.getLogger(__name__)
FOLLOW_SECONDS = 2.0
"""Between two looks at whether an index has a new snapshot."""


def make_app(serving: Serving) -> Gate:
    """The application of a server, whose indexes are open or will be."""
    tools = make_tools(serving)
    app = FastAPI(
        **ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(tools),
        middleware=[*_cors(serving), Middleware(GZipMiddleware, minimum_size=1000)],
    )
    app.state.serving = serving
    api = (questions, indexes, changes, aliases, chat, responses, sources, health)
    for router in (*(part.router for part in api), reference.router, pages.router, source_pages.router):
        app.include_router(router)
    app.router.routes.extend(_tool_routes(tools, serving))  # the SDK's own route, last: a mount would redirect to /mcp/
    for kind in (Problem, HeliosError, RequestValidationError, HTTPException, ClientGone, Abandoned, Exception):
        app.add_exception_handler(kind, _problem)
    app.openapi = documented(app)  # type: ignore[method-assign]
    return Gate(app, serving)


def _cors(serving: Serving) -> list[Middleware]:
    """For web sites that were allowed; without any, no header of CORS is ever sent."""
    origins = serving.settings.allowed_origins
    headers = ["Authorization", "Content-Type", "X-Request-ID"]
    methods = ["GET", "POST", "PUT", "DELETE"]
    if not origins:
        return []
    return [Middleware(CORSMiddleware, allow_origins=origins, allow_methods=methods, allow_headers=headers)]


def _tool_routes(tools: MCPServer, serving: Serving) -> list[BaseRoute]:
    """/mcp, without sessions: every request stands alone. Host and origin are the gate's affair."""
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    made = tools.streamable_http_app(
        streamable_http_path=MCP_PATH, stateless_http=True, json_response=True, transport_security=unchecked,
        max_request_body_size=serving.settings.limits.body_bytes,
    )  # fmt: skip
    return list(made.routes)


def _lifespan(tools: MCPServer) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Follow the indexes while the server runs; close all at its end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        serving: Serving = app.state.serving
        following, changing = asyncio.create_task(_follow(serving)), asyncio.create_task(serving.tasks.run())
        try:
            async with tools.session_manager.run():
                yield
        finally:
            await serving.tasks.close()
            changing.cancel()
            following.cancel()
            await asyncio.to_thread(serving.close)

    return lifespan


async def _follow(serving: Serving) -> None:
    """Swap in new snapshots as they appear."""
    while True:
        await asyncio.sleep(FOLLOW_SECONDS)
        for name in await asyncio.to_thread(serving.indexes.follow):
            log.info("index %s: a new snapshot is served", name)


async def _problem(request: Request, error: Exception) -> Response:
    gone = isinstance(error, (ClientGone, Abandoned))
    problem = Problem("client_gone") if gone else problem_of(error)
    request.scope["state"]["code"] = problem.code
    if problem.code == "index_unusable":
        log.error("request %s failed", request_id_of(request), exc_info=error)
    if request.url.path not in (FORMS if request.method == "POST" else PAGES):
        return problem.response(request_id_of(request))
    if problem.code == "unauthorized":
        back = "/sources" if request.method == "POST" else f"{request.url.path}?{request.url.query}"
        return RedirectResponse("/login?" + urlencode({"next": back}), 303)
    document = problem.document(request_id_of(request))
    return rendered(request, "problem.html", status=problem.status, problem=document)
