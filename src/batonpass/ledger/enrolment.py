"""Enrolment: the root key signs which relays may record, and whose keys may approve."""

from collections.abc import Callable
from typing import TypeAlias

from batonpass.clock import Clock
from batonpass.errors import InvalidValueError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import Ledger, Recorder, sign_receipt
from batonpass.model.base.ids import PrincipalId, PublicKey, RelayId, StreamId, is_user, new_ledger_id
from batonpass.model.bodies.body import ApproverEnrolled, ApproverRevoked, RelayEnrolled, RelayRevoked, RelayRotated
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.key import Signer
from batonpass.store.port import LedgerInfo, LedgerStore


def found_ledger(
    store: LedgerStore,
    recorder: Recorder,
    root: Signer,
    clock: Clock,
    *,
    vouch: Callable[[LedgerInfo], Content] | None = None,
) -> LedgerInfo:
    """Found a ledger in an empty store, with `root` as its root key, and enrol its first relay.

    `vouch` makes a content that is kept with the enrolment. If several processes found a ledger at once, one wins, and
    all get its info.
    """
    at = clock.now()
    info = LedgerInfo(id=new_ledger_id(at), root_key=root.public_key)
    draft = Draft(
        stream=StreamId(recorder.id),
        body=RelayEnrolled(relay=recorder.id, public_key=recorder.signer.public_key),
        anchor=info.genesis,
        cosigner=root,
        contents=() if vouch is None else (vouch(info),),
    )
    return store.found(info, Entry(signed=sign_receipt(draft, None, recorder, at), contents=draft.contents))


Change: TypeAlias = RelayEnrolled | RelayRotated | RelayRevoked | ApproverEnrolled | ApproverRevoked


class Enrolment:
    """Enrols, rotates and revokes the keys of relays and approvers. Every act needs the root key."""

    def __init__(self, store: LedgerStore, ledger: Ledger, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._recorder = recorder
        self._clock = clock

    def enroll(self, relay: RelayId, public_key: PublicKey, *, root: Signer, vouched: tuple[Content, ...] = ()) -> None:
        """Let a relay record in this ledger."""
        self._append(RelayEnrolled(relay=relay, public_key=public_key), root, vouched)

    def rotate(self, public_key: PublicKey, *, root: Signer, vouched: tuple[Content, ...] = ()) -> None:
        """Give this relay a new key. The current key signs this receipt and then nothing more."""
        old = self._recorder.signer.public_key
        self._append(RelayRotated(relay=self._recorder.id, old_key=old, public_key=public_key), root, vouched)

    def revoke(self, relay: RelayId, public_key: PublicKey, *, reason: str, root: Signer) -> None:
        """Revoke a relay's key: from now on it can record nothing, in any process."""
        self._append(RelayRevoked(relay=relay, public_key=public_key), root, self._words(reason))

    def enroll_approver(self, principal: PrincipalId, public_key: PublicKey, *, root: Signer) -> None:
        """Enrol an approver's key. Raises `DuplicateReceiptError` if they have one, or if the key is known.

        Raises `InvalidValueError` for a principal who is no person. Receipts of older ledgers may name one anyway.
        """
        if not is_user(principal):
            raise InvalidValueError("principal", f"{principal} is no person, and only people approve")
        self._append(ApproverEnrolled(principal=principal, public_key=public_key), root)

    def revoke_approver(self, principal: PrincipalId, public_key: PublicKey, *, reason: str, root: Signer) -> None:
        """Revoke an approver's key: from now on its signatures prove nothing."""
        self._append(ApproverRevoked(principal=principal, public_key=public_key), root, self._words(reason))

    def _words(self, reason: str) -> tuple[Content, ...]:
        return (new_content("reason", reason, self._clock.now()),)

    def _append(self, body: Change, root: Signer, contents: tuple[Content, ...] = ()) -> None:
        with self._store.view() as view:
            anchor = view.info().genesis
        self._ledger.append(
            Draft(
                stream=StreamId(self._recorder.id),
                body=body,
                anchor=anchor,
                cosigner=root,
                contents=contents,
            ),
        )
