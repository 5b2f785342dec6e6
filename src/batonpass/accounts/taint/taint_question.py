"""What a person asks about: a source, a whole tree, or something that sources may have reached."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from batonpass.accounts.taint.receipt_texts import source_text
from batonpass.accounts.taint.taint_map import find_brought
from batonpass.accounts.taint.taint_way import Target
from batonpass.audit.meant_ids import get_meant
from batonpass.audit.short_ids import LAST, ending
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.model.base.ids import CALL, HANDOFF, RECEIPT, RUN, CallId, HandoffId, ReceiptId, RunId
from batonpass.model.base.label import Source
from batonpass.model.ledger.receipt import Receipt
from batonpass.scan.letters import squeeze
from batonpass.store.port import LedgerView

_KINDS: Final[Mapping[str, Callable[[str], Target]]] = {
    CALL: CallId,
    RUN: RunId,
    HANDOFF: HandoffId,
    RECEIPT: ReceiptId,
}
_SHOWN: Final = 5
_SHORTEST: Final = 8  # letters and digits needed to search for a text


class TaintQuestion(Struct, frozen=True, kw_only=True):
    """The thing that is meant: something that sources may have reached, or sources, or both."""

    target: Target | None = None
    brought: dict[Source, Receipt] = field(default_factory=dict)  # with the receipt that brought each
    root: RunId | None = None  # set if a whole tree is meant


def find_asked(view: LedgerView, given: str) -> TaintQuestion:
    """Return what is meant by the end of an id, an agent's name, `last`, or words of a source.

    Raises `NotFoundError` and `AmbiguousIdError`.
    """
    wanted = given.strip()
    brought = dict(find_brought(view))
    if wanted == LAST:
        latest = max(brought, key=lambda source: brought[source].at, default=None)
        if latest is None:
            raise NotFoundError("content from outside", given)
        return TaintQuestion(brought={latest: brought[latest]})
    named = [source for source in brought if source.endswith(wanted.removeprefix("…").lower())] if wanted else []
    if len(named) > 1 and wanted not in named:
        lines = tuple(f"{ending(source, 8)} · {source.partition('_')[0]}" for source in named[:_SHOWN])
        raise AmbiguousIdError("content from outside", given, lines)
    if named:
        source = next((one for one in named if one == wanted), named[0])
        # A call that brought content from outside may itself follow from earlier content.
        target = CallId(source) if source.startswith(f"{CALL}_") else None
        return TaintQuestion(brought={source: brought[source]}, target=target)
    return _find_target(view, given, brought)


def _find_target(view: LedgerView, given: str, brought: dict[Source, Receipt]) -> TaintQuestion:
    try:
        meant = get_meant(view, given.strip(), tuple(_KINDS))
    except NotFoundError:
        letters = squeeze(given)
        found = {
            source: receipt
            for source, receipt in brought.items()
            if len(letters) >= _SHORTEST and letters in squeeze(source_text(view, source, receipt) or "")
        }
        if not found:
            raise NotFoundError("content from outside", given) from None
        return TaintQuestion(brought=found)
    target: Target = _KINDS[meant.kind](meant.id)
    if meant.kind == RUN and view.get_run(RunId(meant.id)).parent is None:
        return TaintQuestion(root=RunId(meant.id), target=target)
    return TaintQuestion(target=target)
