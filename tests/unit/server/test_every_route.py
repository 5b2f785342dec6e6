"""Every route × every role × somebody else's tree: who is let in where, from the same table as the routes.

A new endpoint is in this test as soon as it is in the table; if it takes a body, it needs an example here.
"""

from dataclasses import dataclass
from typing import Any, Final

import pytest

from batonpass.dispatch.webhooks import Webhooks
from batonpass.model.base.kinds import AccessRole
from batonpass.relay import Relay
from batonpass.server.endpoint import Endpoint
from batonpass.server.routes import ENDPOINTS
from batonpass.signing.ed25519 import Ed25519Signer
from tests.unit.server.conftest import ANA, BEN, DAY, House, a_house
from tests.unit.server.visitor import Answered, Visitor

RUN: Final = "the run"  # stands for Ana's
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "startRun": {"intent": "Fix it"},
    "handOff": {"to": "helper", "task": "Help", "may": ["read:src/a"]},
    "recordItem": {"item": {"type": "Decision", "value": {"what": "half-even"}}},
    "attach": {"name": "a.txt", "text": "a"},
    "saveCheckpoint": {"messages": []},
    "report": {"result": "done"},
    "closeRun": {},
    "beginCall": {"tool": "search"},
    "finishCall": {"result": 1},
    "acceptHandoff": {},
    "takeResult": {},
    "ask": {"question": "Which?"},
    "declineHandoff": {"reason": "no"},
    "answer": {"text": "this"},
    "retryHandoff": {"reason": "again"},
    "cancelHandoff": {"reason": "no"},
    "replaceAgent": {"to": "another"},
    "settleCall": {"settlement": "skip"},
    "judgeResult": {"holds": True, "words": "seen"},
    "rule": {"approved": True},
    "prepareRuling": {"approved": True, "shown": "0" * 64},
    "revokeGrant": {"reason": "stop"},
    "seal": {},
    "acknowledgeFinding": {"run": RUN, "reason": "known"},
    "acknowledgeAlarm": {"reason": "known"},
    "addToken": {"principal": "user:eve", "role": "auditor"},
    "revokeToken": {"reason": "left"},
    "addWebhook": {"url": "https://93.184.215.14/hook"},
    "rotateWebhook": {},
    "resumeWebhook": {},
    "testWebhook": {},
    "removeWebhook": {"reason": "moved"},
    "verifyLedger": {},
    "claimHandoff": {"agents": ["editor"], "holder": "w1"},
    "renewLease": {"holder": "w1", "token": 1},
    "releaseLease": {"holder": "w1", "token": 1},
    "signAct": {"number": 99, "signature": None},  # what was not asked is passed over
}
QUERIES: Final = {"search": "?pattern=Fix", "readText": "?ref=task"}  # of what is not answered without one
KEY: Final = Ed25519Signer.generate().public_key
ROLES: Final = tuple(role.value for role in AccessRole)
# What an agent reaches without any run, and what has nothing of anybody's tree in it.
OF_NOBODY: Final = frozenset({"showLedger", "listAgents", "startRun"})
WORKERS: Final = frozenset({"claimHandoff", "renewLease", "releaseLease"})  # take a token that names agents
LISTS: Final = frozenset({"listRuns", "listHandoffs", "listReceipts", "search"})
STREAM: Final = "streamEvents"  # what an agent hears is tested with the events


@dataclass(slots=True)
class Scene:
    """Two agents with a tree each, and everybody else."""

    house: House
    names: dict[str, str]  # parts of paths, all of Ana's tree
    ana: Visitor
    ben: Visitor

    def ask(self, visitor: Visitor, endpoint: Endpoint) -> Answered:
        """Send what an endpoint takes, about Ana's tree."""
        path = endpoint.path.format(**self.names)
        if endpoint.is_read:
            return visitor.get(path + QUERIES.get(endpoint.name, ""))
        said = EXAMPLES[endpoint.name]
        return visitor.post(path, {name: self.names["run"] if one == RUN else one for name, one in said.items()})

    def recorded(self) -> int:
        """Return how many receipts there are."""
        with self.house.relay.store.view() as view:
            return view.last_position()


def a_scene(relay: Relay) -> Scene:
    """Return a scene with a tree of Ana's: a run that handed off, a call under way, and something attached."""
    house = a_house(relay)
    ana = house.visitor("agent")
    ben = house.visitor()
    ben.token = relay.admin.add_token(BEN, AccessRole.AGENT, by=ANA, lasts=DAY, may=["read:**"]).text
    roots = []
    for agent in (ana, ben):
        started = agent.post("/v1/runs", {"intent": "Fix it"}).json
        agent.proof = started["proof"]
        roots.append(started["run"]["id"])
    handoff = ana.post(f"/v1/runs/{roots[0]}/handoffs", {"to": "editor", "task": "Edit", "may": ["read:src/a"]}).json
    call = ana.post(f"/v1/runs/{roots[0]}/calls", {"tool": "search"}).json
    item = ana.post(f"/v1/runs/{roots[0]}/artifacts", {"name": "a.txt", "text": "a"}).json
    with relay.store.view() as view:
        receipt = view.get_receipt_at(roots[0], 1).id
    names = {
        "run": roots[0],
        "handoff": handoff["id"],
        "call": call["call"],
        "content": item["item"],
        "receipt": receipt,
        "account": roots[0],
        "held": handoff["id"],
        "finding": "ghost-task",
        "alarm": 12 * "0",
        "token": relay.admin.add_token(BEN, AccessRole.AUDITOR, by=ANA, lasts=DAY).id,
        "webhook": Webhooks(relay, house.plane.egress).add("https://93.184.215.14/hook", by=ANA).id,
        "name": "a.txt",
        "act": ana.post("/v1/runs", {"intent": "Later"}, batonpass_signer=KEY, idempotency_key="later").json["act"],
    }
    return Scene(house, names, ana, ben)


@pytest.fixture
def scene(relay: Relay) -> Scene:
    """Return a new scene."""
    return a_scene(relay)


def test_every_endpoint_that_takes_a_body_has_an_example() -> None:
    """So that nothing below is refused because of its body."""
    assert {one.name for one in ENDPOINTS if one.body is not None} == set(EXAMPLES)


def test_without_a_token_nothing_is_answered(scene: Scene) -> None:
    """Neither read nor done, on any route."""
    before = scene.recorded()
    told = {one.name: (answer.status, answer.code) for one in ENDPOINTS for answer in (_nobody(scene, one),)}

    assert dict.fromkeys(told, (401, "access.unknown_token")) == told
    assert before == scene.recorded()


def _nobody(scene: Scene, endpoint: Endpoint) -> Answered:
    return scene.ask(scene.house.visitor(), endpoint)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_let_in_exactly_where_the_table_says(relay: Relay, role: str) -> None:
    """Elsewhere it is told which role it takes, and nothing happens."""
    scene = a_scene(relay)
    visitor = scene.ana if role == "agent" else scene.house.visitor(role)
    refused, changed = set(), []
    for endpoint in sorted(ENDPOINTS, key=lambda one: one.name in {"closeRun", "cancelHandoff", "revokeGrant"}):
        before = scene.recorded()
        answer = scene.ask(visitor, endpoint)
        if answer.code == "access.role":
            refused.add(endpoint.name)
            changed += [endpoint.name] if scene.recorded() != before else []

    assert {one.name for one in ENDPOINTS if role not in one.roles} == refused
    assert [] == changed


@pytest.mark.parametrize("how", ["its own proof", "no proof", "the other's proof", "a forged proof"])
def test_an_agent_reaches_nothing_of_somebody_elses_tree(scene: Scene, how: str) -> None:
    """It reads no run, handoff, receipt or grant of it, and writes no receipt in it, on any route that takes agents."""
    proofs = {
        "its own proof": scene.ben.proof,
        "no proof": None,
        "the other's proof": scene.ana.proof,
        "a forged proof": f"{scene.names['run']}.{'A' * 86}",
    }
    scene.ben.proof = proofs[how]
    before = scene.recorded()
    let_in: dict[str, object] = {}
    for endpoint in ENDPOINTS:
        if "agent" not in endpoint.roles or endpoint.name in OF_NOBODY:
            continue
        answer = scene.ask(scene.ben, endpoint)
        if endpoint.name in LISTS and how == "its own proof":
            listed = [one.get("id", one.get("receipt")) for one in answer.json["items"]]
            hidden = set(scene.names.values())
            if answer.status != 200 or hidden.intersection(listed):
                let_in[endpoint.name] = listed
        elif endpoint.name == STREAM and how == "its own proof":
            if answer.status != 200 or scene.names["run"] in answer.body.decode():
                let_in[STREAM] = answer.status
        elif answer.code not in {"access.out_of_reach", "access.run_proof"}:
            let_in[endpoint.name] = answer.status

    assert {} == let_in
    assert before == scene.recorded()


def test_an_agent_with_the_proof_of_its_run_is_let_in(scene: Scene) -> None:
    """The test above would pass if nobody were let in at all."""
    shut = {}
    for endpoint in sorted(ENDPOINTS, key=lambda one: one.name in {"closeRun", "cancelHandoff", "declineHandoff"}):
        if "agent" in endpoint.roles and endpoint.name not in WORKERS:
            code = scene.ask(scene.ana, endpoint).code or ""
            if code.startswith("access."):
                shut[endpoint.name] = code

    assert {} == shut


def test_a_child_does_not_reach_its_parent(scene: Scene) -> None:
    """It reads its own handoff and nothing above it; it neither answers nor judges nor cancels its own handoff."""
    taken = scene.ana.post(f"/v1/handoffs/{scene.names['handoff']}/attempts", {}).json
    child = Visitor(scene.ana.app, scene.ana.token, taken["proof"])
    told = {one.name: scene.ask(child, one).code for one in ENDPOINTS if "agent" in one.roles}
    reached = {name for name, code in told.items() if code is None}
    own = child.get(f"/v1/runs/{taken['run']['id']}").json

    assert OF_NOBODY | LISTS | {"showHandoff", "showBriefing", "readText", "readResult", "signAct", STREAM} == reached
    assert {"access.out_of_reach"} == {code for code in told.values() if code is not None}
    assert [] == own["ancestors"]
    assert [taken["run"]["id"]] == [one["id"] for one in child.get("/v1/runs").json["items"]]


def test_a_parent_reads_its_child_and_does_not_act_in_its_place(scene: Scene) -> None:
    """The key of the child is the child's."""
    taken = scene.ana.post(f"/v1/handoffs/{scene.names['handoff']}/attempts", {}).json
    child = taken["run"]["id"]

    assert 200 == scene.ana.get(f"/v1/runs/{child}").status
    assert "access.out_of_reach" == scene.ana.post(f"/v1/runs/{child}/calls", {"tool": "x"}).code


def test_a_run_that_was_taken_over_is_no_longer_its_holders(scene: Scene) -> None:
    """It has another key, and the proof from before is void."""
    scene.house.relay.resume(scene.names["run"])

    assert "access.run_proof" == scene.ana.get(f"/v1/runs/{scene.names['run']}").code
