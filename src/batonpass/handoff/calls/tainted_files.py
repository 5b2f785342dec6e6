"""Files between runs: what a tainted run writes says so, and a call that names such a file takes in what it knew.

A file launders nothing, within one tree and from one to the next. Whatever a call names is looked at: what a tool reads
is its own affair, and what it opens to write it may read.
"""

import glob
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import NotFoundError, StoreError
from batonpass.handoff.calls.pending_call import PendingCall
from batonpass.handoff.calls.taint_gate import add_text
from batonpass.handoff.files.path_spellings import (
    Look,
    Looks,
    leads_to,
    look_below,
    real_path,
    spellings,
    status_of,
    texts_among,
)
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.shell.command_reach import scripts_in
from batonpass.handoff.shell.command_text import unbraced
from batonpass.handoff.taint.intake import take_in
from batonpass.handoff.taint.left_files import LeftFile, find_below, find_left, is_any_left
from batonpass.handoff.tools.declaration import ToolCall
from batonpass.model.base.content_names import PATH
from batonpass.model.base.label import Source, named_sources
from batonpass.model.bodies.body import ToolCompleted, ToolFailed
from batonpass.store.home import HOME_NAME
from batonpass.store.port import LedgerView

Outcome = TypeVar("Outcome", ToolCompleted, ToolFailed)

_COMMANDS: Final = frozenset({"command", "cmd", "line", "script"})  # arguments that are commands, in words
_NAMES_MEANT: Final = "glob"  # the argument by which a search says which files it means
_COMPUTED: Final = re.compile(r"[$`]")
_APART: Final = re.compile(r"[\s;|&<>(){}\"'`$=,:@]+")
_PATTERN: Final = re.compile(r"[*?\[]")
_MOST_WORDS: Final = 1024
# Quotes are read in quadratic time: of a longer command, a name in quotes is found only where it has no blanks.
_LONGEST_QUOTED: Final = 8 * 1024
_LONGEST_COMMAND: Final = 256 * 1024
_MOST_FILES: Final = 64
_TEXT: Final = "text/plain"


def say_taint(holding: Holding, outcome: Outcome) -> Outcome:
    """Return how a call ended, with what its run knew from outside when it left those files.

    Held under the lock of the run's taint until it is written: nothing comes in between.
    """
    if not outcome.changes:
        return outcome
    known: list[Source] = [*holding.taint.entered]
    if outcome.label is not None and outcome.label.is_external:
        known.append(outcome.call)  # what it fetched may be what it wrote
    return replace(outcome, taint=named_sources(holding.id, known))


def taint_from_files(pending: PendingCall) -> None:
    """Write down that a run takes in what tainted runs left in the files that a call names, before it is judged.

    A run that is only watched goes on where the ledger cannot be read.
    """
    desk, holding = pending.desk, pending.holding
    paths: list[Path] = []
    computed: list[str] = []
    try:
        if not pending.declared.searches and _COMMANDS.isdisjoint(pending.call.arguments):
            paths = _find_named(pending.call, pending.looks)[:_MOST_FILES]
        else:
            paths = [*islice(_named(pending.call), _MOST_FILES)]
            computed = [line for line in _commands_of(pending.call) if _COMPUTED.search(line)]
    except Exception as error:  # noqa: BLE001 - what a guard meets stops what is enforced
        pending.stop_unjudged(error)
    if not paths and not computed:
        return
    try:
        with desk.store.view() as view:
            known = frozenset((*holding.taint.entered, *holding.taint.endorsed))
            left: list[LeftFile] = []
            if is_any_left(view):
                paths += _mentioned(desk, view, computed, known)
                left = [*_find(desk, view, paths, known, _searched(pending.call))]
    except (StoreError, NotFoundError):
        if pending.enforced:
            raise
        return
    for each in left:
        take_in(desk, holding, each.sources, wrote=each.call, words=(desk.text(PATH, each.path),))
        _remember(desk, holding, each)


def _find(
    desk: Desk, view: LedgerView, paths: list[Path], known: frozenset[Source], searched: Callable[[Path], bool]
) -> Iterator[LeftFile]:
    for path in dict.fromkeys(paths):
        below = (file for file in find_below(desk, view, path, known) if searched(file)) if path.is_dir() else None
        for file in (path,) if below is None else islice(below, _MOST_FILES):
            for left in find_left(desk, view, file, known):
                known |= {*left.sources}
                yield left


def _searched(call: ToolCall[Any]) -> Callable[[Path], bool]:
    """Return which files below a directory a call looks into: all, or those that its pattern means."""
    given = call.arguments.get(_NAMES_MEANT) if call.declared.searches else None
    if not isinstance(given, str) or given.startswith("!"):
        return lambda _: True
    patterns = [one.rpartition("/")[2] for one in unbraced(given)]
    return lambda file: any(fnmatch(file.name, pattern) for pattern in patterns)


def _mentioned(desk: Desk, view: LedgerView, lines: list[str], known: frozenset[Source]) -> Iterator[Path]:
    """Yield the files of tainted runs that a command may mean whose words only a shell can compute.

    Nobody knows what `$X/notes.md` leads to. It is taken for a file that is called so, or lies in such a directory.
    """
    for file in find_below(desk, view, desk.files.root, known) if lines else ():
        names = {file.name, *(() if file.parent == desk.files.root else (file.parent.name,))}
        if any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", line) for line in lines for name in names):
            yield file


def _remember(desk: Desk, holding: Holding, left: LeftFile) -> None:
    """Let words of the file be recognised in what the run does next, as those of the content that it came from."""
    source = left.sources[0]
    if source in holding.taint.entered and source not in holding.taint.passages.texts:
        try:
            add_text(holding, source, (desk.files.root / left.path).read_bytes(), _TEXT)
        except OSError:
            return  # a signal that is missing; the label and the hold do not depend on it


def _find_named(call: ToolCall[Any], looks: Looks) -> list[Path]:
    """Return the files that a call names, as `_named` does, of one that neither searches nor tells commands.

    What was looked at for this call is not looked at again.
    """
    declared = call.declared
    own, _ = texts_among({"path": call.path, "aim": call.aim}, declared.content)
    others = [] if declared.any_file else texts_among(call.mentioned, declared.content)[0]
    place = declared.place or os.getcwd()  # noqa: PTH109 - a text is wanted
    seen: set[tuple[str, bool]] = set()
    found = []
    left = _MOST_WORDS  # of what is only mentioned
    for texts, directory in ((own, True), (others, False)):
        for text in texts:
            for one in spellings(text):
                look = looks.get((place, one)) or look_below(place, one)
                for path, status in (look,) if look is not None else _followed(one, place):
                    left -= not directory
                    if left < 0 or status is None or (path, directory) in seen:
                        continue
                    seen.add((path, directory))
                    if _is_meant(path, status, directory=directory):
                        found.append(Path(path))
    return found


def _followed(path: str, place: str) -> Iterator[Look]:
    return ((reached, status_of(reached)) for reached in leads_to(path, [place]))


def _is_meant(path: str, status: os.stat_result, *, directory: bool) -> bool:
    if not stat.S_ISREG(status.st_mode) and not (directory and stat.S_ISDIR(status.st_mode)):
        return False
    return HOME_NAME not in path.split("/")


class _Spelled(Struct, frozen=True):
    """Where a text leads as a path, and what else than a file may be meant by it."""

    path: str
    directory: bool = False
    gone: bool = False  # git keeps what is not there any more


def _named(call: ToolCall[Any]) -> Iterator[Path]:
    """Yield the files that a call names, each once; a directory, if the call acts on it or a command names it."""
    place = call.declared.place or os.getcwd()  # noqa: PTH109 - a text is wanted
    seen: set[_Spelled] = set()
    for spelled in _spelled(call, place):
        if spelled in seen:
            continue
        seen.add(spelled)
        path = Path(spelled.path)
        try:
            found = path.is_file() or (spelled.directory and path.is_dir()) or (spelled.gone and not path.exists())
        except (OSError, ValueError):
            continue
        if found and HOME_NAME not in path.parts:
            yield path


def _spelled(call: ToolCall[Any], place: str) -> Iterator[_Spelled]:
    own = {"path": call.path, "aim": call.aim}
    named = [*_paths_in(own, call, place)]
    if call.declared.searches and not any(map(os.path.exists, named)):
        named.append(place)  # without a path it looks through all that is there
    yield from (_Spelled(path, directory=True) for path in named)
    for line in _commands_of(call):
        yield from islice(_in_command(line, place), _MOST_WORDS)
    if not call.declared.any_file:
        # Of a command its line says all; where it runs and in which environment are directories that it may not read.
        yield from map(_Spelled, islice(_paths_in(call.mentioned, call, place), _MOST_WORDS))


def _commands_of(call: ToolCall[Any]) -> Iterator[str]:
    """Yield the commands among the arguments of a call."""
    yield from (value for name, value in call.arguments.items() if isinstance(value, str) and name in _COMMANDS)


def _paths_in(values: Mapping[str, Any], call: ToolCall[Any], place: str) -> Iterator[str]:
    """Yield where the texts among arguments lead as paths; what is only to be written names no file."""
    texts, _ = texts_among(values, call.declared.content)
    for text in texts:
        for one in spellings(text):
            yield from leads_to(one, [place])


def _in_command(line: str, place: str) -> Iterator[_Spelled]:
    """Yield where the words of a command would lead as paths; a word may be a pattern, or a command of its own."""
    words: list[str] = []
    kept: list[str] = []  # by git: `git show HEAD:x`
    if len(line) <= _LONGEST_QUOTED:
        with suppress(ValueError):
            words = shlex.split(line)
        for command in scripts_in(line, (place,)):
            found = [one for word in (*command.words, *command.read_from) for one in unbraced(word)]
            words += found
            kept += [one.rpartition(":")[2] for one in found] if command.program == "git" else []
    for word in dict.fromkeys((*words, *_APART.split(line[:_LONGEST_COMMAND]))):
        if not word or "\0" in word:
            continue
        for spelled in dict.fromkeys((word, *(f".{word[2:]}" for _ in range(word.startswith("~+"))))):
            whole = os.path.join(place, os.path.expanduser(spelled))  # noqa: PTH118, PTH111 - as it is written, `..` included
            yield _Spelled(real_path(whole), directory=True)
            if _PATTERN.search(spelled):
                found_by = islice(glob.iglob(whole), _MOST_FILES)  # noqa: PTH207 - as a shell does
                yield from (_Spelled(real_path(one), directory=True) for one in found_by)
    for word in dict.fromkeys(kept):
        if word and "\0" not in word and not word.startswith("-"):
            yield _Spelled(real_path(os.path.join(place, word)), gone=True)  # noqa: PTH118 - as above
