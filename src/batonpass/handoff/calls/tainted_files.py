"""Files between runs: what a tainted run writes says so, and a call that names such a file takes in what it knew.

A file launders nothing, within one tree and from one to the next. Whatever a call names is looked at: what a tool reads
is its own affair, and what it opens to write it may read.
"""

import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from batonpass.errors import NotFoundError, StoreError
from batonpass.handoff.calls.path_spellings import leads_to, spellings, texts_in
from batonpass.handoff.calls.pending import PendingCall
from batonpass.handoff.calls.tainted_call import add_text
from batonpass.handoff.calls.tools import ToolCall
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.left_files import PATH, LeftFile, find_below, find_left, is_any_left
from batonpass.handoff.transfer.taint_received import take_in
from batonpass.model.bodies import ToolCompleted, ToolFailed
from batonpass.model.label import Source, named_sources
from batonpass.store.home import HOME_NAME
from batonpass.store.port import LedgerView

Outcome = TypeVar("Outcome", ToolCompleted, ToolFailed)

_COMMANDS: Final = frozenset({"command", "cmd", "line", "script"})  # arguments that are commands, in words
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
    with pending.judged():
        paths = [*islice(_named(pending.call), _MOST_FILES)]
    if not paths:
        return
    try:
        with desk.store.view() as view:
            known = frozenset((*holding.taint.entered, *holding.taint.endorsed))
            left = [*_find(desk, view, paths, known)] if is_any_left(view) else []
    except (StoreError, NotFoundError):
        if pending.enforced:
            raise
        return
    for each in left:
        take_in(desk, holding, each.sources, wrote=each.call, words=(desk.text(PATH, each.path),))
        _remember(desk, holding, each)


def _find(desk: Desk, view: LedgerView, paths: list[Path], known: frozenset[Source]) -> Iterator[LeftFile]:
    for path in paths:
        files = islice(find_below(desk, view, path, known), _MOST_FILES) if path.is_dir() else (path,)
        for file in files:
            for left in find_left(desk, view, file, known):
                known |= {*left.sources}
                yield left


def _remember(desk: Desk, holding: Holding, left: LeftFile) -> None:
    """Let words of the file be recognised in what the run does next, as those of the content that it came from."""
    source = left.sources[0]
    if source in holding.taint.entered and source not in holding.taint.passages.texts:
        try:
            add_text(holding, source, (desk.files.root / left.path).read_bytes(), _TEXT)
        except OSError:
            return  # a signal that is missing; the label and the hold do not depend on it


def _named(call: ToolCall[Any]) -> Iterator[Path]:
    """Yield the files that a call names, each once; a directory, if the call acts on it or a command names it."""
    place = call.declared.place or os.getcwd()  # noqa: PTH109 - a text is wanted
    seen: set[str] = set()
    for spelled, may_be_directory in _spelled(call, place):
        if spelled in seen:
            continue
        seen.add(spelled)
        path = Path(spelled)
        try:
            found = path.is_file() or (may_be_directory and path.is_dir())
        except (OSError, ValueError):
            continue
        if found and HOME_NAME not in path.parts:
            yield path


def _spelled(call: ToolCall[Any], place: str) -> Iterator[tuple[str, bool]]:
    own = {"path": call.path, "aim": call.aim}
    for path in _paths_in(own, call, place):
        yield path, True
    for name, value in call.arguments.items():
        if isinstance(value, str) and name in _COMMANDS:
            yield from ((path, True) for path in islice(_in_command(value, place), _MOST_WORDS))
    if not call.declared.any_file:
        # Of a command its line says all; where it runs and in which environment are directories that it may not read.
        yield from ((path, False) for path in islice(_paths_in(call.mentioned, call, place), _MOST_WORDS))


def _paths_in(values: Mapping[str, Any], call: ToolCall[Any], place: str) -> Iterator[str]:
    """Yield where the texts among arguments lead as paths; what is only to be written names no file."""
    texts, _ = texts_in(values, lambda name: name in call.declared.content)
    for text in texts:
        for one in spellings(text):
            yield from leads_to(one, [place])


def _in_command(line: str, place: str) -> Iterator[str]:
    """Yield where the words of a command would lead as paths; a word may be a pattern, or a command of its own."""
    words: list[str] = []
    if len(line) <= _LONGEST_QUOTED:
        with suppress(ValueError):
            words = shlex.split(line)
    for word in dict.fromkeys((*words, *_APART.split(line[:_LONGEST_COMMAND]))):
        if not word:
            continue
        whole = os.path.join(place, os.path.expanduser(word))  # noqa: PTH118, PTH111 - as it is written, `..` included
        if "\0" in whole:
            continue
        yield os.path.realpath(whole)
        if _PATTERN.search(word):
            yield from map(os.path.realpath, islice(glob.iglob(whole), _MOST_FILES))  # noqa: PTH207 - as a shell does
