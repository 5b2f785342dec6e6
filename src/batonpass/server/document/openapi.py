"""The OpenAPI 3.1 document, made from the table of endpoints and their types; nothing is written down twice."""

import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Final

import msgspec

from batonpass.server.endpoint import EVERYBODY, Endpoint
from batonpass.server.routes import ENDPOINTS
from batonpass.server.shape_types import RefusalShape, ToSignShape

_REFS: Final = "#/components/schemas/{name}"
_PART: Final = re.compile(r"\{(\w+)\}")
_ERRORS: Final = {
    400: "The request has a value that cannot be right.",
    401: "There is no token, or none that is valid.",
    403: "The token does not reach this, or a grant or a policy refuses it.",
    404: "There is no such thing.",
    405: "This path takes other methods.",
    409: "It conflicts with what is recorded: held, ended, decided before, in doubt.",
    410: "It was erased.",
    413: "It is too large.",
    415: "The body is not JSON.",
    421: "This server does not serve that host.",
    429: "Too many requests, or too many wrong tokens.",
    502: "Somebody else, whom this asks, did not answer as they should.",
    503: "The ledger cannot be written or read now.",
}
_ONLY_WITH_BODY: Final = frozenset({413, 415})
_ONLY_READ: Final = frozenset({410})
_ONLY_ASKING: Final = 502


def make_document() -> dict[str, Any]:
    """Return the whole document."""
    said = [kind for endpoint in ENDPOINTS for kind in (endpoint.answers, endpoint.body)]
    types = [kind for kind in said if kind not in {None, bytes, str}]
    _, components = msgspec.json.schema_components([*types, RefusalShape, ToSignShape], ref_template=_REFS)
    _, taken = msgspec.json.schema_components([one.body for one in ENDPOINTS if one.body is not None])
    for name in taken:
        if components[name].get("type") == "object":
            components[name]["additionalProperties"] = False  # an unknown field is refused, and never ignored
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Batonpass",
            "version": version("batonpass"),
            "description": (
                "Handoffs between agents: runs, handoffs, receipts, grants, approvals. Everything needs a token. "
                "An agent's token reaches only its own runs, and proves each with Batonpass-Proof."
            ),
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "batonpass token add"}},
        },
    }
    return _renamed(document)


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.about,
        "description": f"Roles: {', '.join(sorted(endpoint.roles))}.",
        "tags": [endpoint.path.removeprefix("/v1").split("/")[1]],
        "parameters": [*_path_parts(endpoint), *_query_parts(endpoint), *_headers(endpoint)],
        "responses": dict(_answers(endpoint)),
    }
    if endpoint.body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(endpoint.body)}}}
    return described


def _path_parts(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in _PART.findall(endpoint.path):
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parts(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    if endpoint.query is None:
        return
    _, components = msgspec.json.schema_components([endpoint.query], ref_template=_REFS)
    described = components[endpoint.query.__name__]
    for name, said in described["properties"].items():
        schema = _inlined(said, components)
        about = schema.pop("description", None)
        schema.pop("default", None) if schema.get("default", 0) is None else None
        more = {"required": True} if name in described.get("required", ()) else {}
        more |= {} if about is None else {"description": about}
        yield {"name": name, "in": "query", "schema": schema, **more}


def _inlined(said: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without references, and without null: a parameter is given, or it is not."""
    if "$ref" in said:
        return dict(components[said["$ref"].rpartition("/")[2]])
    if "anyOf" in said:
        kinds = [one for one in said["anyOf"] if one.get("type") != "null"]
        return {**_inlined(kinds[0], components), **{name: part for name, part in said.items() if name != "anyOf"}}
    return dict(said)


def _headers(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    if endpoint.needs_proof and endpoint.roles & EVERYBODY and "agent" in endpoint.roles:
        about = "For a token with the role agent: the proof that came with the run in whose name it acts."
        yield {"name": "Batonpass-Proof", "in": "header", "description": about, "schema": {"type": "string"}}
    if endpoint.is_signed:
        about = "For a client that signs itself: the public key for what it begins or rules, or `-` if there is none."
        schema: dict[str, Any] = {"type": "string", "pattern": "^([0-9a-f]{64}|-)$"}
        yield {"name": "Batonpass-Signer", "in": "header", "description": about, "schema": schema}
    if endpoint.streams:
        about = "The id of the last event that the client has: it misses nothing after that."
        yield {"name": "Last-Event-ID", "in": "header", "description": about, "schema": {"type": "string"}}
    elif endpoint.is_read:
        about = "An ETag: if the answer is still the same, it is not sent again."
        yield {"name": "If-None-Match", "in": "header", "description": about, "schema": {"type": "string"}}
    else:
        about = "The same request with the same key is done once, and gets the same answer."
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
        yield {"name": "Idempotency-Key", "in": "header", "description": about, "schema": schema}


def _answers(endpoint: Endpoint) -> Iterator[tuple[str, Any]]:
    if endpoint.streams:
        content: dict[str, Any] = {"text/event-stream": {"schema": {"type": "string"}}}
    elif endpoint.answers in {str, bytes}:
        schema = {"type": "string"} if endpoint.answers is str else {"type": "string", "format": "binary"}
        content = {media_type: {"schema": schema} for media_type in endpoint.raw_types}
    else:
        content = {"application/json": {"schema": _ref(endpoint.answers)}}
    yield str(endpoint.status), {"description": "Done.", "content": content}
    if endpoint.may_wait:
        about = "It waits until the client has signed: give the signature to POST /v1/acts/{act}."
        yield "202", {"description": about, "content": {"application/json": {"schema": _ref(ToSignShape)}}}
    if endpoint.is_read and not endpoint.streams:
        yield "304", {"description": "The client has this answer already."}
    for status, about in _ERRORS.items():
        if (status in _ONLY_WITH_BODY and endpoint.body is None) or (status in _ONLY_READ and not endpoint.is_read):
            continue
        if status == _ONLY_ASKING and not endpoint.asks_others:
            continue
        yield str(status), {"description": about, "content": {"application/json": {"schema": _ref(RefusalShape)}}}


def _ref(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type, maybe with parameters
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REFS)
    return schema


def _renamed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with names for people: `Page_RunShape_` is `RunPage`, and `RunShape` is `Run`."""
    text = json.dumps(document)
    text = re.sub(r"\bPage_(\w+?)Shape_", r"\1Page", text)
    renamed: dict[str, Any] = json.loads(re.sub(r"\b(\w+?)Shape\b", r"\1", text))
    return renamed
