"""A receipt in a line: what happened, and who did it. One row a kind."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from batonpass.model import bodies
from batonpass.narrate.tokens import Line, Token, Tone, counted, duration, line, name, quoted, short
from batonpass.reading.handoffs import ReceiptView

Parts: TypeAlias = Iterator[str | Token]


def narrate_receipt(receipt: ReceiptView, *, lead: str = "") -> Line:
    """Return a receipt in words. Its time and its place are not part of them."""
    return line(*_SENTENCES[type(receipt.body)](receipt.body, receipt.words), lead=lead)


def _reason(words: dict[str, str | None], part: str = "reason") -> Parts:
    if part in words:
        yield ": "
        yield quoted(words[part])


def _run_started(body: bodies.RunStarted, words: dict[str, str | None]) -> Parts:
    yield name(body.agent)
    yield " began for "
    yield name(body.principal)
    yield from _reason(words, "intent")


def _run_rekeyed(body: bodies.RunRekeyed, _: dict[str, str | None]) -> Parts:
    yield f"run {short(body.run)} was taken over: its earlier process is fenced"


def _run_recorded(body: bodies.RunRecorded, _: dict[str, str | None]) -> Parts:
    if body.subject == "gap":
        yield Token(f"{counted(body.count, 'act')} could not be recorded when it was done", Tone.WARN)
    else:
        yield f"{counted(body.count, 'item')} recorded"


def _run_closed(body: bodies.RunClosed, words: dict[str, str | None]) -> Parts:
    yield "the root ended: "
    yield Token(body.outcome, Tone.BAD if body.outcome == "failed" else Tone.PLAIN)
    yield from _reason(words, "error")


def _initiated(body: bodies.HandoffInitiated, words: dict[str, str | None]) -> Parts:
    yield "offered to "
    yield name(body.to)
    yield from _reason(words, "task")


def _accepted(body: bodies.HandoffAccepted, _: dict[str, str | None]) -> Parts:
    yield f"attempt {body.attempt} accepted by "
    yield name(body.agent)


def _completed(body: bodies.HandoffCompleted, _: dict[str, str | None]) -> Parts:
    yield f"attempt {body.attempt} completed"


def _failed(body: bodies.HandoffFailed, words: dict[str, str | None]) -> Parts:
    yield f"attempt {body.attempt} "
    yield Token("failed", Tone.BAD)
    yield from _reason(words, "error")


def _retried(body: bodies.HandoffRetried, words: dict[str, str | None]) -> Parts:
    yield f"attempt {body.attempt + 1} ordered by "
    yield name(body.by)
    yield from _reason(words)


def _cancelled(body: bodies.HandoffCancelled, _: dict[str, str | None]) -> Parts:
    yield f"cancelled: run {short(body.holder)}, which offered it, ended before it was settled"


def _requested(body: bodies.ToolRequested, words: dict[str, str | None]) -> Parts:
    yield name(body.tool)
    yield f" {short(body.call)} requested"
    yield from _reason(words, "target")


def _tool_completed(body: bodies.ToolCompleted, _: dict[str, str | None]) -> Parts:
    yield f"call {short(body.call)} completed in {duration(body.took_us)}"


def _tool_failed(body: bodies.ToolFailed, words: dict[str, str | None]) -> Parts:
    yield f"call {short(body.call)} "
    yield Token("failed", Tone.BAD)
    yield from _reason(words, "error")


def _denied(body: bodies.ToolDenied, words: dict[str, str | None]) -> Parts:
    yield name(body.tool)
    yield " "
    yield Token("denied", Tone.BAD)
    yield from _reason(words)
    yield Token(f" [{body.rule}]", Tone.QUIET)


def _late(body: bodies.ToolLateResult, _: dict[str, str | None]) -> Parts:
    yield f"call {short(body.call)} {body.outcome} after its attempt was over: evidence only"


def _settled(body: bodies.ToolSettled, words: dict[str, str | None]) -> Parts:
    decision = "made again" if body.settlement == "repeat" else "taken as done"
    yield f"call {short(body.call)} is {decision}, says "
    yield name(body.by)
    yield from _reason(words)


def _enrolled(body: bodies.KeyEnrolled, _: dict[str, str | None]) -> Parts:
    yield f"relay {short(body.relay)} enrolled for "
    yield name(body.owner)


def _revoked(body: bodies.GrantRevoked, words: dict[str, str | None]) -> Parts:
    yield f"grant of {body.account.partition('_')[0]} {short(body.account)} "
    yield Token("revoked", Tone.WARN)
    yield " by "
    yield name(body.by)
    yield from _reason(words)


_SENTENCES: Final[dict[type[bodies.Body], Callable[[Any, dict[str, str | None]], Parts]]] = {
    bodies.RunStarted: _run_started,
    bodies.RunRekeyed: _run_rekeyed,
    bodies.RunRecorded: _run_recorded,
    bodies.RunClosed: _run_closed,
    bodies.HandoffInitiated: _initiated,
    bodies.HandoffAccepted: _accepted,
    bodies.HandoffCompleted: _completed,
    bodies.HandoffFailed: _failed,
    bodies.HandoffRetried: _retried,
    bodies.HandoffCancelled: _cancelled,
    bodies.ToolRequested: _requested,
    bodies.ToolCompleted: _tool_completed,
    bodies.ToolFailed: _tool_failed,
    bodies.ToolDenied: _denied,
    bodies.ToolLateResult: _late,
    bodies.ToolSettled: _settled,
    bodies.KeyEnrolled: _enrolled,
    bodies.GrantRevoked: _revoked,
}
