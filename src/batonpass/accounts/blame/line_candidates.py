"""Candidates for lines that recorded hunks do not explain: changes without a recorded place, and open calls.

A sub-agent's transcript says which text an editor replaced, but not where. If all edits since the last commit turn the
committed bytes into exactly the current file, each place is known (`replay`). Otherwise nothing is proven, and a call
is a candidate for a line if it was given the words of that line to write (`Unplaced`).

A call without an outcome may have written a line as well (`OpenCall`). There is no index of such calls, and a ledger
may be large. So a store searches only a part: the latest runs, first those that did not complete, and the end of each
stream.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown
from batonpass.accounts.blame.file_changes import FilePlace, RecordedChange
from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.changes.mark import squeezed
from batonpass.attribution.changes.sides import hunks_of
from batonpass.attribution.git.file_history import Committed
from batonpass.handoff.approvals.edit_lines import EDIT_NAMES
from batonpass.model.base.content_names import ARGUMENTS, TARGET
from batonpass.model.base.ids import CallId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.call import arguments_in, call_asked, read_arguments, read_call
from batonpass.records.source import when
from batonpass.records.text import read_receipt, read_texts, texts_in
from batonpass.store.port import LedgerView

_MOST_RUNS: Final = 256
_MOST_RECEIPTS: Final = 2048
_MOST_OF_RUN: Final = 128
# The shells of coding agents, which may write any file; a test compares them with the table of their tools.
_SHELLS: Final = frozenset(
    {
        "Bash",
        "Execute",
        "Monitor",
        "PowerShell",
        "Shell",
        "bash",
        "developer__shell",
        "exec_command",
        "local_shell",
        "monitor",
        "powershell",
        "run_commands",
        "run_shell_command",
        "shell",
        "shell_command",
        "write_bash",
        "write_powershell",
        "write_stdin",
    }
)
_REPLACED: Final = ("old", "before")  # an editor's arguments with these prefixes name the removed text
_EVERYWHERE: Final = ("replace_all", "replaceAll", "allow_multiple", "change_all")


def replay(
    view: LedgerView, recorded: Sequence[RecordedChange], committed: Committed | None, data: bytes
) -> list[RecordedChange]:
    """Return the changes with places, if the edits since the commit lead to these bytes; otherwise unchanged."""
    since = [one for one in recorded if committed is not None and one.change.at > committed.at]
    if committed is None or not since or not all(_is_bare(one) for one in since):
        return list(recorded)
    placed: dict[str, RecordedChange] = {}
    before = committed.data
    for one in since:
        after = _edited(before, _given(view, one))
        if after is None or one.receipt.id in placed:
            return list(recorded)
        change = replace(one.change, before=digest_of(before), after=digest_of(after), hunks=hunks_of(before, after))
        placed[one.receipt.id] = replace(one, change=change)
        before = after
    return [placed.get(one.receipt.id, one) for one in recorded] if before == data else list(recorded)


def find_placed(recorded: Sequence[RecordedChange], found: Sequence[RecordedChange]) -> frozenset[CallId]:
    """Return the calls whose changes got their place by replaying."""
    return frozenset(CallId(new.change.call) for old, new in zip(recorded, found, strict=True) if old is not new)


def as_matched(line: BlamedLine, placed: frozenset[CallId]) -> BlamedLine:
    """Return a line as matched, if its change got its place by replaying."""
    is_placed = line.known is HowKnown.RECORDED and not placed.isdisjoint(line.calls)
    return replace(line, known=HowKnown.MATCHED) if is_placed else line


class Unplaced(Struct, frozen=True, kw_only=True):
    """A change that was certainly made, and the lines that its call was given to write."""

    recorded: RecordedChange
    written: frozenset[str]  # without white space

    def may_have_written(self, line: BlamedLine) -> bool:
        """Return whether this change may have written a line: the line is newer, and has its words."""
        if line.since is not None and self.recorded.change.at < line.since:
            return False
        return _has_words(line, self.written)


def find_unplaced(view: LedgerView, recorded: Sequence[RecordedChange]) -> list[Unplaced]:
    """Return the changes without known lines, with the texts their calls were given."""
    return [
        Unplaced(recorded=one, written=frozenset(_bare_lines(_leaves(_given(view, one)))))
        for one in recorded
        if one.change.hunks is None and not one.change.is_deletion
    ]


def with_candidates(line: BlamedLine, unplaced: Sequence[Unplaced]) -> BlamedLine:
    """Return an unexplained line with those who may have written it; other lines unchanged."""
    if line.known is not HowKnown.UNEXPLAINED:
        return line
    return _with_calls(line, (CallId(one.recorded.change.call) for one in unplaced if one.may_have_written(line)))


class OpenCall(Struct, frozen=True, kw_only=True):
    """A call without an outcome that may have changed the file in question."""

    stored: StoredReceipt
    receipt: Receipt
    call: CallId
    at: datetime
    names_it: bool  # its arguments or target name the file; otherwise it is a shell
    written: frozenset[str]  # its text arguments, without white space; empty if they say nothing

    def may_have_written(self, line: BlamedLine, *, in_repository: bool) -> bool:
        """Return whether this call may have written a line."""
        # A shell names no file. If nothing dates a line, a shell would be a candidate for every line.
        in_time = self.names_it or in_repository if line.since is None else self.at >= line.since
        if not in_time or (line.commit is not None and line.commit.at < self.at):
            return False
        return not self.written or _has_words(line, self.written)


def find_open_calls(view: LedgerView, place: FilePlace, names: Sequence[str]) -> list[OpenCall]:
    """Return the open calls that may have changed a file, the earliest first."""
    paths = frozenset(spelling for name in names for spelling in place.spellings(name))
    requests = view.find_open_requests(runs=_MOST_RUNS, of_each=_MOST_OF_RUN, most=_MOST_RECEIPTS)
    found = (_open_call(view, paths, stored) for stored in requests)
    return sorted((call for call in found if call is not None), key=lambda call: (call.at, call.call))


def with_open_calls(line: BlamedLine, calls: Sequence[OpenCall], *, in_repository: bool) -> BlamedLine:
    """Return an uncertain line with the open calls that may have written it as well."""
    if line.known is not HowKnown.UNEXPLAINED and not line.or_nobody:
        return line
    return _with_calls(line, (one.call for one in calls if one.may_have_written(line, in_repository=in_repository)))


def _with_calls(line: BlamedLine, calls: Iterable[CallId]) -> BlamedLine:
    if not (may := tuple(calls)):
        return line
    return replace(line, known=HowKnown.CANDIDATES, calls=(*line.calls, *may), or_nobody=True)


def _open_call(view: LedgerView, paths: frozenset[str], stored: StoredReceipt) -> OpenCall | None:
    receipt = read_receipt(stored)
    call = call_asked(receipt)
    if call is None or not call.is_made or call.reads:
        return None
    texts = read_texts(view, receipt)
    given = [] if ARGUMENTS not in texts else list(texts_in(arguments_in(texts[ARGUMENTS].body)))
    target = None if TARGET not in texts else texts[TARGET].words
    names_it = any(_names(text, paths) for text in (*given, target) if text is not None)
    if not names_it and call.tool not in _SHELLS:
        return None
    # A longer text is something to write. A single word may just be an option.
    texts_given = [text for text in given if not _names(text, paths) and len(text.split()) > 1]
    return OpenCall(
        stored=stored,
        receipt=receipt,
        call=call.id,
        at=when(view, receipt),
        names_it=names_it,
        written=frozenset() if call.tool in _SHELLS else frozenset(_bare_lines(texts_given)),
    )


def _names(text: str, paths: frozenset[str]) -> bool:
    return text.removeprefix("./") in paths


def _has_words(line: BlamedLine, written: frozenset[str]) -> bool:
    # A call may be given a whole line to write, or a part of it.
    bare = squeezed(line.text)
    return bool(bare) and any(one in bare for one in written)


def _bare_lines(texts: Iterable[str]) -> Iterator[str]:
    return (bare for text in texts for line in text.split("\n") if (bare := squeezed(line)))


def _leaves(value: Any, name: str = "") -> Iterator[str]:  # noqa: ANN401 - whatever JSON can hold
    """Yield the texts in arguments that can be something to write."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _leaves(inner, key)
        case list():
            for inner in value:
                yield from _leaves(inner, name)
        case str() if not name.startswith(_REPLACED) and "path" not in name:
            yield value
        case _:
            return


def _is_bare(recorded: RecordedChange) -> bool:
    change = recorded.change
    return change.hunks is None and change.before is None and change.after is None and change.renamed_from is None


def _edited(before: bytes, given: dict[str, Any]) -> bytes | None:
    """Return the text after an edit; None if it does not fit exactly once."""
    old, new = next(
        ((given[one], given[other]) for one, other in EDIT_NAMES if one in given and other in given), ("", "")
    )
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        return None
    taken, put = old.encode("utf-8", "surrogatepass"), new.encode("utf-8", "surrogatepass")
    count = before.count(taken)
    is_clear = count == 1 or (count > 1 and any(given.get(name) is True for name in _EVERYWHERE))
    return before.replace(taken, put) if is_clear else None


def _given(view: LedgerView, recorded: RecordedChange) -> dict[str, Any]:
    call = read_call(view, recorded.receipt)
    return {} if call is None else read_arguments(view, call) or {}
