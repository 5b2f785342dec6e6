"""Handing work on, as users write it: checked for its types, not run."""

from datetime import timedelta
from decimal import Decimal
from typing import assert_type

from batonpass import (
    AsyncRelay,
    Brief,
    Budget,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Grant,
    Handling,
    Handoff,
    HandoffPolicy,
    OpenQuestion,
    Program,
    RejectedPath,
    Relay,
    Report,
    Result,
    Run,
    Seal,
    Worker,
    current_call,
    start,
    tool,
)
from batonpass.model.base.ids import HandoffId
from batonpass.model.base.kinds import Relation
from batonpass.model.base.lifecycle import Carrier, State


@tool(target="path", reversible=True, cost=lambda _: Decimal("0.02"))
def write_file(path: str, text: str) -> int:
    """Write a file."""
    return len(path) + len(text)


@tool
def plain(number: int) -> str:
    """Do something."""
    call = current_call()
    return f"{number} {call.key if call else ''}"


def runner(run: Run) -> Report:
    """Work on whatever was handed off."""
    assert_type(run.call(write_file, "a.py", text="b"), int)
    assert_type(run.call(plain, 1), str)
    run.checkpoint([{"role": "user", "content": run.task}])
    return Report(result="done", open_questions=(OpenQuestion("is it?"),), confidence=700)


with start("Fix invoice rounding", by="user:ana", items=[Constraint("never touch the API")]) as lead:
    lead.record(Decision("round half-even", why="tax office"), RejectedPath("truncate"), Claim("x", key="a", value="1"))
    waiting: tuple[HandoffId, ...] = lead.add_intent("and be quick", by="user:ana")
    with lead.hand_off("editor", "Make total() round half-even", may=["write:src/**"]) as editor:
        assert_type(editor, Run)
        editor.report("done", open_questions=["negative totals untested"])
    handoff = lead.hand_off(
        "reviewer",
        "Review src/invoice.py",
        grant=Grant(may=["read:**"], may_delegate=["read:src/**"], limits="at most 5 calls", until="2h", max_depth=2),
        criteria=["every line was read"],
        brief=Brief(rationale="two see more", budget=Budget(calls=10), relation=Relation.PEER_TO_PEER, inputs=["a"]),
        items=[
            Constraint(key="lines", operator="<=", value="300", binds_to="result:lines"),
            Exclusion("the tests"),
            OpenQuestion("is it done?", blocking=True),
        ],
        deadline="10m",
        carrier=Carrier.WORKER,
        hold=True,
        handling=Handling(
            key="review 1",
            carry=[],
            policy=HandoffPolicy(max_depth=3),
            answer=lambda question: None if "?" in question else "yes",
        ),
    )
    assert_type(handoff, Handoff)
    result = handoff.wait(timedelta(seconds=1))
    assert_type(result, Result)
    assert_type(result.state, State)
    assert_type(handoff.state(), State)
    if not handoff.verify(command=["true"]):
        handoff.retry(reason="once more")


async def awaited() -> None:
    """Do the same with the asynchronous face: every method is awaited, and no property."""
    async with AsyncRelay.open("memory:") as relay, relay.start("Fix it", by="user:ana", may=["read:**"]) as lead:
        handoff = await lead.hand_off("editor", "Round it", grant=Grant(may=["read:**"], until=timedelta(hours=2)))
        assert_type(await handoff.state(), State)
        assert_type(lead.task, str)
        lead.report("done", open_questions=["negative totals untested"], confidence=700)
        lead.report(Report(result="done"), flags=["report.plain"])
        assert_type(await relay.admin.seal(), Seal)


relay = Relay.open("memory:", policy=HandoffPolicy(require={Relation.LEAD_TO_WORKER: ("criteria",)}))
relay.register("editor", runner)
relay.register("writer", Program(["python", "writer.py"]))
assert_type(Worker(relay, lease_for=timedelta(seconds=5)).work_one(), bool)
assert_type(Worker(relay, lease_for="5s").work_one(), bool)
