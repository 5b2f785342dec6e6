"""Weeks of a fleet as counts, from a seed: what roll-ups of real handoffs hold, without the handoffs."""

from datetime import date, timedelta
from random import Random
from typing import Final

from batonpass.drift.change import ChangeTopic
from batonpass.drift.closed_handoff import DIMENSIONS
from batonpass.drift.counts import Counts, add
from batonpass.drift.drift import DayCounts, DaySpan, DriftQuestion
from batonpass.drift.shape_of_text import log_bin, slot, vector_of
from batonpass.model.base.ids import AgentId

MONDAY: Final = date(2026, 3, 2)
USUAL: Final = [
    "amounts",
    "vendor",
    "invoice",
    "total",
    "matched",
    "threshold",
    "anomaly",
    "flagged",
    "checked",
    "ledger",
    "month",
    "quarter",
]
OTHER: Final = [
    "certainly",
    "delightful",
    "overview",
    "findings",
    "summary",
    "pleased",
    "comprehensive",
    "insights",
    "highlights",
    "overall",
]
CHANGES: Final = (
    "a silent model swap",
    "a prompt change",
    "a threshold change",
    "a wider scope",
    "a new delegation path",
)


# What each change is named as.
TOPICS: Final = {
    "a silent model swap": {ChangeTopic.ORDER, ChangeTopic.LENGTH},
    "a prompt change": {ChangeTopic.TOOLS},
    "a threshold change": {ChangeTopic.CONSTRAINTS},
    "a wider scope": {ChangeTopic.SCOPE},
    "a new delegation path": {ChangeTopic.DELEGATION},
}


def weeks_of_a_fleet(
    seed: int, *, weeks: int = 8, change: str | None = None, since: int = 4, a_week: int = 24
) -> list[DayCounts]:
    """Return the days of a fleet of three agents, of which the analyst changes after some weeks."""
    chance = Random(seed)
    days: list[DayCounts] = []
    for number in range(weeks * 7):
        for agent, share in (("analyst", 1), ("collector", 2), ("drafter", 1)):
            held: Counts = {}
            for _ in range(_poisson(chance, a_week * share / 7)):
                changed = change if agent == "analyst" and number >= since * 7 else None
                add(held, a_handoff(chance, changed))
            if held:
                at = MONDAY + timedelta(days=number)
                days.append(DayCounts(agent=AgentId(agent), task_kind=_KINDS[agent], config="", day=at, counts=held))
    return days


_KINDS: Final = {"analyst": "analysis", "collector": "collecting", "drafter": "writing"}


def _poisson(chance: Random, mean: float) -> int:
    """Return a number of events, as they come by themselves."""
    number, left = 0, chance.expovariate(1)
    while left < mean:
        number += 1
        left += chance.expovariate(1)
    return number


def question(weeks: int = 8) -> DriftQuestion:
    """Ask about all weeks."""
    return DriftQuestion(span=DaySpan(first=MONDAY, last=MONDAY + timedelta(days=7 * weeks - 1)))


_ORDERS: Final = {
    False: ("read find write", "read find find write", "read write"),
    True: ("find read write", "search find write", "read find write"),
}


def a_handoff(chance: Random, change: str | None = None) -> Counts:
    """Return what one handoff came to."""
    swapped, prompted = change == "a silent model swap", change == "a prompt change"
    tools = chance.choices([order.split() for order in _ORDERS[swapped]], (6, 3, 1))[0]
    if prompted and chance.random() < 0.9:
        tools = [*tools, "summarise"]
    refuted = chance.random() < 0.06
    length = int(chance.lognormvariate(6.2, 0.4) * (2.2 if swapped else 0.4 if prompted else 1))
    failed = chance.random() < (0.2 if swapped else 0.04)
    took = int(chance.lognormvariate(10, 0.5))
    held: Counts = {
        "closed": {"n": 1},
        "from": {"intern" if change == "a new delegation path" and chance.random() < 0.6 else "lead": 1},
        "constraint": {f"threshold >= {2.5 if change == 'a threshold change' else 3.0} sigma": 1},
        "granted": {"read:data/**": 1, "write:reports/**": 1},
        "used": {"read:data/**": 1, "write:reports/**": 1},
        "end": {"completed": 1},
        "standing": {"refuted" if refuted else "verified": 1},
        "tries": {"2" if failed else "1": 1},
        "load": {"attempts": 2 if failed else 1},
        "uses": dict.fromkeys(tools, 1),
        "tool": {tool: tools.count(tool) for tool in tools},
        "order": {" ".join(tools): 1},
        "path": _path(tools, failed=failed),
        "error": {"": len(tools)} | ({"timeout" if not swapped else "tool.rejected": 1} if failed else {}),
        "param": _arguments(tools, chance.choice((4, 5, 5, 6))),
        "length": {"bytes": length, "n": 1},
        "size": {str(log_bin(length)): 1},
        "duration": {str(log_bin(took * (2 if swapped else 1))): 1},
        "word": {str(slot(word, 256)): 1 for word in chance.sample(USUAL, 8)},
        "said": _said(chance, OTHER if swapped or prompted else USUAL),
        "confidence": {f"8 {'refuted' if refuted else 'verified'}": 1, "8 sum": 880},
    }
    if change == "a wider scope":
        held["granted"]["write:**"] = 1
        if chance.random() < 0.5:
            held["used"]["write:config/**"] = 1
    if not refuted and not failed:
        held["agreed"] = {"n": 1}
    return {aspect: {key: count for key, count in keys.items() if count} for aspect, keys in held.items()}


def _arguments(tools: list[str], length: int) -> dict[str, int]:
    """Return the shape of the one argument that each tool takes."""
    shapes = {
        "read": f"read.path=path.{length}",
        "find": "find.threshold=number.3",
        "search": "search.query=word.4",
        "write": "write.path=path.5",
        "summarise": "summarise.text=prose.9",
    }
    return {shapes[tool]: tools.count(tool) for tool in tools}


def _path(tools: list[str], *, failed: bool) -> dict[str, int]:
    kinds = ["^", "handoff.accepted"]
    for _ in tools:
        kinds += ["tool.requested", "tool.completed"]
    kinds += ["tool.requested", "tool.failed"] if failed else []
    found: dict[str, int] = {}
    for one, other in zip(kinds, [*kinds[1:], "handoff.completed"], strict=True):
        found[f"{one}>{other}"] = found.get(f"{one}>{other}", 0) + 1
    return found


def _said(chance: Random, words: list[str]) -> dict[str, int]:
    places = vector_of(chance.sample(words, 6), DIMENSIONS)
    length = sum(count * count for count in places.values()) ** 0.5
    return {"1 n": 1} | {f"1 {place}": round(1000 * count / length) for place, count in places.items()}
