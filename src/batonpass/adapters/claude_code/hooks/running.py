"""What a shell command must not do, whoever asks for it: touch what is protected, run Batonpass, end the recorder."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from batonpass.adapters.claude_code.hooks.protecting import PROGRAMS, Place, Places, resolved
from batonpass.adapters.claude_code.hooks.shell import Command, read_commands

_SHELL: Final = re.compile(r"(?:ba|da|z|k|a|fi)?sh")
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
_TELLING: Final = frozenset({"eval", "trap"})  # what they are told is a command
# They run, fetch or remove what another of their words names.
_WRAPPERS: Final = frozenset(
    [
        "alias",
        "builtin",
        "chroot",
        "command",
        "conda",
        "doas",
        "env",
        "exec",
        "flock",
        "hatch",
        "ionice",
        "nice",
        "nohup",
        "npx",
        "parallel",
        "pdm",
        "pip",
        "pip3",
        "pipx",
        "pixi",
        "poetry",
        "rye",
        "script",
        "setsid",
        "stdbuf",
        "strace",
        "su",
        "sudo",
        "taskset",
        "timeout",
        "unbuffer",
        "uv",
        "uvx",
        "watch",
        "xargs",
    ],
)
DESTROYERS: Final = frozenset(["chattr", "chgrp", "chmod", "chown", "mv", "rm", "rmdir", "shred", "unlink"])
_FILTERS: Final = re.compile(r"-(?:i?name|i?path|i?regex|i?wholename|newer\w*|mmin|mtime|empty|size)")
_OURS: Final = re.compile(rf"(?:{'|'.join(PROGRAMS)})(?:\.exe|[=@<>~!\[].*)?", re.IGNORECASE)
_OUR_MODULE: Final = re.compile(r"\bbatonpass\b", re.IGNORECASE)
_KILLERS: Final = frozenset({"killall", "pkill", "skill"})
_DEEPEST: Final = 4
_MOST_PLACES: Final = 12  # at which a command may be after several `cd`

_LEAVE: Final = "Leave it alone and go on without it; if the task cannot be done so, say that to the user."
_NARROWER: Final = "Name the process that you mean more exactly."


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call must not be made: the rule, and a sentence that the model can act on."""

    rule: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Process:
    """The recorder, as somebody could try to end it."""

    pid: int
    words: tuple[str, ...]


_NOT_YOURS: Final = Refusal(
    "claude-code.batonpass",
    f"`batonpass` is the user's: no agent may run or change it, as it keeps the record of what agents do. {_LEAVE}",
)
_ENDS_RECORDER: Final = Refusal(
    "claude-code.protected",
    f"This would end the process that records this session. {_NARROWER}",
)
_CLEANS_LEDGER: Final = Refusal(
    "claude-code.protected",
    "This would take away ignored files too, and with them the record of this session. Do it without them.",
)


def refuse_place(place: Place) -> Refusal:
    """Return the refusal of what touches a protected place."""
    return Refusal("claude-code.protected", f"{place.path} belongs to {place.what}, which no agent may touch. {_LEAVE}")


def refuse_text(
    text: str,
    *,
    base: str,
    places: Places,
    process: Process | None,
    depth: int = 0,
) -> Refusal | None:
    """Return why a shell must not be told a text; None if nothing speaks against it."""
    if name := places.find_name(text):
        return Refusal("claude-code.protected", f"This command names {name}, which no agent may touch. {_LEAVE}")
    bases = [base]
    for command in read_commands(text):
        if refusal := _refuse_command(command, bases, places, process):
            return refusal
        if command.program in {"cd", "pushd"}:
            bases = _moved(bases, command.words[1:2])
        for inner in _scripts(command) if depth < _DEEPEST else ():
            if refusal := refuse_text(inner, base=base, places=places, process=process, depth=depth + 1):
                return refusal
    return None


def _moved(bases: list[str], words: list[str]) -> list[str]:
    """Return where a shell may be after a `cd`, from wherever it may have been before."""
    reached = (path for word in words for base in bases for path in resolved(word, base))
    # A directory that is only made by this command holds nothing that is protected.
    there = (path for path in reached if os.path.isdir(path))  # noqa: PTH112 - of any text, without an error
    found = list(dict.fromkeys([*bases, *there]))
    return [found[0], *found[1:][-_MOST_PLACES:]]


def _refuse_command(command: Command, bases: list[str], places: Places, process: Process | None) -> Refusal | None:
    if _runs_ours(command):
        return _NOT_YOURS
    if place := _reached(command, bases, places):
        return refuse_place(place)
    if process is not None and _ends(command, process):
        return _ENDS_RECORDER
    return _CLEANS_LEDGER if _cleans(command) else None


def _runs_ours(command: Command) -> bool:
    """Return whether Batonpass is run, by its name, its path, its module, or through another program."""
    if any(_OURS.fullmatch(word.rpartition("/")[2]) for word in _run_by(command)):
        return True
    words = command.words
    if not any(_PYTHON.fullmatch(word.rpartition("/")[2]) for word in _run_by(command)):
        return False
    modules = [word.removeprefix("-m") for word in words if word.startswith("-m")] + _after("m", words)
    return any(map(_OUR_MODULE.match, modules)) or any(map(_OUR_MODULE.search, [*_after("c", words), *command.fed]))


def _run_by(command: Command) -> Iterator[str]:
    """Yield the words of a command that may name a program that is run."""
    yield from command.words[:1]
    if command.program in _WRAPPERS:
        for word in command.words[1:]:
            yield word
            yield word.partition("=")[2]
    elif command.program == "find":
        words = command.words
        yield from (word for option, word in pairwise(words) if re.match("-(exec|ok)", option))


def _after(letter: str, words: list[str]) -> list[str]:
    """Return what follows an option that is one letter, or ends a group of them."""
    return [word for option, word in pairwise(words) if re.fullmatch(f"-[A-Za-z]*{letter}", option)]


def _reached(command: Command, bases: list[str], places: Places) -> Place | None:
    destroys = command.program in DESTROYERS or (
        command.program == "find" and "-delete" in command.words and not any(map(_FILTERS.fullmatch, command.words))
    )
    for word in dict.fromkeys((*command.words, *command.others)):
        if place := places.find_word(word, bases, destroys=destroys):
            return place
    return None


def _ends(command: Command, process: Process) -> bool:
    targets = [word for word in command.words[1:] if word != "--"]
    if command.program == "kill":
        ours = {str(process.pid), f"-{process.pid}"}
        return not ours.isdisjoint(targets) or (len(targets) > 1 and targets[-1] == "-1")
    if command.program not in _KILLERS:
        return False
    whole = any(re.fullmatch(r"-[a-z]*f|--full", word) for word in targets)
    line = " ".join(process.words) if whole else process.words[0].rpartition("/")[2]
    return any(_finds(word, line) for word in targets if not word.startswith("-"))


def _cleans(command: Command) -> bool:
    if command.program != "git":
        return False
    if "clean" in command.words:
        return any(re.fullmatch(r"-[a-zA-Z]*[xX][a-zA-Z]*", word) for word in command.words)
    return "stash" in command.words and any(re.fullmatch(r"-[a-z]*a[a-z]*|--all", word) for word in command.words)


def _scripts(command: Command) -> Iterator[str]:
    """Yield the texts that a command gives to a shell, to be read like the first."""
    if command.program in _TELLING:
        yield " ".join(command.words[1:])
        yield from command.words[1:]
    if any(_SHELL.fullmatch(word.rpartition("/")[2]) for word in _run_by(command)) or command.program == "su":
        yield from command.fed
        yield from _after("c", command.words)
    elif command.program in _WRAPPERS:
        yield from (word for word in command.words[1:] if " " in word)


def _finds(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return pattern in text
