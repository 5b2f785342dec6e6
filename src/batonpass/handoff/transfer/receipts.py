"""The receipts that begin and end an attempt at a handoff, and the last one of a run."""

from msgspec import Struct

from batonpass.ledger.recording import Opening
from batonpass.ledger.standing import Granted
from batonpass.model.bodies import (
    Body,
    Carried,
    ChildHead,
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    Outcome,
    RunClosed,
)
from batonpass.model.ids import CallId, Digest, HandoffId
from batonpass.model.label import Label, Source
from batonpass.model.run import Run


class Acceptance(Struct, frozen=True, kw_only=True):
    """What an acceptance says besides who takes what: which baton, and what was found in it."""

    baton: Digest | None = None
    problems: tuple[str, ...] = ()
    would_ask: bool = False
    policy: Digest | None = None  # under which the run stands
    label: Label | None = None  # of what the run begins with


def accepted(opening: Opening, said: Acceptance, granted: Granted) -> HandoffAccepted:
    """Return the first thing to be said about an attempt: whose it is, which baton it takes, and under what."""
    return HandoffAccepted(
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
        return HandoffCompleted(
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
