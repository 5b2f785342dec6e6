"""The receipts that begin and end an attempt at a handoff, take one over, and end a run."""

from typing import Final

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

# All that these two say was made here, or is told of a run and a handoff that were checked when they were read. What
# failed has the code of an error that others may have raised, so that is looked at.
_accepted: Final = unchecked_maker(HandoffAccepted)
_completed: Final = unchecked_maker(HandoffCompleted)


class Acceptance(Struct, frozen=True, kw_only=True):
    """What an acceptance says besides who takes what: which baton, and what was found in it."""

    baton: Digest | None = None
    problems: tuple[str, ...] = ()
    would_ask: bool = False
    policy: Digest | None = None  # under which the run stands
    label: Label | None = None  # of what the run begins with


def accepted(opening: AttemptOpening, said: Acceptance, granted: Granted) -> HandoffAccepted:
    """Return the first thing to be said about an attempt: whose it is, which baton it takes, and under what."""
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
) -> Body:
    """Return the last thing to be said about a run: of a root, how it ended; of an attempt, whether it delivered."""
    if run.handoff is None or run.parent is None:
        return RunClosed(
            run=run.id,
            outcome=outcome,
            children=children,
            effects=effects,
            unverified=unverified,
            flags=flags,
            label=label,
        )
    if outcome is Outcome.COMPLETED:
        return _completed(
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
        )
    return HandoffFailed(
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
        error=error,
        label=label,
        taint=taint,
    )


LOST = "caller.lost"


def take_over(recording: Recording, handoff: HandoffId, words: tuple[Content, ...], *, by: str) -> None:
    """End the attempt of a caller that is gone and offer the handoff again; `words` say why.

    Whoever still holds the attempt's run is fenced.
    """

    def superseded(dead: Run, children: tuple[ChildHead, ...]) -> tuple[Body, Body]:
        failed = close_out(dead, Outcome.FAILED, children, error=LOST)
        return failed, HandoffRetried(handoff=handoff, by=PrincipalId(by))

    recording.supersede(handoff, superseded, words)
