"""A session as people read it: what comes along, what is open again, what is in flight, what is left."""

from collections import Counter
from collections.abc import Sequence

from batonpass.audit.short_ids import ending
from batonpass.cli.output.terminal import paint, say, table
from batonpass.cli.output.units import counted, elapsed, minute, size
from batonpass.model.baton.items import Artifact, Constraint, Decision, Exclusion, ItemValue, OpenQuestion, WorkItem
from batonpass.model.baton.session import WHY, Fate, Kept, SessionState


def say_state(state: SessionState) -> None:
    """Print what a session leaves to the next one."""
    say()
    say(paint(_kept_title(state), bold=True))
    table([_kept_row(kept) for kept in state.kept], indent="  ")
    _say_part(
        f"open again: {counted(len(state.revisit), 'decision')}",
        [[one.decision.what, paint("; ".join(one.reasons), "red")] for one in state.revisit],
    )
    _say_part(
        f"in flight: {counted(len(state.in_flight), 'handoff')}",
        [
            [f"{child.to} {ending(child.handoff)}", paint(child.state, "yellow"), minute(child.offered_at), child.task]
            for child in state.in_flight
        ],
    )
    _say_part(
        f"kept for a while: {counted(len(state.caches), 'result')}",
        [[cached.tool, f"made {minute(cached.made_at)}", f"until {minute(cached.until)}"] for cached in state.caches],
    )
    _say_left(state)


def _kept_title(state: SessionState) -> str:
    if not state.items:
        return "nothing comes along"
    return f"comes along: {counted(state.items, 'item')}, {size(state.bytes)}, the oldest {elapsed(state.age)} old"


def _say_left(state: SessionState) -> None:
    rows = [[one.what, f"from {one.source}"] for one in state.dropped if one.why is Fate.EXTERNAL]
    _say_part("to be fetched anew", rows)
    counts = Counter(one.why for one in state.dropped if one.why is not Fate.EXTERNAL)
    _say_part("left behind", [[counted(count, why), WHY[why]] for why, count in counts.items()])


def _say_part(title: str, rows: Sequence[Sequence[str]]) -> None:
    if rows:
        say()
        say(paint(title, bold=True))
        table(rows, indent="  ")


def _kept_row(kept: Kept) -> list[str]:
    kind, words = _words(kept.value)
    unchecked = f" · unchecked: {'; '.join(kept.unchecked)}" if kept.unchecked else ""
    return [kind, kept.said.by, minute(kept.said.at), f"{words}{unchecked}"]


def _words(value: ItemValue) -> tuple[str, str]:
    """Return what an item is, and what it says, in a line."""
    match value:
        case Decision():
            told = "decision", f"{value.what} · because {value.why or 'nobody said why'}"
        case Constraint():
            told = "threshold" if value.key else "constraint", value.sentence
        case Exclusion():
            told = "exclusion", value.text
        case OpenQuestion():
            told = f"question{' (blocking)' * value.blocking}", value.text
        case WorkItem():
            told = "verified", f"{value.what}: {', '.join(value.outputs) or 'done'} · {value.how}"
        case Artifact():
            told = "artifact", f"{value.name} · {size(value.size)}"
        case _:
            told = type(value).__name__.lower(), str(getattr(value, "what", ""))
    return told
