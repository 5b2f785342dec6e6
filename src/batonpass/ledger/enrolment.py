"""Which relays may record, and whose keys approve: the root key says so, and signs the receipt of every change."""

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
    """Make an empty store a ledger whose root key is `root` and whose first relay enrols itself; return who it is.

    What `vouch` makes is kept with that enrolment. Of several processes that found at once, one wins, and all learn
    which.
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
    """Enrols, rotates and revokes the keys of relays and of people who approve. Every act needs the root key."""

    def __init__(self, store: LedgerStore, ledger: Ledger, recorder: Recorder, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._recorder = recorder
        self._clock = clock

    def enroll(self, relay: RelayId, public_key: PublicKey, *, root: Signer, vouched: tuple[Content, ...] = ()) -> None:
        """Let a relay record in this ledger."""
        self._append(RelayEnrolled(relay=relay, public_key=public_key), root, vouched)

    def rotate(self, public_key: PublicKey, *, root: Signer, vouched: tuple[Content, ...] = ()) -> None:
        """Let this relay go on under another key; the present one signs this and then nothing more."""
        old = self._recorder.signer.public_key
        self._append(RelayRotated(relay=self._recorder.id, old_key=old, public_key=public_key), root, vouched)

    def revoke(self, relay: RelayId, public_key: PublicKey, *, reason: str, root: Signer) -> None:
        """Stop a relay key from recording, from now on and for every process."""
        self._append(RelayRevoked(relay=relay, public_key=public_key), root, self._words(reason))

    def enroll_approver(self, principal: PrincipalId, public_key: PublicKey, *, root: Signer) -> None:
        """Say whose decisions a key signs. Raises `DuplicateReceiptError` if they have one, or the key is known.

        Raises `InvalidValueError` for somebody who is no person. Receipts of older ledgers may name one all the same.
        """
        if not is_user(principal):
            raise InvalidValueError("principal", f"{principal} is no person, and nobody else approves")
        self._append(ApproverEnrolled(principal=principal, public_key=public_key), root)

    def revoke_approver(self, principal: PrincipalId, public_key: PublicKey, *, reason: str, root: Signer) -> None:
        """Let what a key signs prove nothing from now on."""
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
