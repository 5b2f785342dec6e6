"""Commands that go on in the background after they returned. Nobody reviewed their commits.

The outcome of such a command says that it goes on, and at which commit the repository was. A later call that reports
the rest of its work names it. Until then, or until its tree has ended, a new commit may be the command's own.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from batonpass.attribution.git.arrived_commits import see_history
from batonpass.attribution.git.file_git import GitSilentError, Repository
from batonpass.model.base.ids import RunId
from batonpass.model.bodies.body import Kind
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import RunState
from batonpass.records.call import outcome_in
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

GOES_ON: Final = "command.goes-on"
HISTORY: Final = "history"  # the last commit when it returned; empty if there was none
REST_OF: Final = "rest_of"  # on a request: the call whose remaining work this is


def head_of(root: Path) -> str | None:
    """Return the last commit of a work tree; None if it has none."""
    history = see_history(root)
    return None if history is None else history.head


def find_heads_before(view: LedgerView, runs: Iterable[RunId]) -> tuple[str, ...]:
    """Return the commits before each command that may still be running in the trees of some runs."""
    roots = {view.get_run(run).root for run in runs}
    return tuple(
        head for root in sorted(roots) if view.get_run(root).state is RunState.OPEN for head in _going_on(view, root)
    )


def _going_on(view: LedgerView, root: RunId) -> Iterator[str]:
    begun: dict[str, str] = {}
    for stored in view.find_receipts(ReceiptQuery(root=root)):
        if stored.kind not in _KINDS:
            continue
        receipt = decode_receipt(stored.payload)
        if (ended := outcome_in(receipt)) is not None:
            if GOES_ON in ended.flags:
                begun[ended.call] = _text(view, receipt, HISTORY)
        elif REST_OF in receipt.content:
            begun.pop(_text(view, receipt, REST_OF), None)
    yield from begun.values()


_KINDS: Final = frozenset({Kind.TOOL_REQUESTED, Kind.TOOL_COMPLETED, Kind.TOOL_FAILED})


def _text(view: LedgerView, receipt: Receipt, name: str) -> str:
    ref = receipt.content.get(name)
    body = None if ref is None else view.get_content(ref.id).body
    return "" if body is None else body.decode("utf-8", "replace")


def is_older(repository: Repository, commit: str, head: str) -> bool:
    """Return whether a commit already existed when the repository was at `head`. If unknown, False."""
    if not head:
        return False
    try:
        return not repository.reachable([commit], without=head, most=1)
    except GitSilentError:
        return False
