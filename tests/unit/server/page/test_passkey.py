"""Passkeys at the page: made for a person, never enrolled by a session, and asked to sign only what is shown."""

import json
import re
from hashlib import sha256
from html import unescape

import cbor2
import pytest

from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.key import KeyRole
from batonpass.records.hold import find_handoff_holds
from batonpass.signing.ed25519 import Ed25519Signer
from tests.unit.handoff.authenticator import PRESENT, VERIFIED, Authenticator, base64url
from tests.unit.server.page.browser import Browser
from tests.unit.server.page.test_deeds import Stage, stage  # noqa: F401 - the same stage
from tests.unit.server.visitor import Answered

NAMED = "localhost:7420"
ORIGIN = f"http://{NAMED}"
ATTESTED = 0x40


def a_device(**changed: object) -> Authenticator:
    """Return a device at the name of this machine."""
    return Authenticator(site="localhost", home="localhost", origin=ORIGIN).but(**changed)


def at_name(browser: Browser) -> Browser:
    """Return the browser at the server's name: there are no passkeys for addresses."""
    browser.visitor.sent["host"] = NAMED
    return browser


def send(browser: Browser, target: str, fields: dict[str, str], **headers: str) -> Answered:
    """Send a form from the page at its name."""
    return browser.post(target, fields, **{"origin": ORIGIN, **headers})


def options_of(browser: Browser) -> dict[str, object]:
    """Return what the page tells the browser to make."""
    found = re.search('data-options="([^"]*)"', browser.get("/passkey").body.decode())
    assert found is not None
    made: dict[str, object] = json.loads(unescape(found[1]))
    return made


def made(
    browser: Browser, device: Authenticator, *, flags: int = PRESENT | VERIFIED, said: dict[str, object] | None = None
) -> dict[str, str]:
    """Return the form that a browser sends after a device has made a passkey."""
    challenge = bytes.fromhex(str(options_of(browser)["challenge"]))
    client = {"type": "webauthn.create", "challenge": base64url(challenge), "origin": device.origin, **(said or {})}
    raw = bytes.fromhex(device.passkey.public)
    cose = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: raw[:32], -3: raw[32:]})
    size = len(device.credential).to_bytes(2, "big")
    data = sha256(device.site.encode()).digest() + bytes([flags | ATTESTED]) + bytes(4)
    data += bytes(16) + size + device.credential + cose
    attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
    return {
        **browser.secrets("/passkey"),
        "credential": base64url(device.credential),
        "client_data": base64url(json.dumps(client).encode()),
        "attestation": base64url(attestation),
    }


def enrolled(stage: Stage, role: str = "operator") -> tuple[Browser, Authenticator]:  # noqa: F811 - the fixture's value
    """Return somebody at the page whose passkey is enrolled."""
    browser, device = at_name(stage.browser(role)), a_device()
    stage.relay.admin.enroll_approver(f"user:{role}", device.passkey.text)
    return browser, device


def prepared(stage: Stage, browser: Browser, **fields: str) -> Answered:  # noqa: F811 - as above
    """Ask for the ruling that a passkey has to sign."""
    said = {"decision": "approved", "shown": stage.shown(browser), "looked_ms": "4200"}
    return send(browser, f"{stage.held}/ruling", {**browser.secrets("/"), **said, **fields})


def signed(device: Authenticator, answer: Answered) -> dict[str, str]:
    """Return what the script of the page puts into the form once the passkey has signed."""
    given, signature = device.answer(bytes.fromhex(answer.json["challenge"]))
    return {
        "passkey_at": answer.json["at"],
        "passkey_client": given.client_data,
        "passkey_authenticator": given.authenticator_data,
        "passkey_signature": signature.hex(),
    }


def approve(stage: Stage, browser: Browser, **fields: str) -> Answered:  # noqa: F811 - as above
    """Send the form of the decision from the page at its name."""
    said = {"reason": "I know them", "shown": stage.shown(browser), "looked_ms": "4200", "decision": "approved"}
    return send(browser, stage.held, {**browser.secrets(stage.held), **said, **fields})


def test_a_passkey_is_made_and_not_enrolled(stage: Stage) -> None:  # noqa: F811 - as above
    """The page shows the command that enrols it; the ledger has no receipt more, and no approver."""
    browser, device = at_name(stage.browser()), a_device()
    form, before = made(browser, device), stage.recorded()
    answer = send(browser, "/passkey", form).body.decode()

    assert f"batonpass approver enroll user:operator {device.passkey.text}" in answer
    known = stage.relay.admin.keys()
    assert (before, []) == (
        stage.recorded(),
        [key for key in known if key.role is KeyRole.APPROVER],
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param({"origin": "https://evil.example"}, {}, id="at another origin"),
        pytest.param({"site": "evil.example"}, {}, id="for another site"),
        pytest.param({}, {"challenge": base64url(b"x" * 32)}, id="for another session"),
        pytest.param({}, {"type": "webauthn.get"}, id="not when it was made"),
    ],
)
def test_what_was_not_made_here_is_refused(stage: Stage, wrong: dict[str, object], said: dict[str, object]) -> None:  # noqa: F811 - as above
    """The answer of a browser at another place is shown to nobody as theirs."""
    browser = at_name(stage.browser())
    answer = send(browser, "/passkey", made(browser, a_device(**wrong), said=said))

    assert b"key.refused" in answer.body
    assert b"approver enroll" not in answer.body


def test_what_nobody_verified_or_nobody_can_read_is_refused(stage: Stage) -> None:  # noqa: F811 - as above
    """Neither a device that does not ask who is there, nor a form full of nonsense."""
    browser = at_name(stage.browser())
    good = made(browser, a_device())
    forms = [
        made(browser, a_device(), flags=PRESENT),
        {**good, "attestation": "AAAA"},
        {**good, "attestation": ""},
        {**good, "client_data": "%%%"},
        {**good, "credential": "{{ 7*7 }}"},
    ]

    assert [True] * len(forms) == [b"key.refused" in send(browser, "/passkey", form).body for form in forms]


def test_only_our_own_page_and_only_who_decides_makes_one(stage: Stage) -> None:  # noqa: F811 - as above
    """Another site's form, a form without the session's secret, an auditor, and somebody at an address."""
    browser = at_name(stage.browser())
    good = made(browser, a_device())
    auditor = at_name(stage.browser("auditor"))
    numbered = stage.browser("admin")

    assert 403 == send(browser, "/passkey", good, origin="https://evil.example").status
    assert b"access.form" in send(browser, "/passkey", {**good, "form": "x"}).body
    assert b"access.role" in send(auditor, "/passkey", {**good, **auditor.secrets("/")}).body
    assert b"http://localhost:7420/passkey" in numbered.get("/passkey").body
    assert b"key.refused" in numbered.post("/passkey", {**good, **numbered.secrets("/")}).body


def test_a_passkey_proves_an_approval(stage: Stage) -> None:  # noqa: F811 - as above
    """It is recorded with its answer, opens a hold that takes a key, and the ledger verifies."""
    browser, device = enrolled(stage)
    answer = approve(stage, browser, **signed(device, prepared(stage, browser)))
    with stage.relay.store.view() as view:
        (hold,) = find_handoff_holds(view, view.get_handoff(stage.handoffs["mailer"]))
    stage.relay.verify()

    assert (303, State.OFFERED, True) == (answer.status, stage.state("mailer"), hold.approvals[0].is_proven)
    assert "proven by a key" in browser.get(stage.held).body.decode()


def test_the_ruling_that_is_signed_says_what_was_shown(stage: Stage) -> None:  # noqa: F811 - as above
    """The script can read it: which hold, which sheet, which decision, for how long, and by whom."""
    browser, _ = enrolled(stage)
    given = prepared(stage, browser).json
    ruling = json.loads(given["ruling"])

    assert (stage.handoffs["mailer"], "approved", stage.shown(browser), 4200, "user:operator", "localhost") == (
        ruling["subject"][0]["name"],
        ruling["predicate"]["decision"],
        ruling["predicate"]["shown"],
        ruling["predicate"]["looked_ms"],
        ruling["predicate"]["by"],
        given["site"],
    )


def test_without_a_passkey_a_hold_that_takes_a_key_stays_closed(stage: Stage) -> None:  # noqa: F811 - as above
    """A login alone, another person's passkey, and what was signed for another time open nothing."""
    browser, device = enrolled(stage)
    good = signed(device, prepared(stage, browser))
    other = at_name(stage.browser("admin"))
    answers = {
        "alone": approve(stage, browser),
        "of another person": approve(stage, other, **good),
        "for another look": approve(stage, browser, **{**good, "looked_ms": "4201"}),
        "at another time": approve(stage, browser, **{**good, "passkey_at": "2026-01-01T00:00:00+00:00"}),
        "at no time": approve(stage, browser, **{**good, "passkey_at": "now"}),
        "in local time": approve(stage, browser, **{**good, "passkey_at": "2026-01-01T00:00:00"}),
        "with a signature that is none": approve(stage, browser, **{**good, "passkey_signature": "zz"}),
        "with another device": approve(stage, browser, **signed(a_device(), prepared(stage, browser))),
        "with nobody verified": approve(stage, browser, **signed(device.but(flags=PRESENT), prepared(stage, browser))),
    }

    assert {} == {name: one.status for name, one in answers.items() if one.status < 400}
    assert State.HELD is stage.state("mailer")
    assert 303 == approve(stage, browser, **signed(device, prepared(stage, browser))).status


def test_a_ruling_is_made_only_for_our_own_page_and_what_is_shown(stage: Stage) -> None:  # noqa: F811 - as above
    """Another site, another session's form, another sheet, an auditor, and somebody without a passkey get none."""
    browser, _ = enrolled(stage)
    admin, auditor = at_name(stage.browser("admin")), at_name(stage.browser("auditor"))
    crossed = {**browser.secrets("/"), "decision": "approved", "shown": stage.shown(browser)}

    assert ["access.form", "handoff.hold_changed", "key.missing", "access.role", "value.invalid", "access.origin"] == [
        prepared(stage, browser, form="x").code,
        prepared(stage, browser, shown="0" * 64).code,
        prepared(stage, admin).code,
        prepared(stage, auditor).code,
        prepared(stage, browser, shown="").code,
        send(browser, f"{stage.held}/ruling", crossed, origin="https://evil.example").code,
    ]


def test_what_was_approved_twice_is_recorded_once(stage: Stage) -> None:  # noqa: F811 - as above
    """The same form sent again gets the same answer, with a passkey too."""
    browser, device = enrolled(stage)
    proof = signed(device, prepared(stage, browser))
    said = {"reason": "r", "shown": stage.shown(browser), "looked_ms": "4200", "decision": "approved", **proof}
    form = {**browser.secrets(stage.held), **said}
    first = send(browser, stage.held, form)
    count = stage.recorded()
    second = send(browser, stage.held, form)

    assert (303, 303, count) == (first.status, second.status, stage.recorded())


def test_the_sheet_says_how_a_key_signs(stage: Stage) -> None:  # noqa: F811 - as above
    """Here, elsewhere, in a file, or that there is none yet; without one, approving is closed."""
    browser, _ = enrolled(stage)
    here = browser.get(stage.held).body.decode()
    none = at_name(stage.browser("admin")).get(stage.held).body.decode()
    browser.visitor.sent["host"] = "127.0.0.1:7420"
    elsewhere = browser.get(stage.held).body.decode()

    assert ("data-passkey=" in here, "data-closed" in here) == (True, False)
    assert ('href="/passkey"' in none, "data-closed" in none) == (True, True)
    assert ("signs on the page at localhost" in elsewhere, "data-closed" in elsewhere) == (True, True)


def test_the_page_says_which_key_somebody_has(stage: Stage) -> None:  # noqa: F811 - as above
    """A passkey with its site, or a key in a file; and that another takes the first to be revoked."""
    browser, _ = enrolled(stage)
    stage.relay.admin.enroll_approver("user:admin", Ed25519Signer.generate().public_key)
    with_passkey = browser.get("/passkey").body.decode()
    with_file = at_name(stage.browser("admin")).get("/passkey").body.decode()

    assert "You approve with a passkey" in with_passkey
    assert "You approve with a key in a file" in with_file
    assert all("batonpass approver revoke" in one for one in (with_passkey, with_file))
    assert "data-options" not in with_passkey + with_file
