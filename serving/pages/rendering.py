"""Templates of the page, and the headers that every page has."""

from functools import cache
from typing import Any

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from helios import __version__
from helios.terminal import CONTROLS
from serving.pages.sessions import COOKIE
from serving.state import Serving

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGES = frozenset(("/", "/ask", "/row", "/passage", "/graph", "/sources", "/source", "/status", "/login"))
"""Addresses whose problems are pages too."""
FORMS = frozenset(("/source",))
"""Those of them whose forms are sent with POST and answered with pages."""


def rendered(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page from a template; whatever it shows is escaped, control characters too."""
    serving: Serving = request.app.state.serving
    session = serving.sessions.find(request.cookies.get(COOKIE, ""))
    text = _environment().get_template(template).render(
        version=__version__, token=session.token if session else "", form_token=token_of(request),
        path=request.url.path, twin=_twin(request), has_sources=serving.sources is not None, **values,
    )  # fmt: skip
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    return Response(text.encode("utf-8", "replace"), status, headers, "text/html; charset=utf-8")


def token_of(request: Request) -> str:
    """What a form of this page has to send back, so that no other site can send it in the reader's name."""
    sessions = request.app.state.serving.sessions
    session = sessions.find(request.cookies.get(COOKIE, ""))
    return str(session.token if session else sessions.token)


@cache
def _environment() -> Environment:
    def shown(value: object) -> object:
        plain = isinstance(value, str) and not isinstance(value, Markup)  # what a macro made is escaped already
        return CONTROLS.sub("\ufffd", str(value)) if plain else value

    return Environment(
        loader=PackageLoader("serving.pages"), autoescape=True, undefined=StrictUndefined, finalize=shown,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def _twin(request: Request) -> str:
    """The address of the same as data."""
    path = "/home" if request.url.path == "/" else request.url.path
    return f"{path}.json" + (f"?{request.url.query}" if request.url.query else "")
