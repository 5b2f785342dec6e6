"""Taint through files: a tainted run marks the files that it writes, and a call that names one takes the taint over.

So a file removes no taint, neither within a tree nor from one tree to the next. Every file that a call names is looked
at, whatever the tool says: we cannot see which files a tool reads, and a file that is opened to be written can also be
read.
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
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.content_names import PATH
from batonpass.model.base.label import Source, named_sources
from batonpass.model.bodies.body import ToolCompleted, ToolFailed
from batonpass.store.home import HOME_NAME
from batonpass.store.port import LedgerView

Outcome = TypeVar("Outcome", ToolCompleted, ToolFailed)

_COMMANDS: Final = frozenset({"command", "cmd", "line", "script"})  # names of arguments that hold shell commands
_NAMES_MEANT: Final = "glob"  # the argument of a search that selects files by pattern
_COMPUTED: Final = re.compile(r"[$`]")
_APART: Final = re.compile(r"[\s;|&<>(){}\"'`$=,:@]+")
_PATTERN: Final = re.compile(r"[*?\[]")
_MOST_WORDS: Final = 1024
# Reading quotes takes quadratic time. In a longer command, a quoted name with blanks is not found.
_LONGEST_QUOTED: Final = 8 * 1024
_LONGEST_COMMAND: Final = 256 * 1024
_MOST_FILES: Final = 64
_TEXT: Final = "text/plain"


def say_taint(holding: Holding, outcome: Outcome) -> Outcome:
    """Return the outcome of a call that changed files, with all sources that had reached its run by then.

    The caller holds the lock of the taint until the outcome is written, so that no source is missed in between.
    """
    if not outcome.changes:
        return outcome
    known: list[Source] = [*holding.taint.entered]
    if outcome.label is not None and outcome.label.is_external:
        known.append(outcome.call)  # it may have written the content that it fetched
    return replace(outcome, taint=named_sources(holding.id, known))


def taint_from_files(pending: PendingCall) -> None:
    """Taint a run with the sources of every file that its call names and that a tainted run wrote, and record it.

    This comes before the check of the call, so that the check sees the taint. Raises `StoreError` in an enforced run if
    the ledger cannot be read; an observed run goes on.
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
    except Exception as error:  # noqa: BLE001 - any error of a guard stops an enforced call
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
    """Return a test for the files below a directory that a call reads: all of them, or those that match its pattern."""
    given = call.arguments.get(_NAMES_MEANT) if call.declared.searches else None
    if not isinstance(given, str) or given.startswith("!"):
        return lambda _: True
    patterns = [one.rpartition("/")[2] for one in unbraced(given)]
    return lambda file: any(fnmatch(file.name, pattern) for pattern in patterns)


def _mentioned(desk: Desk, view: LedgerView, lines: list[str], known: frozenset[Source]) -> Iterator[Path]:
    """Yield the files of tainted runs that a command with variables or substitutions may mean.

    Nobody here knows where `$X/notes.md` leads. So a file counts as meant if its own name, or that of its directory, is
    in the command.
    """
    for file in find_below(desk, view, desk.files.root, known) if lines else ():
        names = {file.name, *(() if file.parent == desk.files.root else (file.parent.name,))}
        if any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", line) for line in lines for name in names):
            yield file


def _remember(desk: Desk, holding: Holding, left: LeftFile) -> None:
    """Remember the text of the file under its first source, so that its words are recognised in later arguments."""
    source = left.sources[0]
    if source in holding.taint.entered and source not in holding.taint.passages.texts:
        try:
            add_text(holding, source, (desk.files.root / left.path).read_bytes(), _TEXT)
        except OSError:
            return  # only a hint is lost: the label and the hold do not depend on it


def _find_named(call: ToolCall[Any], looks: Looks) -> list[Path]:
    """Return the same files as `_named`, for a call that neither searches nor has a command among its arguments.

    This is the fast way: it uses the paths that earlier checks of this call have looked up already.
    """
    declared = call.declared
    own, _ = texts_among({"path": call.path, "aim": call.aim}, declared.content)
    others = [] if declared.any_file else texts_among(call.mentioned, declared.content)[0]
    place = declared.place or os.getcwd()  # noqa: PTH109 - a text is wanted
    seen: set[tuple[str, bool]] = set()
    found = []
    left = _MOST_WORDS  # only for texts that are mentioned
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
    """Where a text leads as a path, and whether it may also mean a directory or a deleted file."""

    path: str
    directory: bool = False
    gone: bool = False  # a deleted file counts too, because git still has it


def _named(call: ToolCall[Any]) -> Iterator[Path]:
    """Yield the files that a call names, each once. A directory counts if the call acts on it or a command names it."""
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
        named.append(place)  # without a path it searches the whole directory
    yield from (_Spelled(path, directory=True) for path in named)
    for line in _commands_of(call):
        yield from islice(_in_command(line, place), _MOST_WORDS)
    if not call.declared.any_file:
        # Not for a command: its line names every file. Its directory and its variables are paths that it need not read.
        yield from map(_Spelled, islice(_paths_in(call.mentioned, call, place), _MOST_WORDS))


def _commands_of(call: ToolCall[Any]) -> Iterator[str]:
    """Yield the commands among the arguments of a call."""
    yield from (value for name, value in call.arguments.items() if isinstance(value, str) and name in _COMMANDS)


def _paths_in(values: Mapping[str, Any], call: ToolCall[Any], place: str) -> Iterator[str]:
    """Yield where the texts in arguments lead as paths, except for arguments that are only content to be written."""
    texts, _ = texts_among(values, call.declared.content)
    for text in texts:
        for one in spellings(text):
            yield from leads_to(one, [place])


def _in_command(line: str, place: str) -> Iterator[_Spelled]:
    """Yield where the words of a command would lead as paths. A word may be a pattern, or a command itself."""
    words: list[str] = []
    kept: list[str] = []  # names that git may have kept, as in `git show HEAD:x`
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
