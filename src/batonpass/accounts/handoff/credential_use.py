"""The credentials used in a tree, and which of them several runs shared."""

from msgspec import Struct

from batonpass.model.base.ids import Digest, RunId
from batonpass.model.bodies.body import Kind
from batonpass.records.call import CallRecord, find_calls
from batonpass.records.grant import read_credential
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery


class Acted(Struct, frozen=True, kw_only=True):
    """A credential, and the runs of one tree that used it, in the order of first use."""

    key: Digest
    name: str | None  # None if it was erased
    identity: str | None
    calls: dict[RunId, int]  # number of calls by run

    @property
    def is_shared(self) -> bool:
        """Return whether several runs used it, so that others cannot tell them apart. This is a finding."""
        return len(self.calls) > 1


def find_acted(view: LedgerView, root: RunId) -> tuple[Acted, ...]:
    """Return the credentials that the runs of a tree used."""
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
