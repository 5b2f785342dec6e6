"""The receipts that begin and end an attempt, take over an attempt, and end a run.

They are built in one place, so that every door signs the same facts.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from batonpass.ledger.act_receipts import AttemptOpening, Recording
from batonpass.ledger.position import Granted
from batonpass.model.base.ids import CallId, Digest, HandoffId, PrincipalId
from batonpass.model.base.label import Label, Source
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import (
    Body,
    Carried,
    ChildHead,
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    HandoffRetried,
    Outcome,
    RunClosed,
)
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

# Every field of these two was made here, or comes from a run and a handoff that were checked when they were read. A
# failure carries the code of an error that foreign code may have raised, so its receipt is checked.
_accepted: Final = unchecked_maker(HandoffAccepted)
_completed: Final = unchecked_maker(HandoffCompleted)


class Acceptance(Struct, frozen=True, kw_only=True):
    """The facts of an acceptance besides its parties: the baton, and the problems that validation found."""

    baton: Digest | None = None
    problems: tuple[str, ...] = ()
    would_ask: bool = False
    policy: Digest | None = None  # digest of the policy that applies to the run
    label: Label | None = None  # of everything that the run begins with


def accepted(opening: AttemptOpening, said: Acceptance, granted: Granted) -> HandoffAccepted:
    """Return the first receipt of an attempt: who works, on which baton, under which policy and certificate."""
    return _accepted(
        handoff=opening.handoff.id,
        parent=opening.handoff.parent,
        run=opening.run,
        attempt=opening.attempt,
        agent=opening.handoff.to,
        principal=opening.principal,
        run_key=opening.key,
        baton=said.baton,
        problems=said.problems,
        would_ask=said.would_ask,
        policy=said.policy,
        label=said.label,
        certificate=granted.certificate,
    )


def close_out(
    run: Run,
    outcome: Outcome,
    children: tuple[ChildHead, ...],
    *,
    effects: tuple[CallId, ...] = (),
    unverified: tuple[HandoffId, ...] = (),
    keeps: tuple[CallId, ...] = (),
    gives: tuple[Carried, ...] = (),
    flags: tuple[str, ...] = (),
    error: str | None = None,
    label: Label | None = None,
    taint: tuple[Source, ...] = (),
    waiting: tuple[HandoffId, ...] = (),
    waiting_calls: tuple[CallId, ...] = (),
) -> Body:
    """Return the last receipt of a run: how a root run ended, or whether an attempt delivered."""
    if run.handoff is None or run.parent is None:
        return RunClosed(
            run=run.id,
            outcome=outcome,
            children=children,
            effects=effects,
            unverified=unverified,
            flags=flags,
            label=label,
            waiting=waiting,
            waiting_calls=waiting_calls,
        )
    end: Callable[..., Body] = _completed if outcome is Outcome.COMPLETED else partial(HandoffFailed, error=error)
    return end(
        handoff=run.handoff,
        parent=run.parent,
        run=run.id,
        attempt=run.attempt,
        children=children,
        effects=effects,
        unverified=unverified,
        kept=len(keeps),
        keeps=keeps,
        gives=gives,
        flags=flags,
        label=label,
        taint=taint,
        waiting=waiting,
    )


LOST = "caller.lost"


def take_over(recording: Recording, handoff: HandoffId, words: tuple[Content, ...], *, by: str) -> None:
    """End the attempt of a process that is gone, and offer the handoff again; `words` say why.

    If that process is alive after all, it is fenced: nothing more can be recorded for its run.
    """

    def superseded(dead: Run, children: tuple[ChildHead, ...]) -> tuple[Body, Body]:
        failed = close_out(dead, Outcome.FAILED, children, error=LOST)
        return failed, HandoffRetried(handoff=handoff, by=PrincipalId(by))

    recording.supersede(handoff, superseded, words)
