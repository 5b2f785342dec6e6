"""Ways around a grant that the port closes: calls of nobody known, tools nobody declared, attempts of others."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from batonpass import Grant, Relay, Run, aio, start
from batonpass.errors import CallDeniedError, CallError, LifecycleError
from batonpass.frameworks import Declared, Made, Recording, Refused, Work, recorded_agent, recorded_tool
from batonpass.testing import a_relay, an_attempt, observe


def in_a_pool(act: Callable[[], Any]) -> Any:  # noqa: ANN401 - what it returns
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


def a_handoff(relay: Relay) -> Run:
    return an_attempt(relay, may=["read:**"])


def a_start(relay: Relay) -> Run:
    return relay.start("go", by="user:ana", may=["read:**"])


def an_opened_run(relay: Relay) -> Run:
    run = a_start(relay)
    return relay.run(run.id)


def a_resumed_run(relay: Relay) -> Run:
    run = a_start(relay)
    return relay.resume(run.id)


@pytest.mark.parity("enforced-runs-fail-closed")
@pytest.mark.parametrize(
    "begin", [a_start, a_handoff, an_opened_run, a_resumed_run], ids=lambda each: str(each.__name__)
)
def test_call_of_nobody_is_refused_while_an_enforced_run_is_open(begin: Callable[[Relay], Run]) -> None:
    """However the run was opened: a thread without its context does not leave its grant."""
    made: list[str] = []
    with a_relay() as relay:

        @recorded_tool(Recording(relay), target="path")
        def write(path: str) -> None:
            made.append(path)

        with begin(relay):
            with pytest.raises(CallError, match=r"copy_context\(\).run") as refused:
                in_a_pool(lambda: write("secret/key"))
            context = copy_context()
            with pytest.raises(CallDeniedError):
                in_a_pool(lambda: context.run(write, "secret/key"))
        assert ("call.guard_failed", []) == (refused.value.code, made)


def test_call_of_nobody_is_refused_on_the_ledger_of_the_folder() -> None:
    """It takes no recording to be refused, and is made again when the run is over."""
    made: list[str] = []

    @recorded_tool(target="path")
    def write(path: str) -> None:
        made.append(path)

    with start("go", by="user:ana", may=["read:**"]), pytest.raises(CallError, match="a run with a grant is open"):
        in_a_pool(lambda: write("secret/key"))
    in_a_pool(lambda: write("notes"))

    assert ["notes"] == made


def test_call_of_nobody_is_refused_while_an_awaited_run_is_open() -> None:
    """The awaited face has the same runs."""
    write = recorded_tool(target="path")(lambda path: path)

    async def main() -> None:
        async with await aio.start("go", by="user:ana", may=["read:**"]):
            with pytest.raises(CallError, match="a run with a grant is open"):
                await asyncio.get_running_loop().run_in_executor(None, write, "secret/key")
        assert "notes" == await asyncio.get_running_loop().run_in_executor(None, write, "notes")

    asyncio.run(main())


def test_call_outside_of_any_agent_is_told_where_to_be_made(caplog: pytest.LogCaptureFixture) -> None:
    """It is made, as nothing is enforced; the gap says what is missing."""
    with a_relay() as relay:
        recording = Recording(relay)
        assert "notes" == recorded_tool(recording, target="path")(lambda path: path)("notes")

    assert "no agent is at work here: call it from a recorded agent" in recording.gaps[0]
    assert recording.gaps[0] in caplog.text


def test_names_of_others_reach_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    """What a terminal would obey is spelled out where a gap is logged."""
    with a_relay() as relay, caplog.at_level(logging.WARNING, "batonpass"):
        verdict = Recording(relay).call("\x1b[2Jpay\r\nok\u202e").judge({})

    assert Made() == verdict
    assert "call of <U+001B>[2Jpay" in caplog.messages[0]
    assert caplog.messages[0].isprintable()


@pytest.mark.parametrize(
    ("arguments", "permission"),
    [
        pytest.param({"path": "docs/a"}, "call:publish", id="a path"),
        pytest.param({"file": "docs/a", "target": "b"}, "call:publish", id="a file and a target"),
        pytest.param({}, "call:publish", id="nothing"),
    ],
)
def test_model_does_not_choose_its_permission(arguments: dict[str, str], permission: str) -> None:
    """A tool that nobody declared is a call of its name, whatever its arguments are called."""
    with a_relay() as relay:
        denied, allowed = (
            a_root(Recording(relay, by="user:ana", grant=Grant(may=(may,)))) for may in ("write:docs/**", permission)
        )

        assert isinstance(denied.recording.call("publish", work=denied).judge(arguments), Refused)
        assert Made() == allowed.recording.call("publish", work=allowed).judge(arguments)


def test_declared_tool_is_judged_by_its_declaration_alone() -> None:
    """One that was declared without a target has none, also if a model names an argument like one."""
    with a_relay() as relay:
        grant = Grant(may=("read:docs/**",))
        work = a_root(Recording(relay, by="user:ana", tools={"look": Declared(reads=True)}, grant=grant))

        verdict = work.recording.call("look", work=work).judge({"path": "docs/a"})

        assert isinstance(verdict, Refused)
        assert "tried read:look" in verdict.sentence


def a_root(recording: Recording) -> Work:
    work = recording.begin("lead", "go")
    work.open()
    return work


@pytest.mark.parametrize("at_once", [True, False], ids=["begun with its offer", "begun later"])
def test_attempt_of_another_process_is_not_fenced(tmp_path: Path, at_once: bool) -> None:  # noqa: FBT001 - of a table
    """It may be at work: only a person, or a takeover of its caller, ends it."""
    with a_relay(tmp_path / "l.db") as first, a_relay(tmp_path / "l.db") as second:
        one = a_root(Recording(first, by="user:ana", grant=Grant(may=("call:**",), may_delegate=("call:**",))))
        assert one.run is not None
        grant = Grant(may=("call:**",))
        at_work = one.offer("helper", "Help", grant=grant, at_once=True)
        assert at_work.run is not None

        with pytest.raises(LifecycleError, match="is running"):
            offer_again(second, one, grant, at_once=at_once)

        assert [] == observe(first).of("handoff.retried")
        assert "made" == at_work.run.call(lambda: "made")


def offer_again(relay: Relay, lead: Work, grant: Grant, *, at_once: bool) -> None:
    assert lead.run is not None
    with relay.run(lead.run.id).as_current():
        work = Recording(relay).begin("helper", "Help", grant=grant, at_once=at_once)
        work.open()


def test_attempt_that_was_left_is_ended_by_the_agent_that_took_over(tmp_path: Path) -> None:
    """The process of a root is gone, with the attempt that it had begun; no person is said to have decided that."""
    with a_relay(tmp_path / "l.db") as first, a_relay(tmp_path / "l.db") as second:
        lead = a_root(Recording(first, by="user:ana"))
        lead.offer("helper", "Help", at_once=True).offer("reader", "Read", at_once=True)
        assert lead.run is not None

        @recorded_agent
        def reader(task: str) -> str:
            return task

        @recorded_agent
        def helper(task: str) -> str:
            return reader("Read") + task

        with second.resume(lead.run.id):
            assert "ReadHelp" == helper("Help")

        seen = observe(second)
        assert ["agent:lead", "agent:helper"] == [receipt.body["by"] for receipt in seen.of("handoff.retried")]
        assert ["completed", "completed"] == list(seen.handoffs.values())
