"""One suite for a relay with its ledger and one whose ledger is elsewhere: the same program, the same receipts.

What a program elsewhere cannot do is listed at the end, with the error that says so.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass import AsyncRelay, Decision, tool
from batonpass.errors import (
    BatonpassError,
    GrantDeniedError,
    GrantExceededError,
    HandoffAskedError,
    HandoffDeclinedError,
    HandoffEndedError,
    KeyReusedError,
    NotFoundError,
    NotOverHttpError,
)
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import ContentId
from batonpass.model.base.lifecycle import State
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.policy.offer_options import Handling
from batonpass.relay import Relay
from tests.unit.client.conftest import ALL, ANA, Place

LOCAL, REMOTE = "with its ledger", "elsewhere"
GRANT = GrantRequest(may=ALL, may_delegate=ALL)
CALLED: list[str] = []


@tool("look", reads=True)
def look(where: str) -> dict[str, str]:
    """Look somewhere."""
    CALLED.append(where)
    return {"seen": where}


@tool("write_file", target="path", reversible=True)
def write_file(path: str) -> str:
    """Write a file."""
    CALLED.append(path)
    return path


@tool("explode")
def explode() -> None:
    """Fail."""
    raise ValueError("boom")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Return a ledger with its control plane."""
    monkeypatch.chdir(tmp_path)
    made = Place(tmp_path)
    CALLED.clear()
    yield made
    made.relay.verify()
    made.relay.close()


@pytest.fixture(params=[LOCAL, REMOTE])
def relay(place: Place, request: pytest.FixtureRequest) -> Relay:
    """Return a relay with its ledger, or one whose ledger is elsewhere."""
    return place.relay if request.param == LOCAL else place.elsewhere()


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a root run with a wide grant."""
    return relay.start("Fix it", by=ANA, grant=GRANT)


def test_a_call_is_judged_and_recorded(lead: LiveRun, place: Place) -> None:
    """It returns what its tool returned."""
    assert {"seen": "here"} == lead.call(look, "here")
    lead.close()
    assert ["run.started", "tool.requested", "tool.completed", "run.closed"] == place.kinds()


def test_a_call_outside_the_grant_is_denied(lead: LiveRun, place: Place) -> None:
    """With the same sentence, and the tool is not called."""
    editor = lead.hand_off("editor", "Edit", may=["write:src/**"]).accept()
    with pytest.raises(GrantDeniedError, match=r"editor may write:src/\*\*, tried write:ci.yml; lead holds it"):
        editor.call(write_file, "ci.yml")
    assert ([], "tool.denied") == (CALLED, place.kinds()[-1])


def test_a_tool_that_raises_has_failed(lead: LiveRun, place: Place) -> None:
    """The program gets its own error."""
    with pytest.raises(ValueError, match="boom"):
        lead.call(explode)
    assert ["tool.requested", "tool.failed"] == place.kinds()[-2:]


def test_a_result_comes_back(lead: LiveRun) -> None:
    """With the report, and as the value that it has for programs."""
    handoff = lead.hand_off("editor", "Edit", may=["read:**"])
    with handoff as editor:
        editor.report("done", value='{"lines": 3}', open_questions=["why?"])
    result = handoff.result()
    report = result.report
    assert report is not None
    assert (State.COMPLETED, {"lines": 3}, ["why?"]) == (
        result.state,
        result.value,
        [one.text for one in report.open_questions],
    )


def test_the_same_task_is_the_same_handoff(lead: LiveRun) -> None:
    """Also by its key; other words under that key are refused."""
    first = lead.hand_off("editor", "Edit", may=["read:**"])
    again = lead.hand_off("editor", "Edit", may=["read:**"])
    keyed = lead.hand_off("editor", "Check", may=["read:**"], handling=Handling(key="k"))
    assert (first.id, True) == (again.id, keyed.id != first.id)
    with pytest.raises(KeyReusedError):
        lead.hand_off("editor", "Something else", may=["read:**"], handling=Handling(key="k"))


def test_a_failed_attempt_is_tried_again_and_keeps_what_it_finished(lead: LiveRun) -> None:
    """The finished call is not made a second time."""
    handoff = lead.hand_off("editor", "Edit", may=["read:**", "call:*"])
    editor = handoff.accept()
    editor.call(look, "once")
    editor.fail(RuntimeError("gone"))
    assert State.FAILED is handoff.state()
    handoff.retry(reason="again")
    with handoff as editor:
        assert (2, {"seen": "once"}) == (editor.attempt, editor.call(look, "once"))
    assert (["once"], State.COMPLETED) == (CALLED, handoff.state())


def test_a_runner_works_on_it(relay: Relay, lead: LiveRun) -> None:
    """Registered with the relay, or given with the handoff."""
    relay.register("editor", lambda run: f"{run.agent} did {run.task}")
    assert "editor did Edit" == lead.hand_off("editor", "Edit", may=["read:**"]).wait().value
    other = lead.hand_off("other", "Look", may=["call:*"], run=lambda run: run.call(look, "x"))
    assert {"seen": "x"} == other.wait().value


def test_a_question_is_asked_and_answered(lead: LiveRun) -> None:
    """And the handoff is taken after that."""
    handoff = lead.hand_off("editor", "Edit", may=["read:**"])
    handoff.ask("Which file?")
    with pytest.raises(HandoffAskedError, match="Which file"):
        handoff.accept()
    assert (State.ASKED, "Which file?") == (handoff.state(), handoff.result().question)
    handoff.answer("The first")
    handoff.accept().close()
    assert State.COMPLETED is handoff.state()


def test_it_is_declined_cancelled_and_judged(lead: LiveRun) -> None:
    """Each is a state of the handoff."""
    declined, cancelled, judged, refuted = (
        lead.hand_off("editor", task, may=["read:**"]) for task in ("One", "Two", "Three", "Four")
    )
    declined.decline("not mine")
    cancelled.cancel(reason="no need")
    judged.accept().close()
    refuted.accept().close()
    assert judged.verify(verdict="I looked")
    refuted.refute("it is wrong")
    assert [State.DECLINED, State.CANCELLED, State.VERIFIED, State.REFUTED] == [
        one.state() for one in (declined, cancelled, judged, refuted)
    ]
    with pytest.raises((HandoffDeclinedError, HandoffEndedError)):
        cancelled.accept()


def test_notes_and_artifacts_travel(lead: LiveRun) -> None:
    """With the handoff, to whoever takes it."""
    lead.record(Decision("half-even", why="tax office"))
    lead.attach("a.txt", "hello")
    lead.attach("b.bin", b"\x00\x01")
    editor = lead.hand_off("editor", "Edit", may=["read:**"]).accept()
    assert (b"hello", b"\x00\x01", "Edit") == (editor.read("a.txt"), editor.read("b.bin"), editor.task)
    with pytest.raises(NotFoundError):
        editor.read("c.txt")


def test_a_checkpoint_is_what_the_next_attempt_goes_on_from(lead: LiveRun) -> None:
    """The messages come back."""
    handoff = lead.hand_off("editor", "Edit", may=["read:**"])
    editor = handoff.accept()
    editor.checkpoint([{"role": "user", "content": "hi"}])
    editor.fail(RuntimeError("gone"))
    handoff.retry(reason="again")
    assert [{"role": "user", "content": "hi"}] == handoff.accept().messages()


def test_a_grant_is_taken_from_what_the_sender_may_delegate(lead: LiveRun) -> None:
    """More is refused, with what it has."""
    editor = lead.hand_off(
        "editor", "Edit", grant=GrantRequest(may=["read:src/**"], may_delegate=["read:src/a"])
    ).accept()
    with pytest.raises(GrantExceededError):
        editor.hand_off("helper", "Help", may=["read:src/b"])
    helper = editor.hand_off("helper", "Help", may=["read:src/a"]).accept()
    assert (editor.id, lead.id) == (helper.parent, helper.root)


def test_a_closed_run_is_over(lead: LiveRun) -> None:
    """Nothing more is recorded in it."""
    lead.close()
    with pytest.raises(BatonpassError):
        lead.call(look, "late")
    assert [] == CALLED


def test_the_same_key_is_the_same_run(relay: Relay, place: Place) -> None:
    """Other words under it are refused."""
    first = relay.start("Fix it", by=ANA, grant=GRANT, key="ticket-1")
    with pytest.raises(KeyReusedError):
        relay.start("Something else", by=ANA, grant=GRANT, key="ticket-1")
    again = relay.start("Fix it", by=ANA, grant=GRANT, key="ticket-1")
    assert first.id == again.id
    again.close()
    del place


@pytest.mark.parametrize("where", [LOCAL, REMOTE])
def test_asynchronous_programs_have_the_same_names(place: Place, where: str) -> None:
    """They await the same acts, with the same receipts."""
    relay = AsyncRelay(place.relay if where == LOCAL else place.elsewhere())

    async def program() -> Any:  # noqa: ANN401 - a result
        async with relay.start("Fix it", by=ANA, grant=GRANT) as lead:
            handoff = await lead.hand_off("editor", "Edit", may=["call:*"])
            async with handoff as editor:
                seen = await editor.call(look, "here")
                editor.report(seen["seen"])
            return (await handoff.result()).value

    assert "here" == asyncio.run(program())
    assert ["handoff.accepted", "tool.requested", "tool.completed", "handoff.completed", "run.closed"] == place.kinds()[
        -5:
    ]


# What a program elsewhere cannot do, each with its reason in the guide.
IMPOSSIBLE: dict[str, Callable[[Relay, LiveRun], object]] = {
    "look after the ledger": lambda relay, _: relay.admin,
    "read the ledger": lambda relay, _: relay.store.view(),
    "verify the ledger": lambda relay, _: relay.verify(),
    "an observed root": lambda relay, _: relay.start("x", by=ANA, mode="observed"),
    "continue another root": lambda relay, run: relay.start("x", by=ANA, continues=run.id),
    "trails": lambda relay, run: relay.trail(run.id),
    "resume a session": lambda relay, _: relay.resume_session(by=ANA),
    "the baton as a value": lambda _, run: run.hand_off("editor", "Edit", may=["read:**"]).baton(),
    "a policy for one handoff": lambda _, run: run.hand_off("editor", "Edit", handling=Handling(carry=[])),
    "check alarms": lambda relay, _: relay.check_alarms(),
    "acknowledge an alarm": lambda relay, _: relay.acknowledge_alarm("editor", by=ANA, reason="x"),
    "acknowledge a finding": lambda relay, run: relay.acknowledge(run.id, "loop", by=ANA, reason="x"),
    "recall": lambda relay, _: relay.recall("Edit"),
    "proofs for tool servers": lambda _, run: run.grant(),
    "what a run knows": lambda _, run: run.taint,
    "relax": lambda _, run: run.relax(ContentId("content_1"), by=ANA, reason="x"),
    "save a session": lambda _, run: run.save_session(),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_cannot_be_done_from_elsewhere_says_so(place: Place, what: str) -> None:
    """With one error, and nothing is done."""
    relay = place.elsewhere()
    run = relay.start("Fix it", by=ANA)
    with pytest.raises(NotOverHttpError, match="needs the ledger itself"):
        IMPOSSIBLE[what](relay, run)
