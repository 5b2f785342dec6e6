"""The OpenAPI document: made from the table, true of every answer, whatever is sent."""

import json
import re
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from batonpass.relay import Relay
from batonpass.server.document.openapi import make_document
from batonpass.server.document.pages import docs_policy
from batonpass.server.endpoint import Endpoint
from batonpass.server.routes import ENDPOINTS
from tests.unit.server.conftest import House
from tests.unit.server.test_every_route import EXAMPLES, ROLES, Scene, a_scene
from tests.unit.server.visitor import Answered

DOCUMENT = make_document()
JUNK: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 10**400, 1.5, "", " ", "x", "\x00", "é" * 300, "../..", "last", "%2e%2e", "run_",
    [], [None], [[]], {}, {"a": {}}, {"item": 7}, "user:ana", "read:**", "deny", "9" * 5000,
    "\N{RIGHT-TO-LEFT OVERRIDE}",
)  # fmt: skip


def refs(part: Any) -> set[str]:  # noqa: ANN401 - any JSON
    """Return the schemas to which a part of the document refers."""
    return {match[1] for match in re.finditer(r'"#/components/schemas/(\w+)"', json.dumps(part))}


def test_the_document_has_every_endpoint_and_refers_to_nothing_that_is_not_there() -> None:
    """Also no schema that nobody refers to, and no operation without a name of its own."""
    operations = [said for path in DOCUMENT["paths"].values() for said in path.values()]
    schemas = DOCUMENT["components"]["schemas"]

    assert "3.1.0" == DOCUMENT["openapi"]
    assert sorted(one.name for one in ENDPOINTS) == sorted(said["operationId"] for said in operations)
    assert set(schemas) == refs(DOCUMENT)
    assert [] == [name for name in schemas if "Shape" in name]


def test_the_document_and_its_page_are_served_without_a_token(house: House) -> None:
    """The page brings everything along, and its policy lets nothing else in."""
    visitor = house.visitor()
    page = visitor.get("/docs")

    assert DOCUMENT == visitor.get("/openapi.json").json
    assert (200, docs_policy()) == (page.status, page.headers["content-security-policy"])
    assert (False, True) == (b"<script" in page.body, b"/v1/handoffs/{handoff}/attempts" in page.body)
    assert [] == re.findall(rb'(?:src|href)="(?!/|#)', page.body)


def documented(endpoint: Endpoint) -> dict[str, Any]:
    """Return the answers that the document has for an endpoint."""
    answers: dict[str, Any] = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]["responses"]
    return answers


def departs(endpoint: Endpoint, answer: Answered) -> str | None:
    """Return where an answer is not as the document says; None if it is."""
    known = documented(endpoint).get(str(answer.status))
    if known is None:
        return f"{answer.status}: {answer.body[:200]!r}"
    if answer.status == 304:
        return None
    media_type = answer.headers["content-type"].partition(";")[0]
    content = known["content"].get(media_type)
    if content is None:
        return media_type
    if media_type != "application/json":
        return None
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    found = next(Draft202012Validator(schema).iter_errors(answer.json), None)
    return None if found is None else f"{found.json_path}: {found.message[:200]}"


@pytest.mark.parametrize("role", ROLES)
def test_every_answer_has_the_status_the_media_type_and_the_shape_of_the_document(relay: Relay, role: str) -> None:
    """What is done and what is refused, for every operation, read by a validator of JSON Schema."""
    scene = a_scene(relay)
    visitor = scene.ana if role == "agent" else scene.house.visitor(role)
    last = {"closeRun", "cancelHandoff", "declineHandoff", "revokeGrant"}
    wrong = {
        endpoint.name: problem
        for endpoint in sorted(ENDPOINTS, key=lambda one: one.name in last)
        if not endpoint.streams and (problem := departs(endpoint, scene.ask(visitor, endpoint))) is not None
    }

    assert {} == wrong


def spoiled(random: Random, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value with something in it replaced by junk, left out, or added."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        name = random.choice(sorted(value))
        rest = {key: one for key, one in value.items() if key != name}
        return random.choice([rest, {**value, "odd": 1}, {**value, name: spoiled(random, value[name])}])
    return random.choice(JUNK)


@pytest.mark.parametrize("seed", range(3))
def test_no_answer_is_a_fault_or_is_undocumented(relay: Relay, seed: int) -> None:
    """Whatever stands in a path, a query, a header or a body: the status and the shape are those of the document."""
    random, scene = Random(seed), a_scene(relay)
    wrong: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        if endpoint.streams:
            continue
        visitor = scene.ana if "agent" in endpoint.roles else scene.house.visitor(min(endpoint.roles))
        for _ in range(6):
            answer = _tried(random, scene, endpoint, visitor)
            if (problem := departs(endpoint, answer)) is not None:
                wrong[endpoint.name] = problem
            elif answer.status >= 400 and set(answer.json) != {"error"}:
                wrong[endpoint.name] = answer.body[:200]

    assert {} == wrong


def _tried(random: Random, scene: Scene, endpoint: Endpoint, visitor: Any) -> Any:  # noqa: ANN401 - as in the visitor
    names = {name: text if random.random() < 0.7 else f"odd{random.random()}" for name, text in scene.names.items()}
    path = endpoint.path.format(**names)
    if random.random() < 0.2:
        path += f"?{random.choice(['limit=0', 'limit=1', 'x=1', 'after=-1', 'state=%00', 'limit=1&limit=2'])}"
    headers = {"idempotency_key": "k" * random.choice([1, 255, 256])} if random.random() < 0.2 else {}
    if endpoint.is_read:
        return visitor.get(path, **headers)
    return visitor.post(path, spoiled(random, EXAMPLES[endpoint.name]), **headers)
