"""Sorts the remains of a session: items to keep, decisions to make again, and items to drop. No I/O."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from batonpass.guard.constraints.conditions import ConditionFinding, ConditionVerdict, find_artifacts
from batonpass.handoff.sessions.tree_remains import Left, Saying
from batonpass.model.baton.items import (
    Artifact,
    Constraint,
    Decision,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    WorkItem,
)
from batonpass.model.baton.session import REVISIT, Dropped, Fate, Kept, OpenCheck, Revisit, Said, revisit_mark

Evaluate = Callable[[str], ConditionFinding]


def settle(left: Left, anew: Sequence[ItemValue]) -> tuple[list[Said], list[Dropped]]:
    """Return the items that still count, and those replaced by a new item or by a later statement.

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
    for place, said in enumerate(left.said):
        value = said.value
        fate = _overtaken(left, place, latest, asked)
        if isinstance(value, Constraint) and value.key in spoken and value not in anew:
            fate = Fate.REPLACED
        if fate is None:
            # Decided again in the same words: then it is the later one that counts.
            if value not in counts or _key(counts[value]) in left.fallen:
                counts[value] = said
        elif value not in counts:
            dropped.append(
                Dropped(what=_words(value), why=fate, item=None if said.source is None else said.source.item)
            )
    return list(counts.values()), dropped


def _overtaken(left: Left, place: int, latest: dict[str, int], asked: dict[str, int]) -> Fate | None:
    """Return why something that was said no longer counts: decided otherwise, answered, or tried all the same."""
    match left.said[place].value:
        case Decision() as value:
            last, reopened = latest[value.what], _find_reopening(value, asked)
            again = reopened is not None and _order(left, reopened) > _order(left, last)
            return Fate.REPLACED if again or left.said[last].value != value else None
        case OpenQuestion() as value:
            answer = _find_answer(value, latest)
            answered = answer is not None and _order(left, answer) > _order(left, asked[value.text])
            return Fate.ANSWERED if answered else None
        case RejectedPath() as value:
            decided = latest.get(value.what)
            return Fate.REPLACED if decided is not None and _order(left, decided) > _order(left, place) else None
        case _:
            return None


def choose_checks(left: Left) -> tuple[list[OpenCheck], list[Dropped]]:
    """Return the work that is still to be checked, and the work that was verified or done again since.

    Of several results of the same task by the same agent, the latest is to be checked. A decision in the words of the
    question answers it, as it does any question.
    """
    decided = {said.value.what: said.at for said in left.said if isinstance(said.value, Decision)}
    verified = {said.value.what: said.at for said in left.said if isinstance(said.value, WorkItem)}
    chosen: dict[tuple[str, str], OpenCheck] = {}
    dropped: list[Dropped] = []
    for check in sorted(left.checks, key=lambda one: one.at):
        answered = (decided.get(check.question.text), verified.get(check.what))
        if any(at is not None and at >= check.at for at in answered):
            dropped.append(_unneeded(check, Fate.ANSWERED))
            continue
        if (older := chosen.pop((check.by, check.what), None)) is not None and older.handoff != check.handoff:
            dropped.append(_unneeded(older, Fate.REPLACED))
        chosen[check.by, check.what] = check
    return list(chosen.values()), dropped


def _unneeded(check: OpenCheck, why: Fate) -> Dropped:
    return Dropped(what=check.what, why=why, item=None if check.source is None else check.source.item)


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


def _key(said: Said) -> Saying:
    return said.value, said.by, said.at


def judge(counting: Iterable[Said], evaluate: Evaluate, fallen: Mapping[Saying, str]) -> Iterator[Kept | Revisit]:
    """Yield each item that counts: kept, or a decision that is open again.

    It is if a condition does not hold, or if the result that it belongs to was refuted.
    """
    for said in counting:
        if not isinstance(said.value, Decision):
            yield Kept(said=said)
            continue
        findings = [evaluate(condition) for condition in said.value.conditions]
        refuted = [fallen[_key(said)]] if _key(said) in fallen else []
        failing = [finding.reason for finding in findings if not finding.stands]
        if reasons := tuple(dict.fromkeys([*refuted, *failing])):
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

    It has the same words, or decides the reopened matter once more.
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
