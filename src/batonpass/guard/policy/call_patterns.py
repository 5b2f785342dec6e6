"""Whether a rule names a call: by tool, and by the object of the call. Decided from values alone.

A rule that holds or denies has to be hard to avoid, and a rule that lets calls go on hard to stretch. So each call
comes with two lists of its objects. One spelling in `spelled` is enough for the former; the latter, and the exceptions
of a rule, must cover everything in `written`.
"""

from collections.abc import Sequence
from enum import Enum, auto

from batonpass.guard.policy.name_patterns import glob
from batonpass.model.base.value import Value
from batonpass.model.policy.tool_pattern import ToolPattern


class Used(Enum):
    """The kind of object of a call, which decides how a pattern in brackets is read."""

    COMMAND = auto()  # `git *` is git with or without more words; `make` is only that
    PATH = auto()  # relative to a root; `//` begins an absolute path
    DOMAIN = auto()  # and the domains below it
    NAME = auto()


class UsedOn(Value, frozen=True, kw_only=True):
    """The object of a call, in each spelling."""

    kind: Used
    written: tuple[str, ...] = ()  # as it is written, with everything that it leads to
    spelled: tuple[str, ...] = ()  # in every spelling that a rule may use
    roots: tuple[str, ...] = ()  # where relative paths begin, as given and after links were followed
    home: str = ""
    unreadable: bool = False  # too long to be understood: it may be anything


def is_named(patterns: Sequence[ToolPattern], names: Sequence[str], used: UsedOn | None) -> bool:
    """Return whether a pattern names the call in any spelling: for rules that hold or deny."""
    fitting = [pattern for pattern in patterns if _is_tool(pattern, names)]
    if used is None or used.unreadable:
        return any(pattern.of is None or used is not None for pattern in fitting)
    return any(
        pattern.of is None or any(_fits(pattern.of, one, used, blind=True) for one in used.spelled)
        for pattern in fitting
    )


def is_covered(patterns: Sequence[ToolPattern], names: Sequence[str], used: UsedOn | None) -> bool:
    """Return whether patterns name all that the call does: for rules that let calls go on, and for exceptions."""
    fitting = [pattern for pattern in patterns if _is_tool(pattern, names)]
    if any(pattern.of is None for pattern in fitting):
        return True
    if used is None or not used.written:
        return False
    return all(
        any(_fits(pattern.of, one, used, blind=False) for pattern in fitting if pattern.of is not None)
        for one in used.written
    )


def _is_tool(pattern: ToolPattern, names: Sequence[str]) -> bool:
    return any(glob(pattern.tool, across=True).fullmatch(name) is not None for name in names)


def _fits(pattern: str, text: str, used: UsedOn, *, blind: bool) -> bool:
    match used.kind:
        case Used.COMMAND:
            return _is_command(pattern, text)
        case Used.PATH:
            wanted = {_absolute(pattern, root, used.home) for root in used.roots}
            return any(glob(one, blind=blind).fullmatch(text) is not None for one in wanted)
        case Used.DOMAIN:
            domain = pattern.removeprefix("domain:").lower()
            return text == domain or text.endswith(f".{domain}")
        case Used.NAME:
            return glob(pattern).fullmatch(text) is not None


def _is_command(pattern: str, text: str) -> bool:
    # `git:*` is Claude Code's older notation for a prefix.
    begins = pattern.removesuffix(":*") if pattern.endswith(":*") else None
    if begins is None and pattern.endswith(" *"):
        begins = pattern.removesuffix(" *")
    if begins is None:
        return glob(pattern, across=True).fullmatch(text) is not None
    return any(glob(one, across=True).fullmatch(text) is not None for one in (begins, f"{begins} *"))


def _absolute(pattern: str, root: str, home: str) -> str:
    if pattern.startswith("//"):
        return pattern[1:]
    if pattern.startswith("~/"):
        return f"{home}{pattern[1:]}"
    return f"{root}/{pattern.removeprefix('./').removeprefix('/')}"
