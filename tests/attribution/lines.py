"""Lines that know who they are, and merging them: what really happened, for comparing with what is found out."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import count

HUMAN = "human"

WORDS = (
    *("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heath"),
    *("islet", "juniper", "knoll", "larch", "maple", "north", "olive", "pine"),
)
# What everybody writes, again and again: here wrong answers come from.
COMMON = (
    "",
    "",
    "",
    "    pass",
    "    return None",
    "}",
    "    else:",
    "        raise NotImplementedError",
    "    count += 1",
    "    self.assertEqual(response.status_code, 200)",
)

_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Line:
    """One line, from when somebody typed it until somebody else types over it."""

    id: int
    text: str
    run: str  # whoever wrote it: a run, or HUMAN
    call: str  # the call that wrote it; nothing for a human


@dataclass(frozen=True, slots=True)
class Writer:
    """Somebody who types."""

    run: str
    call: str = ""

    def line(self, text: str) -> Line:
        """Return a line that is new."""
        return Line(next(_NUMBERS), text, self.run, self.call)

    def lines(self, texts: Sequence[str]) -> list[Line]:
        """Return lines that are new."""
        return [self.line(text) for text in texts]


def texts_of(lines: Sequence[Line]) -> list[str]:
    return [line.text for line in lines]


def a_strong_text(rng: random.Random) -> str:
    first, second = rng.sample(WORDS, 2)
    return f"    {first}_{rng.randrange(10_000)} = {second}_{rng.randrange(10_000)}(item, {rng.randrange(100)})"


def a_text(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.2:
        return rng.choice(COMMON)
    if kind < 0.3:
        return f"    n{rng.randrange(500)} = {rng.randrange(100)}"
    return a_strong_text(rng)


def a_function(rng: random.Random) -> list[str]:
    body = [a_text(rng) for _ in range(rng.randrange(3, 10))]
    name = f"{rng.choice(WORDS)}_{rng.choice(WORDS)}_{rng.randrange(10_000)}"
    return [f"def {name}(item):", *body, rng.choice(("    return None", "    return item", "    pass")), "", ""]


def reindented(line: Line) -> Line:
    """Return a line as a formatter leaves it."""
    return replace(line, text=f"    {line.text}" if line.text else "")


def slid_down(before: Sequence[Line], after: Sequence[Line]) -> list[Line]:
    """Return after, with one insertion or deletion told as every diff tells it: as far down as it goes."""
    old, new = list(before), list(after)
    known = {line.id for line in old}
    fresh = [index for index, line in enumerate(new) if line.id not in known]
    if fresh and len(new) == len(old) + len(fresh) and fresh == list(range(fresh[0], fresh[0] + len(fresh))):
        return _insertion_slid_down(old, new, fresh[0], len(fresh))
    left = {line.id for line in new}
    gone = [index for index, line in enumerate(old) if line.id not in left]
    if gone and len(old) == len(new) + len(gone) and gone == list(range(gone[0], gone[0] + len(gone))):
        start, size = gone[0], len(gone)
        while start + size < len(old) and old[start].text == old[start + size].text:
            start += 1
        return [*old[:start], *old[start + size :]]
    return new


def _insertion_slid_down(old: Sequence[Line], new: Sequence[Line], start: int, size: int) -> list[Line]:
    added = list(new[start : start + size])
    while start < len(old) and added[0].text == old[start].text:
        added = [*added[1:], replace(added[0], id=next(_NUMBERS))]
        start += 1
    return [*old[:start], *added, *old[start:]]


def merge(base: Sequence[Line], ours: Sequence[Line], theirs: Sequence[Line]) -> list[Line] | None:
    """Return what both sides made of base; None if they contradict each other."""
    mine, yours = _kept(base, ours), _kept(base, theirs)
    merged: list[Line] = []
    at_base = at_mine = at_yours = 0
    for index in [index for index in range(len(base)) if index in mine and index in yours] + [len(base)]:
        end_mine, end_yours = mine.get(index, len(ours)), yours.get(index, len(theirs))
        old, left, right = base[at_base:index], ours[at_mine:end_mine], theirs[at_yours:end_yours]
        if list(left) == list(right) or list(right) == list(old):
            merged += left
        elif list(left) == list(old):
            merged += right
        else:
            return None
        if index < len(base):
            merged.append(base[index])
        at_base, at_mine, at_yours = index + 1, end_mine + 1, end_yours + 1
    return merged if len({line.id for line in merged}) == len(merged) else None


def _kept(base: Sequence[Line], side: Sequence[Line]) -> dict[int, int]:
    matcher = SequenceMatcher(None, base, side, autojunk=False)
    return {a + step: b + step for a, b, size in matcher.get_matching_blocks() for step in range(size)}
