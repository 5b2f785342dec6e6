"""What can be done over HTTP: a whole job, with every receipt that any other door would leave."""

from typing import Any

import pytest

from batonpass.model.base.ids import HandoffId
from batonpass.model.base.kinds import AccessRole
from batonpass.model.bodies.body import Gate
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import Relay
from batonpass.server.answer import JSON
from batonpass.store.sqlite.view import SqliteView
from tests.unit.server.conftest import ANA, BEN, DAY, House, a_house
from tests.unit.server.visitor import Answered, Visitor


def begun(house: House, **said: object) -> tuple[Visitor, str]:
    """Start a run with the agent's token; return the agent with the proof, and the run."""
    agent = house.visitor("agent")
    answer = agent.post("/v1/runs", {"intent": "Fix rounding", **said})
    assert 201 == answer.status, answer.body
    agent.proof = answer.json["proof"]
    return agent, answer.json["run"]["id"]


def done(answer: Answered) -> Any:  # noqa: ANN401 - whatever was answered
    """Return what was answered to a request that must succeed."""
    assert answer.status < 300, answer.body
    return answer.json


def kinds(house: House, run: str) -> list[str]:
    """Return the kinds of the receipts in the stream of a run."""
    return [one["kind"] for one in done(house.visitor("auditor").get(f"/v1/receipts?run={run}"))["items"]]


def test_a_whole_job_over_http(house: House) -> None:
    """Start, decide, hand off, accept, call, report, close, verify: the ledger holds, and says who did what."""
    lead, root = begun(house)
    done(lead.post(f"/v1/runs/{root}/items", {"item": {"type": "Decision", "value": {"what": "half-even"}}}))
    handoff = done(lead.post(f"/v1/runs/{root}/handoffs", {"to": "editor", "task": "Round", "may": ["write:src/**"]}))
    taken = done(lead.post(f"/v1/handoffs/{handoff['id']}/attempts", {}))
    editor, child = Visitor(lead.app, lead.token, taken["proof"]), taken["run"]["id"]
    call = done(
        editor.post(
            f"/v1/runs/{child}/calls", {"tool": "write_file", "arguments": {"x": 1}, "target": "src/invoice.py"}
        )
    )
    done(editor.post(f"/v1/runs/{child}/calls/{call['call']}/outcome", {"result": "wrote 12 bytes"}))
    done(editor.post(f"/v1/runs/{child}/artifacts", {"name": "notes.txt", "text": "negative totals untested"}))
    done(editor.post(f"/v1/runs/{child}/checkpoints", {"messages": ["hello"]}))
    done(editor.post(f"/v1/runs/{child}/report", {"result": "done"}))
    closed = done(editor.post(f"/v1/runs/{child}/close", {}))
    result = done(lead.post(f"/v1/handoffs/{handoff['id']}/result", {}))
    judged = done(lead.post(f"/v1/handoffs/{handoff['id']}/verdict", {"holds": True, "words": "I looked"}))
    done(lead.post(f"/v1/runs/{root}/close", {}))

    assert ("completed", "done", "verified") == (closed["state"], result["report"]["result"], judged["state"])
    assert ["half-even"] == [one["what"] for one in taken["task"]["baton"]["decisions"]]
    assert [
        "handoff.accepted",
        "tool.requested",
        "tool.completed",
        "run.recorded",
        "checkpoint.saved",
        "handoff.completed",
    ] == kinds(house, child)
    house.relay.verify()


def test_a_root_is_the_principals_enforced_and_within_the_ceiling(house: House) -> None:
    """Whatever is asked for; and the receipt of the call says that what it did there is its client's word."""
    _, root = begun(house)
    auditor = house.visitor("auditor")
    run, grant = done(auditor.get(f"/v1/runs/{root}")), done(auditor.get(f"/v1/grants/{root}"))

    assert (ANA, "enforced") == (run["principal"], run["mode"])
    assert ["call:*", "read:**", "write:src/**"] == sorted(grant["chain"][0]["may"])


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        pytest.param({"by": BEN}, 403, "access.principal", id="another principal"),
        pytest.param({"may": ["write:**"]}, 403, "grant.exceeded", id="more than the ceiling"),
        pytest.param({"may": ["read:**"], "may_delegate": ["run:**"]}, 403, "grant.exceeded", id="delegates more"),
        pytest.param({"intent": ""}, 400, "value.invalid", id="no intent"),
        pytest.param({"agent": "the lead"}, 400, "value.invalid", id="no agent"),
        pytest.param({"mode": "observed"}, 400, "value.unknown_field", id="observed"),
        pytest.param({"series": "quarterly"}, 400, "value.unknown_field", id="a series, which others began"),
        pytest.param({"limits": "many"}, 400, "value.invalid", id="no limits"),
    ],
)
def test_a_start_that_says_too_much_is_refused(house: House, said: dict[str, object], status: int, code: str) -> None:
    """And nothing is started."""
    answer = house.visitor("agent").post("/v1/runs", {"intent": "Fix it", **said})

    assert (status, code) == (answer.status, answer.code)
    assert [] == done(house.visitor("auditor").get("/v1/runs"))["items"]


def test_a_token_for_some_agents_works_as_no_other(house: House) -> None:
    """Neither as a root nor as whoever takes a handoff."""
    token = house.relay.admin.add_token(
        ANA, AccessRole.AGENT, by=BEN, lasts=DAY, agents=["lead"], may_delegate=["read:**"]
    ).text
    lead = house.visitor()
    lead.token = token
    other = lead.post("/v1/runs", {"intent": "Fix it", "agent": "editor"})
    started = done(lead.post("/v1/runs", {"intent": "Fix it"}))
    lead.proof = started["proof"]
    handoff = done(
        lead.post(f"/v1/runs/{started['run']['id']}/handoffs", {"to": "editor", "task": "x", "may": ["read:a"]})
    )
    taken = lead.post(f"/v1/handoffs/{handoff['id']}/attempts", {})

    assert ("access.out_of_reach", "access.out_of_reach") == (other.code, taken.code)


def test_a_call_outside_the_grant_is_denied_and_recorded(house: House) -> None:
    """With the words that every door has for it."""
    agent, run = begun(house)
    answer = agent.post(f"/v1/runs/{run}/calls", {"tool": "write_file", "target": ".github/ci.yml"})

    assert (403, "grant.denied") == (answer.status, answer.code)
    assert answer.json["error"]["message"].startswith("Denied, and not made:")
    assert ["run.started", "tool.denied"] == kinds(house, run)


@pytest.mark.parametrize(
    "target", ["src/../.github/ci.yml", "./src/x/../../a", "/etc/passwd", "src//..//b", "src\\..\\a"]
)
def test_a_path_that_leads_out_of_the_grant_is_denied(house: House, target: str) -> None:
    """However it is spelled."""
    agent, run = begun(house, may=["write:src/**"])

    assert 403 == agent.post(f"/v1/runs/{run}/calls", {"tool": "write_file", "target": target}).status


@pytest.mark.parametrize("target", [".batonpass/ledger.db", "src/../.batonpass/root.key"])
def test_the_record_is_out_of_reach_of_every_call(house: House, target: str) -> None:
    """In whichever spelling; here, nobody can look where a path leads."""
    agent, run = begun(house)
    answer = agent.post(f"/v1/runs/{run}/calls", {"tool": "write_file", "target": target})

    assert 403 == answer.status


def test_a_failed_call_is_recorded_with_its_code(house: House) -> None:
    """And an outcome is given once."""
    agent, run = begun(house)
    call = done(agent.post(f"/v1/runs/{run}/calls", {"tool": "search", "reads": True}))["call"]
    failed = {"error": {"code": "smtp.timeout", "message": "no answer"}}
    done(agent.post(f"/v1/runs/{run}/calls/{call}/outcome", failed))
    again = agent.post(f"/v1/runs/{run}/calls/{call}/outcome", failed)
    odd = agent.post(f"/v1/runs/{run}/calls/{call}/outcome", {"error": {"code": "Not a code"}})

    assert (["run.started", "tool.requested", "tool.failed"], 404, 400) == (kinds(house, run), again.status, odd.status)
    (told,) = done(house.visitor("auditor").get(f"/v1/runs/{run}"))["calls"]
    assert ("smtp.timeout", ["made.elsewhere"]) == (told["why"], told["flags"])


def test_a_held_call_waits_for_a_person_and_then_goes_on(
    relay: Relay, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The run goes on meanwhile; the ruling names the sheet that was read, and is recorded as unproven."""
    rule = Rule(name="ask-first", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy")
    home = tmp_path_factory.mktemp("held")
    with Relay.open(
        home / "ledger.db", home=home, keys_in_files=True, policy=Policy(enforce=True, rules=(rule,))
    ) as ruled:
        house = a_house(ruled)
        agent, run = begun(house)
        held = agent.post(f"/v1/runs/{run}/calls", {"tool": "deploy"})
        operator = house.visitor("operator")
        (waits,) = done(operator.get("/v1/approvals"))["items"]
        sheet = done(operator.get(f"/v1/approvals/{waits['id']}"))
        stale = operator.post(f"/v1/approvals/{waits['id']}", {"approved": True, "shown": "ab" * 32})
        done(operator.post(f"/v1/approvals/{waits['id']}", {"approved": True, "shown": sheet["shown"]}))
        twice = operator.post(f"/v1/approvals/{waits['id']}", {"approved": True})
        made = done(agent.post(f"/v1/runs/{run}/calls", {"tool": "deploy"}))
        (ruled_on,) = done(house.visitor("auditor").get("/v1/receipts?kind=tool.approved"))["items"]

    assert (409, "handoff.hold_changed", 409, False) == (held.status, stale.code, twice.status, made["replayed"])
    assert ("user:operator", ["approval.unproven"]) == (ruled_on["body"]["by"], ruled_on["body"]["flags"])
    assert relay is not None


def test_a_question_is_asked_and_answered(house: House) -> None:
    """By an operator in their own name; nobody answers in somebody else's."""
    agent, run = begun(house)
    handoff = done(agent.post(f"/v1/runs/{run}/handoffs", {"to": "editor", "task": "Round", "may": ["read:src/a"]}))
    done(agent.post(f"/v1/handoffs/{handoff['id']}/question", {"question": "Which file?"}))
    operator = house.visitor("operator")
    other = operator.post(f"/v1/handoffs/{handoff['id']}/answer", {"text": "a.py", "by": ANA})
    answered = done(operator.post(f"/v1/handoffs/{handoff['id']}/answer", {"text": "a.py"}))

    assert ("access.principal", "offered") == (other.code, answered["state"])


def test_operators_retry_cancel_and_revoke(house: House) -> None:
    """What failed is tried again, what is not wanted is withdrawn, and a grant ends at once."""
    agent, run = begun(house)
    failing = done(agent.post(f"/v1/runs/{run}/handoffs", {"to": "editor", "task": "Fail", "may": ["read:src/a"]}))
    taken = done(agent.post(f"/v1/handoffs/{failing['id']}/attempts", {}))
    editor = Visitor(agent.app, agent.token, taken["proof"])
    child = taken["run"]["id"]
    done(editor.post(f"/v1/runs/{child}/close", {"outcome": "failed", "error": {"code": "tired", "message": "no"}}))
    operator = house.visitor("operator")
    again = done(operator.post(f"/v1/handoffs/{failing['id']}/retry", {"reason": "once more"}))
    gone = done(operator.post(f"/v1/handoffs/{failing['id']}/cancel", {"reason": "never mind"}))
    done(operator.post(f"/v1/grants/{run}/revocation", {"reason": "stop"}))
    after = agent.post(f"/v1/runs/{run}/calls", {"tool": "search"})

    assert ("offered", "cancelled", "grant.revoked") == (again["state"], gone["state"], after.code)


def test_taking_a_handoff_costs_the_same_however_many_there_are(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other handoffs of the run are not read."""
    lead, root = begun(house)
    read: list[str] = []
    get = SqliteView.get_handoff

    def noted(view: SqliteView, one: HandoffId) -> Handoff:
        read.append(one)
        return get(view, one)

    monkeypatch.setattr(SqliteView, "get_handoff", noted)
    counts = []
    for number in range(12):
        said = {"to": "editor", "task": f"Task {number}", "may": ["read:src/a"]}
        handoff = done(lead.post(f"/v1/runs/{root}/handoffs", said))["id"]
        read.clear()
        done(lead.post(f"/v1/handoffs/{handoff}/attempts", {}))
        counts.append((len(read), set(read) == {handoff}))

    assert [counts[0]] * 12 == counts
    assert counts[0][1]


def test_auditors_verify_and_administrators_seal(house: House) -> None:
    """Each as the role says."""
    begun(house)
    verified = done(house.visitor("auditor").post("/v1/verification", {}))
    sealed = done(house.visitor("admin").post("/v1/seals", {}))

    assert (verified["position"], verified["receipts"]) == (sealed["size"], verified["position"])


def test_the_same_request_with_the_same_key_is_done_once(house: House) -> None:
    """It gets the same answer; another request with that key is refused, and another token is not affected."""
    agent = house.visitor("agent")
    said = {"intent": "Fix it"}
    first, again = (agent.post("/v1/runs", said, idempotency_key="one") for _ in range(2))
    other = agent.post("/v1/runs", {"intent": "Something else"}, idempotency_key="one")
    agent.proof = first.json["proof"]
    run = first.json["run"]["id"]
    calls = {agent.post(f"/v1/runs/{run}/calls", {"tool": "x"}, idempotency_key="c").json["call"] for _ in range(3)}

    assert (first.body, "true") == (again.body, again.headers["idempotent-replayed"])
    assert (409, "http.key_reused") == (other.status, other.code)
    assert (1, ["run.started", "tool.requested"]) == (len(calls), kinds(house, run))


@pytest.mark.parametrize("how", ["its length", "chunks"])
def test_a_body_is_read_whichever_way_it_comes(house: House, how: str) -> None:
    """Whoever is not let in is told that and nothing else, also if the body is wrong as well."""
    sent = {"transfer_encoding": "chunked"} if how == "chunks" else {}
    agent, nobody = house.visitor("agent"), house.visitor()
    begun = agent.post("/v1/runs", {"intent": "Fix it"}, **sent)
    wrong = [agent.send("POST", "/v1/runs", b"{", **sent, content_type=kind).status for kind in ("text/plain", JSON)]
    told = [nobody.send("POST", "/v1/runs", b"{", **sent, content_type=kind).status for kind in ("text/plain", JSON)]
    auditor = house.visitor("auditor").send("POST", "/v1/runs", b"{", **sent, content_type="text/plain")

    assert (201, [415, 400], [401, 401], 403) == (begun.status, wrong, told, auditor.status)


def test_the_key_of_a_start_outlives_the_server(house: House) -> None:
    """After a restart the same start is the same run, and the client gets a proof that is valid."""
    agent = house.visitor("agent")
    first = done(agent.post("/v1/runs", {"intent": "Fix it"}, idempotency_key="one"))
    restarted = a_house(house.relay)
    restarted.everybody = house.everybody
    agent = restarted.visitor("agent")
    second = done(agent.post("/v1/runs", {"intent": "Fix it"}, idempotency_key="one"))
    agent.proof = second["proof"]

    assert first["run"]["id"] == second["run"]["id"]
    assert 201 == agent.post(f"/v1/runs/{first['run']['id']}/calls", {"tool": "x"}).status


def test_a_program_goes_on_when_the_server_restarts(house: House) -> None:
    """With the proof that it has: nobody is fenced. A call that was under way gets its outcome, once."""
    agent, run = begun(house)
    call = done(agent.post(f"/v1/runs/{run}/calls", {"tool": "x"}))["call"]
    restarted = a_house(house.relay)
    after = Visitor(restarted.visitor().app, agent.token, agent.proof)
    done(after.post(f"/v1/runs/{run}/calls/{call}/outcome", {"result": 1, "external": False}))
    twice = after.post(f"/v1/runs/{run}/calls/{call}/outcome", {"result": 2})
    done(after.post(f"/v1/runs/{run}/calls", {"tool": "y"}))
    done(after.post(f"/v1/runs/{run}/close", {}))

    made = ["run.started", "tool.requested", "tool.completed", "tool.requested", "run.closed"]
    assert (404, made) == (twice.status, kinds(house, run))
    house.relay.verify()


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        pytest.param(b"{", "application/json", 400, "value.invalid", id="no JSON"),
        pytest.param(b"[]", "application/json", 400, "value.invalid", id="a list"),
        pytest.param(b'{"intent": NaN}', "application/json", 400, "value.invalid", id="no number"),
        pytest.param(b"[" * 100_000, "application/json", 400, "value.invalid", id="nested without end"),
        pytest.param(b'{"intent": "x", "colour": 1}', "application/json", 400, "value.unknown_field", id="unknown"),
        pytest.param(b'{"intent": "\\ud800"}', "application/json", 400, "value.invalid", id="half a character"),
        pytest.param(b'{"intent": "x"}', "text/plain", 415, "http.media_type", id="not declared as JSON"),
        pytest.param(b"x" * (8 * 1024 * 1024 + 1), "application/json", 413, "http.too_large", id="too large"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(house: House, body: bytes, kind: str, status: int, code: str) -> None:
    """With what is wrong, and nothing is done."""
    answer = house.visitor("agent").send("POST", "/v1/runs", body, content_type=kind)

    assert (status, code) == (answer.status, answer.code)
