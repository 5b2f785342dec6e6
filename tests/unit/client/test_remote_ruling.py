"""Approvals through a control plane: signed by the approver's key where they are, or else recorded as unproven."""

import json
from pathlib import Path

import click
import pytest
from nacl.pwhash import argon2id

from batonpass.cli.handoff import remote_approval
from batonpass.cli.handoff.remote_approval import decide_elsewhere
from batonpass.client.ruling_act import ruling_act
from batonpass.errors import AmbiguousIdError, AnotherPrincipalError, NotFoundError, SigningRefusedError
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.model.base.ids import Digest, PrincipalId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import HandoffApproved
from batonpass.signing.approver_key import Approver, Cost, find_approvers_home, make_approver
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from batonpass.wire.versions import RULING_TYPE
from tests.unit.client.conftest import ANA, Place

OPERATOR = "user:olga"
CHEAP = Cost(passes=argon2id.OPSLIMIT_MIN, memory=argon2id.MEMLIMIT_MIN)


@pytest.fixture
def approver(place: Place) -> Approver:
    """Return an approver whose key is enrolled, and is nowhere but with them."""
    signer = Ed25519Signer.generate()
    place.token()  # founds the ledger
    place.relay.admin.enroll_approver(OPERATOR, signer.public_key)
    return Approver(PrincipalId(OPERATOR), signer)


def held(place: Place) -> str:
    """Return a handoff that waits for somebody."""
    return place.relay.start("Do it", by=ANA).hand_off("editor", "Edit", hold=True).id


def approval(place: Place) -> HandoffApproved:
    """Return the approval in the ledger."""
    with place.relay.store.view() as view:
        found = [decode_receipt(one.payload).body for one in view.find_receipts(ReceiptQuery())]
    return next(body for body in found if isinstance(body, HandoffApproved))


def test_an_approval_is_signed_where_the_key_is(place: Place, approver: Approver) -> None:
    """The control plane never has the key, and the ledger proves who approved."""
    waits = held(place)
    handoff = place.elsewhere(place.token(OPERATOR, "operator")).handoff(waits)
    sheet = handoff.material()
    handoff.approve(by=approver, reason="I looked", shown=sheet, looked_ms=1200)
    said = approval(place)

    assert (OPERATOR, approver.signer.key, sheet.digest) == (said.by, said.proof and said.proof.key, said.shown)
    assert State.OFFERED is place.relay.handoff(waits).state()
    place.relay.verify()


def test_without_a_key_an_approval_is_unproven(place: Place) -> None:
    """It opens a gate that asks for no proof, and the receipt says that nobody proved it."""
    waits = held(place)
    place.elsewhere(place.token(OPERATOR, "operator")).handoff(waits).approve(by=OPERATOR)
    said = approval(place)

    assert (None, OPERATOR) == (said.proof, said.by)
    place.relay.verify()


def test_nobody_signs_in_another_s_name(place: Place, approver: Approver) -> None:
    """The token says who rules."""
    waits = held(place)

    with pytest.raises(AnotherPrincipalError):
        place.elsewhere(place.token("user:eve", "operator")).handoff(waits).approve(by=approver)


@pytest.mark.parametrize("lie", ["denied", "another sheet"])
def test_an_approver_signs_the_ruling_that_they_made(place: Place, approver: Approver, lie: str) -> None:
    """A server that wants another one gets no signature."""
    waits = held(place)
    relay = place.elsewhere(place.token(OPERATOR, "operator"))
    handoff = relay.handoff(waits)
    sheet = handoff.material()

    def before(path: str, said: object) -> None:
        if path.startswith("/v1/approvals/") and isinstance(said, dict):
            said |= {"approved": False, "reason": "no"} if lie == "denied" else {}
            said |= {"shown": None} if lie == "another sheet" else {}

    relay.wire.before = before
    with pytest.raises(SigningRefusedError, match="another ruling"):
        handoff.approve(by=approver, shown=sheet)
    assert "handoff.approved" not in place.kinds()


def test_a_ruling_is_about_the_hold_that_was_shown(approver: Approver) -> None:
    """The same decision about something else is another ruling."""
    sheet = Material(text="a sheet", hold=Digest("a" * 64))
    act = ruling_act("handoff_1", approved=True, by=approver, shown=sheet, looked_ms=None)
    said: dict[str, object] = {
        "predicateType": RULING_TYPE,
        "subject": [{"name": "handoff_1", "digest": {"sha256": "a" * 64}}],
        "predicate": {"decision": "approved", "by": OPERATOR, "shown": sheet.digest},
    }
    others: dict[str, dict[str, object]] = {
        "about": {"subject": [{"name": "handoff_2", "digest": {"sha256": "a" * 64}}]},
        "hold": {"subject": [{"name": "handoff_1", "digest": {"sha256": "b" * 64}}]},
        "type": {"predicateType": "urn:another"},
    }
    assert act.rules is not None
    found = {name: act.rules(json.dumps({**said, **other}).encode()) for name, other in others.items()}

    assert None is act.rules(json.dumps(said).encode())
    assert {name: f"another ruling: {name}" for name in others} == found
    assert "it cannot be read" == act.rules(b"[]")


@pytest.mark.parametrize("approved", [True, False])
def test_the_command_signs_where_the_key_is(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, approved: bool
) -> None:
    """The sheet is shown, the person answers, and the key on this machine signs."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = make_approver(find_approvers_home(), PrincipalId(OPERATOR), "a long passphrase", cost=CHEAP)
    place.token()
    place.relay.admin.enroll_approver(OPERATOR, file.public_key)
    monkeypatch.setattr(remote_approval, "unlock", lambda found: found.unlock("a long passphrase"))
    monkeypatch.setattr(click, "confirm", lambda *_, **__: True)
    waits = held(place)
    relay = place.elsewhere(place.token(OPERATOR, "operator"))
    decide_elsewhere(relay, "editor", approved=approved, by=OPERATOR, reason="because", asks=True, as_json=False)
    shown = capsys.readouterr().out

    assert (State.OFFERED if approved else State.DENIED) is place.relay.handoff(waits).state()
    assert ("Edit" in shown, f"by {OPERATOR} (proven)" in shown) == (True, True)
    place.relay.verify()


def test_the_command_without_a_person_is_unproven(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """And names what it ruled on; what does not wait, or is not clear, is refused."""
    held(place)
    relay = place.elsewhere(place.token(OPERATOR, "operator"))
    with pytest.raises(NotFoundError):
        decide_elsewhere(relay, "nobody", approved=True, by=OPERATOR, reason=None, asks=False, as_json=False)
    decide_elsewhere(relay, "editor", approved=True, by=OPERATOR, reason=None, asks=False, as_json=True)
    assert '"proven":false' in capsys.readouterr().out.replace(" ", "")
    held(place), held(place)
    with pytest.raises(AmbiguousIdError):
        decide_elsewhere(relay, "editor", approved=True, by=OPERATOR, reason=None, asks=False, as_json=False)
