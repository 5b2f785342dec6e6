"""Verifies a ledger, in the numbered steps of docs/spec/verification.md.

Returns evidence, or raises the first finding, with its stream, seq and field.
"""

import contextlib
import gc
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.audit.verification.chain_check import Link, Linker
from batonpass.audit.verification.evidence import Evidence
from batonpass.audit.verification.grant_check import Grants
from batonpass.audit.verification.seal_check import SealCheck, parse_seal
from batonpass.audit.verification.sealed_part import Passed, SealedPart, find_sealed_part
from batonpass.audit.verification.signatures import SignatureCheck, SignatureQueue, useful_processes
from batonpass.errors import (
    ContentMismatchError,
    DerivedStateError,
    EditedError,
    InvalidValueError,
    MissingError,
    NotFoundError,
    PositionError,
    SchemaAlteredError,
    SignatureError,
    UnknownKeyError,
    UnlinkedError,
    VerificationError,
)
from batonpass.model.base.checks import require_digest
from batonpass.model.base.content_names import CHANGE
from batonpass.model.base.ids import ContentId, HandoffId, KeyId, PublicKey, RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.content import ContentRef, Place, StoredContent, content_digest
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.run import Handoff, RunState
from batonpass.model.ledger.stream import Stream
from batonpass.signing.ed25519 import is_signed
from batonpass.store.port import LedgerInfo, LedgerStore, LedgerView, ReceiptQuery, Touched
from batonpass.wire.outline import OutlinedContent
from batonpass.wire.receipt_codec import decode_receipt

_CHUNK: Final = 1_000
_CHANGING: Final = frozenset({Kind.TOOL_COMPLETED, Kind.TOOL_FAILED})

Progress = Callable[[int, int], None]
FindContents: TypeAlias = Callable[[Sequence[ContentId]], Iterable[StoredContent]]
FindTouches: TypeAlias = Callable[[Sequence[ContentId]], Iterable[Touched]]


class _ContentCount(Struct):
    checked: int = 0
    erased: int = 0
    withheld: int = 0
    rows: int = 0
    touches: int = 0
    claimed: dict[ContentId, tuple[str, int]] = field(default_factory=dict)  # gone; each must be erased under a receipt


class _Change(msgspec.Struct):
    """The part of a change document that is needed here."""

    path: str


_MADE_BEFORE_COLLECTING: Final = 100_000  # objects
_CHANGES: Final = msgspec.json.Decoder(_Change)


def verify_ledger(
    store: LedgerStore,
    *,
    seals: Sequence[str] = (),
    root_key: PublicKey | KeyId | None = None,
    progress: Progress | None = None,
    since: str | None = None,
    check: SignatureCheck = is_signed,
) -> Evidence:
    """Verify a whole ledger, and compare it with these seals. Raises `VerificationError` for the first finding.

    `root_key` pins the key on which everything rests; without it, compare the one in the evidence yourself. `since` is
    a seal over receipts that were verified before: trees that have not changed since are only compared with it.
    """
    # One view for receipts and rows: writers go on meanwhile, and rows that are read later would know more than the
    # receipts.
    with _collecting_rarely(), store.view() as view:
        _require_schema(view)
        info = require_root_key(view.info(), root_key)
        notes = seals if since is None else (*seals, since)
        verification = Verification(
            info,
            seals=SealCheck(info, notes=notes, kept=view.find_seals()),
            sealed=None if since is None else find_sealed_part(view, parse_seal(since, "the given seal")),
            find_touches=view.find_touches_of,
            progress=progress,
            check=check,
        )
        receipts = chain(
            view.find_receipts(ReceiptQuery(first=1)),
            view.find_receipts(ReceiptQuery(unsequenced=True)),
        )
        return verification.run(
            receipts,
            view.counts().receipts,
            view.find_contents,
            rest=lambda: _require_rest(verification, view),
        )


@contextlib.contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Let the garbage collector look around less often, for as long as this lasts.

    A pass keeps the values with which later receipts are compared, and drops the rest without making cycles. Looking
    through all of it again and again took a tenth of the time, and found nothing.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _MADE_BEFORE_COLLECTING) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _require_rest(verification: "Verification", view: LedgerView) -> None:
    verification.require_all(view)
    verification.require_contents(view)
    verification.require_derived(view)
    verification.require_touches(view)
    _require_found(view)


# Before the first step, since everything is read through this schema.
def _require_schema(view: LedgerView) -> None:
    for name, problem in view.find_alterations():
        raise SchemaAlteredError(problem, stream="schema", field=name)


# Step 13 for indexes: a row that cannot be found is as good as deleted. After the rows, whose own errors say more.
def _require_found(view: LedgerView) -> None:
    for name, problem in view.find_misfiled():
        raise DerivedStateError(problem, stream="index", field=name)


def require_root_key(info: LedgerInfo, pinned: PublicKey | KeyId | None) -> LedgerInfo:
    """Return the ledger's info. Raises `VerificationError` if its root key is malformed, or not the pinned one."""
    try:
        require_digest("root_key", info.root_key)
    except InvalidValueError as error:
        raise EditedError(error.problem, stream="ledger", field="root_key") from None
    if pinned not in {None, info.root_key, key_id(info.root_key)}:
        raise UnknownKeyError(f"the ledger's root key is {info.root_key}, not the one that was given", field="root_key")
    return info


class Verification:
    """One pass over receipts in position order, then over the rows derived from them."""

    def __init__(
        self,
        info: LedgerInfo,
        *,
        seals: SealCheck | None = None,
        sealed: SealedPart | None = None,
        gapless: bool = True,
        withheld: bool = False,
        find_touches: FindTouches | None = None,  # None if there are no rows, as in a bundle
        progress: Progress | None = None,
        check: SignatureCheck = is_signed,
    ) -> None:
        self._info = info
        self._linker = Linker(info, gapless=gapless, whole=sealed is None)
        self._seals = seals or SealCheck(info)
        self._sealed = sealed
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
        rest: Callable[[], None] | None = None,
    ) -> Evidence:
        """Verify receipts with their contents and seals, then run `rest`.

        Raises the first finding in the order of receipts.

        Signatures are checked in the background, also while `rest` runs.
        """
        findings: list[tuple[int, VerificationError]] = []
        unproven = total - (0 if self._sealed is None else self._sealed.size)
        # A helper process checks with the code that it imports itself, so a check that the caller gives has to run
        # here.
        processes = useful_processes(unproven) if self._check is is_signed else 0
        with SignatureQueue(processes=processes, check=self._check) as signatures:
            try:
                for chunk in _chunks(receipts):
                    self._take(chunk, signatures, find_contents)
                    if self._progress is not None:
                        self._progress(self._done, total)
                self._require_erased()
                self._seals.finish(self._done)
                if rest is not None:
                    rest()
            except VerificationError as error:
                findings.append((self._found_at, error))
            # A bad signature may be found late. If its receipt comes before the other finding, it is the first.
            if signatures.bad is None:
                with contextlib.suppress(SignatureError):
                    signatures.finish()
        if signatures.bad is not None:
            findings.insert(0, signatures.bad)
        if findings:
            # Of two findings at one receipt, the signature is named, because `min` takes the first of equals: with a
            # wrong signature, nothing else that the bytes say means anything.
            raise min(findings, key=lambda found: found[0])[1]
        return self._evidence(signatures.checked)

    def _take(
        self,
        chunk: Sequence[StoredReceipt],
        signatures: SignatureQueue,
        find_contents: FindContents,
    ) -> None:
        links: list[Link | Passed] = []
        try:
            for stored in chunk:
                link = self._link(stored, signatures)
                links.append(link)
                if stored.position is not None:
                    # With the keys as they are at this receipt: a seal counts only if its relay was enrolled by then.
                    self._seals.add(link.digest, self._linker.derived.keys)
                self._done += 1
        finally:
            self._found_at = self._done
            # Also after a finding: contents are checked for a whole chunk at once, and a wrong content of an earlier
            # receipt is then the first finding.
            self._require_digests(links, find_contents)

    def _link(self, stored: StoredReceipt, signatures: SignatureQueue) -> Link | Passed:
        passed = None if self._sealed is None else self._sealed.pass_over(stored)
        if passed is not None:
            self._linker.pass_over(stored, passed.receipt.run_key)
            # Nothing to check, but it is counted: the place of a finding is the number of receipts before it.
            signatures.add(stored.stream, stored.seq)
            return passed
        link = self._linker.add(stored)
        proven = self._sealed is not None and self._sealed.is_proven(stored)
        jobs = () if proven else ((stored.payload, link.signatures), *link.rulings)
        signatures.add(link.receipt.stream, link.receipt.seq, *jobs)
        return link

    # Step 10: every content has the digest that its receipt names, or was erased under a receipt.
    def _require_digests(self, links: Sequence[Link | Passed], find_contents: FindContents) -> None:
        named = [(name, ref.id) for link in links for name, ref in link.receipt.content.items()]
        found = {content.id: content for content in find_contents([content for _, content in named])}
        touches = self._touches([content for name, content in named if name.startswith(CHANGE)])
        for order, link in enumerate(links, self._done - len(links)):
            for name, ref in link.receipt.content.items():
                stored = found.get(ref.id)
                try:
                    self._require_digest(link, name, ref, stored)
                    if touches is not None and name.startswith(CHANGE) and stored is not None:
                        self._require_touch(link, stored, touches.get(ref.id))
                except (ContentMismatchError, DerivedStateError) as error:
                    self._found_at = order
                    raise type(error)(
                        error.problem,
                        stream=link.receipt.stream,
                        seq=link.receipt.seq,
                        field=f"content.{name}",
                    ) from None
            if isinstance(link, Link):
                self._require_granted(order, link, found)

    # Step 10 for terms and certificates, which are contents: calls stayed within their grants.
    def _require_granted(self, order: int, link: Link, found: Mapping[ContentId, StoredContent]) -> None:
        receipt = link.receipt
        try:
            self._grants.take(receipt, found)
        except VerificationError as error:
            self._found_at = order
            raise type(error)(error.problem, stream=receipt.stream, seq=receipt.seq, field=error.field) from None

    def _require_digest(
        self, link: Link | Passed, name: str, ref: ContentRef | OutlinedContent, stored: StoredContent | None
    ) -> None:
        count = self._contents
        # The receipt that says that a content was erased comes later. So this is decided after the last one.
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

    def _touches(self, changes: Sequence[ContentId]) -> dict[ContentId, Touched] | None:
        if self._find_touches is None:
            return None
        return {touched.content: touched for touched in self._find_touches(changes)} if changes else {}

    # Step 10 again: a change is indexed under the path that it names, and under no other.
    def _require_touch(self, link: Link | Passed, stored: StoredContent, touched: Touched | None) -> None:
        if stored.body is None:
            return  # erased; a leftover row is noticed by the final count
        if touched is None:
            if link.receipt.kind in _CHANGING:
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

    # Step 11: every receipt is part of the order.
    def require_all(self, view: LedgerView) -> None:
        """Refuse receipts that are neither sequenced nor waiting to be."""
        total = view.counts().receipts
        # This pass reads by position. A receipt that stands in no order would never be checked, and everything that
        # reads by stream would still show it.
        if total != self._done:
            raise PositionError(f"{total} receipts are stored and {self._done} stand in the order", field="position")

    # Step 12: every content is named by a receipt.
    def require_contents(self, view: LedgerView) -> None:
        """Refuse contents that no receipt names, and erased ones that came back."""
        # Only the count, because names cost another pass over all receipts; that pass is made once there is something
        # to name.
        if view.counts().contents != self._contents.rows:
            raise ContentMismatchError(f"no receipt names {_find_surplus(view)}")
        # A store that is restored from a backup may hold words again that somebody was promised are gone.
        for content in view.find_contents(list(self._linker.erased)):
            if content.place is not Place.ERASED:
                raise ContentMismatchError(f"{content.id} was erased and is there again")

    # Step 13: derived rows are exactly those that the receipts produce.
    def require_derived(self, view: LedgerView) -> None:
        """Refuse derived rows that do not follow from the receipts. Those of unchanged sealed trees are not read."""
        if self._sealed is not None:
            self._require_some_derived(view, self._sealed.roots)
            return
        derived = self._linker.derived
        _require_rows("stream", derived.streams, view.find_streams())
        _require_rows("run", derived.runs, view.find_runs())
        held = {lease.handoff for lease in view.find_leases()}
        _require_rows("handoff", derived.handoffs, (_without_claim(known, held) for known in view.find_handoffs()))
        # A store may keep an index by state: a list by state must be complete.
        in_states = view.find_handoffs(states=tuple(State))
        _require_rows("handoff by state", derived.handoffs, (_without_claim(known, held) for known in in_states))
        _require_rows("run by state", derived.runs, view.find_runs(states=tuple(RunState)))
        _require_rows("key", derived.keys, view.find_keys())
        _require_rows("statement", derived.stated, view.find_statements())
        _require_rows("cached result", derived.cached, view.find_cached())
        _require_rows("charged account", derived.charged, view.find_charged())
        _require_rows("held call", derived.held_calls, view.find_held_calls())
        _require_rows("decided call", derived.decided_calls, view.find_decided_calls())
        _require_rows("remark", derived.remarks, view.find_remarks())

    def _require_some_derived(self, view: LedgerView, roots: AbstractSet[RunId]) -> None:
        derived = self._linker.derived
        for root in roots:
            if root not in derived.runs:
                raise UnlinkedError("a tree that others go on from is not there", stream=root)
        _require_rows("stream", derived.streams, _find_known(view.get_stream, derived.streams))
        _require_rows("run", derived.runs, (run for root in roots for run in view.find_runs(root=root)))
        held = {lease.handoff for lease in view.find_leases()}
        handoffs = (known for root in roots for known in view.find_handoffs(root=root))
        _require_rows("handoff", derived.handoffs, (_without_claim(known, held) for known in handoffs))
        _require_rows("key", derived.keys, view.find_keys())
        _require_rows("statement", derived.stated, (said for root in roots for said in view.find_statements(root)))
        # These tables are not kept by tree, so rows of other trees are skipped.
        for what, expected, found in (
            ("cached result", derived.cached, view.find_cached()),
            ("charged account", derived.charged, view.find_charged()),
            ("held call", derived.held_calls, view.find_held_calls()),
            ("decided call", derived.decided_calls, view.find_decided_calls()),
            ("remark", derived.remarks, view.find_remarks()),
        ):
            known: Mapping[Any, Any] = expected
            if known:
                rows: Iterable[Any] = found
                _require_rows(what, known, (row for row in rows if row.id in known))

    # Step 13 for paths: each row was compared above, together with its change.
    def require_touches(self, view: LedgerView) -> None:
        """Refuse paths of contents that are not changes, or no longer exist."""
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
            sealed=0 if self._sealed is None else self._sealed.passed,
        )


def _chunks(receipts: Iterable[StoredReceipt]) -> Iterator[list[StoredReceipt]]:
    iterator = iter(receipts)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk


def _find_known(get: Callable[[StreamId], Stream], streams: Iterable[StreamId]) -> Iterator[Stream]:
    for stream in streams:
        with contextlib.suppress(NotFoundError):
            yield get(stream)


def _without_claim(handoff: Handoff, held: AbstractSet[HandoffId]) -> Handoff:
    # A claim is a lease, not a receipt: according to receipts, a claimed handoff is ready.
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
        if name.startswith(CHANGE) and ref.id not in erased
    }
    return next(
        (touched.content for touched in view.find_touches() if touched.content not in kept), "one of the contents"
    )


def read_path(document: bytes) -> str | None:
    """Return the path that a change document names; None if it names none."""
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
            name = next(name for name in row.__struct_fields__ if getattr(row, name) != getattr(known, name))
            raise DerivedStateError(
                f"the row says {getattr(row, name)} and the receipts say {getattr(known, name)}",
                stream=row.id,
                field=name,
            )
    if seen != len(expected):
        raise MissingError(f"{len(expected) - seen} of {len(expected)} {what} rows are gone")
