"""Sorts what a session leaves behind: what comes along, what is open again, and what is dropped. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from batonpass.guard.constraints.conditions import ConditionFinding, ConditionVerdict, find_artifacts
from batonpass.handoff.sessions.tree_remains import Left
from batonpass.model.baton.items import Artifact, Constraint, Decision, ItemValue, OpenQuestion
from batonpass.model.baton.session import REVISIT, Dropped, Fate, Kept, Revisit, Said, revisit_mark

Evaluate = Callable[[str], ConditionFinding]


def settle(left: Left, anew: Sequence[ItemValue]) -> tuple[list[Said], list[Dropped]]:
    """Return what still counts, and what was replaced by something new or by a later statement.

    Of several decisions about the same thing, the latest counts. A question that was decided since is answered. Nothing
    counts twice.
    """
    latest = _latest(left.said)
    asked = {
        said.value.text: place
        for place, said in enumerate(left.said)
        if isinstance(said.value, OpenQuestion)  # a question that was asked twice counts from the last time
    }
    spoken = {value.key for value in anew if isinstance(value, Constraint) and value.key is not None}
    counts: dict[ItemValue, Said] = {}
    dropped: list[Dropped] = []
    for said in left.said:
        value, fate = said.value, None
        if isinstance(value, Decision):
            last, reopened = latest[value.what], _find_reopening(value, asked)
            again = reopened is not None and _order(left, reopened) > _order(left, last)
            if again or left.said[last].value != value:
                fate = Fate.REPLACED
        elif isinstance(value, OpenQuestion):
            answer = _find_answer(value, latest)
            if answer is not None and _order(left, answer) > _order(left, asked[value.text]):
                fate = Fate.ANSWERED
        elif isinstance(value, Constraint) and value.key in spoken and value not in anew:
            fate = Fate.REPLACED
        if fate is None:
            counts.setdefault(value, said)
        elif value not in counts:
            dropped.append(
                Dropped(what=_words(value), why=fate, item=None if said.source is None else said.source.item)
            )
    return list(counts.values()), dropped


def choose_artifacts(left: Left, counting: Iterable[Said]) -> tuple[list[Said], list[Dropped]]:
    """Return the artifacts that come along, in their latest version, and those that do not.

    Verified outputs come along, and artifacts that conditions of decisions name.
    """
    conditions = [
        condition for said in counting if isinstance(said.value, Decision) for condition in said.value.conditions
    ]
    needed = set(find_artifacts(conditions))
    chosen: dict[str, Said] = {}
    dropped: list[Dropped] = []
    for said, verified in left.artifacts:
        if not isinstance(said.value, Artifact):
            continue
        name = said.value.name
        if name in chosen:
            dropped.append(_left_out(chosen[name], Fate.REPLACED))
        if verified or name in needed:
            chosen[name] = said
        else:
            chosen.pop(name, None)
            dropped.append(_left_out(said, Fate.UNVERIFIED))
    return list(chosen.values()), dropped


def judge(counting: Iterable[Said], evaluate: Evaluate) -> Iterator[Kept | Revisit]:
    """Yield each item that counts: kept, or a decision that is open again because a condition does not hold."""
    for said in counting:
        if not isinstance(said.value, Decision):
            yield Kept(said=said)
            continue
        findings = [evaluate(condition) for condition in said.value.conditions]
        if reasons := tuple(dict.fromkeys(finding.reason for finding in findings if not finding.stands)):
            yield Revisit(decision=said.value, said=said, reasons=reasons)
        else:
            unchecked = tuple(found.condition for found in findings if found.verdict is ConditionVerdict.UNCHECKED)
            yield Kept(said=said, unchecked=unchecked)


def _latest(said: Sequence[Said]) -> dict[str, int]:
    """Return the position of the last decision about each thing."""
    found: dict[str, int] = {}
    for place, one in enumerate(said):
        if isinstance(one.value, Decision):
            before = found.get(one.value.what)
            if before is None or (one.at, place) >= (said[before].at, before):
                found[one.value.what] = place
    return found


def _order(left: Left, place: int) -> tuple[object, int]:
    # Clocks of several machines may show the same time. Then the one that was read later counts as later.
    return left.said[place].at, place


def _find_reopening(decision: Decision, asked: dict[str, int]) -> int | None:
    """Return the position of the question that reopened a decision."""
    mark = revisit_mark(decision.what)
    return max((place for text, place in asked.items() if text.startswith(mark)), default=None)


def _find_answer(question: OpenQuestion, latest: dict[str, int]) -> int | None:
    """Return the position of the decision that answers a question.

    It has the same words, or decides once more what the question reopened.
    """
    if (place := latest.get(question.text)) is not None or not question.text.startswith(REVISIT):
        return place
    return next((place for what, place in latest.items() if question.text.startswith(revisit_mark(what))), None)


def _words(value: ItemValue) -> str:
    match value:
        case Decision(what=what):
            return what
        case OpenQuestion(text=text):
            return text
        case Constraint():
            return value.sentence
        case _:
            return type(value).__name__


def _left_out(said: Said, why: Fate) -> Dropped:
    name = said.value.name if isinstance(said.value, Artifact) else ""
    return Dropped(what=name, why=why, item=None if said.source is None else said.source.item)
