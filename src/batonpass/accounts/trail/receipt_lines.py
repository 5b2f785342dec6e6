"""Receipts in words: one line for each, the same on a terminal, in a page and in a chart."""

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final

from msgspec import Struct

from batonpass.accounts.trail.first_lines import elapsed, looked_for
from batonpass.accounts.trail.trail_values import Branch, Called, Happened, Trail, WalkTurn, walk
from batonpass.accounts.unknown_outcome import unknown_outcome
from batonpass.audit.short_ids import ending
from batonpass.model.base.content_names import (
    ANSWER,
    COMMAND,
    EVIDENCE,
    ITEM,
    MESSAGE,
    PATH,
    QUESTION,
    REASON,
    REPORT,
    TASK,
)
from batonpass.model.base.ids import CallId, RunId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    CheckpointSaved,
    HandoffAccepted,
    HandoffAnswered,
    HandoffApproved,
    HandoffAsked,
    HandoffBacked,
    HandoffCancelled,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffDeclined,
    HandoffDenied,
    HandoffEndorsed,
    HandoffExpired,
    HandoffFailed,
    HandoffHeld,
    HandoffInitiated,
    HandoffLapsed,
    HandoffLate,
    HandoffParked,
    HandoffReplaced,
    HandoffResumed,
    HandoffRetried,
    HandoffRevised,
    HandoffSettled,
    Outcome,
    Part,
    RunAcknowledged,
    RunClosed,
    RunEndorsed,
    RunGap,
    RunRecorded,
    RunRekeyed,
    RunRelaxed,
    RunSettled,
    RunSpent,
    RunStarted,
    RunTainted,
    SessionResumed,
    SessionSaved,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.ledger.run import RunState

_MILLION: Final = 1_000_000
_NAMED: Final = 5
_NAMES: Final = {
    Part.QUESTION: "open question",
    Part.REJECTED: "rejected path",
    Part.COMPLETED: "completed work",
    Part.UNTRUSTED: "untrusted",
}


class Tone(StrEnum):
    """How a text is coloured."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class TrailNote(Struct, frozen=True):
    """A part of a line, with its tone."""

    text: str
    tone: Tone = Tone.QUIET
    gives_way: bool = False  # shortened first where there is little room


class TrailLine(Struct, frozen=True):
    """One event: its label, its text, and further notes."""

    label: str
    text: str = ""
    notes: tuple[TrailNote, ...] = ()
    tone: Tone = Tone.PLAIN

    def __str__(self) -> str:
        """Return everything on one line."""
        head = f"{self.label} {self.text}".rstrip()
        return " · ".join((head, *(note.text for note in self.notes)))


_TONES: Final[Mapping[str, Tone]] = {
    **dict.fromkeys(("completed", "verified"), Tone.GOOD),
    **dict.fromkeys(("failed", "refuted", "declined", "denied", "lapsed", "cancelled", "expired"), Tone.BAD),
}


def tone_of(told: State | RunState | Branch) -> Tone:
    """Return the tone of a state, or of a branch's last state: good, bad, or warning while it is not over."""
    if isinstance(told, Branch):
        return tone_of(told.states[-1]) if told.states else Tone.WARN
    return _TONES.get(told, Tone.WARN)


def took(branch: Branch) -> str:
    """Return how long a run took; empty while it is open."""
    run = None if branch.run is None else branch.run.run
    return "" if run is None or run.ended_at is None else elapsed(run.ended_at - run.started_at)


def name_of(trail: Trail, run: RunId) -> str:
    """Return the name of a run."""
    known = trail.runs.get(run)
    return f"{'a run' if known is None else known.run.agent} {ending(run)}"


def tell(trail: Trail, told: Happened | Called) -> tuple[TrailLine, ...]:
    """Return the lines of an event: one, or one for each item."""
    match told:
        case Called():
            return (_call(trail, told),)
        case Happened(body=RunRecorded() as body):
            return tuple(_note(trail, noted.part, str(noted.words), body) for noted in told.items)
        case Happened(body=HandoffInitiated() as offer):
            said = (_item(noted.part, str(noted.words)) for noted in told.items)
            return (_offer(trail, offer), *said)
        case Happened(body=HandoffCompleted() | HandoffFailed() | RunClosed() as closed):
            return (_close(told, closed),)
        case Happened(body=VerificationPassed() | VerificationFailed() | VerificationRepeated() as verdict):
            return (_verdict(told, verdict),)
        case _:
            return (_run_line(trail, told) or _outside_line(told) or _session_line(told) or _act(trail, told),)


def _item(part: Part, words: str, *notes: TrailNote) -> TrailLine:
    return TrailLine(_NAMES.get(part, str(part)), words, notes, Tone.WARN if part is Part.UNTRUSTED else Tone.PLAIN)


def _note(trail: Trail, part: Part, words: str, body: RunRecorded) -> TrailLine:
    if part is Part.INTENT:
        return TrailLine(f"{body.by} said", words)
    known = trail.runs.get(body.run)
    own = known is not None and body.by == f"agent:{known.run.agent}"
    return _item(part, words, *(() if own else (TrailNote(f"by {body.by}"),)))


def _call(trail: Trail, call: Called) -> TrailLine:
    shown = call.target or call.arguments
    notes = (*_outcome(call), *_besides(trail, call))
    bad = call.record.in_doubt or call.record.outcome in {"failed", "denied"}
    return TrailLine(call.record.tool, "" if shown is None else shown.bare, notes, Tone.BAD if bad else Tone.PLAIN)


def _outcome(call: Called) -> Iterator[TrailNote]:
    duration = "" if call.record.ended_at is None else f" {elapsed(call.record.ended_at - call.at)}"
    match call.record.outcome:
        case "completed":
            yield TrailNote(f"completed{duration}")
        case "failed":
            yield TrailNote(f"failed{duration}: {call.record.why}", Tone.BAD)
            if call.message is not None:
                yield TrailNote(str(call.message))
        case "denied":
            yield TrailNote(f"denied: {call.record.why}", Tone.BAD)
        case "cached":
            yield TrailNote(f"not called: the result of {ending(call.record.made)} is fresh", Tone.GOOD)
        case "held":
            yield TrailNote(f"held: {call.record.why}", Tone.WARN)
            if call.decided is not None:
                yield TrailNote(call.decided)
        case _:
            yield TrailNote(unknown_outcome(call.record), Tone.BAD if call.record.in_doubt else Tone.WARN)


def _besides(trail: Trail, call: Called) -> Iterator[TrailNote]:
    if call.record.late is not None:
        yield TrailNote(
            f"{'completed' if call.record.late.completed else 'failed'} late: evidence, and no result", Tone.WARN
        )
    if call.kept_by is not None:
        yield TrailNote(f"kept: {name_of(trail, call.kept_by)} did not make it again", Tone.GOOD)
    if call.record.is_external:
        yield TrailNote(f"from outside: {ending(call.record.id)}", Tone.WARN)
    if changed := len(call.record.changes):
        yield TrailNote(f"changed {changed} file{'s' * (changed != 1)}")
    if call.record.exit_code:
        yield TrailNote(f"exit code {call.record.exit_code}", Tone.WARN)
    for kind, count in Counter(effect.kind for effect in call.record.effects).items():
        yield TrailNote(f"effect: {kind}{f' ×{count}' if count > 1 else ''}")
    if call.record.cost:
        yield TrailNote(f"cost {Decimal(call.record.cost) / _MILLION:f}")
    yield from (TrailNote(flag, Tone.WARN) for flag in call.record.flags)


def missing_of(trail: Trail) -> Iterator[str]:
    """Yield the parts that offers left out, once for each list; on every line they would hide the rest."""
    offers: dict[tuple[str, ...], list[str]] = {}
    for step in walk(trail, calls=False):
        told = step.branch.handoff if step.turn is WalkTurn.ENTER else None
        body = None if told is None else told.offered.body
        if isinstance(body, HandoffInitiated) and body.missing:
            offers.setdefault(body.missing, []).append(f"{body.to} {ending(body.handoff)}")
    for parts, names in offers.items():
        rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"missing in the handoff to {', '.join(names[:_NAMED])}{rest}: {', '.join(parts)}"


def _offer(trail: Trail, body: HandoffInitiated) -> TrailLine:
    handoff = trail.handoffs.get(body.handoff)
    notes = [TrailNote(str(body.relation))]
    if handoff is not None and handoff.may is not None:
        notes.append(TrailNote(f"may {handoff.may.bare}", Tone.PLAIN))
    if body.carries:
        notes.append(TrailNote(f"carries {len(body.carries)}"))
    if body.taint:
        notes.append(TrailNote(f"knows from outside: {', '.join(map(ending, body.taint))}", Tone.WARN))
    if body.unverified:
        notes.append(TrailNote(f"builds on unverified: {len(body.unverified)}", Tone.WARN))
    if body.fates:
        notes.append(TrailNote(f"told that {len(body.fates)} of these no longer stand", Tone.WARN))
    if body.replaces is not None:
        notes.append(TrailNote(f"replaces {ending(body.replaces)}, whose inputs have changed", Tone.PLAIN))
    by = f"by {name_of(trail, body.run)}"
    if body.state is not State.HELD:
        return TrailLine("offered", by, tuple(notes))
    if body.rule is None:
        return TrailLine("held", by, tuple(notes), Tone.WARN)
    # The policy held it, not the sender.
    return TrailLine("offered", by, (TrailNote(f"held: rule {body.rule}", Tone.WARN), *notes), Tone.WARN)


def _close(told: Happened, body: HandoffCompleted | HandoffFailed | RunClosed) -> TrailLine:
    if isinstance(body, HandoffFailed) and body.is_refusal:
        why = (TrailNote(str(body.error), Tone.BAD), *_reason(told, MESSAGE))
        return TrailLine(f"refused to hand to {body.to}", _quoted(told, TASK), why, Tone.BAD)
    failed = isinstance(body, HandoffFailed) or (isinstance(body, RunClosed) and body.outcome is not Outcome.COMPLETED)
    notes: list[TrailNote] = []
    if isinstance(body, HandoffFailed) and body.error is not None:
        notes.append(TrailNote(body.error, Tone.BAD))
    if MESSAGE in told.words:
        notes.append(TrailNote(str(told.words[MESSAGE]), Tone.BAD))
    if body.effects:
        notes.append(TrailNote(f"effects: {len(body.effects)}"))
    if not isinstance(body, RunClosed) and body.kept:
        notes.append(TrailNote(f"kept {body.kept} of earlier attempts", Tone.GOOD))
    notes += [TrailNote(flag, Tone.WARN) for flag in body.flags]
    if body.unverified:
        notes.append(TrailNote(f"went on with unverified: {len(body.unverified)}", Tone.WARN))
    label = str(body.outcome) if isinstance(body, RunClosed) else "failed" if failed else "completed"
    report = told.words.get(REPORT)
    return TrailLine(label, "" if report is None else str(report), tuple(notes), Tone.BAD if failed else Tone.GOOD)


def _verdict(told: Happened, body: VerificationPassed | VerificationFailed | VerificationRepeated) -> TrailLine:
    passed = body.passed if isinstance(body, VerificationRepeated) else isinstance(body, VerificationPassed)
    label = "verified" if passed else "refuted"
    if isinstance(body, VerificationRepeated):
        label = f"checked again: {'holds' if passed else 'fails'}"
    notes = [TrailNote(str(body.method))]
    if COMMAND in told.words:
        notes.append(TrailNote(f"`{told.words[COMMAND].bare}`"))
    if body.exit_code is not None:
        notes.append(TrailNote(f"exit code {body.exit_code}"))
    elif EVIDENCE in told.words:
        notes.append(TrailNote(str(told.words[EVIDENCE])))
    if body.by_producer:
        notes.append(TrailNote("by its own author", Tone.WARN))
    return TrailLine(label, f"by {body.by}", tuple(notes), Tone.GOOD if passed else Tone.BAD)


def _run_line(trail: Trail, told: Happened) -> TrailLine | None:
    line = None
    match told.body:
        case RunStarted() as body:
            series = (TrailNote(f"series {body.series}"),) if body.series else ()
            line = TrailLine("continues" if body.continues else "begins", ending(body.continues or ""), series)
        case HandoffAccepted() as body:
            found = (TrailNote(f"validation found {', '.join(body.problems)}", Tone.WARN),) if body.problems else ()
            would = (TrailNote("would have asked", Tone.WARN),) if body.would_ask else ()
            tainted = (
                (TrailNote("begins tainted", Tone.WARN),) if body.label is not None and body.label.is_external else ()
            )
            line = TrailLine("accepted", f"attempt {body.attempt}", (*found, *would, *tainted))
        case HandoffContextSanitized() as body:
            rules = tuple(TrailNote(f"{found.place}: {found.rule} ×{found.count}", Tone.WARN) for found in body.found)
            line = TrailLine(f"scanned: {body.action}", f"as {body.label}", rules, Tone.WARN if rules else Tone.QUIET)
        case RunRelaxed() as body:
            line = TrailLine("relaxed", _quoted(told, ITEM), (TrailNote(f"by {body.by}"), *_reason(told)), Tone.WARN)
        case RunRekeyed():
            line = TrailLine("process lost", "", (TrailNote("goes on under another key"),), Tone.WARN)
        case RunGap() as body:
            line = TrailLine("gap", f"{body.calls} unrecorded", (TrailNote("nothing could be written"),), Tone.BAD)
        case RunSpent() as body:
            line = TrailLine("spent", f"{body.tokens:,} tokens" if body.tokens else "money", tone=Tone.QUIET)
        case CheckpointSaved() as body:
            after = "" if body.after is None else f"after {_tool(trail, body.after)}"
            line = TrailLine("checkpoint", after, tone=Tone.QUIET)
        case RunSettled() | HandoffSettled() as body:
            by = (TrailNote(f"by {body.by}"), *_reason(told))
            line = TrailLine(f"settled: {body.settlement}", _tool(trail, body.call), by)
        case _:
            pass
    return line


def _outside_line(told: Happened) -> TrailLine | None:
    """Return the line for content that reached a run by another way than a call, and for endorsements."""
    match told.body:
        case RunAcknowledged() as body:
            return TrailLine("acknowledged", f"revision {body.revision} of its baton", tone=Tone.GOOD)
        case RunTainted() as body:
            came = "" if body.handoff is None else f"with the result of {ending(body.handoff)}"
            if body.wrote is not None:
                file = told.words[PATH].bare if PATH in told.words else "a file"
                came = f"by {file}, which call {ending(body.wrote)} wrote"
            return TrailLine("tainted", came, (TrailNote(", ".join(map(ending, body.sources))),), Tone.WARN)
        case RunEndorsed() | HandoffEndorsed() as body:
            return TrailLine("endorsed", ending(body.source), (TrailNote(f"by {body.by}"), *_reason(told)), Tone.WARN)
        case _:
            return None


def _session_line(told: Happened) -> TrailLine | None:
    """Return the line for a saved or resumed session."""
    match told.body:
        case SessionSaved() as body:
            return TrailLine(
                "session saved", ending(body.saves), (TrailNote(f"keeps {len(body.kept)}"), *_waiting(body))
            )
        case SessionResumed() as body:
            roots = ", ".join(ending(root.run) for root in body.roots)
            kept = TrailNote(f"{len(body.kept)} came along, {body.dropped} were left")
            return TrailLine("resumed from", roots, (kept, *_waiting(body)))
        case _:
            return None


def _waiting(body: SessionSaved | SessionResumed) -> Iterator[TrailNote]:
    if body.revisit:
        yield TrailNote(f"to be decided again: {len(body.revisit)}", Tone.WARN)
    if body.in_flight:
        yield TrailNote(f"in flight: {len(body.in_flight)}", Tone.WARN)


def _act(trail: Trail, told: Happened) -> TrailLine:
    """Return the line for an act on a handoff by somebody else than its own runs."""
    reason = _reason(told)
    match told.body:
        case HandoffHeld() as body if body.awaits is not None:
            line = TrailLine("waits", f"at attempt {body.attempt}", (TrailNote(f"for {ending(body.awaits)}"), *reason))
        case HandoffResumed() as body:
            line = TrailLine(
                "goes on", f"after attempt {body.attempt}", (TrailNote(f"{ending(body.awaits)} is decided or over"),)
            )
        case HandoffParked() as body:
            line = TrailLine("parked", f"after attempt {body.attempt}", (TrailNote(body.error), *reason), Tone.BAD)
        case HandoffHeld() as body:
            line = TrailLine("held", f"at attempt {body.attempt}", (TrailNote(body.reason), *reason), Tone.WARN)
        case HandoffBacked() | HandoffApproved() as body:
            line = _approval(body, reason)
        case HandoffAsked() as body:
            found = (TrailNote(f"{body.error}: {body.check}"),)
            line = TrailLine(f"asked by {body.by}", _quoted(told, QUESTION), found, Tone.WARN)
        case HandoffAnswered() as body:
            line = TrailLine(f"answered by {body.by}", _quoted(told, ANSWER), (TrailNote(f"revision {body.revision}"),))
        case HandoffLapsed() as body:
            line = TrailLine("lapsed", f"attempt {body.attempt}", (TrailNote("its worker was gone"),), Tone.BAD)
        case HandoffLate() as body:
            outcome = "completed" if body.completed else "failed"
            line = TrailLine(
                "late", f"{_tool(trail, body.call)} {outcome}", (TrailNote("evidence, and no result"),), Tone.WARN
            )
        case _:
            line = _decision(told, reason)
    return line


def _approval(body: HandoffBacked | HandoffApproved, reason: tuple[TrailNote, ...]) -> TrailLine:
    notes = [TrailNote("proven", Tone.GOOD) if body.proven else TrailNote("unproven", Tone.WARN)]
    if (looked := looked_for(body)) is not None:
        notes.append(TrailNote(looked))
    if isinstance(body, HandoffBacked):
        notes.append(TrailNote("another person has to approve it too", Tone.WARN))
    return TrailLine("approved", f"by {body.by}", (*notes, *reason), Tone.GOOD)


def _decision(told: Happened, reason: tuple[TrailNote, ...]) -> TrailLine:
    match told.body:
        case HandoffDenied() as body:
            line = TrailLine("denied", f"by {body.by}", reason, Tone.BAD)
        case HandoffDeclined() as body:
            line = TrailLine("declined", f"by {body.by}", (TrailNote(body.code), *reason), Tone.BAD)
        case HandoffCancelled() as body:
            line = TrailLine("cancelled", f"by {body.by}", reason, Tone.BAD)
        case HandoffRetried() as body:
            line = TrailLine("retried", f"by {body.by}", reason)
        case HandoffRevised() as body:
            fallen = f", {len(body.fates)} told as no longer standing" if body.fates else ""
            count = f"{len(body.drops)} items dropped, {len(body.carries)} given in their place{fallen}"
            line = TrailLine("revised", f"by {body.by}", (TrailNote(count, Tone.PLAIN), *reason))
        case HandoffReplaced() as body:
            line = TrailLine("replaced", f"by {body.by}", (TrailNote(f"given to {body.to}", Tone.PLAIN), *reason))
        case VerificationWaived() as body:
            line = TrailLine("accepted unverified", f"by {body.by}", reason, Tone.WARN)
        case HandoffExpired():
            line = TrailLine("expired", "", reason, Tone.BAD)
        case body:
            line = TrailLine(str(body.kind), "", (TrailNote("a kind that this version does not know"),), Tone.WARN)
    return line


def _reason(told: Happened, name: str = REASON) -> tuple[TrailNote, ...]:
    return (TrailNote(str(told.words[name])),) if name in told.words else ()


def _quoted(told: Happened, name: str) -> str:
    return str(told.words[name]) if name in told.words else ""


def _tool(trail: Trail, call: CallId) -> str:
    """Return the name of a call."""
    known = trail.calls.get(call)
    return f"{'a call' if known is None else known.record.tool} {ending(call)}"
