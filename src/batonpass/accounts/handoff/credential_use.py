"""With whose credentials the runs of a tree acted, and which of them several runs shared."""

from msgspec import Struct

from batonpass.model.base.ids import Digest, RunId
from batonpass.model.bodies.body import Kind
from batonpass.records.call import CallRecord, find_calls
from batonpass.records.grant import read_credential
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery


class Acted(Struct, frozen=True, kw_only=True):
    """A credential, and the runs of one tree that acted with it, in the order in which they first did."""

    key: Digest
    name: str | None  # None if these words were erased
    identity: str | None
    calls: dict[RunId, int]  # how many, by run

    @property
    def is_shared(self) -> bool:
        """Return whether nobody can tell from the outside which of several runs acted: a finding."""
        return len(self.calls) > 1


def find_acted(view: LedgerView, root: RunId) -> tuple[Acted, ...]:
    """Return the credentials with which the runs of a tree acted."""
    found: dict[Digest, dict[RunId, int]] = {}
    first: dict[Digest, CallRecord] = {}
    query = ReceiptQuery(root=root, kind=Kind.TOOL_REQUESTED)
    for call in find_calls(map(read_receipt, view.find_receipts(query))).values():
        if call.credential is not None:
            calls = found.setdefault(call.credential, {})
            calls[call.run] = calls.get(call.run, 0) + 1
            first.setdefault(call.credential, call)
    return tuple(_acted(view, first[key], key, calls) for key, calls in found.items())


def _acted(view: LedgerView, call: CallRecord, key: Digest, calls: dict[RunId, int]) -> Acted:
    told = read_credential(view, call)
    return Acted(
        key=key,
        name=None if told is None else told.name,
        identity=None if told is None else told.identity,
        calls=calls,
    )
