"""The suite that every door must pass: each situation of the table, observed and enforced."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from pathlib import Path
from pprint import pformat
from typing import Any, ClassVar, Final

import pytest

from batonpass.errors import StoreFullError
from batonpass.handoff.calls import call_gates
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import (
    Body,
    HandoffHeld,
    Part,
    RunGap,
    RunRecorded,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.grants.permit import spell_time
from batonpass.model.grants.scope_text import read_scope
from batonpass.testing.clock import FrozenClock
from batonpass.testing.doors.acts import READING, Act, Fetch, Pay, Read, Write, WriteAll
from batonpass.testing.doors.door import Door, Ending, Listener, Opened, Told, Verdict
from batonpass.testing.doors.offers import HANDOFFS, Handing
from batonpass.testing.doors.situations import (
    SITUATIONS,
    Again,
    Alarm,
    Approve,
    Break,
    Denied,
    Held,
    Interrupt,
    Made,
    Outcome,
    Revoke,
    Situation,
    Stopped,
    Try,
    Unrecorded,
    Wait,
)
from batonpass.testing.doors.spellings import PROTECTED
from batonpass.testing.doors.stage import Allowed, Recorded, Stage, table

TABLE: Final = (*SITUATIONS, *PROTECTED)


@dataclass(frozen=True, slots=True)
class Case:
    """One situation in one mode."""

    situation: Situation
    mode: Mode

    def __str__(self) -> str:
        return f"{self.situation.name} [{self.mode}]"


def cases_of(situations: Iterable[Situation]) -> tuple[Case, ...]:
    """Return each situation in each mode."""
    return tuple(Case(situation, mode) for situation in situations for mode in Mode)


class DoorConformance:
    """The tests for every door. Subclass it, and add a fixture `door` that returns yours."""

    situations: ClassVar[Sequence[Situation]] = TABLE  # a subset, if another class tests the same door with the rest

    @pytest.fixture
    def door(self) -> Door:
        """Return the door that is tried."""
        raise NotImplementedError

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each situation in each mode."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", cases_of(self.situations), ids=str)

    def test_exceptions_are_of_the_table(self, door: Door) -> None:
        """The exceptions that a door declares name rows or needs of the table."""
        rows: list[Situation | Handing] = [*TABLE, *HANDOFFS]
        names, needs = {row.name for row in rows}, {need for row in rows for need in row.needs}
        unknown = [one for one in door.unfinished if one.rpartition(" [")[0] not in names]
        unknown += [one for one in door.cannot if one not in names | needs | set(Mode)]

        assert [] == unknown

    def test_situation(
        self,
        door: Door,
        case: Case,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
    ) -> None:
        """The verdict, the receipts and the sentences are those of the table."""
        situation = case.situation
        skip_impossible(door, situation, case.mode)
        if not door.refuses and (case.mode is Mode.ENFORCED or situation.refuses_observed):
            pytest.skip("this door only records: what must not be made is made all the same, and is never enforced")
        if (reason := door.unfinished.get(str(case))) is not None:
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
        stage = set_stage(door, situation, case.mode, tmp_path / "stage")
        monkeypatch.chdir(stage.directory / "out" if "another directory" in situation.needs else stage.directory)
        monkeypatch.setenv("HOME", str(stage.directory))
        try:
            play(door, situation, stage, monkeypatch)
        finally:
            monkeypatch.undo()
            stage.close()


def skip_impossible(door: Door, situation: Situation, mode: Mode) -> None:
    """Skip a situation that a door cannot play, and say why."""
    for need in (situation.name, *situation.needs, str(mode)):
        if need in door.cannot:
            pytest.skip(door.cannot[need])
    if "handoff" in situation.needs and not door.on_handoff:
        pytest.skip("this door works on root runs, not on handoffs")
    if not door.in_process and {"clock", "faults"}.intersection(situation.needs):
        pytest.skip("this door is another process, with its own clock and store")


def set_stage(door: Door, situation: Situation, mode: Mode, directory: Path) -> Stage:
    """Return a stage for one situation at one door."""
    names = {name: door.tool(act) for name, act in _EXAMPLES.items()} | {"agent": door.agent}
    allowed = Allowed(
        may=tuple(
            line
            for permit in situation.may
            for line in (f"{door.pattern(permit.act)}{permit.more}", *door.besides(permit.act))
        ),
        limits=situation.limits,
        lasts=situation.lasts,
        budget=situation.budget,
        constraints=tuple(
            Constraint(
                key=one.argument,
                operator=one.operator,
                value=one.value,
                binds_to=f"call:{door.tool(one.act)}.{one.argument}",
            )
            for one in situation.bound
        ),
    )
    clock = FrozenClock()
    policy = "\n".join(
        (
            situation.policy.format_map(names),
            door.policy,
            *(() if door.on_handoff else table(door.agent, allowed, clock)),
        )
    )
    stage = Stage(
        directory=directory,
        mode=mode,
        agent=door.agent,
        policy=policy,
        allowed=allowed,
        in_memory=door.in_process,
        clock=clock,
    )
    kept = stage.home / "kept"
    kept.write_text("secret", encoding="utf-8")
    (stage.home / "kept.key").write_text("secret", encoding="utf-8")
    out = stage.directory / "out"
    (out / "link").symlink_to(stage.home)
    (out / "alias").symlink_to(kept)
    os.link(kept, out / "hard")
    return stage


_EXAMPLES: Final[dict[str, Act]] = {"write": Write("a"), "read": Read("a"), "fetch": Fetch("a"), "pay": Pay("a", 1)}


def play(door: Door, situation: Situation, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take one step after the other, and compare each outcome with the table."""
    opened = door.open(stage)
    try:
        for step in situation.steps:
            match step:
                case Try():
                    _try(door, stage, opened, step)
                case Approve() | Revoke() | Alarm() | Wait():
                    _act_elsewhere(stage, step)
                case Break(what=what):
                    _break(stage, what, monkeypatch)
                case Interrupt(act=act):
                    opened.interrupt(act)
                case Again():
                    opened.again()
    finally:
        opened.close()


def _act_elsewhere(stage: Stage, step: Approve | Revoke | Alarm | Wait) -> None:
    """Let something happen that is not the door's doing."""
    match step:
        case Approve() if stage.bodies(ToolHeld):
            stage.approve()
        case Approve():
            pass
        case Revoke():
            stage.revoke()
        case Alarm():
            stage.alarm(stage.agent)
        case Wait(duration=duration):
            stage.wait(duration)


def _break(stage: Stage, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("it broke")

    def full(*_: object, **__: object) -> None:
        raise StoreFullError("there is no room left")

    match what:
        case "guard":
            # Break both: an empty policy is never asked to judge a call.
            monkeypatch.setattr(call_gates, "is_silent", breaks)
            monkeypatch.setattr(call_gates, "judge_call", breaks)
        case "store":
            monkeypatch.setattr(stage.store, "append", full)
        case _:
            here, home = Path.cwd(), os.environ["HOME"]
            monkeypatch.undo()
            monkeypatch.chdir(here)
            monkeypatch.setenv("HOME", home)


def _try(door: Door, stage: Stage, opened: Opened, step: Try) -> None:
    act = _placed(step.act, stage)
    expected = step.enforced if stage.enforced else step.observed
    if expected is None:
        return
    before, done = stage.count(), stage.times_made(act)
    told = opened.call(act)
    seen = [one for one in stage.recorded(before) if _is_about(one.body, door.tool(act))]
    words = _Words(door, stage, act, seen)
    if isinstance(expected, Stopped):
        assert (True, [], done) == (told.verdict is not Verdict.MADE, seen, stage.times_made(act))
        assert expected.mentions in (told.sentence or "")
        return
    require_same(
        act,
        expected=[_told(door, stage, expected, words), *_receipts(door, act, expected, words)],
        found=[told, *map(_shown, seen)],
    )
    made = isinstance(expected, Made | Unrecorded)
    if done is not None and not isinstance(act, Write | WriteAll):
        assert done + made == stage.times_made(act)
    elif done is not None:
        assert int(made or done) == stage.times_made(act)


def require_same(act: object, *, expected: list[Any], found: list[Any]) -> None:
    """Fail if a door differs from the table, and show the difference line by line."""
    if expected != found:
        wanted, got = pformat(expected, width=160).splitlines(), pformat(found, width=160).splitlines()
        pytest.fail(f"{act}\n" + "\n".join(unified_diff(wanted, got, "table", "door", n=20, lineterm="")))


def _placed(act: Act, stage: Stage) -> Act:
    if not isinstance(act, Write | Read):
        return act
    return replace(act, path=act.path.replace("{directory}", str(stage.directory)))


def _is_about(body: Body, tool: str) -> bool:
    """Return whether a receipt is about a call of this tool."""
    if isinstance(body, ToolDenied | ToolHeld | ToolRequested):
        return body.tool == tool
    return isinstance(body, HandoffHeld | RunGap | ToolCompleted | ToolFailed)


def _told(door: Door, stage: Stage, expected: Outcome, words: "_Words") -> Told:
    """Return the expected answer to the caller."""
    match expected:
        case Denied(revoked=True) if Ending.REVOKED in door.ended_by:
            return Told(Verdict.DENIED)
        case Denied(reason=reason):
            said = words.fill(reason)
            return Told(Verdict.DENIED, said if door.listener is Listener.PROGRAM else f"Denied, and not made: {said}")
        case Held(rule=rule, reason=reason) if Ending.HELD not in door.ended_by:
            return Told(Verdict.HELD, _held(door, stage, rule, words.fill(reason), words))
        case Held():
            return Told(Verdict.HELD)
        case _:
            return Told(Verdict.MADE)


def _held(door: Door, stage: Stage, rule: str, why: str, words: "_Words") -> str:
    if door.listener is Listener.MODEL:
        return (
            f"Held, and not made: {why} (rule {rule}). A person can let it be made with `batonpass handoff approve "
            f"{words.ending}`. After that, call it again with the same arguments; until then, go on with something "
            "else or tell the user."
        )
    if stage.handoff is None:
        return f"{why} (rule {rule}); approve it with `batonpass handoff approve {words.ending}`, then call it again"
    return (
        f"{why} (rule {rule}); approve it with `batonpass handoff approve {stage.handoff.id[-6:]}`, and the next "
        "attempt continues from here"
    )


def _receipts(door: Door, act: Act, expected: Outcome, words: "_Words") -> list[dict[str, Any]]:
    """Return the expected receipts of an act, as far as they are the same at every door."""
    tool, reads = door.tool(act), isinstance(act, READING)
    about = {"tool": tool, "reads": reads, "tiers": door.tiers(act)}
    match expected:
        case Made(flags=flags, reason=reason, outside=outside, gap=gap):
            requested = {
                "kind": "tool.requested",
                **about,
                "flags": (*door.always, *flags),
                "outside": outside or door.outside,
                "target": door.shown(act),
                "reason": None if reason is None else words.fill(reason),
            }
            return [*([{"kind": "run.gap"}] if gap else []), requested, {"kind": "tool.completed"}]
        case Denied(rule=rule, reason=reason, spelled=spelled):
            target = door.shown(act) if spelled else words.target
            said = {"rule": rule, "reason": words.fill(reason), "target": target}
            return [{"kind": "tool.denied", "tool": tool, **said}]
        case Held(rule=rule, reason=reason, gate=gate, outside=outside):
            why = {"rule": rule, "gate": gate, "reason": words.fill(reason)}
            held = {"kind": "tool.held", **about, **why, "outside": outside or door.outside, "target": door.target(act)}
            return [held, {"kind": "handoff.held", **why}] if door.on_handoff else [held]
        case _:
            return []


def _shown(one: Recorded) -> dict[str, Any]:
    """Return the parts of a receipt that are the same at every door."""
    body, words = one.body, one.words
    kind = {"kind": str(one.receipt.kind)}
    match body:
        case ToolRequested():
            about = {"tool": body.tool, "reads": body.reads, "tiers": body.tiers, "flags": body.flags}
            return kind | about | {"outside": _is_outside(body)} | _words_of(words)
        case ToolDenied():
            return kind | {"tool": body.tool, "rule": body.rule} | _words_of(words)
        case ToolHeld():
            about = {"tool": body.tool, "reads": body.reads, "tiers": body.tiers, "rule": body.rule, "gate": body.gate}
            return kind | about | {"outside": _is_outside(body)} | _words_of(words)
        case HandoffHeld():
            return kind | {"rule": body.reason, "gate": body.gate, "reason": words.get("reason")}
        case _:
            return kind


def _is_outside(body: ToolRequested | ToolHeld) -> bool | None:
    return None if body.label is None else body.label.is_external


def _words_of(words: dict[str, str]) -> dict[str, str | None]:
    return {"reason": words.get("reason"), "target": words.get("target")}


class _Words:
    """Fills the placeholders in the sentences of the table."""

    def __init__(self, door: Door, stage: Stage, act: Act, seen: list[Recorded]) -> None:
        self._door = door
        self._stage = stage
        self._act = act
        self._seen = seen

    @property
    def ending(self) -> str:
        """Return the end of the id of the call that was held just now."""
        return next((one.body.call[-6:] for one in self._seen if isinstance(one.body, ToolHeld)), "(nothing is held)")

    @property
    def target(self) -> str | None:
        """Return the target of the act in the receipts."""
        return next((one.words["target"] for one in self._seen if "target" in one.words), None)

    def fill(self, words: str) -> str:
        """Return a sentence with its placeholders filled."""
        door, act, stage = self._door, self._act, self._stage
        target = door.target(act)
        earlier = stage.bodies(ToolRequested)
        until = None if stage.allowed.lasts is None else _NOON + stage.allowed.lasts
        return words.format_map(
            {
                "agent": door.agent,
                "tool": door.tool(act),
                "what": f"{door.agent} calls {door.tool(act)}" + ("" if target is None else f" on {target}"),
                "tried": door.pattern(act),
                "may": self._may(),
                "where": Places(stage),
                "fetched": self._fetched(),
                "until": "" if until is None else spell_time(until),
                "now": spell_time(stage.clock.now()),
                "call": earlier[0].call if earlier else "",
                "ending": earlier[0].call[-6:] if earlier else "",
                "place": self._place(),
            }
        )

    def _place(self) -> str:
        """Return the protected place that the receipts name, if it belongs to this stage."""
        reason = next((one.words["reason"] for one in self._seen if "reason" in one.words), "")
        named = re.search(r"\(([^()]*)\)", reason)
        ours = (str(self._stage.home.resolve()), str(self._stage.file.resolve()))
        return named[1] if named is not None and named[1].startswith(ours) else "(no protected place)"

    def _may(self) -> str:
        action = self._door.pattern(self._act).partition(":")[0]
        lines = [str(permit) for permit in read_scope(self._stage.allowed.may).permits]
        return " | ".join(sorted(lines, key=lambda line: not line.startswith(f"{action}:")))

    def _fetched(self) -> str:
        """Return the sources that taint the run: calls with outside results, and untrusted items."""
        now = {one.body.call for one in self._seen if isinstance(one.body, ToolRequested | ToolHeld)}
        ended = self._stage.bodies(ToolCompleted)
        calls = {one.call for one in ended if one.label is not None and one.label.is_external} - now
        kept = {item.item for body in self._stage.bodies(RunRecorded) for item in body.items if item.part is _OUTSIDE}
        named = [f"{source.partition('_')[0]} {source[-4:]}" for source in sorted(calls | kept)]
        more = len(named) - _MOST_NAMED
        return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class Places:
    """The lines of the policy file: a rule by its name, everything else by its key."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __getitem__(self, name: str) -> str:
        lines = self._stage.policy.splitlines()
        named = next(
            number - (line == f'name = "{name}"')  # a rule starts one line above its name
            for number, line in enumerate(lines, 1)
            if line == f'name = "{name}"' or line.startswith(f"{name} = ")
        )
        return f"{self._stage.file.name}:{named}"


_MOST_NAMED: Final = 3
_OUTSIDE: Final = Part.UNTRUSTED
_NOON: Final[datetime] = FrozenClock().now()
