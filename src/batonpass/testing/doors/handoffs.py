"""The table of handoffs: which is offered, refused or held, and the suite for the doors that hand off."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

import pytest

from batonpass.model.bodies import HandoffFailed, HandoffInitiated
from batonpass.model.kinds import Gate
from batonpass.model.receipt import Mode
from batonpass.testing.clock import FrozenClock
from batonpass.testing.doors.acts import Delegate
from batonpass.testing.doors.door import Door, Ending, Listener, Told, Verdict
from batonpass.testing.doors.stage import Allowed, Recorded, Stage, table
from batonpass.testing.doors.suite import Places, require_same


@dataclass(frozen=True, slots=True)
class Offered:
    """It is offered."""

    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """It is refused; that is on record as a handoff that failed, and nothing of it ran."""

    error: str
    reason: str


@dataclass(frozen=True, slots=True)
class Waits:
    """It is on record, and waits for a person."""

    rule: str
    gate: Gate = Gate.APPROVE


Answer: TypeAlias = Offered | Refused | Waits


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for a handoff, once the grant was revoked if it is to be."""

    task: Delegate
    observed: Answer
    enforced: Answer
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """One row: what holds, what is handed off, and what comes of it in each mode."""

    name: str
    steps: tuple[Ask, ...]
    policy: str = ""
    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


HELPER: Final = Delegate("helper")
OTHER: Final = Delegate("other")
_UNASKED: Final = '[handoffs.lead-to-worker]\nmethod = "none"\n'  # nobody has to say how the result is checked
_TRIED_OUT: Final = "grant.tried-out"


def near(task: Delegate, *flags: str) -> Ask:
    """Return the near miss, which is offered in either mode; flags are of a grant that is tried out."""
    return Ask(task, Offered(flags), Offered())


def always(task: Delegate, answer: Answer) -> Ask:
    """Return what comes out the same in either mode."""
    return Ask(task, answer, answer)


def a_rule(name: str, gate: str) -> str:
    """Return a rule about handoffs to the helper."""
    return f'[[rules]]\nname = "{name}"\non = "handoff"\ngate = "{gate}"\nagent = "helper"\n'


HANDOFFS: Final = (
    Handing(
        name="a rule denies an agent",
        policy=a_rule("no-helper", "deny"),
        steps=(
            near(OTHER),
            Ask(
                HELPER,
                Offered(("would_deny.no-helper",)),
                Refused(
                    "handoff.refused",
                    "a lead-to-worker handoff to helper; rule no-helper says deny, so it is refused (rule no-helper, "
                    "{where[no-helper]}); ask for something else, or have the policy changed",
                ),
            ),
        ),
    ),
    Handing(
        name="a rule holds an agent",
        policy=a_rule("ask-first", "approve"),
        steps=(near(OTHER), Ask(HELPER, Offered(("would_hold.ask-first",)), Waits("ask-first"))),
    ),
    Handing(
        name="the chain is too deep",
        policy="[policy]\nmax_depth = {depth}\n",
        steps=(
            always(
                HELPER,
                Refused(
                    "handoff.too_deep",
                    "{depth} agents stand in this lineage already, and the policy allows {depth}; do not delegate "
                    "further, answer with what is known",
                ),
            ),
        ),
    ),
    Handing(name="the chain is just deep enough", policy="[policy]\nmax_depth = {deeper}\n", steps=(near(HELPER),)),
    Handing(
        name="an agent is not allowed",
        policy='[policy]\nallowed_agents = ["helper", "{agent}"]\n',
        steps=(
            near(HELPER),
            always(
                OTHER,
                Refused(
                    "handoff.refused",
                    "other is not one of helper, {agent}, so it is refused (rule agents, {where[allowed_agents]}); ask "
                    "for something else, or have the policy changed",
                ),
            ),
        ),
    ),
    Handing(
        name="a required part is missing",
        policy=_UNASKED + 'require = ["rationale"]\n',
        steps=(
            always(
                HELPER,
                Refused(
                    "handoff.incomplete",
                    "a lead-to-worker handoff must say rationale; give them, or say explicitly that there are none "
                    "with none=['rationale']",
                ),
            ),
        ),
    ),
    Handing(
        name="a required part is there",
        policy=_UNASKED + 'require = ["rationale"]\n',
        steps=(near(Delegate("helper", rationale="It knows more")),),
        needs=("rationale",),
    ),
    Handing(
        name="a grant can be passed on",
        may=("write:out/**",),
        may_delegate=("write:out/**",),
        steps=(near(Delegate("helper", may=("write:out/a.txt",)), _TRIED_OUT),),
    ),
    Handing(
        name="nothing can be passed on",
        may=("write:out/**",),
        steps=(
            Ask(
                HELPER,
                Offered((_TRIED_OUT, "would_deny.grant")),
                Refused(
                    "grant.missing",
                    "helper would be granted nothing: say with may=[...] what it may do of nothing, which {agent} can "
                    "give",
                ),
            ),
        ),
    ),
    Handing(
        name="more is asked for than can be passed on",
        may=("write:out/**",),
        may_delegate=("write:out/**",),
        steps=(
            Ask(
                Delegate("helper", may=("write:**",)),
                Offered((_TRIED_OUT, "would_deny.grant")),
                Refused(
                    "grant.exceeded",
                    "{agent} cannot give may write:**: it may delegate write:out/**. Ask for less, or have {agent}'s "
                    "own grant widened by whoever gave it",
                ),
            ),
        ),
        needs=("may",),
    ),
    Handing(
        name="the grant was revoked",
        may=("write:out/**",),
        may_delegate=("write:out/**",),
        steps=(
            near(Delegate("helper", may=("write:out/a.txt",)), _TRIED_OUT),
            Ask(
                Delegate("other", may=("write:out/a.txt",)),
                Offered((_TRIED_OUT,)),
                Refused("grant.revoked", "the grant was revoked; stop, and say what is done and what is not"),
                revoked=True,
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class HandingCase:
    """One row in one mode."""

    handing: Handing
    mode: Mode

    def __str__(self) -> str:
        return f"{self.handing.name} [{self.mode}]"


class HandoffConformance:
    """What every door does that hands off. Subclass it, and give it a fixture `door` that returns yours."""

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
        """The verdict, the receipts and the words are those of the table."""
        handing = case.handing
        for need in (handing.name, *handing.needs):
            if need in door.cannot:
                pytest.skip(door.cannot[need])
        if (reason := door.unfinished.get(str(case))) is not None:
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
        stage = _set_stage(door, handing, case.mode, tmp_path / "stage")
        monkeypatch.chdir(stage.directory)
        try:
            opened = door.open(stage)
            try:
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
    """Return whether a receipt says that something was offered or refused, and not how an attempt ended."""
    body = one.body
    return isinstance(body, HandoffInitiated) or (isinstance(body, HandoffFailed) and body.attempt == 0)


def _set_stage(door: Door, handing: Handing, mode: Mode, directory: Path) -> Stage:
    allowed = Allowed(may=handing.may, may_delegate=handing.may_delegate)
    clock = FrozenClock()
    own = "" if _UNASKED in handing.policy else _UNASKED
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
    return {"agent": door.agent, "depth": depth, "deeper": depth + 1}


def _expected(door: Door, stage: Stage, ask: Ask) -> list[Any]:
    """Return what whoever asked has to be told, and what has to be on record."""
    gaps = {**_gaps(door), "where": Places(stage)}
    about = {"to": ask.task.to, "task": ask.task.task}
    match ask.enforced if stage.enforced else ask.observed:
        case Offered(flags=flags):
            receipt = {"kind": "handoff.initiated", "state": "offered", "rule": None, "gate": None, "flags": flags}
            return [Told(Verdict.MADE), receipt | about]
        case Waits(rule=rule, gate=gate):
            receipt = {"kind": "handoff.initiated", "state": "held", "rule": rule, "gate": gate, "flags": ()}
            return [Told(Verdict.HELD, _held(door, stage)), receipt | about]
        case Refused(error=error, reason=reason):
            said = reason.format_map(gaps)
            told = said if door.listener is Listener.PROGRAM else f"Denied, and not made: {said}"
            over = ask.revoked and Ending.REVOKED in door.ended_by
            receipt = {"kind": "handoff.failed", "error": error, "message": said}
            return [Told(Verdict.DENIED, None if over else told), receipt | about]


def _held(door: Door, stage: Stage) -> str:
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
