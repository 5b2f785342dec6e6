"""The suite for doors that hand off: each row of the table, observed and enforced."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import HandoffFailed, HandoffInitiated
from batonpass.testing.clock import FrozenClock
from batonpass.testing.doors.door import Door, Ending, Listener, Told, Verdict
from batonpass.testing.doors.offers import HANDOFFS, UNASKED, Ask, Handing, Offered, Refused, Waits
from batonpass.testing.doors.stage import Allowed, Recorded, Stage, table
from batonpass.testing.doors.suite import Places, require_same


@dataclass(frozen=True, slots=True)
class HandingCase:
    """One row in one mode."""

    handing: Handing
    mode: Mode

    def __str__(self) -> str:
        return f"{self.handing.name} [{self.mode}]"


class HandoffConformance:
    """The tests for every door that hands off. Subclass it, and add a fixture `door` that returns yours."""

    handoffs: ClassVar[Sequence[Handing]] = HANDOFFS

    @pytest.fixture
    def door(self) -> Door:
        """Return the door that is tried."""
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each row in each mode."""
        if "case" in metafunc.fixturenames:
            cases = [HandingCase(handing, mode) for handing in self.handoffs for mode in Mode]
            metafunc.parametrize("case", cases, ids=str)

    def test_handoff(
        self,
        door: Door,
        case: HandingCase,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
    ) -> None:
        """The verdict, the receipts and the sentences are those of the table."""
        handing = case.handing
        for need in (handing.name, *handing.needs, str(case.mode)):
            if need in door.cannot:
                pytest.skip(door.cannot[need])
        if (reason := door.unfinished.get(str(case))) is not None:
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
        stage = _set_stage(door, handing, case.mode, tmp_path / "stage")
        monkeypatch.chdir(stage.directory)
        try:
            opened = door.open(stage)
            try:
                for agent in handing.alarms:
                    stage.alarm(agent)
                for ask in handing.steps:
                    if ask.revoked:
                        stage.revoke()
                    before = stage.count()
                    told = opened.hand_off(ask.task)
                    seen = filter(_is_about_offer, stage.recorded(before))
                    expected = _expected(door, stage, ask)
                    require_same(ask.task, expected=expected, found=[told, *map(_shown, seen)])
            finally:
                opened.close()
        finally:
            monkeypatch.undo()
            stage.close()


def _is_about_offer(one: Recorded) -> bool:
    """Return whether a receipt is an offer or a refused offer, and not the end of an attempt."""
    body = one.body
    return isinstance(body, HandoffInitiated) or (isinstance(body, HandoffFailed) and body.attempt == 0)


def _set_stage(door: Door, handing: Handing, mode: Mode, directory: Path) -> Stage:
    allowed = Allowed(may=handing.may, may_delegate=handing.may_delegate)
    clock = FrozenClock()
    own = "" if UNASKED in handing.policy else UNASKED.format_map(_gaps(door))
    lines = () if door.on_handoff else table(door.agent, allowed, clock)
    return Stage(
        directory=directory,
        mode=mode,
        agent=door.agent,
        policy="\n".join((handing.policy.format_map(_gaps(door)), own, *lines)),
        allowed=allowed,
        in_memory=door.in_process,
        clock=clock,
    )


def _gaps(door: Door) -> dict[str, Any]:
    depth = 2 if door.on_handoff else 1
    return {"agent": door.agent, "depth": depth, "deeper": depth + 1, "relation": str(door.relation)}


def _expected(door: Door, stage: Stage, ask: Ask) -> list[Any]:
    """Return the expected answer and the expected receipts."""
    gaps = {**_gaps(door), "where": Places(stage)}
    about = {"to": ask.task.to, "task": door.task(ask.task)}
    match ask.enforced if stage.enforced else ask.observed:
        case Offered(flags=flags):
            at_first = {"state": str(door.offered), "rule": None, "gate": None, "flags": flags}
            return [Told(Verdict.MADE), {"kind": "handoff.initiated"} | at_first | about]
        case Waits(rule=rule, gate=gate):
            receipt = {"kind": "handoff.initiated", "state": "held", "rule": rule, "gate": gate, "flags": ()}
            return [Told(Verdict.HELD, _held(door, stage)), receipt | about]
        case Refused(error=error, reason=reason):
            said = reason.format_map(gaps)
            told = f"Denied, and not made: {said}" if door.listener is Listener.MODEL else said
            over = ask.revoked and Ending.REVOKED in door.ended_by
            receipt = {"kind": "handoff.failed", "error": error, "message": said}
            return [Told(Verdict.DENIED, None if over else told), receipt | about]


def _held(door: Door, stage: Stage) -> str:
    if door.listener is Listener.STRANGER:
        return "It waits until somebody here approves it."
    handoff = stage.bodies(HandoffInitiated)[-1].handoff
    said = f"{handoff} is held; approve it with `batonpass handoff approve {handoff[-6:]}`"
    if door.listener is Listener.PROGRAM:
        return said
    return (
        f"Held, and not begun: {said}. After that, ask for it again in the same words; until then, go on with "
        "something else or tell the user."
    )


def _shown(one: Recorded) -> dict[str, Any]:
    body, words = one.body, one.words
    match body:
        case HandoffInitiated():
            about = {"state": str(body.state), "rule": body.rule, "gate": body.gate, "flags": body.flags}
            return {"kind": "handoff.initiated", "to": body.to, "task": words.get("task")} | about
        case HandoffFailed():
            why = {"error": body.error, "message": words.get("message")}
            return {"kind": "handoff.failed", "to": body.to, "task": words.get("task")} | why
        case _:
            raise AssertionError(body)
