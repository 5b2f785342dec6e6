"""Passkeys in a real browser, with the authenticator that chromium plays: made, enrolled, signed with, and refused."""

from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from batonpass.model.base.ids import PublicKey
from batonpass.model.base.lifecycle import State
from batonpass.records.hold import Approval, find_handoff_holds
from batonpass.signing.ed25519 import Ed25519Signer
from tests.page.conftest import PATIENCE, Opener, ServedPage

expect.set_options(timeout=PATIENCE * 1000)


def named(server: ServedPage) -> str:
    """Return the address of a server by name: browsers make no passkeys for numbers."""
    return server.address.replace("127.0.0.1", "localhost")


def plug_in(page: Page, **options: object) -> tuple[CDPSession, str]:
    """Give a browser an authenticator, and somebody who touches it."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    chosen: dict[str, Any] = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
        **options,
    }
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": chosen})
    return session, made["authenticatorId"]


def make(page: Page) -> PublicKey:
    """Make a passkey on the page, and return its public half as the command shows it."""
    page.goto("/passkey")
    page.click("#make-button")
    expect(page.locator("#command")).to_contain_text("passkey:es256:localhost:")
    return PublicKey(page.inner_text("#command").split()[-1])


def read_to_the_end(page: Page, address: str, reason: str) -> None:
    """Open a sheet, say why, and read it."""
    page.goto(address)
    page.fill("#reason", reason)
    page.locator("[data-line=last]").scroll_into_view_if_needed()
    page.mouse.wheel(0, 4000)


def approvals_of(server: ServedPage, agent: str) -> tuple[Approval, ...]:
    """Return the rulings on what an agent's handoff waited for."""
    with server.relay.store.view() as view:
        known = view.get_handoff(server.handoffs[agent])
        return [*find_handoff_holds(view, known)][-1].approvals


@pytest.mark.slow
def test_a_passkey_is_made_enrolled_and_proves_an_approval(served: ServedPage, somebody: Opener) -> None:
    """Without it the hold stays closed; with it the ledger proves who approved what, to whoever verifies it."""
    page = somebody(served, "operator", base_url=named(served))
    plug_in(page)
    key = make(page)
    served.relay.admin.enroll_approver("user:operator", key)
    page.click("text=See whether it is enrolled")
    expect(page.locator("main")).to_contain_text("You approve with a passkey")
    read_to_the_end(page, f"/approvals/{served.handoffs['mailer']}", "I know them")
    expect(page.locator("#approve")).to_have_attribute("aria-disabled", "false")
    page.click("#approve")
    expect(page.locator("main")).to_contain_text("operator approved it")
    expect(page.locator("main")).to_contain_text("proven by a key")
    (approval,) = approvals_of(served, "mailer")
    served.relay.verify()

    assert State.OFFERED is served.relay.handoff(served.handoffs["mailer"]).state()
    assert approval.body.proof is not None
    assert approval.body.proof.passkey is not None
    assert "http://localhost" in approval.body.proof.passkey.client_data
    assert [] == somebody.said  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_command_that_enrols_a_passkey_is_copied(served: ServedPage, somebody: Opener) -> None:
    """By its button, as it stands there."""
    page = somebody(served, "operator", base_url=named(served), permissions=["clipboard-read", "clipboard-write"])
    plug_in(page)
    make(page)
    page.get_by_role("button", name="Copy the command").click()
    expect(page.locator("#said")).to_have_text("It is copied.")

    assert page.inner_text("#command") == page.evaluate("navigator.clipboard.readText()")


@pytest.mark.slow
def test_without_a_key_a_hold_that_takes_one_stays_closed(served: ServedPage, somebody: Opener) -> None:
    """As soon as anybody has a key, a login opens nothing; it still denies."""
    maker = somebody(served, "operator", base_url=named(served))
    plug_in(maker)
    served.relay.admin.enroll_approver("user:operator", make(maker))
    page = somebody(served, "admin", base_url=named(served))
    read_to_the_end(page, f"/approvals/{served.handoffs['mailer']}", "I know them")
    expect(page.locator("#hint")).to_contain_text("It takes a key to approve this")
    expect(page.locator("#approve")).to_have_attribute("aria-disabled", "true")
    page.evaluate("document.querySelector('#approve').setAttribute('aria-disabled', 'false')")
    page.click("#approve")
    expect(page.locator("main")).to_contain_text("handoff.unproven")

    assert State.HELD is served.relay.handoff(served.handoffs["mailer"]).state()
    read_to_the_end(page, f"/approvals/{served.handoffs['mailer']}", "nobody knows them")
    page.click("text=Deny")
    expect(page.locator("main")).to_contain_text("admin denied it")


@pytest.mark.slow
def test_an_authenticator_that_verifies_nobody_proves_nothing(served: ServedPage, somebody: Opener) -> None:
    """If it cannot tell who is there, the browser does not sign; the page says so, and nothing is recorded."""
    page = somebody(served, "operator", base_url=named(served))
    session, authenticator = plug_in(page)
    served.relay.admin.enroll_approver("user:operator", make(page))
    session.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False})
    read_to_the_end(page, f"/approvals/{served.handoffs['mailer']}", "I know them")
    expect(page.locator("#approve")).to_have_attribute("aria-disabled", "false")
    page.click("#approve")
    expect(page.locator("#hint")).to_contain_text("The passkey did not sign")

    assert State.HELD is served.relay.handoff(served.handoffs["mailer"]).state()


@pytest.mark.slow
def test_a_revoked_passkey_opens_nothing(served: ServedPage, somebody: Opener) -> None:
    """A page that was open when the key was revoked is told so when it asks for the ruling."""
    page = somebody(served, "operator", base_url=named(served))
    plug_in(page)
    served.relay.admin.enroll_approver("user:operator", make(page))
    served.relay.admin.enroll_approver("user:jonas", Ed25519Signer.generate().public_key)
    read_to_the_end(page, f"/approvals/{served.handoffs['mailer']}", "I know them")
    expect(page.locator("#approve")).to_have_attribute("aria-disabled", "false")
    served.relay.admin.revoke_approver("user:operator", reason="the phone is lost")
    page.click("#approve")
    expect(page.locator("#hint")).to_contain_text("no passkey")

    assert State.HELD is served.relay.handoff(served.handoffs["mailer"]).state()


@pytest.mark.slow
def test_at_an_address_the_page_says_where_passkeys_are_made(served: ServedPage, somebody: Opener) -> None:
    """Browsers make none for numbers; on this machine there is a name."""
    page = somebody(served, "operator")
    page.goto("/passkey")

    assert named(served) in page.inner_text("main")
