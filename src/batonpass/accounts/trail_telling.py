"""What happened, in words: one line for each receipt, the same on a terminal, in a page and in a chart."""

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final

from msgspec import Struct

from batonpass.accounts.trail_values import Called, Happened, Trail
from batonpass.accounts.trail_walk import Branch, Turn, walk
from batonpass.accounts.trail_words import elapsed, looked_for
from batonpass.audit.lookup import ending
from batonpass.model.bodies import (
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
    HandoffReplaced,
    HandoffRetried,
    HandoffSettled,
    Outcome,
    Part,
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
    Settlement,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.content_names import ANSWER, COMMAND, EVIDENCE, ITEM, MESSAGE, PATH, QUESTION, REASON, REPORT, TASK
from batonpass.model.ids import CallId, RunId
from batonpass.model.lifecycle import State
from batonpass.model.run import RunState

_MILLION: Final = 1_000_000
_NAMED: Final = 5
_NAMES: Final = {
    Part.QUESTION: "open question",
    Part.REJECTED: "rejected path",
    Part.COMPLETED: "completed work",
    Part.UNTRUSTED: "untrusted",
}


class Tone(StrEnum):
    """How something is meant."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Note(Struct, frozen=True):
    """Something besides."""

    text: str
    tone: Tone = Tone.QUIET
    gives_way: bool = False  # where there is little room, it is shortened before anything else


class Line(Struct, frozen=True):
    """What happened: what it was, the words, and what there is to say besides."""

    label: str
    text: str = ""
    notes: tuple[Note, ...] = ()
    tone: Tone = Tone.PLAIN

    def __str__(self) -> str:
        """Return all of it as one line."""
        head = f"{self.label} {self.text}".rstrip()
        return " · ".join((head, *(note.text for note in self.notes)))


_TONES: Final[Mapping[str, Tone]] = {
    **dict.fromkeys(("completed", "verified"), Tone.GOOD),
    **dict.fromkeys(("failed", "refuted", "declined", "denied", "lapsed", "cancelled", "expired"), Tone.BAD),
}


def tone_of(state: State | RunState) -> Tone:
    """Return how a state is meant: good, bad, or that it is not over."""
    return _TONES.get(state, Tone.WARN)


def took(branch: Branch) -> str:
    """Return how long a run took; nothing while it is open."""
    run = None if branch.run is None else branch.run.run
    return "" if run is None or run.ended_at is None else elapsed(run.ended_at - run.started_at)


def name_of(trail: Trail, run: RunId) -> str:
    """Return a run as people say it."""
    known = trail.runs.get(run)
    return f"{'a run' if known is None else known.run.agent} {ending(run)}"


def tell(trail: Trail, told: Happened | Called) -> tuple[Line, ...]:
    """Return the lines for something that happened: one, or for several items one for each."""
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


def _item(part: Part, words: str, *notes: Note) -> Line:
    return Line(_NAMES.get(part, str(part)), words, notes, Tone.WARN if part is Part.UNTRUSTED else Tone.PLAIN)


def _note(trail: Trail, part: Part, words: str, body: RunRecorded) -> Line:
    if part is Part.INTENT:
        return Line(f"{body.by} said", words)
    known = trail.runs.get(body.run)
    own = known is not None and body.by == f"agent:{known.run.agent}"
    return _item(part, words, *(() if own else (Note(f"by {body.by}"),)))


def _call(trail: Trail, call: Called) -> Line:
    shown = call.target or call.arguments
    notes = (*_outcome(trail, call), *_besides(trail, call))
    bad = call.record.in_doubt or call.record.outcome in {"failed", "denied"}
    return Line(call.record.tool, "" if shown is None else shown.bare, notes, Tone.BAD if bad else Tone.PLAIN)


def _outcome(trail: Trail, call: Called) -> Iterator[Note]:
    duration = "" if call.record.ended_at is None else f" {elapsed(call.record.ended_at - call.at)}"
    match call.record.outcome:
        case "completed":
            yield Note(f"completed{duration}")
        case "failed":
            yield Note(f"failed{duration}: {call.record.why}", Tone.BAD)
            if call.message is not None:
                yield Note(str(call.message))
        case "denied":
            yield Note(f"denied: {call.record.why}", Tone.BAD)
        case "cached":
            yield Note(f"not called: the result of {ending(call.record.made)} is fresh", Tone.GOOD)
        case "held":
            yield Note(f"held: {call.record.why}", Tone.WARN)
            if call.decided is not None:
                yield Note(call.decided)
        case _:
            yield _without_outcome(trail, call)


def _without_outcome(trail: Trail, call: Called) -> Note:
    record = call.record
    if record.in_doubt:
        return Note("in doubt: requested, and nobody knows whether it happened", Tone.BAD)
    if record.settlement is not None:
        decided = "taken as done" if record.settlement is Settlement.SKIP else "to be made again"
        return Note(f"no outcome: {decided}", Tone.WARN)
    if record.again is not None:
        return Note(f"no outcome: made again as {ending(record.again)}", Tone.WARN)
    known = trail.runs.get(record.run)
    is_open = known is not None and known.run.state is RunState.OPEN
    return Note(f"no outcome{' yet' * is_open}", Tone.WARN)


def _besides(trail: Trail, call: Called) -> Iterator[Note]:
    if call.record.late is not None:
        yield Note(
            f"{'completed' if call.record.late.completed else 'failed'} late: evidence, and no result", Tone.WARN
        )
    if call.kept_by is not None:
        yield Note(f"kept: {name_of(trail, call.kept_by)} did not make it again", Tone.GOOD)
    if call.record.is_external:
        yield Note(f"from outside: {ending(call.record.id)}", Tone.WARN)
    if changed := len(call.record.changes):
        yield Note(f"changed {changed} file{'s' * (changed != 1)}")
    if call.record.exit_code:
        yield Note(f"exit code {call.record.exit_code}", Tone.WARN)
    for kind, count in Counter(effect.kind for effect in call.record.effects).items():
        yield Note(f"effect: {kind}{f' ×{count}' if count > 1 else ''}")
    if call.record.cost:
        yield Note(f"cost {Decimal(call.record.cost) / _MILLION:f}")
    yield from (Note(flag, Tone.WARN) for flag in call.record.flags)


def missing_of(trail: Trail) -> Iterator[str]:
    """Yield what offers left out, once for each different list: on every line it would drown the rest."""
    offers: dict[tuple[str, ...], list[str]] = {}
    for step in walk(trail, calls=False):
        told = step.branch.handoff if step.turn is Turn.ENTER else None
        body = None if told is None else told.offered.body
        if isinstance(body, HandoffInitiated) and body.missing:
            offers.setdefault(body.missing, []).append(f"{body.to} {ending(body.handoff)}")
    for parts, names in offers.items():
        rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"missing in what went to {', '.join(names[:_NAMED])}{rest}: {', '.join(parts)}"


def _offer(trail: Trail, body: HandoffInitiated) -> Line:
    handoff = trail.handoffs.get(body.handoff)
    notes = [Note(str(body.relation))]
    if handoff is not None and handoff.may is not None:
        notes.append(Note(f"may {handoff.may.bare}", Tone.PLAIN))
    if body.carries:
        notes.append(Note(f"carries {len(body.carries)}"))
    if body.taint:
        notes.append(Note(f"knows from outside: {', '.join(map(ending, body.taint))}", Tone.WARN))
    if body.unverified:
        notes.append(Note(f"builds on unverified: {len(body.unverified)}", Tone.WARN))
    by = f"by {name_of(trail, body.run)}"
    if body.state is not State.HELD:
        return Line("offered", by, tuple(notes))
    if body.rule is None:
        return Line("held", by, tuple(notes), Tone.WARN)
    # Who offered it did not hold it: the policy did.
    return Line("offered", by, (Note(f"held: rule {body.rule}", Tone.WARN), *notes), Tone.WARN)


def _close(told: Happened, body: HandoffCompleted | HandoffFailed | RunClosed) -> Line:
    if isinstance(body, HandoffFailed) and body.is_refusal:
        why = (Note(str(body.error), Tone.BAD), *_message(told))
        return Line(f"refused to hand to {body.to}", _quoted(told, TASK), why, Tone.BAD)
    failed = isinstance(body, HandoffFailed) or (isinstance(body, RunClosed) and body.outcome is not Outcome.COMPLETED)
    notes: list[Note] = []
    if isinstance(body, HandoffFailed) and body.error is not None:
        notes.append(Note(body.error, Tone.BAD))
    if MESSAGE in told.words:
        notes.append(Note(str(told.words[MESSAGE]), Tone.BAD))
    if body.effects:
        notes.append(Note(f"effects: {len(body.effects)}"))
    if not isinstance(body, RunClosed) and body.kept:
        notes.append(Note(f"kept {body.kept} of earlier attempts", Tone.GOOD))
    notes += [Note(flag, Tone.WARN) for flag in body.flags]
    if body.unverified:
        notes.append(Note(f"went on with unverified: {len(body.unverified)}", Tone.WARN))
    label = str(body.outcome) if isinstance(body, RunClosed) else "failed" if failed else "completed"
    report = told.words.get(REPORT)
    return Line(label, "" if report is None else str(report), tuple(notes), Tone.BAD if failed else Tone.GOOD)


def _verdict(told: Happened, body: VerificationPassed | VerificationFailed | VerificationRepeated) -> Line:
    passed = body.passed if isinstance(body, VerificationRepeated) else isinstance(body, VerificationPassed)
    label = "verified" if passed else "refuted"
    if isinstance(body, VerificationRepeated):
        label = f"checked again: {'holds' if passed else 'fails'}"
    notes = [Note(str(body.method))]
    if COMMAND in told.words:
        notes.append(Note(f"`{told.words[COMMAND].bare}`"))
    if body.exit_code is not None:
        notes.append(Note(f"exit code {body.exit_code}"))
    elif EVIDENCE in told.words:
        notes.append(Note(str(told.words[EVIDENCE])))
    if body.by_producer:
        notes.append(Note("by whoever made it", Tone.WARN))
    return Line(label, f"by {body.by}", tuple(notes), Tone.GOOD if passed else Tone.BAD)


def _run_line(trail: Trail, told: Happened) -> Line | None:
    line = None
    match told.body:
        case RunStarted() as body:
            series = (Note(f"series {body.series}"),) if body.series else ()
            line = Line("continues" if body.continues else "begins", ending(body.continues or ""), series)
        case HandoffAccepted() as body:
            found = (Note(f"validation found {', '.join(body.problems)}", Tone.WARN),) if body.problems else ()
            would = (Note("would have asked", Tone.WARN),) if body.would_ask else ()
            tainted = (Note("begins tainted", Tone.WARN),) if body.label is not None and body.label.is_external else ()
            line = Line("accepted", f"attempt {body.attempt}", (*found, *would, *tainted))
        case HandoffContextSanitized() as body:
            rules = tuple(Note(f"{found.place}: {found.rule} ×{found.count}", Tone.WARN) for found in body.found)
            line = Line(f"scanned: {body.action}", f"as {body.label}", rules, Tone.WARN if rules else Tone.QUIET)
        case RunRelaxed() as body:
            line = Line("relaxed", _quoted(told, ITEM), (Note(f"by {body.by}"), *_reason(told)), Tone.WARN)
        case RunRekeyed():
            line = Line("process lost", "", (Note("goes on under another key"),), Tone.WARN)
        case RunGap() as body:
            line = Line("gap", f"{body.calls} unrecorded", (Note("nothing could be written"),), Tone.BAD)
        case RunSpent() as body:
            line = Line("spent", f"{body.tokens:,} tokens" if body.tokens else "money", tone=Tone.QUIET)
        case CheckpointSaved() as body:
            after = "" if body.after is None else f"after {_tool(trail, body.after)}"
            line = Line("checkpoint", after, tone=Tone.QUIET)
        case RunSettled() | HandoffSettled() as body:
            by = (Note(f"by {body.by}"), *_reason(told))
            line = Line(f"settled: {body.settlement}", _tool(trail, body.call), by)
        case _:
            pass
    return line


def _outside_line(told: Happened) -> Line | None:
    """Return what came from outside by another way than a call, and who answered for it."""
    match told.body:
        case RunTainted() as body:
            came = "" if body.handoff is None else f"with the result of {ending(body.handoff)}"
            if body.wrote is not None:
                file = told.words[PATH].bare if PATH in told.words else "a file"
                came = f"by {file}, which call {ending(body.wrote)} wrote"
            return Line("tainted", came, (Note(", ".join(map(ending, body.sources))),), Tone.WARN)
        case RunEndorsed() | HandoffEndorsed() as body:
            return Line("endorsed", ending(body.source), (Note(f"by {body.by}"), *_reason(told)), Tone.WARN)
        case _:
            return None


def _session_line(told: Happened) -> Line | None:
    """Return what came along from a session, or was marked to come along, and what was not called again."""
    match told.body:
        case SessionSaved() as body:
            return Line("session saved", ending(body.saves), (Note(f"keeps {len(body.kept)}"), *_waiting(body)))
        case SessionResumed() as body:
            roots = ", ".join(ending(root.run) for root in body.roots)
            kept = Note(f"{len(body.kept)} came along, {body.dropped} were left")
            return Line("resumed from", roots, (kept, *_waiting(body)))
        case _:
            return None


def _waiting(body: SessionSaved | SessionResumed) -> Iterator[Note]:
    if body.revisit:
        yield Note(f"to be decided again: {len(body.revisit)}", Tone.WARN)
    if body.in_flight:
        yield Note(f"in flight: {len(body.in_flight)}", Tone.WARN)


def _act(trail: Trail, told: Happened) -> Line:
    """Return what somebody else than its runs did to a handoff."""
    reason = _reason(told)
    match told.body:
        case HandoffHeld() as body:
            line = Line("held", f"at attempt {body.attempt}", (Note(body.reason), *reason), Tone.WARN)
        case HandoffBacked() | HandoffApproved() as body:
            line = _approval(body, reason)
        case HandoffAsked() as body:
            found = (Note(f"{body.error}: {body.check}"),)
            line = Line(f"asked by {body.by}", _quoted(told, QUESTION), found, Tone.WARN)
        case HandoffAnswered() as body:
            line = Line(f"answered by {body.by}", _quoted(told, ANSWER), (Note(f"revision {body.revision}"),))
        case HandoffLapsed() as body:
            line = Line("lapsed", f"attempt {body.attempt}", (Note("its worker was gone"),), Tone.BAD)
        case HandoffLate() as body:
            outcome = "completed" if body.completed else "failed"
            line = Line("late", f"{_tool(trail, body.call)} {outcome}", (Note("evidence, and no result"),), Tone.WARN)
        case _:
            line = _decision(told, reason)
    return line


def _approval(body: HandoffBacked | HandoffApproved, reason: tuple[Note, ...]) -> Line:
    notes = [Note("proven", Tone.GOOD) if body.proven else Note("unproven", Tone.WARN)]
    if (looked := looked_for(body)) is not None:
        notes.append(Note(looked))
    if isinstance(body, HandoffBacked):
        notes.append(Note("it takes somebody else as well", Tone.WARN))
    return Line("approved", f"by {body.by}", (*notes, *reason), Tone.GOOD)


def _decision(told: Happened, reason: tuple[Note, ...]) -> Line:
    match told.body:
        case HandoffDenied() as body:
            line = Line("denied", f"by {body.by}", reason, Tone.BAD)
        case HandoffDeclined() as body:
            line = Line("declined", f"by {body.by}", (Note(body.code), *reason), Tone.BAD)
        case HandoffCancelled() as body:
            line = Line("cancelled", f"by {body.by}", reason, Tone.BAD)
        case HandoffRetried() as body:
            line = Line("retried", f"by {body.by}", reason)
        case HandoffReplaced() as body:
            line = Line("replaced", f"by {body.by}", (Note(f"given to {body.to}", Tone.PLAIN), *reason))
        case VerificationWaived() as body:
            line = Line("accepted unverified", f"by {body.by}", reason, Tone.WARN)
        case HandoffExpired():
            line = Line("expired", "", reason, Tone.BAD)
        case body:
            line = Line(str(body.kind), "", (Note("a kind that this version cannot tell"),), Tone.WARN)
    return line


def _message(told: Happened) -> tuple[Note, ...]:
    return (Note(str(told.words[MESSAGE])),) if MESSAGE in told.words else ()


def _reason(told: Happened) -> tuple[Note, ...]:
    return (Note(str(told.words[REASON])),) if REASON in told.words else ()


def _quoted(told: Happened, name: str) -> str:
    return str(told.words[name]) if name in told.words else ""


def _tool(trail: Trail, call: CallId) -> str:
    """Return a call as people say it."""
    known = trail.calls.get(call)
    return f"{'a call' if known is None else known.record.tool} {ending(call)}"
