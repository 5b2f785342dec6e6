"""Open calls: calls without an outcome, which may have written a line nevertheless.

There is no index of them, and a ledger may be large. So a store searches only a part: the latest runs, first those that
did not complete, and the end of each stream.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown
from batonpass.accounts.blame.file_changes import FilePlace
from batonpass.attribution.changes.mark import squeezed
from batonpass.model.base.content_names import ARGUMENTS, TARGET
from batonpass.model.base.ids import CallId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.call import arguments_in, call_of, find_calls
from batonpass.records.source import when
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView

_MOST_RUNS: Final = 256
_MOST_RECEIPTS: Final = 2048
_MOST_OF_RUN: Final = 128
_SHELLS: Final = frozenset({"Bash", "Monitor", "PowerShell"})  # Claude Code's shells, which may write any file


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
        bare = squeezed(line.text)
        return not self.written or (bool(bare) and any(one in bare for one in self.written))


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
    may = tuple(one.call for one in calls if one.may_have_written(line, in_repository=in_repository))
    if not may:
        return line
    return replace(line, known=HowKnown.CANDIDATES, calls=(*line.calls, *may), or_nobody=True)


def _open_call(view: LedgerView, paths: frozenset[str], stored: StoredReceipt) -> OpenCall | None:
    receipt = read_receipt(stored)
    call = find_calls([receipt]).get(call_of(receipt) or CallId(""))
    if call is None or not call.is_made or call.reads:
        return None
    texts = read_texts(view, receipt)
    given = [] if ARGUMENTS not in texts else list(_texts(arguments_in(texts[ARGUMENTS].body)))
    target = None if TARGET not in texts else texts[TARGET].words
    names_it = any(_names(text, paths) for text in (*given, target) if text is not None)
    if not names_it and call.tool not in _SHELLS:
        return None
    # A longer text is something to write. A single word may just be an option.
    texts_given = [text for text in given if not _names(text, paths) and len(text.split()) > 1]
    lines = (squeezed(line) for text in texts_given for line in text.split("\n"))
    return OpenCall(
        stored=stored,
        receipt=receipt,
        call=call.id,
        at=when(view, receipt),
        names_it=names_it,
        written=frozenset() if call.tool in _SHELLS else frozenset(filter(None, lines)),
    )


def _names(text: str, paths: frozenset[str]) -> bool:
    return text.removeprefix("./") in paths


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON can hold
    match value:
        case dict():
            yield from (text for inner in value.values() for text in _texts(inner))
        case list():
            yield from (text for inner in value for text in _texts(inner))
        case str():
            yield value
        case _:
            return
