"""With whose credentials the runs of a tree acted, and which of them several runs shared."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from batonpass.audit.lookup import read_contents, read_receipt
from batonpass.handoff.calls.credential import CREDENTIAL
from batonpass.model.bodies import Kind, ToolRequested
from batonpass.model.content import ContentRef
from batonpass.model.ids import Digest, RunId
from batonpass.store.port import LedgerView, ReceiptQuery

_GONE: Final = (None, None)  # name and identity, once they were erased


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
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
    refs: dict[Digest, ContentRef] = {}
    for run, key, ref in _requests(view, root):
        calls = found.setdefault(key, {})
        calls[run] = calls.get(run, 0) + 1
        if ref is not None:
            refs.setdefault(key, ref)
    texts = read_contents(view, {str(key): ref for key, ref in refs.items()})
    told = {Digest(key): _read(text.body) for key, text in texts.items()}
    return tuple(
        Acted(key=key, name=told.get(key, _GONE)[0], identity=told.get(key, _GONE)[1], calls=calls)
        for key, calls in found.items()
    )


def _requests(view: LedgerView, root: RunId) -> Iterator[tuple[RunId, Digest, ContentRef | None]]:
    for stored in view.find_receipts(ReceiptQuery(root=root, kind=Kind.TOOL_REQUESTED)):
        receipt = read_receipt(stored)
        body = receipt.body
        if isinstance(body, ToolRequested) and body.credential is not None:
            yield body.run, body.credential, receipt.content.get(CREDENTIAL)


def _read(body: bytes | None) -> tuple[str | None, str | None]:
    if body is None:
        return _GONE
    try:
        document = json.loads(body)
        return document["name"], document["identity"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return _GONE  # not as it was recorded; `batonpass ledger verify` says so
