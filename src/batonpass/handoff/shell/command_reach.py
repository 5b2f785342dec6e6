"""The paths that a shell command reads, changes or removes, and the programs that no agent may run.

A shell can compute any word, and a program can do anything with one. So this is a net, not a wall: it knows how common
programs use their words. For other programs it assumes the worst if the run is enforced, and reading if it is observed.
"""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Final

from msgspec import Struct

from batonpass.handoff.files.path_spellings import LONGEST_PATH, as_path, leads_to, spellings
from batonpass.handoff.files.protected_paths import (
    PROGRAM,
    PROGRAMS,
    RUNS,
    Access,
    Protected,
    ProtectedFinding,
    Reach,
    RecorderProcess,
)
from batonpass.handoff.shell.command_text import LONGEST, SimpleCommand, read_commands, unbraced
from batonpass.handoff.shell.directory_use import find_taken, takes_names_from_input, tree_uses
from batonpass.handoff.shell.program_words import RUNS_NEXT, WRAPPERS, takes_ignored_files, uses_of

_SHELL: Final = re.compile(r"(?:ba|da|z|k|a|fi)?sh")
_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
_INTERPRETER: Final = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|osascript|rscript|g?awk|mawk|nawk|ed|ex|vim?)[0-9.]*",
    re.IGNORECASE,
)
_TELLING: Final = frozenset({"eval", "trap"})  # their words are a command
# These take file names from the output of other commands. Then words that are only printed may be paths too.
_LISTENERS: Final = frozenset(
    {"cpio", "mapfile", "parallel", "read", "readarray", "rsync", "source", "tar", "xargs", "."}
)
_DIRECTORY: Final = re.compile(r"--(?:directory|chdir|cwd|work-tree|prefix)=(.*)|-C(.+)", re.DOTALL)


_GLOB: Final = re.compile(r"[*?\[]")
_OURS: Final = re.compile(rf"(?:{'|'.join(PROGRAMS)})(?:\.exe|[=@<>~!\[].*)?", re.IGNORECASE)
_OUR_MODULE: Final = re.compile(r"(?<![.\w])batonpass\b(?!\.toml)", re.IGNORECASE)
_KILLERS: Final = frozenset({"killall", "pkill", "skill"})
# These start programs for which nobody waits.
_DETACHERS: Final = frozenset(
    {"at", "batch", "crontab", "daemonize", "disown", "screen", "setsid", "start-stop-daemon", "systemd-run", "tmux"}
)
_DEEPEST: Final = 4
_MOST_PLACES: Final = 12  # in which a command may run after several `cd`
_MOST_EXPANDED: Final = 200
_MOST_PATTERNS: Final = 2  # in one word that is expanded: with more it may take long

# Names of protected places, inside a program that is given as one word or in a word that the shell computes.
_NAMED: Final = re.compile(
    r"(?<![\w-])(?:\.batonpass(?![\w-])|\.claude/+settings(?:\.local)?\.json|batonpass\.toml|\.mcp\.json(?![\w.-])"
    r"|\.git/+(?:hooks(?![\w-])|config(?![\w.-])))",
    re.IGNORECASE,
)
_NAMED_KEY: Final = re.compile(r"(?<![\w-])\.batonpass/+[^\s\"'`]*\.key", re.IGNORECASE)

_RUNS_OURS: Final = ProtectedFinding(
    "run or change `batonpass`, which is the user's and keeps the record of what agents do", what=RUNS
)
_ENDS_RECORDER: Final = ProtectedFinding(
    "end the process that records this session", "name the process that you mean more exactly", what=PROGRAM
)


class _Placed(Struct, frozen=True):
    """A command, and the directories in which it may run."""

    command: SimpleCommand
    bases: tuple[str, ...]


def find_in_shell(
    text: str, bases: Sequence[str], protected: Protected, *, enforced: bool, reads: bool = False
) -> ProtectedFinding | None:
    """Return why a shell must not execute a text; None if it may.

    `reads` says that programs unknown to us change nothing.
    """
    if len(text) > LONGEST:
        return _by_name(text, enforced=enforced)
    unknown = Access.CHANGES if enforced and not reads else Access.READS
    placed = list(_read(text, tuple(bases)))
    return _find_named(text, placed, protected, unknown, enforced=enforced) or _find_around(
        placed, protected, unknown, enforced=enforced
    )


def _find_named(
    text: str, placed: Sequence[_Placed], protected: Protected, unknown: Access, *, enforced: bool
) -> ProtectedFinding | None:
    """Return why commands must not run, because of a path that their words name."""
    listened = _is_listened_to(text) or any(
        one.command.program in _LISTENERS or _is_script_of(one.command) for one in placed
    )
    seen: set[tuple[str, Access, tuple[str, ...]]] = set()
    for one in placed:
        if found := _forbidden(one.command, protected.process) if enforced else None:
            return found
        for word, access in uses_of(one.command, listened=listened):
            known = (word, unknown if access is None else access, one.bases)
            if known in seen:
                continue
            seen.add(known)
            if found := protected.find(_reaches(*known), enforced=enforced):
                return found
        for written in _programs_in(one.command):
            if found := _by_name(written, enforced=enforced):
                return found
        if found := protected.find(_whole_places(one), enforced=enforced):
            return found
    return None


def _find_around(
    placed: Sequence[_Placed], protected: Protected, unknown: Access, *, enforced: bool
) -> ProtectedFinding | None:
    """Return why commands must not use whole directories that contain the record; None if they may.

    An observed run may read such directories: it does not name a key.
    """
    taken, done = find_taken([one.command for one in placed])
    for one in placed:
        for use in tree_uses(one.command, taken=taken, access=done):
            access = unknown if use.access is None else use.access
            if not enforced and access < Access.CHANGES:
                continue
            ways = (way for each in unbraced(use.start) for way in spellings(each))
            for root in dict.fromkeys(root for way in ways for root in leads_to(way, one.bases)):
                if found := protected.find_around(use, root, access, enforced=enforced):
                    return found
    return None


def find_in_words(
    words: Sequence[str], bases: Sequence[str], protected: Protected, *, enforced: bool, reads: bool = False
) -> ProtectedFinding | None:
    """Return why a program must not run with these arguments, without a shell; None if it may."""
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    return find_in_shell(quoted, bases, protected, enforced=enforced, reads=reads)


def takes_names(words: Sequence[str]) -> bool:
    """Return whether a command uses its input as commands or file names, not only as text."""
    name = words[0].rpartition("/")[2]
    return (
        name in _LISTENERS or name in WRAPPERS or _is_script_of(SimpleCommand([name])) or takes_names_from_input(words)
    )


def goes_on_after(text: str) -> bool:
    """Return whether part of a command may still run after it returned, as far as its text shows."""
    commands = scripts_in(text)
    return len(text) > LONGEST or any(
        one.detached or any(word.rpartition("/")[2] in _DETACHERS for word in _run_by(one)) for one in commands
    )


def scripts_in(text: str, bases: Sequence[str] = ()) -> list[SimpleCommand]:
    """Return the simple commands in a text, and those in texts that it passes to a shell."""
    return [one.command for one in _read(text, tuple(bases))]


def _read(text: str, bases: tuple[str, ...], depth: int = 0, given: Sequence[str] = ()) -> Iterator[_Placed]:
    """Yield the commands in a text, and those in texts that it passes to a shell, with their directories.

    `given` are the arguments of a script: `sh -c 'cat $0$1' a b`.
    """
    known = {"HOME": os.path.expanduser("~"), **({"PWD": bases[0]} if bases else {})}  # noqa: PTH111 - a text is wanted
    known |= {str(number): word for number, word in enumerate(given)}
    here = list(bases)
    for command in read_commands(text, known):
        yield _Placed(command, tuple(_moved(here, _directories(command))))
        if command.program in {"cd", "pushd"}:
            here = _moved(here, command.words[1:])
        for inner in scripts_of(command) if depth < _DEEPEST else ():
            yield from _read(inner.text, tuple(here), depth + 1, inner.given)


def _moved(bases: list[str], words: Iterable[str]) -> list[str]:
    """Return where a shell may be after a `cd`, from each directory in which it may have been before."""
    reached = (path for word in words if len(word) <= LONGEST_PATH for path in leads_to(_home(word), bases))
    # A directory that this command creates itself cannot contain anything protected.
    there = (path for path in reached if os.path.isdir(path))  # noqa: PTH112 - of any text, without an error
    # A `cd` may fail or may be in a branch that is not taken, so the old directories stay candidates.
    found = list(dict.fromkeys([*bases, *there]))
    return [*found[:1], *found[1:][-_MOST_PLACES:]]


def _home(word: str) -> str:
    return os.path.expanduser(word) if "\0" not in word else ""  # noqa: PTH111 - a text is wanted


def _directories(command: SimpleCommand) -> Iterator[str]:
    """Yield the directories in which a command is told to work: `git -C x`, `make -Cx`, `tar --directory=x`."""
    for option, word in pairwise(command.words):
        if option in {"-C", "--directory", "--chdir", "--cwd", "--work-tree"}:
            yield word
    for word in command.words[1:]:
        if found := _DIRECTORY.fullmatch(word):
            yield found[1] or found[2] or ""


def _is_listened_to(text: str) -> bool:
    return any(sign in text for sign in ("|", "`", "$(", "<(", ">("))


def _is_script_of(command: SimpleCommand) -> bool:
    return bool(_SHELL.fullmatch(command.program) or _INTERPRETER.fullmatch(command.program))


def _reaches(word: str, access: Access, bases: tuple[str, ...]) -> Iterator[Reach]:
    for unfolded in unbraced(word):
        path = as_path(unfolded)
        for one in () if path is None else spellings(path):
            if _GLOB.search(one):
                yield from _expanded(one, access, bases)
            yield from (Reach(path, access) for path in leads_to(one, bases))


def _expanded(word: str, access: Access, bases: tuple[str, ...]) -> Iterator[Reach]:
    """Yield the matches of a pattern: the pattern itself, for future files, and the files and links that exist now."""
    parts = word.split("/")
    at = [number for number, part in enumerate(parts) if _GLOB.search(part)]
    # The rest after the last pattern need not exist yet.
    start, rest = "/".join(parts[: at[-1] + 1]), "/".join(parts[at[-1] + 1 :])
    few = len(at) <= _MOST_PATTERNS and "**" not in word
    for base in bases:
        yield Reach(os.path.normpath(os.path.join(base, word)), access, pattern=True)  # noqa: PTH118 - as it is written
        try:
            found = list(islice(glob.iglob(os.path.join(base, start)), _MOST_EXPANDED)) if few else []  # noqa: PTH118, PTH207 - of any text
        except (OSError, ValueError, re.error):
            continue
        yield from (Reach(path, access) for one in found for path in leads_to(os.path.join(one, rest), [base]))  # noqa: PTH118 - as above


def _whole_places(placed: _Placed) -> Iterator[Reach]:
    """Yield the directories from which git removes ignored files. The record is among those."""
    if takes_ignored_files(placed.command):
        yield from (Reach(path, Access.REPLACES) for base in placed.bases for path in leads_to(".", [base]))


def _programs_in(command: SimpleCommand) -> Iterator[str]:
    """Yield the words that are, or may become, a program in another language, or that only a shell can compute."""
    if any(_INTERPRETER.fullmatch(word.rpartition("/")[2]) for word in _run_by(command)):
        yield from (*command.words, *command.fed)
    words = (*command.words, *command.read_from, *command.written_to)
    yield from (word for word in words if "$" in word and not re.search(r"\s", word))


def _by_name(text: str, *, enforced: bool) -> ProtectedFinding | None:
    pattern = _NAMED if enforced else _NAMED_KEY
    for spelled in (text, re.sub(r"[\"'\\]", "", text)):
        if found := pattern.search(spelled):
            return ProtectedFinding(f"touch {found[0]}, which its text names")
    return None


def _forbidden(command: SimpleCommand, process: RecorderProcess | None) -> ProtectedFinding | None:
    if _runs_ours(command):
        return _RUNS_OURS
    return _ENDS_RECORDER if process is not None and _ends(command, process) else None


def _runs_ours(command: SimpleCommand) -> bool:
    """Return whether a command runs Batonpass: by name, path or module, or through another program."""
    if any(_OURS.fullmatch(word.rpartition("/")[2]) for word in _run_by(command)):
        return True
    words = command.words
    if not any(_PYTHON.fullmatch(word.rpartition("/")[2]) for word in _run_by(command)):
        return False
    modules = [word.removeprefix("-m") for word in words if word.startswith("-m")] + _after("m", words)
    return any(map(_OUR_MODULE.match, modules)) or any(map(_OUR_MODULE.search, [*_after("c", words), *command.fed]))


def _run_by(command: SimpleCommand) -> Iterator[str]:
    """Yield the words of a command that may name a program to run."""
    yield from command.words[:1]
    if command.program in WRAPPERS:
        for word in command.words[1:]:
            yield word
            yield word.partition("=")[2]
    elif command.program == "find":
        yield from (word for option, word in pairwise(command.words) if RUNS_NEXT.fullmatch(option))


def _after(letter: str, words: list[str]) -> list[str]:
    """Return the words after an option of one letter, or after a group of options that ends in it."""
    return [word for option, word in pairwise(words) if re.fullmatch(f"-[A-Za-z]*{letter}", option)]


def _ends(command: SimpleCommand, process: RecorderProcess) -> bool:
    targets = [word for word in command.words[1:] if word != "--"]
    if command.program == "kill":
        ours = {str(process.pid), f"-{process.pid}"}
        return not ours.isdisjoint(targets) or (len(targets) > 1 and targets[-1] == "-1")
    if command.program not in _KILLERS:
        return False
    whole = any(re.fullmatch(r"-[a-z]*f|--full", word) for word in targets)
    line = " ".join(process.words) if whole else process.words[0].rpartition("/")[2]
    return any(_matches(word, line) for word in targets if not word.startswith("-"))


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return pattern in text


class Script(Struct, frozen=True):
    """A text that a command passes to a shell, with the arguments of that shell."""

    text: str
    given: tuple[str, ...] = ()


def scripts_of(command: SimpleCommand) -> Iterator[Script]:
    """Yield the texts that a command passes to a shell. They are read like the first text."""
    words = command.words
    if command.program in _TELLING:
        yield Script(" ".join(words[1:]))
        yield from map(Script, words[1:])
    if any(_SHELL.fullmatch(word.rpartition("/")[2]) for word in _run_by(command)) or command.program == "su":
        yield from map(Script, command.fed)
        yield from (
            Script(words[at + 1], tuple(words[at + 2 :]))
            for at, option in enumerate(words[:-1])
            if re.fullmatch(r"-[A-Za-z]*c", option)
        )
    elif command.program in WRAPPERS:
        yield from (Script(word) for word in words[1:] if " " in word)
