"""What somebody tries who has a token and wants more: keys, cursors, names and secrets of others."""

import hmac
import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from batonpass.relay import Relay
from batonpass.server import access
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.mcp.http_mount import McpMount
from batonpass.server.page.door import PageDoor
from batonpass.server.page.session import PageSessions
from batonpass.server.routes import ENDPOINTS
from tests.unit.server.conftest import ANA, House
from tests.unit.server.mcp.talk import NoFiles
from tests.unit.server.test_every_route import EXAMPLES, ROLES, Scene, a_scene
from tests.unit.server.visitor import Visitor

EVE = "user:eve"
OF_PEOPLE = {"/", "/enter", "/tasks", "/approvals", "/questions", "/find", "/keys", "/ledger", "/leave", "/mcp"}


@pytest.fixture
def scene(relay: Relay) -> Scene:
    """Return two agents with a tree each, and everybody else."""
    return a_scene(relay)


def test_the_page_and_mcp_serve_no_other_host_and_no_other_site(house: House) -> None:
    """Every route that people and MCP clients have is behind the same boundary as the interface."""
    mcp = McpMount(house.plane, NoFiles())
    mounts = [*PageDoor(house.plane, PageSessions(house.plane)).routes(), mcp.route]
    visitor = Visitor(make_app(house.plane, hosts=hosts_for("127.0.0.1"), mounts=mounts))
    paths = {*OF_PEOPLE, *(path for one in mounts if "{" not in (path := getattr(one, "path", "{")))}
    wrong = [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}]
    answers = {
        (visitor.send(method, path or "/", b"", **sent).code, *sent)
        for path in paths
        for method in ("GET", "POST")
        for sent in wrong
    }

    assert {("access.host", "host"), ("access.origin", "origin")} == answers
    assert len(paths) >= len(OF_PEOPLE)


def test_a_key_of_somebody_else_finds_nothing(scene: Scene) -> None:
    """The same key and the same words with another token are another request."""
    said = {"intent": "Fix it all"}
    own = scene.ana.post("/v1/runs", said, idempotency_key="1")
    other = scene.ben.post("/v1/runs", said, idempotency_key="1")

    assert (201, 201) == (own.status, other.status)
    assert own.json["run"]["id"] != other.json["run"]["id"]
    assert "idempotent-replayed" not in other.headers


@pytest.mark.parametrize("proof", ["none", "of another run", "forged", "of a run that was taken over"])
def test_an_answer_is_told_again_only_to_who_holds_the_run(scene: Scene, proof: str) -> None:
    """Whoever shares a token and guesses a key does not get the proof of somebody else's child."""
    path = f"/v1/handoffs/{scene.names['handoff']}/attempts"
    first = scene.ana.post(path, {}, idempotency_key="1")
    again = scene.ana.post(path, {}, idempotency_key="1")
    another = scene.ana.post("/v1/runs", {"intent": "Something else"}).json
    thief = Visitor(scene.ana.app, scene.ana.token, scene.ana.proof)
    if proof == "of a run that was taken over":
        scene.house.relay.resume(scene.names["run"])
    else:
        forged = f"{scene.names['run']}.{'A' * 86}"
        thief.proof = {"none": None, "of another run": another["proof"], "forged": forged}[proof]
    told = thief.post(path, {}, idempotency_key="1")

    assert (first.body, "true") == (again.body, again.headers["idempotent-replayed"])
    assert told.status in {403, 409}
    assert first.json["proof"] not in told.body.decode()


FILTERS = (
    *("runs?before={run}", "runs?root={run}", "runs?parent={run}", "handoffs?before={handoff}", "handoffs?root={run}"),
    *("handoffs?parent={run}", "receipts?run={run}", "receipts?root={run}", "search?pattern=Fix&after=0"),
    *("events?after=0&root={run}", "events?after=0&run={run}"),
)


@pytest.mark.parametrize("path", FILTERS)
def test_a_cursor_or_a_filter_of_another_tree_shows_nothing_of_it(scene: Scene, path: str) -> None:
    """Lists and streams are of the caller's own tree, whatever is named."""
    answer = scene.ben.get("/v1/" + path.format(**scene.names))
    told = answer.body.decode() if answer.status == 200 else ""

    assert answer.code in {None, "access.out_of_reach"}
    assert [] == [name for part, name in scene.names.items() if part in {"run", "handoff", "receipt"} and name in told]


@pytest.mark.parametrize("known", ["*", "the etag"])
def test_an_etag_tells_nobody_whether_something_is_there(scene: Scene, known: str) -> None:
    """Who may not read it is refused in the same words as for what there is not, and gets no ETag."""
    path = f"/v1/runs/{scene.names['run']}"
    etag = scene.ana.get(path).headers["etag"]
    told = scene.ben.get(path, if_none_match="*" if known == "*" else etag)
    nothing = scene.ben.get("/v1/runs/run_00000000000000000000000000", if_none_match="*")

    assert (403, 403) == (told.status, nothing.status)
    assert (told.code, "etag" in told.headers) == (nothing.code, False)


def test_nobody_acts_in_another_name(scene: Scene) -> None:
    """Every operation that takes `by` refuses whoever the token is not for, and records nothing."""
    before = scene.recorded()
    told: dict[str, object] = {}
    for endpoint in ENDPOINTS:
        if endpoint.body is None or "by" not in endpoint.body.__struct_fields__:
            continue
        agent = "agent" in endpoint.roles
        visitor = scene.ana if agent else scene.house.visitor("admin")
        said = {**EXAMPLES[endpoint.name], "by": EVE}
        if "run" in said:
            said["run"] = scene.names["run"]
        told[endpoint.name] = visitor.post(endpoint.path.format(**scene.names), said).code

    assert dict.fromkeys(told, "access.principal") == told
    assert (True, before) == (len(told) > 8, scene.recorded())


def test_a_token_that_is_not_there_is_compared_too(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """In constant time, and once, whether there is such a token or not."""
    house = House(relay, a_scene(relay).house.plane, {})
    issued = relay.admin.add_token(ANA, "auditor", by=ANA, lasts=timedelta(hours=1)).text
    compared: list[int] = []

    def compare(one: str, other: str) -> bool:
        compared.append(len(one) == len(other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(access, "hmac", type("Watched", (), {"compare_digest": staticmethod(compare)}))
    visitor = house.visitor()
    statuses = []
    for text in (issued, f"{issued[:-1]}x", "token_x.y", "x"):
        visitor.token = text
        statuses.append(visitor.get("/v1/ledger").status)

    assert ([200, 401, 401, 401], [True] * 4) == (statuses, compared)


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Record what every logger says, down to the finest."""
    with caplog.at_level(logging.DEBUG):
        yield caplog


@pytest.mark.parametrize("role", ROLES)
def test_no_secret_is_in_a_log_or_an_answer(
    scene: Scene, role: str, everything_logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of whoever asks, nor of anybody else, whatever is asked; also when it fails in a way nobody expected."""
    visitor = scene.ana if role == "agent" else scene.house.visitor(role)
    secrets = [text.partition(".")[2] for text in (*scene.house.everybody.values(), scene.ben.token or "")]
    told = [scene.ask(visitor, endpoint).body.decode("utf-8", "replace") for endpoint in ENDPOINTS]
    visitor.get(f"/v1/{secrets[0]}?token={secrets[0]}", authorization="Bearer x.y")  # is told its own words only
    told += [visitor.get("/v1/ledger", authorization=f"Basic {secrets[0]}").body.decode()]
    monkeypatch.setattr(type(scene.house.relay.store), "view", None)  # everything fails from here on
    told += [visitor.get(f"/v1/ledger?token={secrets[0]}").body.decode()]

    assert [] == [secret for secret in secrets if any(secret in answer for answer in told)]
    assert [] == [secret for secret in secrets if secret in everything_logged.text]
    assert "failed" in everything_logged.text
