"""What is held or asked is put to the person at the client, in the way of each revision, and to nobody else."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, types

from batonpass.model.base.ids import HandoffId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Gate, HandoffApproved, ToolApproved
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.server.control_plane import ControlPlane
from batonpass.server.mcp.mcp_caller import McpCaller
from batonpass.server.mcp.protocol_server import ProtocolServer
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.port import ReceiptQuery
from tests.unit.server.conftest import House, a_house
from tests.unit.server.mcp.talk import MODES, Person, Talk, by_token, by_user, code_of, data_of, run, talking, text_of

HELD: dict[str, Any] = {"to": "editor", "task": "Edit it", "may": ["write:src/**"], "hold": True}


@pytest.fixture
def plane(relay: Relay) -> ControlPlane:
    """Return what the doors of a server share."""
    return ControlPlane.over(relay)


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[ControlPlane]:
    """Return one whose policy holds every call of `deploy`."""
    rule = Rule(name="ask-first", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy")
    home = tmp_path / "ruled"
    home.mkdir()
    policy = Policy(enforce=True, rules=(rule,))
    with Relay.open(home / "ledger.db", home=home, keys_in_files=True, policy=policy) as relay:
        yield ControlPlane.over(relay)


def state_of(relay: Relay, handoff: str) -> State:
    """Return the state of a handoff."""
    with relay.store.view() as view:
        return view.get_handoff(HandoffId(handoff)).state


def approvals(relay: Relay) -> list[HandoffApproved | ToolApproved]:
    """Return the approvals on record."""
    with relay.store.view() as view:
        bodies = [read_receipt(one).body for one in view.find_receipts(ReceiptQuery())]
    return [body for body in bodies if isinstance(body, HandoffApproved | ToolApproved)]


async def started(talk: Talk) -> str:
    """Start a run, and return its handle."""
    handle: str = (await talk.done("start", intent="Fix it"))["run"]
    return handle


async def handed_off(talk: Talk) -> str:
    """Start a run that hands off a task that is held, and return the handoff."""
    handoff: str = (await talk.done("hand_off", run=await started(talk), **HELD))["id"]
    return handoff


DECISIONS = [("accept", State.OFFERED), ("decline", State.DENIED), ("cancel", State.HELD)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("action", "after"), DECISIONS)
def test_a_held_handoff_is_decided_by_the_person(plane: ControlPlane, mode: str, action: str, after: State) -> None:
    """Accept approves, decline denies, and closing the form decides nothing."""
    person = Person(action)

    async def talk() -> None:
        async with talking(by_user(plane), mode, person) as own:
            await own.call("hand_off", run=await started(own), **HELD)

    run(talk)
    with plane.relay.store.view() as view:
        states = [one.state for one in view.find_handoffs()]

    assert ([after], 1, True) == (states, len(person.asked), "Edit it" in person.asked[0])


@pytest.mark.parametrize("mode", MODES)
def test_an_approval_says_who_what_was_shown_and_that_it_is_unproven(plane: ControlPlane, mode: str) -> None:
    """As one on the command line without a key."""

    async def talk() -> str:
        async with talking(by_user(plane), mode, Person(content={"reason": "seen"})) as own:
            return await handed_off(own)

    run(talk)
    (given,) = approvals(plane.relay)

    assert ("user:ana", True, True) == (
        given.by,
        given.shown is not None,
        given.looked_ms is not None and given.looked_ms >= 0,
    )
    assert (None, True) == (given.proof, "approval.unproven" in given.flags)


@pytest.mark.parametrize("mode", MODES)
def test_a_held_call_is_made_once_the_person_agreed(ruled: ControlPlane, mode: str) -> None:
    """The same tool call goes on; without a person it tells the model what to do."""
    person = Person()

    async def talk() -> tuple[Any, types.CallToolResult]:
        async with talking(by_user(ruled), mode, person) as own:
            made = await own.done("begin_call", run=await started(own), tool="deploy")
        async with talking(by_user(ruled), mode) as alone:
            return made, await alone.call("begin_call", run=await started(alone), tool="deploy")

    made, held = run(talk)

    assert (True, 1) == (made["call"].startswith("call_"), len(person.asked))
    assert ("call.suspended", True) == (code_of(held), "batonpass handoff approve" in text_of(held))
    assert 1 == len(approvals(ruled.relay))


@pytest.mark.parametrize("mode", MODES)
def test_a_held_call_of_an_attempt_goes_on_in_the_next_one(ruled: ControlPlane, mode: str) -> None:
    """No attempt waits for a person: the sender takes the handoff again, and the call is made there."""
    person = Person()

    async def talk() -> tuple[str, Any]:
        async with talking(by_user(ruled), mode, person) as own:
            lead = await started(own)
            handoff = (await own.done("hand_off", run=lead, to="editor", task="Deploy it"))["id"]
            first = (await own.done("accept", run=lead, handoff=handoff))["run"]
            told = text_of(await own.call("begin_call", run=first, tool="deploy"))
            second = (await own.done("accept", run=lead, handoff=handoff))["run"]
            return told, await own.done("begin_call", run=second, tool="deploy")

    told, made = run(talk)

    assert (True, True, 1) == ("with `accept`" in told, made["call"].startswith("call_"), len(person.asked))


@pytest.mark.parametrize("mode", MODES)
def test_a_denied_call_is_not_made(ruled: ControlPlane, mode: str) -> None:
    """The model is told that it was denied, and asking again asks nobody."""
    person = Person("decline")

    async def talk() -> list[str | None]:
        async with talking(by_user(ruled), mode, person) as own:
            handle = await started(own)
            return [await own.code("begin_call", run=handle, tool="deploy") for _ in range(2)]

    codes = run(talk)

    assert (True, 1) == (all((code or "").startswith("call.") for code in codes), len(person.asked))
    assert [] == approvals(ruled.relay)


@pytest.mark.parametrize("mode", MODES)
def test_a_question_is_answered_by_the_person_and_travels(plane: ControlPlane, mode: str) -> None:
    """The answer is in the briefing, as the person's."""
    person = Person(content={"answer": "half-even, please"})

    async def talk() -> types.CallToolResult:
        async with talking(by_user(plane), mode, person) as own:
            handle = await started(own)
            handoff = (await own.done("hand_off", run=handle, to="editor", task="Round it"))["id"]
            await own.done("ask", run=handle, handoff=handoff, question="Which way?")
            return await own.call("accept", run=handle, handoff=handoff)

    taken = run(talk)

    assert (1, True) == (len(person.asked), "Which way?" in person.asked[0])
    assert ("half-even, please" in text_of(taken), "user:ana" in text_of(taken)) == (True, True)


@pytest.mark.parametrize("mode", MODES)
def test_a_question_that_nobody_answers_stays_for_the_sender(plane: ControlPlane, mode: str) -> None:
    """The model of the sender may answer it in its own name."""

    async def talk() -> tuple[State, str | None]:
        async with talking(by_user(plane), mode, Person("decline")) as own:
            handle = await started(own)
            handoff = (await own.done("hand_off", run=handle, to="editor", task="Round it"))["id"]
            await own.call("ask", run=handle, handoff=handoff, question="Which way?")
            before = state_of(plane.relay, handoff)
            return before, await own.code("answer", run=handle, handoff=handoff, text="half-even")

    assert (State.ASKED, None) == run(talk)


@pytest.mark.parametrize("mode", MODES)
def test_what_changes_while_it_is_read_is_not_decided(plane: ControlPlane, mode: str) -> None:
    """Somebody else was quicker: the approval of what was shown is refused."""

    def quicker() -> None:
        with plane.relay.store.view() as view:
            (held,) = view.find_held()
        plane.relay.handoff(held.id).deny(by="user:ben", reason="no")

    person = Person(meanwhile=quicker)

    async def talk() -> types.CallToolResult:
        async with talking(by_user(plane), mode, person) as own:
            return await own.call("hand_off", run=await started(own), **HELD)

    refused = run(talk)

    assert (True, []) == (refused.is_error, approvals(plane.relay))


@pytest.mark.parametrize("mode", MODES)
def test_where_only_a_key_proves_an_approval_nobody_is_asked(plane: ControlPlane, mode: str) -> None:
    """The form of a client proves nothing, so the model is told how it is decided."""
    plane.relay.start("Begin", by="user:ana").close()
    plane.relay.admin.enroll_approver("user:ana", Ed25519Signer.generate().public_key)
    person = Person()

    async def talk() -> str:
        async with talking(by_user(plane), mode, person) as own:
            handle = (await own.done("start", intent="Fix it", may_delegate=["write:src/**"]))["run"]
            held: str = (await own.done("hand_off", run=handle, **HELD))["id"]
            return held

    handoff = run(talk)

    assert (State.HELD, [], []) == (state_of(plane.relay, handoff), person.asked, approvals(plane.relay))


@pytest.mark.parametrize("mode", MODES)
def test_an_agents_token_decides_nothing_even_with_a_person_at_its_client(house: House, mode: str) -> None:
    """What it holds up waits; an operator's client asks its person with `decide`, and then it goes on."""
    agent, operator = Person(), Person()

    async def talk() -> tuple[str, list[Any], Any]:
        async with talking(by_token(house.plane, house.everybody["agent"]), mode, agent) as own:
            handoff = await handed_off(own)
        token = by_token(house.plane, house.everybody["operator"])
        async with talking(token, mode, operator) as other:
            waiting = (await other.done("waiting"))["approvals"]
            return handoff, waiting, await other.done("decide", id=handoff)

    handoff, waiting, decided = run(talk)
    (given,) = approvals(house.relay)

    assert ([], 1, "user:operator") == (agent.asked, len(operator.asked), given.by)
    assert ([handoff], {"done": True}, State.OFFERED) == (
        [one["id"] for one in waiting],
        decided,
        state_of(house.relay, handoff),
    )


def test_an_answer_counts_only_with_the_question_that_was_sealed_for_this_caller(relay: Relay) -> None:
    """A state that was changed, that belongs to somebody else, or that is for another call, is refused; so is none."""
    house = a_house(relay)
    first = relay.start("Fix it", by="user:ana").hand_off("editor", "Edit it", hold=True).id
    second = relay.start("Fix it", by="user:ana").hand_off("editor", "Write it", hold=True).id
    tokens = [
        relay.admin.add_token(f"user:{name}", "operator", by="user:ana", lasts=timedelta(days=1)).text
        for name in ("cleo", "dan")
    ]
    callers = [by_token(house.plane, token) for token in tokens]
    who = [0]

    def find_caller(asked: object) -> McpCaller:
        return callers[who[0]](asked)

    server = ProtocolServer(find_caller, None).server
    yes: types.InputResponses = {"batonpass": types.ElicitResult(action="accept")}

    async def talk() -> tuple[list[str], types.CallToolResult]:
        async with Client(server, mode="auto", elicitation_callback=Person()) as client:
            session = client.session

            async def said(handoff: str, state: str | None) -> str:
                try:
                    told = await session.call_tool(
                        "decide", {"id": handoff}, input_responses=yes, request_state=state, allow_input_required=True
                    )
                except Exception as error:  # noqa: BLE001 - an error of the protocol
                    return str(error)
                return type(told).__name__

            asked = await session.call_tool("decide", {"id": first}, allow_input_required=True)
            assert isinstance(asked, types.InputRequiredResult)
            state = asked.request_state or ""
            told = [await said(first, state[:-4] + "AAAA"), await said(second, state), await said(first, None)]
            who[0] = 1
            told.append(await said(first, state))
            who[0] = 0
            final = await session.call_tool("decide", {"id": first}, input_responses=yes, request_state=state)
            assert isinstance(final, types.CallToolResult)
            return told, final

    told, final = run(talk)
    refused = "Invalid or expired requestState"

    assert [refused, refused, "InputRequiredResult", refused] == told
    assert ({"done": True}, "user:cleo") == (data_of(final), approvals(relay)[0].by)
