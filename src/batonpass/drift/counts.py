"""Counts by aspect and key, of one handoff or of many. They add up, and can be taken away again exactly.

Everything is an integer, so the order in which handoffs are added makes no difference.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

Counts: TypeAlias = dict[str, dict[str, int]]  # aspect → key → count
NOTHING: Final[Mapping[str, int]] = {}


def add(total: Counts, more: Mapping[str, Mapping[str, int]], sign: int = 1) -> None:
    """Add counts to a total, or take them away with `sign=-1`. Zeros are left out."""
    for aspect, keys in more.items():
        held = total.setdefault(aspect, {})
        for key, count in keys.items():
            if left := held.get(key, 0) + sign * count:
                held[key] = left
            else:
                held.pop(key, None)
        if not held:
            del total[aspect]


def summed(parts: Iterable[Mapping[str, Mapping[str, int]]]) -> Counts:
    """Return the sum of counts."""
    total: Counts = {}
    for part in parts:
        for aspect, keys in part.items():
            held = total.setdefault(aspect, {})
            for key, count in keys.items():
                held[key] = held.get(key, 0) + count
    return total


def encode(counts: Mapping[str, Mapping[str, int]]) -> bytes:
    """Return counts as bytes, the same for the same counts; nothing for none."""
    return json.dumps(counts, sort_keys=True, separators=(",", ":")).encode() if counts else b""


def decode(body: bytes) -> Counts:
    """Return the counts in some bytes."""
    read: Counts = json.loads(body) if body else {}
    return read


def total(counts: Mapping[str, Mapping[str, int]], aspect: str) -> int:
    """Return the sum of all counts of an aspect."""
    return sum(counts.get(aspect, NOTHING).values())


def of(counts: Mapping[str, Mapping[str, int]], aspect: str, key: str) -> int:
    """Return one count."""
    return counts.get(aspect, NOTHING).get(key, 0)


def closed(counts: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many handoffs were closed."""
    return of(counts, "closed", "n")
