"""The Agent Stability Index: how like its baseline a window of handoffs is, from 1 (the same) to 0.

Twelve dimensions in four groups, each in [0, 1]. A dimension for which there is no data is left out, the weights of the
others are scaled up, and the coverage says how much of the whole was there. A missing one never counts as stable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from batonpass.drift import counts
from batonpass.drift.counts import NOTHING, Counts
from batonpass.drift.statistics import cramers_v, edit_distance, jensen_shannon

ALARM_BELOW: Final = 0.75
FEWEST: Final = 20  # closed handoffs in a window, and samples of a confidence
GROUPS: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    "consistency": (0.30, ("wording of reports", "steps", "confidence")),
    "tools": (0.25, ("choice of tools", "order of tools", "arguments")),
    "interaction": (0.25, ("agreement", "handoffs", "roles")),
    "behaviour": (0.20, ("length", "errors", "overrides")),
}
_TOP: Final = 5  # orders of the baseline that others are compared with
_ORDERS: Final = 64  # the most frequent ones of a window
_UNIT: Final = 1_000_000  # the square of a vector's length
_ERRORS: Final = 5  # the mixture of fewer is chance
_ALIKE: Final = 0.05  # reports that are less like each other than this have no common wording


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """The index of one window, with its dimensions."""

    value: float | None  # None if no dimension has data
    coverage: float  # how much of the weights has data
    dimensions: Mapping[str, float]  # those that have data


def stability(baseline: Counts, window: Counts, roles: float | None = None) -> Stability:
    """Return the index of a window against a baseline. `roles` is the dimension that takes the whole fleet."""
    found = {
        "wording of reports": _reports(baseline, window),
        "steps": _distance(baseline, window, "path"),
        "confidence": _confidence(window),
        "choice of tools": _tools(baseline, window),
        "order of tools": _order(baseline, window),
        "arguments": _arguments(baseline, window),
        "agreement": _agreement(baseline, window),
        "handoffs": _handoffs(baseline, window),
        "roles": roles,
        "length": _length(baseline, window),
        "errors": _errors(baseline, window),
        "overrides": 1 - counts.of(window, "human", "overridden") / counts.closed(window),
    }
    there = {name: min(1.0, max(0.0, value)) for name, value in found.items() if value is not None}
    weighed = whole = coverage = 0.0
    for weight, names in GROUPS.values():
        known = [there[name] for name in names if name in there]
        coverage += weight * len(known) / len(names)
        if known:
            weighed += weight * sum(known) / len(known)
            whole += weight
    return Stability(value=weighed / whole if whole else None, coverage=coverage, dimensions=there)


def _distance(baseline: Counts, window: Counts, aspect: str) -> float | None:
    one, other = baseline.get(aspect, NOTHING), window.get(aspect, NOTHING)
    return 1 - sqrt(jensen_shannon(one, other)) if one and other else None


def _reports(baseline: Counts, window: Counts) -> float | None:
    """Compare close-out texts by their words, each template of tasks with itself."""
    ours, theirs = _vectors(baseline), _vectors(window)
    found = weight = 0.0
    for template, (number, vector) in theirs.items():
        known, mean = ours.get(template, (0, NOTHING))
        if known < len(("two", "texts")):
            continue  # it does not recur
        own = (sum(value * value for value in mean.values()) / _UNIT - known) / (known * (known - 1))
        if own < _ALIKE:
            continue
        across = sum(value * mean.get(place, 0) for place, value in vector.items()) / _UNIT / (number * known)
        found += number * min(1.0, max(0.0, across / own))
        weight += number
    return found / weight if weight else None


def _vectors(held: Counts) -> dict[str, tuple[int, dict[str, int]]]:
    numbers: dict[str, int] = {}
    vectors: dict[str, dict[str, int]] = {}
    for key, count in held.get("said", NOTHING).items():
        template, _, place = key.partition(" ")
        if place == "n":
            numbers[template] = count
        else:
            vectors.setdefault(template, {})[place] = count
    return {template: (number, vectors.get(template, {})) for template, number in numbers.items()}


def _confidence(window: Counts) -> float | None:
    """Return 1 less the expected calibration error in ten bins, if enough stated confidences have a verdict."""
    held = window.get("confidence", NOTHING)
    right, wrong, said = ({key.split()[0]: n for key, n in held.items() if key.endswith(end)} for end in _CALIBRATED)
    whole = sum(right.values()) + sum(wrong.values())
    if whole < FEWEST:
        return None
    error = 0.0
    for place in right.keys() | wrong.keys():
        number = right.get(place, 0) + wrong.get(place, 0)
        error += number / whole * abs(said.get(place, 0) / number / 1000 - right.get(place, 0) / number)
    return 1 - error


_CALIBRATED: Final = (" verified", " refuted", " sum")


def _tools(baseline: Counts, window: Counts) -> float | None:
    one, other = baseline.get("tool", NOTHING), window.get("tool", NOTHING)
    return 1 - cramers_v(one, other) if one or other else None


def _order(baseline: Counts, window: Counts) -> float | None:
    ours, theirs = baseline.get("order", NOTHING), window.get("order", NOTHING)
    if not ours or not theirs:
        return None
    usual = [order.split() for order in _most_frequent(ours, _TOP)]
    return 1 - max(0.0, _strangeness(theirs, usual) - _strangeness(ours, usual))


def _most_frequent(held: Mapping[str, int], most: int) -> list[str]:
    return sorted(held, key=lambda key: (-held[key], key))[:most]


def _strangeness(orders: Mapping[str, int], usual: Sequence[Sequence[str]]) -> float:
    """Return the mean distance of orders to the nearest of the usual ones."""
    seen = _most_frequent(orders, _ORDERS)
    whole = sum(orders[order] for order in seen)
    nearest = ((orders[order], min(edit_distance(order.split(), one) for one in usual)) for order in seen)
    return sum(number * distance for number, distance in nearest) / whole


def by_argument(held: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the shapes of arguments by tool and path."""
    found: dict[str, dict[str, int]] = {}
    for key, count in held.items():
        where, _, shape = key.rpartition("=")
        found.setdefault(where, {})[shape] = count
    return found


def _arguments(baseline: Counts, window: Counts) -> float | None:
    ours, theirs = by_argument(baseline.get("param", NOTHING)), by_argument(window.get("param", NOTHING))
    if not ours or not theirs:
        return None
    found = weight = 0.0
    for where, shapes in theirs.items():
        number = sum(shapes.values())
        found += number * jensen_shannon(ours.get(where, NOTHING), shapes)
        weight += number
    return 1 - found / weight


def _agreement(baseline: Counts, window: Counts) -> float | None:
    usual = counts.of(baseline, "agreed", "n") / counts.closed(baseline)
    return counts.of(window, "agreed", "n") / counts.closed(window) / usual if usual else None


def _handoffs(baseline: Counts, window: Counts) -> float | None:
    usual, now = (counts.total(held, "load") / counts.closed(held) for held in (baseline, window))
    return usual / now if now else None


def _length(baseline: Counts, window: Counts) -> float | None:
    texts = [counts.of(held, "length", "n") for held in (baseline, window)]
    if not all(texts):
        return None
    usual, now = (counts.of(held, "length", "bytes") / n for held, n in zip((baseline, window), texts, strict=True))
    return 1 - min(1.0, abs(now - usual) / usual) if usual else None


def _errors(baseline: Counts, window: Counts) -> float | None:
    """Compare errors with errors by their codes; None for a window with hardly any."""
    # Calls that went well have no code. Counted as one more, they are most of all calls and hide whatever goes wrong.
    ours, theirs = ({code: n for code, n in held.get("error", NOTHING).items() if code} for held in (baseline, window))
    if sum(theirs.values()) < _ERRORS:
        return None
    unseen = sum(count for code, count in theirs.items() if code not in ours) / sum(theirs.values())
    return (1 - jensen_shannon(ours, theirs)) * (1 - unseen)
