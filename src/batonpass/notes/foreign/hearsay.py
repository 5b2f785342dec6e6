"""The claim of an unsigned source about a line. It is never more than that: nobody can be held to it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

_LONGEST: Final = 120


class HearsaySource(StrEnum):
    """Which tool's words they are."""

    GIT_AI = "git-ai"
    AGENT_TRACE = "agent-trace"
    ENTIRE = "entire"
    CO_AUTHORED = "co-authored-by"
    ASSISTED = "assisted-by"


class HearsayReach(StrEnum):
    """The subject of a claim."""

    LINE = "line"  # exactly this line
    NEARBY = "nearby"  # a line with this number, before or after the commit
    COMMIT = "commit"  # the commit as a whole


class Hearsay(Struct, frozen=True, kw_only=True):
    """Who wrote a line or took part in its commit, as another tool says."""

    source: HearsaySource
    reach: HearsayReach
    by: str  # an agent, or a human
    is_human: bool = False
    model: str | None = None
    human: str | None = None  # for whom an agent worked
    session: str | None = None


class SaidOf(Struct, frozen=True, kw_only=True):
    """The claim about a range of lines, first to last."""

    first: int
    last: int
    hearsay: Hearsay


def shown(words: object) -> str | None:
    """Return somebody's words on one line and not too long; None if there are none."""
    if not isinstance(words, str):
        return None
    # Cut before it is split: it may be megabytes.
    line = " ".join(words[: 4 * _LONGEST].split())
    return f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line or None


def settle(said: Sequence[SaidOf], lines: Iterable[int]) -> dict[int, Hearsay]:
    """Return the claims about these lines; of several, the last counts.

    Takes as long as there are ranges and lines, however many lines a range claims.
    """
    left = sorted(set(lines))
    found: dict[int, Hearsay] = {}
    for one in reversed(said):
        begin, end = bisect_left(left, one.first), bisect_right(left, one.last)
        if begin < end:
            found.update(dict.fromkeys(left[begin:end], one.hearsay))
            del left[begin:end]
        if not left:
            break
    return found
