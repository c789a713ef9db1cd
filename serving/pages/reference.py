"""/docs: the HTTP interface in words, made from /openapi.json on the server; no script, and nothing from elsewhere."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from fastapi import APIRouter, Request
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from starlette.responses import Response

router = APIRouter(include_in_schema=False)
POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'"
REF = "#/components/schemas/"
Json = dict[str, Any]


@router.get("/docs")
async def reference(request: Request) -> Response:
    """A page; the same for everybody, as /openapi.json is."""
    document = request.app.openapi()
    if not hasattr(request.app.state, "reference"):
        request.app.state.reference = page(document)
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "max-age=300"}
    return Response(request.app.state.reference, 200, headers, "text/html; charset=utf-8")


def page(document: Json) -> str:
    """The whole page of an OpenAPI document."""
    operations = list(_operations(document))
    tags = list(dict.fromkeys(one["tag"] for one in operations))
    schemas = document["components"]["schemas"]
    return _template().render(
        info=document["info"], tags=[(tag, [one for one in operations if one["tag"] == tag]) for tag in tags],
        schemas=[_schema(name, schemas[name]) for name in sorted(schemas)],
    )  # fmt: skip


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("serving.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["code"] = _coded
    return environment.get_template("reference.html")


def _operations(document: Json) -> Iterator[Json]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield {
                "id": f"{method}-{re.sub(r'[^a-z0-9]+', '-', path.lower()).strip('-')}",
                "tag": operation["tags"][0], "method": method.upper(), "path": path,
                "summary": operation["summary"], "text": operation.get("description", ""),
                "parameters": [_parameter(one) for one in operation.get("parameters", ())],
                "bodies": list(_contents(document, operation.get("requestBody", {}))),
                "replies": [_reply(document, status, one) for status, one in sorted(operation["responses"].items())],
            }  # fmt: skip


def _parameter(parameter: Json) -> Json:
    schema = parameter["schema"]
    where = f"{parameter['in']}{', required' if parameter.get('required') else ''}"
    about = parameter.get("description") or schema.get("description", "")
    return {"name": parameter["name"], "where": where, "type": _type(schema), "about": about}


def _reply(document: Json, status: str, response: Json) -> Json:
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return {"status": status, "about": response["description"], "contents": list(_contents(document, response))}


def _contents(document: Json, holder: Json) -> Iterator[Json]:
    """Media types with the schema that each has, and an example of a request."""
    for media_type, content in holder.get("content", {}).items():
        schema = content.get("schema", {})
        name = schema.get("$ref", "").removeprefix(REF)
        examples = document["components"]["schemas"].get(name, {}).get("examples", ()) if name else ()
        example = json.dumps(examples[0], indent=2, ensure_ascii=False) if examples else ""
        yield {"type": media_type, "schema": name, "words": "" if name else _type(schema), "example": example}


def _schema(name: str, schema: Json) -> Json:
    required = schema.get("required", ())
    fields = [
        {
            "name": field, "type": _type(one), "required": field in required,
            "about": one.get("description", ""), "refers": _refers(one),
        }
        for field, one in schema.get("properties", {}).items()
    ]  # fmt: skip
    return {"name": name, "about": schema.get("description", ""), "fields": fields, "type": _type(schema)}


def _type(schema: Json) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "enum" in schema:
        return ", ".join(json.dumps(one) for one in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    kind = schema.get("type", "anything")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    if kind == "array":
        return f"list of {_type(schema['items'])}" if "items" in schema else "list"
    limits = [
        f"{word} {schema[name]}"
        for name, word in (
            ("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to"), ("exclusiveMaximum", "below"),
            ("maxLength", "at most"), ("default", "default"),
        )
        if schema.get(name) is not None
    ]  # fmt: skip
    return f"{kind} ({', '.join(limits)})" if limits else str(kind)


def _refers(schema: Any) -> list[str]:
    """Names of the schemas that a schema refers to."""
    found = re.findall(rf'"{re.escape(REF)}([^"]+)"', json.dumps(schema))
    return list(dict.fromkeys(found))


def _coded(text: str) -> Any:
    """Words with what stands between backticks as code."""
    from markupsafe import Markup, escape

    parts = [Markup("<code>{}</code>").format(part) if odd else escape(part) for part, odd in _split(text)]
    return Markup("").join(parts)


def _split(text: str) -> Iterator[tuple[str, bool]]:
    for number, part in enumerate(text.split("`")):
        yield part, bool(number % 2)
