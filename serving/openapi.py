"""/openapi.json: what FastAPI makes of the routes, with the published schema of evidence and the problems."""

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from helios import __version__
from helios.evidence_json import evidence_schema
from serving.problems import CODES, MEDIA_TYPE, Problem
from serving.schemas import AddRequest

PROBLEMS = ("401", "403", "404", "405", "421", "429", "500", "503", "504")
"""Statuses that any request may be refused with."""
WITH_BODY = ("400", "408", "413", "415", "422")
OF_PATHS = {
    "/v1/search": ("410",), "/v1/sources": ("400", "422", "502"), "/v1/indexes": ("409", "422"),
    "/v1/tasks": ("409", "422"), "/v1/aliases": ("409", "422"),
}  # fmt: skip
PUBLIC = ("/livez", "/readyz")


def documented(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """What `app.openapi` is to be: made on the first call."""
    usual = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _with_problems(_with_evidence(usual()))
        return app.openapi_schema

    return openapi


ABOUT: dict[str, Any] = {
    "title": "HELIOS",
    "version": __version__,
    "summary": "Ranked, checkable evidence from tables and texts, and answers that cite it.",
    "license_info": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}


def _with_evidence(document: dict[str, Any]) -> dict[str, Any]:
    """The schema of evidence among the components; what it calls $defs stands beside it."""
    schema = evidence_schema()
    schema.pop("$schema")
    text = json.dumps({"Evidence": schema} | {f"Evidence.{name}": one for name, one in schema.pop("$defs").items()})
    components = document.setdefault("components", {}).setdefault("schemas", {})
    added = AddRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    components.update(added.pop("$defs") | {"AddRequest": added})
    components.update(json.loads(text.replace("#/$defs/", "#/components/schemas/Evidence.")))
    referred: dict[str, Any] = _referring(document)
    return referred


def _referring(part: Any) -> Any:
    """The same with references to what `serving.schemas` says is published."""
    if isinstance(part, list):
        return [_referring(one) for one in part]
    if not isinstance(part, dict):
        return part
    if "published" in part:
        return {"$ref": f"#/components/schemas/{part['published']}"}
    return {name: _referring(one) for name, one in part.items()}


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Every operation may reply with problems; the codes are listed once."""
    codes = "; ".join(f"`{code}` ({status}): {title.lower()}" for code, (status, title, _) in CODES.items())
    components = document["components"]
    components["schemas"]["ProblemDocument"] = {
        "title": "Problem", "type": "object", "description": f"Problem details, RFC 9457. Codes: {codes}.",
        "properties": {
            "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
            "code": {"enum": sorted(CODES)}, "detail": {"type": "string"}, "request_id": {"type": "string"},
            "todo": {"type": "string", "description": "What to do."},
        },
        "required": ["type", "title", "status", "code", "todo", "request_id"],
    }  # fmt: skip
    components["responses"] = {str(status): _response(status) for status in sorted({one[0] for one in CODES.values()})}
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            responses.pop("422", None)
            responses |= {status: {"$ref": f"#/components/responses/{status}"} for status in _statuses(path, operation)}
            public = path in PUBLIC
            operation["security"] = [{}] if public else [{"key": []}, {}]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document


def _statuses(path: str, operation: dict[str, Any]) -> list[str]:
    """Statuses of the problems that an operation may reply with."""
    if path in PUBLIC:
        return ["405", "421", "503"]
    found = {*PROBLEMS, *(WITH_BODY if "requestBody" in operation else ())}
    for start, more in OF_PATHS.items():
        if path.startswith(start):
            found |= set(more)
    return sorted(found)


def _response(status: int) -> dict[str, Any]:
    """The problems of a status, each with an example."""
    of_status = {code: found for code, found in CODES.items() if found[0] == status}
    examples = {
        code: {"summary": title, "value": Problem(code).document("5d69706b365549909e5581d31353edfe")}
        for code, (_, title, _) in of_status.items()
    }
    schema = {"$ref": "#/components/schemas/ProblemDocument"}
    found: dict[str, Any] = {
        "description": "; ".join(title for _, title, _ in of_status.values()),
        "content": {MEDIA_TYPE: {"schema": schema, "examples": examples}},
    }
    if status in (429, 503):
        found["headers"] = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer"}}}
    return found
