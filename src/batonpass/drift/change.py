"""Changes between a baseline and a window, each in words and with its chance.

A change is named only if it can hardly be chance (one in a hundred thousand) and is large enough to matter. Each is a
fact about handoffs: which constraints, permits, tools and agents they had, and how long, dear and successful they were.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from batonpass.drift import counts
from batonpass.drift.counts import NOTHING, Counts
from batonpass.drift.shape_of_text import bin_middle, shape_in_words
from batonpass.drift.stability import by_argument
from batonpass.drift.statistics import chance_of_mixture, chance_of_order, chance_of_rates, jensen_shannon

_CHANCE: Final = 1e-5
_RATE: Final = 0.10  # the least difference of two rates
_RATIO: Final = 1.2  # of two magnitudes
_DISTANCE: Final = 0.02  # of two mixtures
_SHOWN: Final = 3
_MINUTE: Final = 60_000  # in milliseconds


class ChangeTopic(StrEnum):
    """The topic of a change. The names are shown, and are the same in every version."""

    CONFIGURATION = "configuration"
    CONSTRAINTS = "constraints"
    SCOPE = "scope"
    TOOLS = "tools"
    ORDER = "order of tools"
    ARGUMENTS = "arguments"
    STEPS = "steps"
    DELEGATION = "delegation"
    WORDING = "wording of tasks"
    QUESTIONS = "questions"
    HOLDS = "holds and denials"
    RESULTS = "results"
    ERRORS = "errors"
    ATTEMPTS = "attempts"
    DURATION = "duration"
    COST = "cost"
    LENGTH = "length of reports"


# The work that is asked for, and what time and money it takes, change with the world: named, and no cause of an alarm.
QUIET: Final = frozenset({ChangeTopic.WORDING, ChangeTopic.DURATION, ChangeTopic.COST, ChangeTopic.CONFIGURATION})

# Aspects in which a handoff has a key or has it not, and how a change of it is said.
_PRESENT: Final[Mapping[str, tuple[ChangeTopic, str]]] = {
    "constraint": (ChangeTopic.CONSTRAINTS, "constraint"),
    "asked": (ChangeTopic.SCOPE, "asked for"),
    "granted": (ChangeTopic.SCOPE, "granted"),
    "used": (ChangeTopic.SCOPE, "used"),
    "uses": (ChangeTopic.TOOLS, "tool"),
    "from": (ChangeTopic.DELEGATION, "handed off by"),
    "to": (ChangeTopic.DELEGATION, "hands off to"),
    "question": (ChangeTopic.QUESTIONS, "the receiver"),
    "held": (ChangeTopic.HOLDS, "held:"),
    "refused": (ChangeTopic.HOLDS, "denied:"),
    "would": (ChangeTopic.HOLDS, "enforcement"),
    "end": (ChangeTopic.RESULTS, "ended"),
    "standing": (ChangeTopic.RESULTS, "results"),
    "human": (ChangeTopic.RESULTS, "by people"),
}
_ORDERED: Final[Mapping[str, tuple[ChangeTopic, str]]] = {
    "tries": (ChangeTopic.ATTEMPTS, "attempts"),
    "duration": (ChangeTopic.DURATION, "ms"),
    "cost": (ChangeTopic.COST, "millionths"),
    "tokens": (ChangeTopic.COST, "tokens"),
    "size": (ChangeTopic.LENGTH, "bytes"),
}
_OPERATORS: Final = (" <= ", " >= ", " != ", " = ", " < ", " > ", " not in ", " in ")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftChange:
    """One thing that is different from the baseline."""

    topic: ChangeTopic
    sentence: str
    aspect: str
    keys: tuple[str, ...]  # in the counts: what is new or more frequent first
    before: float  # rate or magnitude in the baseline
    after: float
    chance: float  # that such a difference is chance
    gained: tuple[str, ...] = field(default=())  # those of the keys that became more frequent
    first: str | None = None  # the first handoff that shows it, once somebody has looked

    @property
    def id(self) -> tuple[str, str, tuple[str, ...]]:
        """Return a name that is the same if the same change is seen again."""
        return self.topic, self.aspect, self.keys


def find_changes(baseline: Counts, window: Counts) -> list[DriftChange]:
    """Return the changes of a window, the least likely chance first."""
    found = [
        *_find_present(baseline, window),
        *_find_words(baseline, window),
        *_find_ordered(baseline, window),
        *_find_mixed(baseline, window),
    ]
    return sorted(found, key=lambda change: (change.chance, change.topic, change.keys))


def _find_present(baseline: Counts, window: Counts) -> Iterator[DriftChange]:
    for aspect, (topic, words) in _PRESENT.items():
        rates = {rate.key: rate for rate in _rates(baseline, window, aspect)}
        lost = [rate for rate in rates.values() if rate.after < rate.before]
        gained = [rate for rate in rates.values() if rate.after > rate.before]
        for new in gained:
            # A bound that took the place of another one is one change, and is said as one.
            old = next((one for one in lost if _subject(one.key) == _subject(new.key)), None)
            if aspect == "constraint" and old is not None:
                lost.remove(old)
                sentence = f"{words} {old.key} → {_value(new.key)} ({_percent(new)} of handoffs)"
                yield _told(topic, aspect, sentence, new, (new.key, old.key))
            else:
                yield _told(topic, aspect, f"{words} {new.key or '(none)'}: {_change(new)}", new, (new.key,))
        for old in lost:
            yield _told(topic, aspect, f"{words} {old.key or '(none)'}: {_change(old)}", old, (old.key,))


@dataclass(frozen=True, slots=True)
class _Rate:
    key: str
    before: float
    after: float
    chance: float


def _rates(baseline: Counts, window: Counts, aspect: str) -> Iterator[_Rate]:
    of_one, of_other = counts.closed(baseline), counts.closed(window)
    ours, theirs = baseline.get(aspect, NOTHING), window.get(aspect, NOTHING)
    for key in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(key, 0), theirs.get(key, 0)
        before, after = one / of_one, other / of_other
        if abs(after - before) >= _RATE:
            chance = chance_of_rates(one, of_one, other, of_other)
            if chance < _CHANCE:
                yield _Rate(key, before, after, chance)


def _told(topic: ChangeTopic, aspect: str, sentence: str, rate: _Rate, keys: tuple[str, ...]) -> DriftChange:
    return DriftChange(
        topic=topic,
        sentence=sentence,
        aspect=aspect,
        keys=keys,
        before=rate.before,
        after=rate.after,
        chance=rate.chance,
        gained=keys[:1] if rate.after > rate.before else (),
    )


def _change(rate: _Rate) -> str:
    if not rate.before:
        return f"new, in {_percent(rate)} of handoffs"
    if not rate.after:
        return f"no longer; was in {rate.before:.0%} of handoffs"
    return f"{rate.before:.0%} → {rate.after:.0%} of handoffs"


def _percent(rate: _Rate) -> str:
    return f"{rate.after:.0%}"


def _subject(constraint: str) -> str:
    """Return the subject of a typed constraint: its key, and where it binds."""
    for operator in _OPERATORS:
        if operator in constraint:
            name, _, rest = constraint.partition(operator)
            return f"{name} {rest[rest.find('(') :] if '(' in rest else ''}"
    return constraint


def _value(constraint: str) -> str:
    for operator in _OPERATORS:
        if operator in constraint:
            return operator.strip() + " " + constraint.partition(operator)[2].partition(" (")[0]
    return constraint


def _find_words(baseline: Counts, window: Counts) -> Iterator[DriftChange]:
    """Yield one change for all words of tasks. Which words they are is only known to who reads the tasks again."""
    rates = [*_rates(baseline, window, "word")]
    if not rates:
        return
    gained = [rate.key for rate in rates if rate.after > rate.before]
    lost = [rate.key for rate in rates if rate.after < rate.before]
    most = min(rates, key=lambda rate: rate.chance)
    yield DriftChange(
        topic=ChangeTopic.WORDING,
        sentence=f"tasks are worded differently: {len(gained)} words more often, {len(lost)} less often",
        aspect="word",
        keys=(*gained, *lost),
        before=most.before,
        after=most.after,
        chance=most.chance,
        gained=tuple(gained),
    )


def _find_ordered(baseline: Counts, window: Counts) -> Iterator[DriftChange]:
    for aspect, (topic, unit) in _ORDERED.items():
        ours, theirs = (_binned(held.get(aspect, NOTHING)) for held in (baseline, window))
        chance, _ = chance_of_order(ours, theirs)
        if chance >= _CHANCE:
            continue
        before, after = _middle(ours, aspect), _middle(theirs, aspect)
        if before and after and 1 / _RATIO < after / before < _RATIO:
            continue
        yield DriftChange(
            topic=topic,
            sentence=_tries(ours, theirs) if aspect == "tries" else f"{topic}: {_told_as(before, after, unit)}",
            aspect=aspect,
            keys=("more" if after > before else "less",),
            before=before,
            after=after,
            chance=chance,
        )


def _told_as(before: float, after: float, unit: str) -> str:
    """Return two magnitudes in words. Bins have no sharp values, so they are rounded to two digits."""
    if unit == "ms":
        return f"about {_seconds(before)} → {_seconds(after)}"
    if unit == "millionths":
        return f"about {before / 1e6:.2g} → {after / 1e6:.2g}"
    return f"about {float(f'{before:.2g}'):,.0f} → {float(f'{after:.2g}'):,.0f} {unit}"


def _seconds(value: float) -> str:
    return f"{value / 1000:.2g} s" if value < _MINUTE else f"{value / _MINUTE:.2g} min"


def _tries(ours: Mapping[int, int], theirs: Mapping[int, int]) -> str:
    again = [1 - held.get(1, 0) / sum(held.values()) for held in (ours, theirs)]
    return f"more than one attempt: {again[0]:.0%} → {again[1]:.0%} of handoffs"


def _binned(held: Mapping[str, int]) -> dict[int, int]:
    return {int(key): count for key, count in held.items()}


def _middle(held: Mapping[int, int], aspect: str) -> float:
    """Return the median of a sample in bins; of attempts, the mean."""
    if aspect == "tries":
        return sum(key * count for key, count in held.items()) / sum(held.values())
    half = sum(held.values()) / 2
    seen = 0
    for key in sorted(held):
        seen += held[key]
        if seen >= half:
            return bin_middle(key)
    return 0.0


def _find_mixed(baseline: Counts, window: Counts) -> Iterator[DriftChange]:
    for aspect, topic in (("order", ChangeTopic.ORDER), ("path", ChangeTopic.STEPS), ("error", ChangeTopic.ERRORS)):
        ours, theirs = baseline.get(aspect, NOTHING), window.get(aspect, NOTHING)
        scaled = (_per_handoff(ours, baseline), _per_handoff(theirs, window))
        yield from _mixed(aspect, topic, scaled, f"{topic}: {_most_moved(ours, theirs, topic)}")
    ours_by, theirs_by = (by_argument(held.get("param", NOTHING)) for held in (baseline, window))
    for where in sorted(ours_by.keys() & theirs_by.keys()):
        scaled = (_per_handoff(ours_by[where], baseline), _per_handoff(theirs_by[where], window))
        words = _most_moved(ours_by[where], theirs_by[where], ChangeTopic.ARGUMENTS)
        yield from _mixed(f"param {where}", ChangeTopic.ARGUMENTS, scaled, f"argument {where}: {words}")


def _per_handoff(held: Mapping[str, int], of: Counts) -> Mapping[str, int]:
    """Return counts as if each handoff counted once: calls of one handoff are no samples of their own."""
    whole, closed = sum(held.values()), counts.closed(of)
    if whole <= closed:
        return held
    return {key: round(count * closed / whole) for key, count in held.items()}


def _mixed(
    aspect: str, topic: ChangeTopic, samples: tuple[Mapping[str, int], Mapping[str, int]], sentence: str
) -> Iterator[DriftChange]:
    one, other = samples
    distance = jensen_shannon(one, other) if any(one.values()) and any(other.values()) else 0.0
    if distance < _DISTANCE:
        return
    chance = chance_of_mixture(one, other)
    if chance < _CHANCE:
        yield DriftChange(
            topic=topic, sentence=sentence, aspect=aspect, keys=(), before=0.0, after=distance, chance=chance
        )


def _most_moved(ours: Mapping[str, int], theirs: Mapping[str, int], topic: str) -> str:
    one, other = max(1, sum(ours.values())), max(1, sum(theirs.values()))
    moved = sorted(
        ours.keys() | theirs.keys(), key=lambda key: (-abs(theirs.get(key, 0) / other - ours.get(key, 0) / one), key)
    )[:_SHOWN]
    return ", ".join(
        f"{_readable(key, topic)} {ours.get(key, 0) / one:.0%} → {theirs.get(key, 0) / other:.0%}" for key in moved
    )


def _readable(key: str, topic: str) -> str:
    if topic == ChangeTopic.ORDER:
        return " → ".join(key.split())
    if topic == ChangeTopic.STEPS:
        return key.replace("^>", "begins with ").replace(">$", " ends it").replace(">", " then ")
    if topic == ChangeTopic.ERRORS:
        return key or "no error"
    return shape_in_words(key)
