"""Judging: verify, refute or accept unverified what was delivered; and deciding about what is held."""

import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from batonpass.errors import HandoffEndedError, IllegalTransitionError, InvalidValueError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.transfer.verdict import run_check, run_command
from batonpass.model.base.kinds import Method
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import WorkItem
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.offers import grouped
from tests.unit.handoff.places import ANA, LONE_SURROGATE, Places, bodies, kinds, receipts, words


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def delivered(lead: LiveRun, task: str = "make it so", **how: Any) -> LiveHandoff:  # noqa: ANN401 - whatever an offer has
    """Return a handoff that was completed."""
    handoff = lead.hand_off("editor", task, **grouped(**how))
    with handoff as child:
        child.report("done")
    return handoff


class Ambiguous:
    """Is neither true nor false, and cannot be shown."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")

    def __repr__(self) -> str:
        raise ValueError("ambiguous")


def explode() -> bool:
    raise ValueError(LONE_SURROGATE)


def test_a_command_decides_by_its_exit_code(lead: LiveRun, relay: Relay) -> None:
    """Its output is kept, and the digest of all of it is signed."""
    handoff = delivered(lead)

    assert handoff.verify(command=python("print('all green')"))
    (passed,) = receipts(relay, "verification.passed")
    body: Any = passed.body
    assert (Method.COMMAND, 0, sha256(b"all green\n").hexdigest()) == (body.method, body.exit_code, body.output)
    assert ("all green\n", "exit code 0") == (words(relay, passed, "output"), words(relay, passed, "evidence"))
    assert State.VERIFIED is handoff.state()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (python("raise SystemExit(3)"), 3),
        (python("import os; os.kill(os.getpid(), 9)"), 137),
        (["/there/is/no/such/program"], None),
        (["a\0b"], None),
    ],
    ids=["it fails", "it is killed", "it is not there", "it has no name"],
)
def test_a_command_that_does_not_succeed_refutes(
    lead: LiveRun, relay: Relay, command: list[str], code: int | None
) -> None:
    """However it ends, or does not begin."""
    handoff = delivered(lead)

    assert not handoff.verify(command=command)
    assert (State.REFUTED, code) == (handoff.state(), bodies(relay, "verification.failed")[0].exit_code)


def test_output_that_is_no_text_is_kept_as_well_as_it_can_be(lead: LiveRun, relay: Relay) -> None:
    """The digest is of the bytes; what people see has marks where they are no text."""
    delivered(lead).verify(command=python("import sys; sys.stdout.buffer.write(b'\\xff\\x00ok')"))
    (passed,) = receipts(relay, "verification.passed")

    assert "\ufffd\0ok" == words(relay, passed, "output")
    assert sha256(b"\xff\x00ok").hexdigest() == passed.body.output  # type: ignore[union-attr]


def test_a_command_runs_where_it_is_told(tmp_path: Path) -> None:
    """And one whose place is not there does not run."""
    here = python("import os; print(os.getcwd())")

    assert f"{tmp_path}\n".encode() == run_command(here, cwd=tmp_path).output
    assert not run_command(here, cwd=tmp_path / "missing").passed
    assert not run_command(python("input()"), timeout=30).passed


@pytest.mark.parametrize(
    ("check", "passed"),
    [
        (lambda: True, True),
        (lambda: [1], True),
        (lambda: None, False),
        (lambda: 0, False),
        (explode, False),
        (Ambiguous, False),
        (lambda: "x" * 1_000_000, True),
        (lambda: LONE_SURROGATE, True),
    ],
    ids=["true", "a list", "nothing", "zero", "an error", "neither", "a long text", "half a character"],
)
def test_a_check_decides_by_what_it_returns(check: Callable[[], object], *, passed: bool) -> None:
    """Whatever it returns or raises is an answer that can be kept."""
    evidence = run_check(check)

    assert (passed, Method.CHECK, True) == (evidence.passed, evidence.method, len(evidence.words) <= 10_000)


def test_the_command_that_the_offer_named_is_the_default(lead: LiveRun) -> None:
    """The sender says beforehand what decides."""
    assert delivered(lead, verify_by=python("pass")).verify()
    with pytest.raises(InvalidValueError, match="names no command"):
        delivered(lead, "another").verify()


def test_evidence_is_of_one_kind(lead: LiveRun) -> None:
    """Two kinds at once would not say which decided; an empty verdict is none."""
    handoff = delivered(lead)

    with pytest.raises(InvalidValueError, match="one of"):
        handoff.verify(check=lambda: True, verdict="fine")
    for empty in (" ", LONE_SURROGATE):
        with pytest.raises(InvalidValueError):
            handoff.verify(verdict=empty)
    assert State.COMPLETED is handoff.state()


def test_a_verified_result_is_known_as_verified(lead: LiveRun) -> None:
    """What the lead hands off next says who verified it, how, and where the evidence is."""
    handoff = delivered(lead)
    handoff.verify(verdict="I looked", by=ANA)

    expected = WorkItem("make it so", verified_by=ANA, how="I looked", evidence=handoff.id)
    assert expected in [item.value for item in lead.notes]


def test_a_verdict_stays_and_later_ones_stand_beside_it(lead: LiveRun, relay: Relay) -> None:
    """A refuted result does not become a verified one by asking again."""
    handoff = delivered(lead)
    handoff.refute("wrong for negative totals")
    handoff.verify(verdict="looks fine", by=ANA)

    assert (State.REFUTED, [True]) == (
        handoff.state(),
        [body.passed for body in bodies(relay, "verification.repeated")],
    )
    assert not [item for item in lead.notes if isinstance(item.value, WorkItem)]
    assert "wrong for negative totals" == handoff.result().reason


@pytest.mark.parametrize(("by", "expected"), [("agent:editor", True), ("agent:lead", False), (ANA, False)])
def test_who_made_it_and_says_that_it_is_right(lead: LiveRun, relay: Relay, by: str, *, expected: bool) -> None:
    """A producer's own verdict is marked as such."""
    delivered(lead).verify(verdict="fine", by=by)

    assert expected is bodies(relay, "verification.passed")[0].by_producer


def test_only_what_was_delivered_is_judged(lead: LiveRun) -> None:
    """There is nothing to verify, refute or accept before, or after a failure."""
    waiting = lead.hand_off("editor", "wait")
    failed = lead.hand_off("editor", "fail")
    failed.run(lambda _: explode())

    for handoff in (waiting, failed):
        with pytest.raises(HandoffEndedError):
            handoff.verify(verdict="x")
        with pytest.raises(HandoffEndedError):
            handoff.refute("x")
        with pytest.raises(HandoffEndedError):
            handoff.accept_unverified("x")


def test_a_result_is_accepted_unverified_with_a_reason(places: Places) -> None:
    """For the attempt that delivered it, and for no other."""
    relay = places.relay(policy=HandoffPolicy(verified_only=True))
    lead = relay.start("begin", by=ANA)
    handoff = delivered(lead)
    handoff.accept_unverified("a prototype only")
    lead.hand_off("editor", "goes on")
    handoff.refute("after all")
    handoff.retry()
    with handoff as child:
        child.report("another result")

    with pytest.raises(Exception, match="nobody has verified"):
        lead.hand_off("editor", "does not go on")
    assert ["a prototype only"] == [words(relay, found, "reason") for found in receipts(relay, "verification.waived")]


@pytest.mark.parametrize("text", ["", LONE_SURROGATE])
def test_reasons_say_something(lead: LiveRun, text: str) -> None:
    """Nobody waives or refutes without saying why."""
    handoff = delivered(lead)

    for act in (handoff.accept_unverified, handoff.refute):
        with pytest.raises(InvalidValueError):
            act(text)


def test_what_is_held_is_approved_or_denied(lead: LiveRun, relay: Relay) -> None:
    """The approval keeps the digest of what was shown and for how long; a denial ends it."""
    one, two = lead.hand_off("editor", "one", hold=True), lead.hand_off("editor", "two", hold=True)
    screen = one.material()
    one.approve(by=ANA, reason="fine", shown=screen, looked_ms=1200)
    two.deny(by=ANA, reason="too risky")
    (approved,) = bodies(relay, "handoff.approved")

    assert (State.OFFERED, State.DENIED, "too risky") == (one.state(), two.state(), two.result().reason)
    seen = sha256(screen.text.encode()).hexdigest()
    assert (seen, 1200, False) == (approved.shown, approved.looked_ms, approved.proven)


def test_what_is_not_held_is_neither(lead: LiveRun, relay: Relay) -> None:
    """Approving what nobody holds changes nothing."""
    handoff = lead.hand_off("editor", "one")
    before = kinds(relay)

    with pytest.raises(IllegalTransitionError):
        handoff.approve(by=ANA)
    with pytest.raises(IllegalTransitionError):
        handoff.deny(by=ANA, reason="no")
    assert before == kinds(relay)
