"""Held calls of root runs, and the keys of approvers."""

import dataclasses

import pytest
from msgspec.structs import replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import DuplicateReceiptError, UnknownApproverError, UnknownRelayError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import sign_receipt
from batonpass.ledger.position import Working
from batonpass.model.base.ids import CallId, Digest, KeyId, PrincipalId, StreamId, new_call_id
from batonpass.model.bodies.body import Gate, RulingProof, ToolApproved, ToolHeld, ToolRefused
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.model.ledger.run import DecidedCall, HeldCall
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyring import RelayIdentity
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.support import NOW, WithScribe, a_second_relay, an_entry, at_once, head_of

BEN = PrincipalId("user:ben")


def held(scribe: Scribe, working: Working) -> HeldCall:
    """Record that a call is held, and return the row of a root's call."""
    body = ToolHeld(
        run=working.run.id,
        call=new_call_id(NOW),
        tool="deploy",
        rule="tier.irreversible",
        gate=Gate.APPROVE,
        key=Digest("ab" * 32),
    )
    signed = scribe.recording.record(working, body)
    return HeldCall(call=body.call, run=body.run, receipt=signed.receipt.id)


def decided(scribe: Scribe, call: HeldCall, *, approved: bool = True, key: KeyId | None = None) -> DecidedCall:
    """Record a ruling about a root's held call, and return its row."""
    (signed,) = scribe.ledger.append(_decision(scribe, call, approved=approved, key=key))
    return DecidedCall(call=call.call, run=call.run, receipt=signed.receipt.id, approved=approved)


def _decision(scribe: Scribe, call: HeldCall, *, approved: bool, key: KeyId | None = None) -> Draft:
    proof = None if key is None else RulingProof(key=key, at=NOW, signature="00" * 64)  # a store checks no signatures
    body = (ToolApproved if approved else ToolRefused)(run=call.run, call=call.call, by=ANA, proof=proof)
    with scribe.store.view() as view:
        anchor = view.info().genesis
    return Draft(stream=StreamId(scribe.identity.id), body=body, anchor=anchor)


def waiting(store: LedgerStore) -> list[CallId]:
    """Return the calls that are held."""
    with store.view() as view:
        return [found.call for found in view.find_waiting_calls()]


class Deciding(WithScribe):
    """Held calls of root runs, and the keys of approvers."""

    def test_a_held_call_waits_while_its_root_is_open(self, store: LedgerStore, scribe: Scribe) -> None:
        """Oldest first; a held call of a child ends its attempt, so its handoff waits, and not the call."""
        lead, other = scribe.start(), scribe.start()
        calls = [held(scribe, lead), held(scribe, other), held(scribe, lead)]
        held(scribe, scribe.delegate(lead))
        expected = sorted(found.call for found in calls)
        with store.view() as view:
            known = list(view.find_held_calls())
            one = list(view.find_held_calls(calls[1].call))

        assert [calls[1]] == one
        assert (sorted(calls, key=lambda found: found.call), expected) == (known, waiting(store))
        scribe.recording.close(other)
        assert sorted([calls[0].call, calls[2].call]) == waiting(store)
        store.sequence()
        assert 0 < verify_ledger(store).receipts

    def test_a_decision_is_found_by_its_call_and_ends_the_wait(self, store: LedgerStore, scribe: Scribe) -> None:
        """Another relay may rule: it writes into its own stream."""
        lead = scribe.start()
        one, two = held(scribe, lead), held(scribe, lead)
        let = decided(a_second_relay(scribe), one)
        refused = decided(scribe, two, approved=False)
        with store.view() as view:
            found = [list(view.find_decided_calls(call.call)) for call in (one, two)]
            every = list(view.find_decided_calls())

        assert ([[let], [refused]], sorted([let, refused], key=lambda known: known.call)) == (found, every)
        assert [] == waiting(store)
        store.sequence()
        assert 0 < verify_ledger(store).receipts

    def test_a_call_is_decided_about_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """The second ruling is refused, and nothing of it is written."""
        call = held(scribe, scribe.start())
        first = decided(scribe, call)

        with pytest.raises(DuplicateReceiptError):
            decided(a_second_relay(scribe), call, approved=False)
        with store.view() as view:
            assert [first] == list(view.find_decided_calls())

    def test_of_two_that_decide_at_once_one_wins(self, store: LedgerStore, scribe: Scribe) -> None:
        """Two relays rule about one call, in two streams: one of them wins."""
        call = held(scribe, scribe.start())
        scribes = [scribe, a_second_relay(scribe)]
        outcomes: list[str] = []

        def decide(number: int) -> None:
            try:
                decided(scribes[number], call, approved=bool(number))
            except DuplicateReceiptError:
                outcomes.append("refused")
            else:
                outcomes.append("decided")

        at_once(decide, range(2))
        with store.view() as view:
            known = list(view.find_decided_calls())

        assert (["decided", "refused"], 1) == (sorted(outcomes), len(known))

    def test_a_decision_that_is_written_again_is_a_success(self, store: LedgerStore, scribe: Scribe) -> None:
        """Appending the same ruling again succeeds, as after a commit with an unknown outcome."""
        call = held(scribe, scribe.start())
        with store.view() as view:
            head = view.get_stream(StreamId(scribe.identity.id))
        signed = sign_receipt(_decision(scribe, call, approved=True), head, scribe.identity, NOW)
        for _ in range(2):
            store.append([Entry(signed=signed)])
        with store.view() as view:
            assert 1 == len(list(view.find_decided_calls()))

    def test_an_approver_is_a_key_of_a_principal_and_of_no_relay(self, store: LedgerStore, scribe: Scribe) -> None:
        """An enrolled approver's key is listed after the root's and the relays'; a revoked one stays listed."""
        signer = Ed25519Signer.generate()
        scribe.enrolment.enroll_approver(ANA, signer.public_key, root=scribe.root)
        with store.view() as view:
            *_, key = view.find_keys()
        assert (KeyRole.APPROVER, ANA, None, KeyStatus.ACTIVE, signer.key) == (
            key.role,
            key.principal,
            key.relay,
            key.status,
            key.id,
        )
        scribe.enrolment.revoke_approver(ANA, signer.public_key, reason="lost", root=scribe.root)
        with store.view() as view:
            assert replace(key, status=KeyStatus.REVOKED) in list(view.find_keys())
        store.sequence()
        assert 0 < verify_ledger(store).receipts

    def test_a_principal_has_one_key_at_a_time(self, store: LedgerStore, scribe: Scribe) -> None:
        """A second key is refused until the first is revoked; another person's key is independent."""
        first, second = Ed25519Signer.generate(), Ed25519Signer.generate()
        scribe.enrolment.enroll_approver(ANA, first.public_key, root=scribe.root)
        with pytest.raises(DuplicateReceiptError):
            scribe.enrolment.enroll_approver(ANA, second.public_key, root=scribe.root)
        scribe.enrolment.enroll_approver(BEN, Ed25519Signer.generate().public_key, root=scribe.root)
        scribe.enrolment.revoke_approver(ANA, first.public_key, reason="lost", root=scribe.root)
        scribe.enrolment.enroll_approver(ANA, second.public_key, root=scribe.root)
        with store.view() as view:
            active = {key.principal: key.id for key in view.find_keys() if key.status is KeyStatus.ACTIVE}

        assert (second.key, True) == (active[ANA], BEN in active)

    def test_an_approver_records_nothing(self, store: LedgerStore, scribe: Scribe) -> None:
        """An enrolled approver's key cannot sign receipts."""
        signer = Ed25519Signer.generate()
        scribe.enrolment.enroll_approver(ANA, signer.public_key, root=scribe.root)
        lead = scribe.start()
        posing = dataclasses.replace(scribe, identity=RelayIdentity(scribe.identity.id, signer))

        with pytest.raises(UnknownRelayError):
            store.append([an_entry(posing, lead, head_of(store, lead))])

    def test_a_decision_by_a_key_that_is_no_approver_s_is_refused(self, store: LedgerStore, scribe: Scribe) -> None:
        """A ruling with an unknown key, a relay's key or a revoked key is refused, and nothing is written."""
        call = held(scribe, scribe.start())
        ana, ben = Ed25519Signer.generate(), Ed25519Signer.generate()
        for principal, signer in ((ANA, ana), (BEN, ben)):
            scribe.enrolment.enroll_approver(principal, signer.public_key, root=scribe.root)
        scribe.enrolment.revoke_approver(ANA, ana.public_key, reason="lost", root=scribe.root)
        for key in (Ed25519Signer.generate().key, scribe.identity.signer.key, ana.key):
            with pytest.raises(UnknownApproverError) as refused:
                decided(scribe, call, key=key)
            assert key == refused.value.key

        assert [call.call] == waiting(store)
        decided(scribe, call, key=ben.key)
        assert [] == waiting(store)
