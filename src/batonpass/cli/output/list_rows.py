"""How runs, handoffs, calls and contents look in a list."""

from typing import Final

from batonpass.accounts.unknown_outcome import unknown_in_brief
from batonpass.audit.short_ids import ending
from batonpass.cli.output.terminal import Painted, paint, say, say_text
from batonpass.cli.output.units import elapsed, size
from batonpass.errors import InvalidValueError
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.call import CallRecord
from batonpass.records.text import Found, Text
from batonpass.wire.documents import decode_report, is_report

_COLOURS: Final = {
    RunState.OPEN: "yellow",
    RunState.COMPLETED: "green",
    RunState.FAILED: "red",
    RunState.CANCELLED: "magenta",
    RunState.LAPSED: "magenta",
    RunState.SUSPENDED: "yellow",
    RunState.EXPIRED: "magenta",
}

_HANDOFF_COLOURS: Final = {
    State.HELD: "yellow",
    State.ASKED: "yellow",
    State.OFFERED: "cyan",
    State.READY: "cyan",
    State.CLAIMED: "cyan",
    State.RUNNING: "cyan",
    State.COMPLETED: "green",
    State.VERIFIED: "green",
    State.FAILED: "red",
    State.REFUTED: "red",
    State.DECLINED: "red",
    State.DENIED: "red",
    State.CANCELLED: "magenta",
    State.EXPIRED: "magenta",
}


def name_of(run: Run, length: int = 4) -> str:
    """Return the short name of a run: its agent, and the last characters of its id."""
    return f"{run.agent} {ending(run.id, length)}"


def state_of(run: Run) -> Painted:
    """Return a run's state in its colour."""
    return paint(run.state, _COLOURS[run.state])


def handoff_state_of(state: State) -> Painted:
    """Return a handoff's state in its colour."""
    return paint(state, _HANDOFF_COLOURS[state], bold=state is State.VERIFIED)


def took(run: Run) -> str:
    """Return how long a run took; empty while it is open."""
    return "" if run.ended_at is None else elapsed(run.ended_at - run.started_at)


def call_row(call: CallRecord) -> list[str]:
    """Return a call as cells of a table."""
    outcome = call.outcome or unknown_in_brief(call)
    colour = {"completed": "green", "failed": "red"}.get(outcome, "yellow")
    duration = "" if call.ended_at is None else elapsed(call.ended_at - call.at)
    return [call.tool, paint(outcome, colour), duration, call.why or ""]


def say_content(text: Text, *, at_most: int | None = None) -> None:
    """Print a content under its name, or say that it was erased or is missing."""
    about = f" · {size(text.ref.size)} · {text.ref.media_type} · {text.ref.id}"
    say(paint(text.name, bold=True), paint(about, dim=True))
    match text:
        case Text(found=Found.KEPT, words=str(words)):
            say_text(_report_words(text) or words, at_most=at_most)
        case Text(found=Found.KEPT):
            say("  │ ", paint("not text; --json prints its bytes", dim=True))
        case Text(found=Found.ERASED):
            say("  │ ", paint("erased", "magenta"))
        case _:
            say("  │ ", paint("missing, although nobody erased it: run `batonpass ledger verify`", "red"))


def _report_words(text: Text) -> str | None:
    """Return a report as readable lines; None if the content is not a readable report."""
    if text.body is None or not is_report(text.body):
        return None
    try:
        report = decode_report(text.body)
    except InvalidValueError:
        return None
    lines = [report.result, f"value: {report.value}" if report.value else ""]
    lines += [
        f"open question{' (blocking)' * question.blocking}: {question.text}" for question in report.open_questions
    ]
    lines += [f"rejected: {path.what}{f' ({path.why})' * bool(path.why)}" for path in report.rejected_paths]
    lines += [f"decided: {decision.what}{f' ({decision.why})' * bool(decision.why)}" for decision in report.decisions]
    lines += [f"assumed: {assumption.what}" for assumption in report.assumptions]
    lines += [f"claimed: {claim.what}" for claim in report.claims]
    lines += [f"done: {item.what}" for item in report.completed]
    lines += [f"none: {', '.join(report.none)}" if report.none else ""]
    lines += [f"confidence: {report.confidence / 10:g} %" if report.confidence is not None else ""]
    return "\n".join(line for line in lines if line)
