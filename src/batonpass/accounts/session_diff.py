"""The difference between two sessions: decisions, thresholds, open questions and verified outputs. Pure."""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from batonpass.model.baton.items import Constraint, Decision, Exclusion, ItemValue, OpenQuestion, WorkItem
from batonpass.model.baton.session import REVISIT, SessionState, revisit_mark


class Topic(StrEnum):
    """The subject of a change, in order of interest."""

    DECISION = "decision"
    THRESHOLD = "threshold"
    QUESTION = "open question"
    OUTPUT = "verified output"


class SessionTurn(StrEnum):
    """How something changed."""

    ADDED = "added"
    GONE = "gone"
    CHANGED = "changed"
    REOPENED = "open again"


class Change(Struct, frozen=True, kw_only=True):
    """One difference."""

    topic: Topic
    turn: SessionTurn
    what: str
    before: str | None = None
    after: str | None = None


def compare_states(before: SessionState, after: SessionState) -> tuple[Change, ...]:
    """Return the differences by topic."""
    old, new = _topics(before), _topics(after)
    reopened = dict(_reopened(before, after))
    changes = [
        Change(
            topic=Topic.DECISION, turn=SessionTurn.REOPENED, what=what, before=old[Topic.DECISION].get(what), after=why
        )
        for what, why in reopened.items()
    ]
    for topic in Topic:
        changes += [
            change
            for change in _compare(topic, old[topic], new[topic])
            if not (topic is Topic.DECISION and change.what in reopened) and not _is_told(change, reopened)
        ]
    order = list(Topic)
    return tuple(sorted(changes, key=lambda change: order.index(change.topic)))


def _is_told(change: Change, reopened: Mapping[str, str]) -> bool:
    """Return whether a question is new only because its decision was reopened."""
    is_new = change.topic is Topic.QUESTION and change.turn is SessionTurn.ADDED
    return is_new and any(change.what.startswith(revisit_mark(what)) for what in reopened)


def _reopened(before: SessionState, after: SessionState) -> Iterator[tuple[str, str]]:
    """Yield the earlier decisions that are questions now, and why."""
    questions = (value.text for value in _values(after) if isinstance(value, OpenQuestion))
    asked = [text for text in questions if text.startswith(REVISIT)]
    known = {value.text for value in _values(before) if isinstance(value, OpenQuestion)}
    for decision in [value for value in _values(before) if isinstance(value, Decision)]:
        mark = revisit_mark(decision.what)
        yield from (
            (decision.what, text.removeprefix(mark).strip())
            for text in asked
            if text.startswith(mark) and text not in known
        )
    yield from ((one.decision.what, "; ".join(one.reasons)) for one in after.revisit)


def _compare(topic: Topic, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for what in dict.fromkeys((*new, *old)):
        before, after = old.get(what), new.get(what)
        if before == after:
            continue
        turn = SessionTurn.ADDED if before is None else SessionTurn.GONE if after is None else SessionTurn.CHANGED
        yield Change(topic=topic, turn=turn, what=what, before=before, after=after)


def _topics(state: SessionState) -> dict[Topic, dict[str, str]]:
    found: dict[Topic, dict[str, str]] = {topic: {} for topic in Topic}
    for value in _values(state):
        topic, name, words = _told(value)
        if topic is not None:
            known = found[topic].get(name)
            found[topic][name] = words if known is None else f"{known}, {words}"
    return found


def _values(state: SessionState) -> Iterator[ItemValue]:
    yield from (kept.value for kept in state.kept)
    yield from (revisit.decision for revisit in state.revisit)


def _told(value: ItemValue) -> tuple[Topic | None, str, str]:
    """Return the topic, name and text of a value."""
    match value:
        case Decision():
            conditions = f" (if {', '.join(value.conditions)})" if value.conditions else ""
            return Topic.DECISION, value.what, f"because {value.why or 'nobody said why'}{conditions}"
        case Constraint(key=str(key)):
            bound = f"{value.operator} {value.value}{f' {value.unit}' if value.unit else ''}"
            return Topic.THRESHOLD, key, bound
        case Constraint() | Exclusion():
            kind = "must hold" if isinstance(value, Constraint) else "out of scope"
            return Topic.THRESHOLD, value.text, kind
        case OpenQuestion():
            return Topic.QUESTION, value.text, "blocking" if value.blocking else "not blocking"
        case WorkItem():
            return Topic.OUTPUT, value.what, ", ".join(value.outputs) or "done"
        case _:
            return None, "", ""
