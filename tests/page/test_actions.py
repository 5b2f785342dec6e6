"""Every action in a real browser: its form says what will happen, and pressed twice it is done once."""

import re

import pytest
from playwright.sync_api import Page, expect

from batonpass.model.base.lifecycle import State
from batonpass.store.port import ReceiptQuery
from tests.page.conftest import PATIENCE, Opener, ServedPage

expect.set_options(timeout=PATIENCE * 1000)


def count(server: ServedPage, kind: str) -> int:
    """Return how many receipts of a kind there are."""
    with server.relay.store.view() as view:
        return sum(1 for _ in view.find_receipts(ReceiptQuery(kind=kind)))


def act(page: Page, address: str, fields: dict[str, str], says: str) -> None:
    """Fill a form, read what it says will happen, and press its button twice."""
    page.goto(address)
    expect(page.locator("main")).to_contain_text(says)
    for selector, text in fields.items():
        page.check(selector) if text == "on" else page.fill(selector, text)
    page.locator("main form.say button").first.dblclick(no_wait_after=True)
    page.wait_for_url(re.compile(f"^(?!.*{re.escape(address)}$)"))


@pytest.mark.slow
def test_actions_of_an_operator_are_done_once(served: ServedPage, somebody: Opener) -> None:
    """Answer, settle, retry, replace, judge, revoke and cancel: one receipt each, whoever presses twice."""
    page, at = somebody(served, "operator"), served.handoffs
    act(page, f"/questions/{at['printer']}", {"[name=answer]": "For Ana"}, "For Ana, or for the whole board?")
    expect(page.locator("main")).to_contain_text("For Ana")
    page.goto("/")
    settle = page.locator(f"a[href*='/handoffs/{at['biller']}/calls/']").first.get_attribute("href") or ""
    act(page, settle, {"[value=skip]": "on", "#reason": "the bank says so"}, "a repeated call may do its work twice")
    act(page, f"/handoffs/{at['biller']}/retry", {"#reason": "again"}, "gets the same baton again")
    act(page, f"/handoffs/{at['biller']}/cancel", {"#reason": "not needed"}, "This cannot be taken back")
    act(page, f"/handoffs/{at['writer']}/judge", {"[value=yes]": "on", "#reason": "I read it"}, "goes on record as")
    act(page, f"/handoffs/{at['analyst']}/revoke", {"#reason": "stop"}, "neither may anything below it")

    kinds = ("handoff.answered", "handoff.retried", "handoff.cancelled", "grant.revoked")
    assert dict.fromkeys(kinds, 1) == {kind: count(served, kind) for kind in kinds}
    assert (State.OFFERED, State.CANCELLED, State.VERIFIED) == tuple(
        served.relay.handoff(at[name]).state() for name in ("printer", "biller", "writer")
    )
    served.relay.verify()


@pytest.mark.slow
def test_another_agent_takes_over_and_an_administrator_seals(served: ServedPage, somebody: Opener) -> None:
    """Replace, seal and verify; an auditor is offered none of the first two."""
    admin, auditor, at = somebody(served, "admin"), somebody(served, "auditor"), served.handoffs
    auditor.goto("/ledger/seals")
    offered = auditor.locator("main form button").count()
    auditor.goto(f"/handoffs/{at['biller']}")
    links = auditor.locator(f"a[href='/handoffs/{at['biller']}/replace']").count()
    fields = {"#to": "cashier", "#reason": "the biller is down", "[value=skip]": "on"}
    act(admin, f"/handoffs/{at['biller']}/replace", fields, "Another agent gets the same baton")
    admin.goto("/ledger/seals")
    admin.locator("main form button").first.dblclick(no_wait_after=True)
    expect(admin.locator("[aria-label^='The seal over']")).to_have_count(1)
    admin.goto("/ledger/verify")
    admin.locator("main form button").first.dblclick(no_wait_after=True)
    expect(admin.locator("main")).to_contain_text("It is whole")

    assert (0, 0, 1) == (offered, links, count(served, "handoff.replaced") - 1)


@pytest.mark.slow
def test_two_people_decide_what_takes_two(four_eyes: ServedPage, somebody: Opener) -> None:
    """The first leaves it waiting; whoever looks at it sees that, has to read what changed, and is the last."""
    address = f"/approvals/{four_eyes.handoffs['mailer']}"
    one, other = somebody(four_eyes, "operator"), somebody(four_eyes, "admin")
    other.goto(address)
    expect(other.locator("#live")).to_have_text("live")
    before = other.get_attribute("#sheet", "data-shown")
    for page in (one, other):
        if page is one:
            page.goto(address)
        else:
            expect(page.locator("#sheet")).to_contain_text("by user:operator")
        page.fill("#reason", "I know them")
        page.locator("[data-line=last]").scroll_into_view_if_needed()
        page.mouse.wheel(0, 4000)
        expect(page.locator("#approve")).to_have_attribute("aria-disabled", "false")
        if page is one:
            page.dblclick("#approve", no_wait_after=True)
            expect(page.locator(".others")).to_contain_text("operator approved")
            assert State.HELD is four_eyes.relay.handoff(four_eyes.handoffs["mailer"]).state()
    after = other.get_attribute("#sheet", "data-shown")
    other.click("#approve")
    expect(other.locator("main")).to_contain_text("admin approved it")

    assert before != after
    assert (State.OFFERED, 1, 1) == (
        four_eyes.relay.handoff(four_eyes.handoffs["mailer"]).state(),
        count(four_eyes, "handoff.backed"),
        count(four_eyes, "handoff.approved"),
    )
    four_eyes.relay.verify()
