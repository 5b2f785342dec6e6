"""Verification: everything against everything, in the numbered steps of docs/spec/verification.md.

Returns evidence, or raises for the first thing that is wrong, with its stream, seq and field.
"""

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import msgspec

from batonpass.audit.evidence import Evidence
from batonpass.audit.granting import Grants
from batonpass.audit.linking import Link, Linker
from batonpass.audit.seals import SealCheck
from batonpass.audit.signatures import SignatureCheck, SignatureQueue, useful_processes
from batonpass.errors import (
    ContentMismatchError,
    DerivedStateError,
    EditedError,
    InvalidValueError,
    MissingError,
    PositionError,
    SchemaAlteredError,
    SignatureError,
    UnknownKeyError,
    VerificationError,
)
from batonpass.model.bodies import ToolCompleted, ToolFailed
from batonpass.model.checks import require_digest
from batonpass.model.content import ContentRef, Place, StoredContent, content_digest
from batonpass.model.ids import ContentId, HandoffId, KeyId, PublicKey
from batonpass.model.lifecycle import State
from batonpass.model.projection import key_id
from batonpass.model.receipt import StoredReceipt
from batonpass.model.run import Handoff
from batonpass.signing.ed25519 import is_signed
from batonpass.store.port import LedgerInfo, LedgerStore, LedgerView, ReceiptQuery, Touched
from batonpass.wire.codec import decode_receipt

_CHUNK: Final = 1_000
_CHANGE: Final = "change."

Progress = Callable[[int, int], None]
FindContents: TypeAlias = Callable[[Sequence[ContentId]], Iterable[StoredContent]]
FindTouches: TypeAlias = Callable[[Sequence[ContentId]], Iterable[Touched]]


@dataclass(slots=True)
class _ContentCount:
    checked: int = 0
    erased: int = 0
    withheld: int = 0
    rows: int = 0
    touches: int = 0
    claimed: dict[ContentId, tuple[str, int]] = field(default_factory=dict)  # erased, if some receipt says so


class _Change(msgspec.Struct):
    """What we read of the document of a change."""

    path: str


_CHANGES: Final = msgspec.json.Decoder(_Change)


def verify_ledger(
    store: LedgerStore,
    *,
    seals: Sequence[str] = (),
    root_key: PublicKey | KeyId | None = None,
    progress: Progress | None = None,
    check: SignatureCheck = is_signed,
) -> Evidence:
    """Verify a whole ledger, and that it still holds what these seals (as notes) say.

    `root_key` pins the key that all trust hangs from; without it, compare the one in the evidence yourself.
    """
    with store.view() as view:
        _require_schema(view)
        info = require_root_key(view.info(), root_key)
        verification = Verification(
            info,
            seals=SealCheck(info, notes=seals, kept=view.find_seals()),
            find_touches=view.find_touches_of,
            progress=progress,
            check=check,
        )
        receipts = chain(
            view.find_receipts(ReceiptQuery(first=1)),
            view.find_receipts(ReceiptQuery(unsequenced=True)),
        )
        evidence = verification.run(receipts, view.counts().receipts, view.find_contents)
        verification.require_all(view)
        verification.require_contents(view)
        verification.require_derived(view)
        verification.require_touches(view)
        return evidence


# Before the first step: whatever we are about to read comes through this schema.
def _require_schema(view: LedgerView) -> None:
    for name, problem in view.find_alterations():
        raise SchemaAlteredError(problem, stream="schema", field=name)


def require_root_key(info: LedgerInfo, pinned: PublicKey | KeyId | None) -> LedgerInfo:
    """Return who the ledger is. Raises `VerificationError` if its root key cannot be one, or is not the pinned one."""
    try:
        require_digest("root_key", info.root_key)
    except InvalidValueError as error:
        raise EditedError(error.problem, stream="ledger", field="root_key") from None
    if pinned not in {None, info.root_key, key_id(info.root_key)}:
        raise UnknownKeyError(f"the ledger's root key is {info.root_key}, not the one that was given", field="root_key")
    return info


class Verification:
    """One pass over receipts in position order, and then over what is derived from them."""

    def __init__(
        self,
        info: LedgerInfo,
        *,
        seals: SealCheck | None = None,
        gapless: bool = True,
        withheld: bool = False,
        find_touches: FindTouches | None = None,  # None: there are no rows, as in a bundle
        progress: Progress | None = None,
        check: SignatureCheck = is_signed,
    ) -> None:
        self._info = info
        self._linker = Linker(info, gapless=gapless)
        self._seals = seals or SealCheck(info)
        self._withheld = withheld
        self._find_touches = find_touches
        self._progress = progress
        self._check = check
        self._grants = Grants(check)
        self._contents = _ContentCount()
        self._done = 0
        self._found_at = 0

    def run(
        self,
        receipts: Iterable[StoredReceipt],
        total: int,
        find_contents: FindContents,
    ) -> Evidence:
        """Verify receipts with their contents, and the seals over them."""
        findings: list[tuple[int, VerificationError]] = []
        processes = useful_processes(total) if self._check is is_signed else 0
        with SignatureQueue(processes=processes, check=self._check) as signatures:
            try:
                for chunk in _chunks(receipts):
                    self._take(chunk, signatures, find_contents)
                    if self._progress is not None:
                        self._progress(self._done, total)
            except VerificationError as error:
                findings.append((self._found_at, error))
            # Signatures run behind: one that is wrong before that place is the first thing that is wrong.
            if signatures.bad is None:
                with contextlib.suppress(SignatureError):
                    signatures.finish()
        if signatures.bad is not None:
            findings.insert(0, signatures.bad)
        if findings:
            raise min(findings, key=lambda found: found[0])[1]
        self._require_erased()
        self._seals.finish(self._done)
        return self._evidence(signatures.checked)

    def _take(
        self,
        chunk: Sequence[StoredReceipt],
        signatures: SignatureQueue,
        find_contents: FindContents,
    ) -> None:
        links: list[Link] = []
        try:
            for stored in chunk:
                link = self._linker.add(stored)
                links.append(link)
                signatures.add(link.receipt.stream, link.receipt.seq, (stored.payload, link.signatures), *link.rulings)
                if stored.position is not None:
                    self._seals.add(link.digest, self._linker.derived.keys)
                self._done += 1
        finally:
            self._found_at = self._done
            self._require_digests(links, find_contents)

    # Step 10: every content is what its receipt committed to, or was erased under a receipt.
    def _require_digests(self, links: Sequence[Link], find_contents: FindContents) -> None:
        wanted = [ref.id for link in links for ref in link.receipt.content.values()]
        found = {content.id: content for content in find_contents(wanted)}
        touches = self._touches(links)
        for order, link in enumerate(links, self._done - len(links)):
            for name, ref in link.receipt.content.items():
                stored = found.get(ref.id)
                try:
                    self._require_digest(link, name, ref, stored)
                    if touches is not None and name.startswith(_CHANGE) and stored is not None:
                        self._require_touch(link, stored, touches.get(ref.id))
                except (ContentMismatchError, DerivedStateError) as error:
                    self._found_at = order
                    raise type(error)(
                        error.problem,
                        stream=link.receipt.stream,
                        seq=link.receipt.seq,
                        field=f"content.{name}",
                    ) from None
            self._require_granted(order, link, found)

    # Step 10 for terms and certificates, which are contents: what was granted is what was done.
    def _require_granted(self, order: int, link: Link, found: Mapping[ContentId, StoredContent]) -> None:
        receipt = link.receipt
        try:
            self._grants.take(receipt, found)
        except VerificationError as error:
            self._found_at = order
            raise type(error)(error.problem, stream=receipt.stream, seq=receipt.seq, field=error.field) from None

    def _require_digest(self, link: Link, name: str, ref: ContentRef, stored: StoredContent | None) -> None:
        count = self._contents
        if stored is None:
            if not self._withheld:
                count.claimed[ref.id] = (link.receipt.stream, link.receipt.seq)
            count.withheld += self._withheld
            return
        count.rows += 1
        if stored.receipt != link.receipt.id:
            raise ContentMismatchError(f"{ref.id} belongs to another receipt")
        if stored.place is Place.ERASED:
            if (stored.salt, stored.body) != (None, None):
                raise ContentMismatchError(f"{ref.id} is marked as erased and has a body")
            count.claimed[ref.id] = (link.receipt.stream, link.receipt.seq)
            return
        if stored.salt is None or stored.body is None:
            raise ContentMismatchError(f"the {name} is lost: {ref.id} has no body")
        if (len(stored.body), content_digest(stored.salt, stored.body)) != (ref.size, ref.digest):
            raise ContentMismatchError(f"the {name} is not what the receipt committed to")
        count.checked += 1

    def _touches(self, links: Sequence[Link]) -> dict[ContentId, Touched] | None:
        if self._find_touches is None:
            return None
        changes = [ref.id for link in links for name, ref in link.receipt.content.items() if name.startswith(_CHANGE)]
        return {touched.content: touched for touched in self._find_touches(changes)} if changes else {}

    # Step 10 again: a change that is kept is found under the path that it names, and under no other.
    def _require_touch(self, link: Link, stored: StoredContent, touched: Touched | None) -> None:
        if stored.body is None:
            return  # erased; a row that stayed behind is counted in the end
        if touched is None:
            if isinstance(link.receipt.body, ToolCompleted | ToolFailed):
                raise DerivedStateError(f"{stored.id} is a change and is found under no path")
            return
        if touched.receipt != link.receipt.id:
            raise DerivedStateError(f"the path of {stored.id} names {touched.receipt}, which is not its receipt")
        if touched.path != (path := read_path(stored.body)):
            raise DerivedStateError(f"{stored.id} is found under {touched.path!r} and is a change of {path!r}")
        self._contents.touches += 1

    def _require_erased(self) -> None:
        for content, (stream, seq) in self._contents.claimed.items():
            if content not in self._linker.erased:
                raise ContentMismatchError(
                    f"{content} is gone and no receipt says that it was erased", stream=stream, seq=seq
                )
        self._contents.erased = len(self._contents.claimed)

    # Step 11: no receipt that stands outside the order.
    def require_all(self, view: LedgerView) -> None:
        """Refuse receipts that have neither a position nor a place among those that wait for one."""
        total = view.counts().receipts
        if total != self._done:
            raise PositionError(f"{total} receipts are stored and {self._done} stand in the order", field="position")

    # Step 12: no content that nobody committed to.
    def require_contents(self, view: LedgerView) -> None:
        """Refuse contents that no receipt names, and erased ones that are back."""
        if view.counts().contents != self._contents.rows:
            raise ContentMismatchError(f"no receipt names {_find_surplus(view)}")
        for content in view.find_contents(list(self._linker.erased)):
            if content.place is not Place.ERASED:
                raise ContentMismatchError(f"{content.id} was erased and is there again")

    # Step 13: derived rows say what the receipts add up to, no more and no less.
    def require_derived(self, view: LedgerView) -> None:
        """Refuse derived rows that the receipts do not support."""
        derived = self._linker.derived
        _require_rows("stream", derived.streams, view.find_streams())
        _require_rows("run", derived.runs, view.find_runs())
        held = {lease.handoff for lease in view.find_leases()}
        _require_rows("handoff", derived.handoffs, (_without_claim(known, held) for known in view.find_handoffs()))
        _require_rows("key", derived.keys, view.find_keys())
        _require_rows("statement", derived.stated, view.find_statements())
        _require_rows("cached result", derived.cached, view.find_cached())
        _require_rows("charged account", derived.charged, view.find_charged())
        _require_rows("held call", derived.held_calls, view.find_held_calls())
        _require_rows("decided call", derived.decided_calls, view.find_decided_calls())
        _require_rows("remark", derived.remarks, view.find_remarks())

    # Step 13 for what is derived from contents: each row was met above, together with its change.
    def require_touches(self, view: LedgerView) -> None:
        """Refuse paths of contents that are no changes, or not there any more."""
        rows = sum(1 for _ in view.find_touches())
        if rows != self._contents.touches:
            raise DerivedStateError(
                f"{_find_stray(view, self._linker.erased)} has a path and is not a change that is kept"
            )

    def _evidence(self, signatures: int) -> Evidence:
        derived = self._linker.derived
        return Evidence(
            ledger=self._info.id,
            root_key=key_id(self._info.root_key),
            receipts=self._done,
            signatures=signatures,
            streams=len(derived.streams),
            runs=len(derived.runs),
            handoffs=len(derived.handoffs),
            contents=self._contents.checked,
            erased=self._contents.erased,
            withheld=self._contents.withheld,
            relays=len({key.relay for key in derived.keys.values() if key.relay is not None}),
            seals=self._seals.checked,
            unjudged=self._grants.unjudged,
            unknown_kinds=self._linker.unknown_kinds,
        )


def _chunks(receipts: Iterable[StoredReceipt]) -> Iterator[list[StoredReceipt]]:
    iterator = iter(receipts)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk


def _without_claim(handoff: Handoff, held: AbstractSet[HandoffId]) -> Handoff:
    # A claim is a lease, not a receipt: as far as receipts tell, a claimed handoff is ready.
    if handoff.state is not State.CLAIMED or handoff.id not in held:
        return handoff
    return replace(handoff, state=State.READY)


def _find_surplus(view: LedgerView) -> str:
    named = {
        ref.id
        for stored in view.find_receipts(ReceiptQuery(first=1))
        for ref in decode_receipt(stored.payload).content.values()
    }
    return next((content for content in view.find_content_ids() if content not in named), "one of the contents")


def _find_stray(view: LedgerView, erased: Container[ContentId]) -> str:
    kept = {
        ref.id
        for stored in view.find_receipts(ReceiptQuery())
        for name, ref in decode_receipt(stored.payload).content.items()
        if name.startswith(_CHANGE) and ref.id not in erased
    }
    return next(
        (touched.content for touched in view.find_touches() if touched.content not in kept), "one of the contents"
    )


def read_path(document: bytes) -> str | None:
    """Return the path that a change is of; None if the document names none."""
    try:
        return _CHANGES.decode(document).path
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _require_rows(what: str, expected: Mapping[Any, Any], found: Iterable[Any]) -> None:
    seen = 0
    for row in found:
        seen += 1
        known = expected.get(row.id)
        if known is None:
            raise DerivedStateError(f"no receipt supports this {what}", stream=row.id)
        if known != row:
            name = next(name.name for name in fields(row) if getattr(row, name.name) != getattr(known, name.name))
            raise DerivedStateError(
                f"the row says {getattr(row, name)} and the receipts say {getattr(known, name)}",
                stream=row.id,
                field=name,
            )
    if seen != len(expected):
        raise MissingError(f"{len(expected) - seen} of {len(expected)} {what} rows are gone")
