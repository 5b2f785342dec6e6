"""The page in a real browser: looked at, walked through, decided on."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from batonpass.model.base.lifecycle import State
from tests.page.conftest import PATIENCE, Opener, ServedPage
from tests.page.wire import Wire

AXE = Path(__file__).parents[2] / ".venv/page/node_modules/axe-core/axe.min.js"
# Text that becomes markup: trusted types refuse it to every script but htmx.
SINK = "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'set' } catch { return 'refused' } })()"
expect.set_options(timeout=PATIENCE * 1000)


def addresses(server: ServedPage) -> list[str]:
    """Return the views that are looked at."""
    return [
        "/",
        "/tasks",
        f"/tasks/{server.root}",
        f"/tasks/{server.root}?as=time",
        f"/tasks/{server.root}?as=list",
        f"/tasks/{server.root}?as=trail",
        f"/handoffs/{server.handoffs['writer']}",
        f"/handoffs/{server.handoffs['writer']}?part=attempts",
        f"/handoffs/{server.handoffs['scout']}?part=briefing",
        f"/handoffs/{server.handoffs['biller']}?part=calls",
        f"/handoffs/{server.handoffs['biller']}/retry",
        "/passkey",
        "/approvals",
        f"/approvals/{server.handoffs['mailer']}",
        f"/questions/{server.handoffs['printer']}",
        f"/review?root={server.root}",
        "/ledger",
        "/ledger/verify",
        "/ledger/seals",
        "/agents",
        "/find?q=board",
        "/keys",
    ]


def violations(page: Page) -> list[str]:
    """Return what axe-core finds. It is put in from outside, so the policy of the page stays on."""
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    found: Any = session.send(
        "Runtime.evaluate",
        {
            "expression": "axe.run().then(r => JSON.stringify(r.violations.map(v => v.id + ' ' + v.nodes[0].target)))",
            "awaitPromise": True,
            "returnByValue": True,
        },
    )
    session.detach()
    value = found["result"].get("value", "[]")
    return [] if value == "[]" else [value]


@pytest.mark.slow
def test_a_few_views_open_and_say_nothing_in_the_console(shown: ServedPage, somebody: Opener) -> None:
    """The short form of what follows: it comes in, looks, and the stream of events is open."""
    page = somebody(shown, "auditor")
    expect(page.locator("#live")).to_have_text("live")
    for address in ("/", f"/tasks/{shown.root}", f"/approvals/{shown.handoffs['mailer']}"):
        page.goto(address)
        expect(page.locator("#live")).to_have_text("live")

    assert [] == somebody.said  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "desktop, light"),
        ({"color_scheme": "dark"}, "dark"),
        ({"forced_colors": "active"}, "forced colours"),
        ({"viewport": {"width": 320, "height": 640}}, "320 pixels"),
        ({"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}, "a phone"),
    ],
)
def test_every_view_is_accessible_and_fits(
    shown: ServedPage, somebody: Opener, options: dict[str, object], name: str
) -> None:
    """No violation that axe-core knows, nothing in the console, nothing wider than the window."""
    if not AXE.exists():
        pytest.skip("axe-core is not there; `make test-page` installs it")
    page = somebody(shown, "operator", **options)
    wrong = []
    for address in addresses(shown):
        page.goto(address)
        found = violations(page)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wrong += [f"{name} {address}: {one}" for one in found]
        wrong += [f"{name} {address}: {wide} too wide"] if wide > 0 else []

    assert [] == wrong
    assert [] == somebody.said  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_page_changes_without_taking_away_what_is_typed(served: ServedPage, somebody: Opener) -> None:
    """A verdict from elsewhere appears; focus, text and the place on the page stay."""
    page = somebody(served, "operator")
    page.goto(f"/tasks/{served.root}")
    expect(page.locator("#live")).to_have_text("live")
    page.fill("#find-here", "half a wor")
    card = page.locator(f"#n-{served.handoffs['writer']}")
    expect(card).to_contain_text("nobody verified it")
    served.relay.handoff(served.handoffs["writer"]).verify(by="user:jonas", verdict="I read it")
    expect(card).to_contain_text("verified by jonas")

    assert ("half a wor", "find-here") == (
        page.input_value("#find-here"),
        page.evaluate("document.activeElement.id"),
    )


@pytest.mark.slow
def test_keys_walk_and_decide_nothing(served: ServedPage, somebody: Opener) -> None:
    """Arrows and `n` lead through the tree; whichever key is pressed on a sheet, it stays undecided."""
    page = somebody(served, "operator")
    page.goto(f"/tasks/{served.root}")
    page.keyboard.press("n")
    first = page.evaluate("document.activeElement.closest('article')?.id")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.closest('article, li')?.id || 'moved'")
    page.goto(f"/approvals/{served.handoffs['mailer']}")
    for key in "abcdefhijklmopqrstuvwxz1234567890":
        page.keyboard.press(key)
    page.keyboard.press("/")
    page.keyboard.type("x")
    page.keyboard.press("Escape")

    assert first
    assert first != second
    assert State.HELD is served.relay.handoff(served.handoffs["mailer"]).state()


@pytest.mark.slow
def test_approving_opens_at_the_end_of_the_text(served: ServedPage, somebody: Opener) -> None:
    """Before that it is closed and says so; afterwards the page turns into the answer."""
    page = somebody(served, "operator", viewport={"width": 390, "height": 600})
    page.goto(f"/approvals/{served.handoffs['mailer']}")
    approve = page.locator("#approve")
    expect(approve).to_have_attribute("aria-disabled", "true")
    expect(page.locator("#digest")).to_contain_text("sha256")
    page.fill("#reason", "I know them")
    page.locator("[data-line=last]").scroll_into_view_if_needed()
    page.mouse.wheel(0, 4000)
    expect(approve).to_have_attribute("aria-disabled", "false")
    approve.click()
    expect(page.locator("main")).to_contain_text("operator approved it")

    assert State.OFFERED is served.relay.handoff(served.handoffs["mailer"]).state()


@pytest.mark.slow
def test_a_changed_sheet_cannot_be_approved(served: ServedPage, somebody: Opener) -> None:
    """If what stands on the screen is not what the server sent, approving stays closed."""
    page = somebody(served, "operator")

    def alter(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("press@handelsblick", "board@handelsblick"))

    page.route(re.compile("/approvals/handoff_"), alter)
    page.goto(f"/approvals/{served.handoffs['mailer']}")
    expect(page.locator("#hint")).to_contain_text("not what the server sent")

    assert "true" == page.get_attribute("#approve", "aria-disabled")


@pytest.mark.slow
def test_two_people_deciding_at_once(served: ServedPage, somebody: Opener) -> None:
    """When one has denied, the other's page turns into the answer by itself."""
    one, other = somebody(served, "operator"), somebody(served, "admin")
    address = f"/approvals/{served.handoffs['mailer']}"
    other.goto(address)
    expect(other.locator("#live")).to_have_text("live")
    one.goto(address)
    one.fill("#reason", "nobody knows them")
    one.click("text=Deny")
    expect(one.locator("main")).to_contain_text("operator denied it")
    expect(other.locator("main")).to_contain_text("operator denied it")

    assert 0 == other.locator("#approve").count()


@pytest.mark.slow
def test_what_is_injected_does_not_run(shown: ServedPage, somebody: Opener) -> None:
    """Should escaping ever fail: a script, a handler, a style and an htmx attribute have no effect."""
    page = somebody(shown, "auditor")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    harm = (
        "<script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>"
        "<div id='bad' style='color: red' hx-get='/injected' hx-trigger='load' hx-target='#main'>x</div>"
    )

    def inject(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("<main", f"{harm}<main", 1))

    page.route(re.compile("/tasks$"), inject)
    page.goto("/tasks")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#bad")).not_to_have_attribute("hx-get", "/injected")
    harmed = page.evaluate("window.harmed")
    sink = page.evaluate(SINK)

    assert (None, "refused", []) == (harmed, sink, [one for one in asked if one.endswith("/injected")])


@pytest.mark.slow
def test_a_lost_connection_is_said_and_recovers(served: ServedPage, somebody: Opener) -> None:
    """What is on the screen stays; what happened meanwhile is there once it is back."""
    with Wire(served.address) as wire:
        page = somebody(served, "operator", base_url=wire.address)
        page.goto(f"/tasks/{served.root}")
        expect(page.locator("#live")).to_have_text("live")
        wire.cut()
        expect(page.locator("#live")).to_contain_text("not live since")
        expect(page.locator(f"#n-{served.handoffs['writer']}")).to_contain_text("nobody verified it")
        served.relay.handoff(served.handoffs["writer"]).verify(by="user:jonas", verdict="I read it")
        wire.mend()
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator(f"#n-{served.handoffs['writer']}")).to_contain_text("verified by jonas")
