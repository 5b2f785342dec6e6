"""Which programs a simple command runs: the one that it names, and those that this one runs in turn.

`env X=1 git push` runs git, and so do `/usr/bin/git push`, `git -C . push` and `find . -exec git push ;`. If the words
of a wrapper cannot be told apart from the program that it runs, each of them may be that program.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from batonpass.handoff.shell.find_expression import FindExpression
from batonpass.handoff.shell.program_words import GIT_TAKES, WRAPPERS, is_known

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_DURATION: Final = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_ALIAS: Final = re.compile(r"alias\.([^=]+)=!?(.*)", re.DOTALL)
_MOST: Final = 64
_DEEPEST: Final = 6
_FUNCTION: Final = 3  # function, its name, and the brace


def programs_of(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of every program that a command may run, as written. The command itself comes first."""
    yield from _programs(list(words), _DEEPEST)


def _programs(words: list[str], depth: int) -> Iterator[list[str]]:
    if not words:
        return
    yield words
    program = base_name(words[0])
    if depth == 0:
        return
    if program in WRAPPERS:
        for at in _may_begin(words):
            yield from _programs(words[at:], depth - 1)
    elif program == "find":
        for inner in FindExpression(words[1:]).programs:
            yield from _programs(inner, depth - 1)
    elif program in {"function", "coproc"}:
        yield from _programs(words[_FUNCTION if program == "function" else 1 :], depth - 1)


def _may_begin(words: list[str]) -> Iterator[int]:
    """Yield where the program may begin in the words of a wrapper. The first known program is the last candidate."""
    for at, word in enumerate(words[1:_MOST], 1):
        if word.startswith("-") or _ASSIGNMENT.fullmatch(word):
            continue
        yield at
        if is_known(base_name(word)):
            return


def program_run_by(words: Sequence[str]) -> list[str] | None:
    """Return the program that a wrapper runs: its words without options, assignments and durations.

    None if the command is no wrapper.
    """
    if not words or base_name(words[0]) not in WRAPPERS:
        return None
    rest = list(words[1:])
    while rest and (rest[0].startswith("-") or _ASSIGNMENT.fullmatch(rest[0]) or _DURATION.fullmatch(rest[0])):
        del rest[0]
    return rest


def spellings_of(words: Sequence[str]) -> Iterator[str]:
    """Yield a command as people write it in rules: by its base name, and without options before its subcommand."""
    name = base_name(words[0]) if words else ""
    yield " ".join(words)
    yield " ".join((name, *words[1:]))
    if name == "git":
        yield from _git(list(words[1:]))
    elif name.startswith("git-"):
        yield " ".join(("git", name.removeprefix("git-"), *words[1:]))
    else:
        yield from (" ".join((name, *words[at:])) for at in _after_options(words))


def _git(words: list[str]) -> Iterator[str]:
    aliases: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-c" and at + 1 < len(words) and (set_to := _ALIAS.fullmatch(words[at + 1])):
            aliases[set_to[1]] = set_to[2]
        at += 2 if words[at] in GIT_TAKES else 1
    rest = words[at:]
    yield " ".join(("git", *rest))
    if rest and rest[0] in aliases:
        # An alias that begins with `!` is a command of its own.
        yield " ".join((aliases[rest[0]], *rest[1:]))
        yield " ".join(("git", aliases[rest[0]], *rest[1:]))


def _after_options(words: Sequence[str]) -> Iterator[int]:
    """Yield where the first word may be that is neither an option nor the value of one."""
    waiting, seen = [1], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen or at >= min(len(words), _MOST):
            continue
        seen.add(at)
        if words[at].startswith("-"):
            waiting += [at + 1, at + 2]
        else:
            yield at


def base_name(program: str) -> str:
    """Return the name of a program without its directory."""
    return program.rpartition("/")[2]
