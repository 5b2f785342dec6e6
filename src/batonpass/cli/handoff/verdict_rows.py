"""Rulings about a handoff as lines: approvals, retries and withdrawals, verdicts."""

from collections.abc import Iterator
from typing import Final

from batonpass.accounts.handoff.account import Account, HandoffAct
from batonpass.accounts.trail.first_lines import looked_for
from batonpass.audit.short_ids import ending
from batonpass.cli.output.sheet import Parts, quoted, shorten
from batonpass.cli.output.terminal import paint
from batonpass.cli.output.units import minute, moment
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    HandoffApproved,
    HandoffBacked,
    HandoffCancelled,
    HandoffDeclined,
    HandoffDenied,
    HandoffExpired,
    HandoffHeld,
    HandoffLapsed,
    HandoffParked,
    HandoffReplaced,
    HandoffResumed,
    HandoffRetried,
    HandoffRevised,
    HandoffSettled,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.records.handoff import Judged
from batonpass.records.revision import Awareness
from batonpass.records.text import Found, Text

_AWARE: Final = {
    Awareness.BEGAN_WITH: "attempt {} began with it",
    Awareness.ACKNOWLEDGED: "acknowledged by attempt {}",
    Awareness.TOLD: "attempt {} has not acknowledged it yet",
    Awareness.IGNORED: "attempt {} never acknowledged it: its result is stale",
    Awareness.WAITING: "nobody has begun since",
}
_KNOWN: Final = frozenset({Awareness.BEGAN_WITH, Awareness.ACKNOWLEDGED})


def because(act: HandoffAct, name: str = "reason") -> str:
    """Return the reason that was given, or an empty text."""
    text = act.texts.get(name)
    return "" if text is None else f": {_quoted(text)}"


def approval_rows(account: Account) -> Iterator[Parts]:
    """Yield who approved a handoff, and whether that is proven."""
    held = account.offer.initiated.state is State.HELD
    for act in account.acts:
        match act.receipt.body:
            case HandoffHeld() as body if body.awaits is None:
                held = True
                yield (f"held at attempt {body.attempt}: {body.reason}",)
            case HandoffBacked() | HandoffApproved() as body:
                proof = (
                    paint("proven", "green") if body.proven else paint("unproven: no approver's key signed", "yellow")
                )
                seen = f" · was shown {'nothing' if body.shown is None else body.shown[:12]}"
                looked = "" if (found := looked_for(body)) is None else f" · {found}"
                more = " · another approval is needed" if isinstance(body, HandoffBacked) else ""
                yield (f"by {body.by} · ", proof, f"{seen}{looked}{more}{because(act)}")
            case HandoffDenied() as body:
                yield (paint(f"denied by {body.by}", "red"), " · proven" if body.proven else "", because(act))
    if account.handoff.state is State.HELD and not _is_wait(account):
        yield (paint("waiting: ", "yellow"), f"batonpass handoff approve {ending(account.handoff.id, 6)}")
    elif not held:
        yield ("none needed",)


def _is_wait(account: Account) -> bool:
    """Return whether a held handoff only waits for another one, so that nobody has to approve it."""
    held = [act.receipt.body for act in account.acts if isinstance(act.receipt.body, HandoffHeld)]
    return bool(held) and held[-1].awaits is not None


def decision_rows(account: Account) -> Iterator[Parts]:
    """Yield the decisions between and after the attempts at a handoff."""
    tools = {call.record.id: call.record.tool for call in account.calls}
    for act in account.acts:
        match act.receipt.body:
            case HandoffRetried() as body:
                yield (f"retried by {body.by}{because(act)}",)
            case HandoffRevised() as body:
                count = f"{len(body.drops)} dropped, {len(body.carries)} given in their place"
                fallen = f", {len(body.fates)} told as no longer standing" if body.fates else ""
                yield (f"inputs revised by {body.by}: {count}{fallen}", *_awareness(account, body.revision))
            case HandoffReplaced() as body:
                yield (f"given to {body.to} by {body.by}{because(act)}",)
            case HandoffSettled() as body:
                yield (
                    f"{body.settlement} {tools.get(body.call, 'call')} {ending(body.call)}: {body.by}{because(act)}",
                )
            case HandoffDeclined() as body:
                yield (paint("declined", "red"), f" by {body.by} · {body.code}{because(act)}")
            case HandoffCancelled() as body:
                yield (paint("cancelled", "magenta"), f" by {body.by}{because(act)}")
            case HandoffExpired():
                yield (paint("expired", "magenta"), because(act))
            case HandoffLapsed() as body:
                yield (f"attempt {body.attempt} lapsed {moment(act.receipt.at)}: its worker was gone",)
            case _:
                yield from _stop_rows(act)


def _stop_rows(act: HandoffAct) -> Iterator[Parts]:
    """Yield that an attempt stopped to wait for another handoff, that it goes on, or that there is no further one."""
    match act.receipt.body:
        case HandoffHeld() as body if body.awaits is not None:
            yield (f"attempt {body.attempt} waits for {ending(body.awaits)} since {moment(act.receipt.at)}",)
        case HandoffResumed() as body:
            yield (f"goes on since {moment(act.receipt.at)}: {ending(body.awaits)} is decided or over",)
        case HandoffParked() as body:
            yield (paint("parked", "red"), f" after attempt {body.attempt} · {body.error}{because(act)}")


def _awareness(account: Account, number: int) -> Parts:
    for revision, awareness, run in account.revisions:
        if revision.number == number and run is not None:
            colour = "green" if awareness in _KNOWN else "yellow" if awareness is Awareness.TOLD else "red"
            return (" · ", paint(_AWARE[awareness].format(run.attempt), colour))
    return (" · ", _AWARE[Awareness.WAITING])


def verdict_rows(account: Account) -> Iterator[Parts]:
    """Yield the verdicts on a result, or that there is none."""
    for act in account.acts:
        body = act.receipt.body
        if isinstance(body, Judged):
            earlier = "" if body.attempt == account.handoff.attempt else f"attempt {body.attempt}: "
            yield (earlier, *verdict_line(act))
    if account.is_unverified and not account.verdicts:
        yield (paint("unverified", "yellow"), ": nobody has verified it")


def verdict_line(act: HandoffAct) -> Parts:
    """Return one verdict: the finding, by whom, and how."""
    body = act.receipt.body
    if isinstance(body, VerificationWaived):
        return (paint("accepted unverified", "yellow"), f" by {body.by}{because(act)}")
    if not isinstance(body, VerificationPassed | VerificationFailed | VerificationRepeated):
        return ()
    if isinstance(body, VerificationRepeated):
        found = paint("again: holds", "green") if body.passed else paint("again: fails", "red")
    elif isinstance(body, VerificationPassed):
        found = paint("verified", "green", bold=True)
    else:
        found = paint("refuted", "red")
    producer = paint(" (its own producer)", "yellow") if body.by_producer else ""
    how = f"{body.method} {_quoted(act.texts.get('evidence'), 40)}"
    if (command := act.texts.get("command")) is not None:
        ended = _bare(act.texts.get("evidence")) if body.exit_code is None else f"exit code {body.exit_code}"
        how = f"{ended} of `{shorten(' '.join((command.words or 'erased').split()), 30)}`"
    return (found, f" by {body.by}", producer, f" · {how} · {minute(act.receipt.at)}")


def _quoted(text: Text | None, longest: int = 100) -> str:
    if text is None:
        return "unknown"
    return quoted(text.words, longest) if text.found is Found.KEPT and text.words is not None else text.first_line


def _bare(text: Text | None) -> str:
    return "" if text is None else shorten(text.words or "erased", 60)
