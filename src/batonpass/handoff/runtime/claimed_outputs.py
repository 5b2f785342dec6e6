"""Compare the expected and the claimed outputs of a run with its recorded effects.

An agent may report work that was never done. Files that nobody touched are named at the close. Both lists are signals
for the verifier of the result; they refuse nothing.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Final

from msgspec import Struct

from batonpass.attribution.changes.change_document import read_file_changes
from batonpass.errors import InvalidValueError
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.content_names import ARGUMENTS, TARGET, UNRECORDED, UNTOUCHED
from batonpass.model.base.ids import HandoffId, RunId
from batonpass.model.baton.items import Artifact, WorkItem
from batonpass.model.ledger.content import Content
from batonpass.records.call import CallRecord, read_calls
from batonpass.records.text import read_contents
from batonpass.store.port import LedgerView

NOT_TOUCHED: Final = "expects.untouched"
NOT_RECORDED: Final = "outputs.unrecorded"

_VALUE: Final = attrgetter("value")

# A name of a file, and no sentence: a path, or a name with an ending.
_FILE: Final = re.compile(r"(?:[\w.~@+-]+/)+[\w.@+-]+|[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,7}")


def find_untouched(desk: Desk, holding: Holding) -> tuple[str, ...]:
    """Return the targets that were expected to change, and that no call of this run changed.

    Calls of earlier attempts count, and so do those of the runs below: who has work done by others has it done.
    """
    expected = () if holding.baton is None else holding.baton.brief.expects
    missing = _left(expected, holding.changed)
    if not missing:
        return ()
    # Only now is anything read: most runs have changed the expected files themselves.
    with desk.store.view() as view:
        return _left(missing, {*_targets_of_calls(view, _runs_below(view, holding))})


def _left(expected: Iterable[str], changed: Collection[str]) -> tuple[str, ...]:
    return tuple(wanted for wanted in expected if not any(fnmatchcase(target, wanted) for target in changed))


def find_unrecorded(desk: Desk, holding: Holding, changed: Iterable[str]) -> tuple[str, ...]:
    """Return the files that a run says it made, and that no recorded call or attachment accounts for.

    Calls of the runs below it count, and so do `changed`: files that were seen to change without a recorded call.
    """
    claimed = tuple(dict.fromkeys(_claimed(holding)))
    if not claimed:
        return ()
    attached = {item.value.name for item in holding.notes.values() if isinstance(item.value, Artifact)}
    known = {*holding.changed, *attached, *changed}
    missing = [name for name in claimed if not any(_is_same(name, one) for one in known)]
    if not missing:
        return ()
    # Only now is anything read. A tool need not declare what it changes; then its arguments may name it.
    with desk.store.view() as view:
        words = [*_words_of_calls(view, _runs_below(view, holding))]
    return tuple(name for name in missing if not any(name in said for said in words))


class Differences(Struct, frozen=True):
    """The differences as a close-out records them: flags, and the two lists as contents, if they are not empty."""

    flags: tuple[str, ...] = ()
    contents: tuple[Content, ...] = ()


NONE: Final = Differences()


def compare(desk: Desk, holding: Holding, changed: Iterable[str], *, completed: bool) -> Differences:
    """Return how the effects of a run differ from its claimed outputs and, if it completed, from the expected ones."""
    # The usual case first: a run that claims nothing, and was told of nothing that it should change.
    expects = completed and holding.baton is not None and holding.baton.brief.expects
    if holding.report is None and not expects and WorkItem not in map(type, map(_VALUE, [*holding.notes.values()])):
        return NONE
    reported = holding.report is not None and holding.report.completed
    expects = holding.baton is not None and holding.baton.brief.expects
    if not reported and not expects and not holding.claims_work and not holding.resumed:
        return NONE  # most runs: nothing to compare
    untouched = find_untouched(desk, holding) if completed else ()
    unrecorded = find_unrecorded(desk, holding, changed)
    if not untouched and not unrecorded:
        return NONE
    found = ((NOT_TOUCHED, UNTOUCHED, untouched), (NOT_RECORDED, UNRECORDED, unrecorded))
    return Differences(
        tuple(flag for flag, _, names in found if names),
        tuple(desk.json(name, json.dumps(names, ensure_ascii=False).encode()) for _, name, names in found if names),
    )


def _claimed(holding: Holding) -> Iterator[str]:
    reported = () if holding.report is None else holding.report.completed
    noted = [item.value for item in holding.found() if isinstance(item.value, WorkItem)] if holding.notes else []
    for work in (*reported, *noted):
        # A verified output is no claim any more.
        if not work.verified:
            yield from (output for output in work.outputs if _FILE.fullmatch(output))


def _is_same(claimed: str, known: str) -> bool:
    """Return whether two spellings mean one file: one may be given from further up."""
    one, other = claimed.removeprefix("./"), known.removeprefix("./")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _runs_below(view: LedgerView, holding: Holding) -> Iterator[RunId]:
    """Yield a run, the earlier attempts at its handoff, and every run below them."""
    own = holding.working.run.handoff
    pending: list[HandoffId] = [] if own is None else [own]
    if own is None:
        yield holding.id
        pending += [child.id for child in view.find_handoffs(parent=holding.id)]
    while pending:
        for run in view.find_attempts(view.get_handoff(pending.pop())):
            yield run.id
            pending += [child.id for child in view.find_handoffs(parent=run.id)]


def _words_of_calls(view: LedgerView, runs: Iterable[RunId]) -> Iterator[str]:
    for call in _changing(view, runs):
        yield from _words(view, call, TARGET, ARGUMENTS)


def _targets_of_calls(view: LedgerView, runs: Iterable[RunId]) -> Iterator[str]:
    for call in _changing(view, runs):
        yield from _words(view, call, TARGET)
        with suppress(InvalidValueError):  # verification reports an unreadable content
            yield from (change.path for change in read_file_changes(view, call))


def _changing(view: LedgerView, runs: Iterable[RunId]) -> Iterator[CallRecord]:
    for run in runs:
        yield from (call for call in read_calls(view, view.get_run(run)).values() if call.is_made and not call.reads)


def _words(view: LedgerView, call: CallRecord, *names: str) -> Iterator[str]:
    named = {name: call.content[name] for name in names if name in call.content}
    yield from (text.words for text in read_contents(view, named).values() if text.words is not None)
