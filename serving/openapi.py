"""/openapi.json: what FastAPI makes of the routes, with the published schema of evidence and the problems."""

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from helios import __version__
from helios.evidence_json import evidence_schema
from serving.problems import CODES, MEDIA_TYPE

PROBLEMS = ("400", "401", "403", "404", "422", "429", "503", "504")


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
    components["responses"] = {
        "Problem": {
            "description": "A problem",
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
        }
    }
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = operation["responses"]
            responses.pop("422", None)
            responses |= {status: {"$ref": "#/components/responses/Problem"} for status in PROBLEMS}
            operation["security"] = [{"key": []}, {}]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document
