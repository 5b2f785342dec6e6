"""A session on the screen and for programs: items that it passes on, that are open again, in flight, or left out."""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import asdict

from batonpass.accounts.session_load import SessionLoad
from batonpass.audit.short_ids import ending, telling_length
from batonpass.cli.output.terminal import paint, say, table, tell
from batonpass.cli.output.units import counted, elapsed, minute, size
from batonpass.model.base.ids import SessionId
from batonpass.model.baton.items import Artifact, Constraint, Decision, Exclusion, ItemValue, OpenQuestion, WorkItem
from batonpass.model.baton.session import CHECK, WHY, Fate, Kept, Said, SessionState
from batonpass.model.ledger.run import Run
from batonpass.records.json_shapes import contradiction_shape, exact
from batonpass.wire.documents import to_document


def say_state(state: SessionState) -> None:
    """Print the items that a session passes on to the next one."""
    say()
    say(paint(_kept_title(state), bold=True))
    table([_kept_row(kept) for kept in state.kept], indent="  ")
    _say_part(
        f"open again: {counted(len(state.revisit), 'decision')}",
        [[one.decision.what, paint("; ".join(one.reasons), "red")] for one in state.revisit],
    )
    _say_part(
        f"to be checked: {counted(len(state.checks), 'result')}",
        [[one.by, minute(one.at), one.question.text.removeprefix(CHECK)] for one in state.checks],
    )
    _say_part(
        f"contradictions: {len(state.contradictions)}, the newest first",
        [[paint(one.subject, "red"), one.sentence] for one in state.contradictions],
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
    for words in state.warnings:
        tell(
            paint(f"{words}: look through it, and take out what nobody needs with `batonpass session prune`", "yellow")
        )


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
    """Return the kind of an item, and its text in one line."""
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


def session_facts(session: SessionId, roots: Sequence[Run]) -> dict[str, object]:
    """Return a session for programs, as lists show it."""
    last = roots[-1]
    return {
        "id": session,
        "roots": [root.id for root in roots],
        "series": last.series,
        "principal": last.principal,
        "agent": last.agent,
        "state": last.state,
        "began_at": exact(roots[0].started_at),
        "last_began_at": exact(last.started_at),
    }


def say_loads(loads: Sequence[SessionLoad]) -> None:
    """Print the load of sessions, and the decisions without a reason."""
    length = telling_length([one.session for one in loads])
    rows = [
        [
            ending(one.session, length),
            counted(len(one.roots), "root"),
            _weight(one.first),
            _weight(one.state),
            f"{elapsed(one.state.age)} old" if one.state.items else "",
            f"{len(one.unreasoned)} without a reason" if one.unreasoned else "",
        ]
        for one in loads
    ]
    table(rows, header=("session", "roots", "after the first", "now", "the oldest", "decisions") if rows else ())
    for one in loads:
        told = [[found.decision.what, paint("; ".join(found.reasons), "red")] for found in one.unreasoned]
        _say_part(f"session {ending(one.session, length)}: decisions in use whose reason is gone", told)
        for words in one.state.warnings:
            tell(paint(f"session {ending(one.session, length)}: {words}", "yellow"))
    if not loads:
        tell("no sessions yet")


def _weight(state: SessionState) -> str:
    return f"{counted(state.items, 'item')}, {size(state.bytes)}"


def load_facts(load: SessionLoad) -> dict[str, object]:
    """Return the load of a session, for programs."""
    state, first = load.state, load.first
    return {
        **session_facts(load.session, load.roots),
        "items": state.items,
        "bytes": state.bytes,
        "oldest_at": exact(state.oldest),
        "age_seconds": int(state.age.total_seconds()),
        "after_first": {"items": first.items, "bytes": first.bytes},
        "warnings": list(state.warnings),
        "unreasoned": [{**_said(one.said), "reasons": list(one.reasons)} for one in load.unreasoned],
    }


def state_facts(state: SessionState) -> dict[str, object]:
    """Return the items that a session passes on to the next one, for programs."""
    return {
        "from": list(state.roots),
        "at": exact(state.at),
        "items": state.items,
        "bytes": state.bytes,
        "oldest_at": exact(state.oldest),
        "kept": [{**_said(kept.said), "unchecked": list(kept.unchecked)} for kept in state.kept],
        "revisit": [{**_said(one.said), "reasons": list(one.reasons)} for one in state.revisit],
        "dropped": [{**asdict(one), "words": WHY[one.why]} for one in state.dropped],
        "checks": [
            {**asdict(one), "source": None if one.source is None else one.source.item, "question": one.question.text}
            for one in state.checks
        ],
        "contradictions": [contradiction_shape(one) for one in state.contradictions],
        "warnings": list(state.warnings),
        "in_flight": state.in_flight,
        "cached": state.caches,
    }


def _said(said: Said) -> dict[str, object]:
    return {
        "type": type(said.value).__name__,
        "value": to_document(said.value),
        "by": said.by,
        "at": exact(said.at),
        "source": None if said.source is None else said.source.item,
    }
