"""Calls without an outcome on the page: it says of each what is known, and nowhere that an outcome may still come."""

import re
from contextlib import suppress
from datetime import timedelta
from html import unescape

import pytest

from batonpass import Relay, tool
from batonpass.errors import StreamClosedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.ids import RunId
from batonpass.model.base.kinds import Settlement
from batonpass.model.base.lifecycle import Carrier
from batonpass.records.call import CallRecord, read_calls
from tests.unit.handoff.places import begin_only
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser

ANA = "user:ana"
AT_ONCE, LONG = timedelta(0), timedelta(minutes=5)

look = tool("look", reads=True, target="book")(lambda book: book)
ship = tool("ship", target="place")(lambda place: place)
publish = tool("publish", target="name", idempotent=True)(lambda name: name)


class Lapsed:
    """A handoff whose first attempt lapsed in the middle of its calls, and a server that shows it."""

    def __init__(self, house: House, lead: LiveRun, handoff: LiveHandoff) -> None:
        self.house, self.lead, self.handoff = house, lead, handoff
        self.browser: Browser = a_browser(house, "operator")

    def shown(self, part: str) -> str:
        """Return a part of the handoff, as text with markup."""
        return unescape(self.browser.get(f"/handoffs/{self.handoff.id}?part={part}").body.decode())

    def outcomes(self) -> dict[str, str]:
        """Return the outcome of each call as the table of calls tells it, by tool and target."""
        rows = re.findall(
            r'data-name="call"><span><code>(\w+)</code>.*?data-name="on">([^<]*)</td>'
            r'<td data-name="outcome"[^>]*>(.*?)</td>',
            self.shown("calls"),
            re.DOTALL,
        )
        return {f"{name} {on}": re.sub(r"<[^>]+>|\s+", " ", told).strip() for name, on, told in rows}

    def call(self, name: str) -> CallRecord:
        """Return the first call of a tool."""
        with self.house.relay.store.view() as view:
            attempts = view.find_attempts(view.get_handoff(self.handoff.id))
            calls = [call for attempt in attempts for call in read_calls(view, attempt).values()]
        return next(call for call in calls if call.tool == name)

    def to_settle(self, name: str) -> str:
        """Return the page on which a call is settled, as text with markup."""
        return unescape(self.browser.get(f"/handoffs/{self.handoff.id}/calls/{self.call(name).id}").body.decode())


@pytest.fixture
def lapsed(relay: Relay) -> Lapsed:
    """Let a worker begin three calls and vanish; its lease runs out."""
    lead = relay.start("Ship the order", by=ANA, agent="lead")
    handoff = lead.hand_off("shipper", "Ship it", carrier=Carrier.WORKER)
    run = handoff.accept(lease=relay.claim(holder="gone", lease_for=AT_ONCE))
    begin_only(run, look, "orders")
    begin_only(run, ship, "Ghent")
    begin_only(run, publish, "tracking")
    relay.sweep()
    return Lapsed(a_house(relay), lead, handoff)


def test_a_call_of_an_attempt_that_lapsed_is_in_doubt(lapsed: Lapsed) -> None:
    """Nobody waits for an outcome any more. What only reads is made again by whoever goes on."""
    assert {
        "ship Ghent": "in doubt: settle",
        "publish tracking": "in doubt: settle",
        "look book=orders": "no outcome: its run is over, and it only reads",
    } == lapsed.outcomes()


def test_a_call_of_an_open_attempt_may_still_end(relay: Relay) -> None:
    """It is the only one that has no outcome yet."""
    lead = relay.start("Ship the order", by=ANA, agent="lead")
    handoff = lead.hand_off("shipper", "Ship it")
    begin_only(handoff.accept(), ship, "Ghent")

    assert {"ship Ghent": "no outcome yet"} == Lapsed(a_house(relay), lead, handoff).outcomes()


def test_what_was_decided_about_a_call_is_told(lapsed: Lapsed) -> None:
    """By whom, on the page where it was settled; what was made again names the call that did it."""
    asked = lapsed.to_settle("ship")
    lapsed.handoff.settle(lapsed.call("ship").id, Settlement.SKIP, by=ANA, reason="it stands in Ghent")
    lease = lapsed.house.relay.claim(holder="next", lease_for=LONG)
    lapsed.handoff.accept(lease=lease).call(publish, "tracking")
    with lapsed.house.relay.store.view() as view:
        run = view.get_handoff(lapsed.handoff.id).run
        (again,) = read_calls(view, view.get_run(RunId(str(run)))).values()
    told = lapsed.outcomes()
    settled, open_ = lapsed.to_settle("ship"), lapsed.to_settle("publish")

    assert "ship was requested, and nobody knows whether it happened" in asked
    assert "no outcome: taken as done" == told["ship Ghent"]
    assert "ana settled it: it happened, and counts as done." in settled
    assert ("<form" in settled[settled.index("<main") :], "There is nothing to settle." in open_) == (False, True)
    assert f"no outcome: made again as {again.id[-4:]}" in lapsed.shown("calls")
    assert f"no outcome: made again as {again.id[-4:]}" in lapsed.shown("attempts")


def test_an_attempt_that_is_over_stays_over_while_the_next_is_waited_for(lapsed: Lapsed) -> None:
    """Side by side, on the card and in time it lapsed; the handoff itself waits, with two calls in doubt."""
    attempts = lapsed.shown("attempts")
    row = re.search(r'<th scope="row">state</th><td>(.*?)</td>', attempts, re.DOTALL)
    calls = re.search(r'<th scope="row">calls</th><td class="num">(.*?)</td>', attempts, re.DOTALL)
    time = unescape(lapsed.browser.get(f"/tasks/{lapsed.lead.id}?as=time").body.decode())

    assert row
    assert calls
    assert ("lapsed", "3, 2 in doubt") == tuple(re.sub("<[^>]+>", "", found[1]).strip() for found in (row, calls))
    assert 'aria-label="lapsed"' in time


def test_an_outcome_that_came_late_is_offered(relay: Relay) -> None:
    """As the command does; taken, it is the outcome."""
    lead = relay.start("Ship the order", by=ANA, agent="lead")
    handoff = lead.hand_off("shipper", "Ship it", carrier=Carrier.WORKER)

    @tool("ship", target="place")
    def ship_slowly(place: str) -> str:
        relay.sweep()
        return f"shipped to {place}"

    with suppress(StreamClosedError):
        handoff.accept(lease=relay.claim(holder="gone", lease_for=AT_ONCE)).call(ship_slowly, "Ghent")
    lapsed = Lapsed(a_house(relay), lead, handoff)
    address = f"/handoffs/{handoff.id}/calls/{lapsed.call('ship').id}"
    shown = lapsed.to_settle("ship")
    lapsed.browser.submit(address, f"{address}/settle", settlement="late")

    assert "it completed after its attempt was over" in shown
    assert 'value="late"' in shown
    assert {"ship Ghent": "its outcome came late, and was accepted"} == lapsed.outcomes()


def test_a_call_in_doubt_of_a_root_is_settled_by_its_program(relay: Relay) -> None:
    """No form can, so no button says so."""
    lead = relay.start("Ship the order", by=ANA, agent="lead")
    begin_only(lead, ship, "Ghent")
    lead.fail(RuntimeError("gone"))
    browser = a_browser(a_house(relay), "operator")
    now = unescape(browser.get("/").body.decode())
    (address,) = re.findall(r'<a class="button" href="([^"]+)">Look<', now)
    task = unescape(browser.get(address).body.decode())

    assert ">Settle<" not in now + task
    assert "The program that goes on with this run settles it: <code>run.settle</code>" in task


def test_the_arguments_of_a_call_in_doubt_are_told_by_name(lapsed: Lapsed) -> None:
    """And not as they are stored."""
    shown = lapsed.to_settle("ship")

    assert '<code class="text">place = "Ghent"</code>' in shown
    assert '"tool":' not in shown
