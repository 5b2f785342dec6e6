"""Drift, agents and policy on the page: what the fleet's work adds up to, and what a policy would have done with it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from batonpass import Card, Constraint, tool
from batonpass.model.base.ids import AgentId
from batonpass.relay import Relay
from batonpass.server.page import fleet_counts
from batonpass.server.page.fleet_counts import FleetCounts
from batonpass.testing.clock import FrozenClock
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser
from tests.unit.server.page.test_views import HOSTILE, INLINE, MARKS

WEEKS = 6
OF_A_WEEK = 45
POLICY = """\
[[rules]]
name = "prices-need-somebody"
on = "call"
gate = "approve"
tool = "price"

[[rules]]
name = "misspelled"
on = "call"
gate = "approve"
tool = "prize"

[grant.clerk]
may = ["call:price"]
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Record six weeks of one clerk, whose discount changes in the third; a drafter fails once, and says why."""
    directory = tmp_path_factory.mktemp("fleet")
    home = directory / ".batonpass"
    clock = FrozenClock(datetime.now(UTC) - timedelta(weeks=WEEKS) + timedelta(hours=2))
    with Relay.open(home / "ledger.db", home=home, work_tree=directory, keys_in_files=True, clock=clock) as relay:
        relay.introduce(Card(agent=AgentId("clerk"), description=f"prices things {HOSTILE}", ceiling=("call:*",)))
        _work(relay, clock)
        clock.tick(datetime.now(UTC) - clock.now())
    with Relay.open(home / "ledger.db", home=home, work_tree=directory, keys_in_files=True) as relay:
        relay.introduce(Card(agent=AgentId("clerk"), description=f"prices things {HOSTILE}", ceiling=("call:*",)))
        yield a_house(relay)


def _work(relay: Relay, clock: FrozenClock) -> None:
    price = tool("price", reads=True)(lambda item, discount: item)  # noqa: ARG005 - scripted
    for week in range(WEEKS):
        bound = "15" if week < WEEKS // 2 else "25"
        with relay.start(f"Price the goods of week {week}", by="user:ana", agent="lead") as lead:
            lead.record(Constraint(key="discount", operator="<=", value=bound, unit="percent"))
            for number in range(OF_A_WEEK):
                with lead.hand_off("clerk", f"Price item {number}", may=["call:price"]) as clerk:
                    clerk.call(price, number, int(bound))
                    clerk.report("priced")
            if week == 0:
                offer = lead.hand_off("drafter", f"Draft a letter {HOSTILE}")
                with offer as drafter:
                    drafter.report("Dear all")
                offer.refute(by="user:ana", reason="it is rude")
        clock.tick(timedelta(weeks=1) - timedelta(minutes=5))


@pytest.fixture(scope="module")
def browser(house: House) -> Browser:
    """Return an operator, once everything is counted."""
    visitor = a_browser(house, "operator")
    FleetCounts(house.plane)._keep_up()
    return visitor


def shown(browser: Browser, address: str) -> str:
    """Return a page, in which nothing is inline and nothing of others is markup."""
    answer = browser.get(address)
    body = answer.body.decode()
    assert 200 == answer.status, body
    assert not INLINE.search(answer.body)
    assert [] == [mark for mark in MARKS if mark in body]
    return unescape(body)


def test_drift_shows_the_index_its_coverage_and_alarms(browser: Browser) -> None:
    """As a drawing whose label says the same in words: window by window, and which are in alarm."""
    page = shown(browser, "/drift")
    label = re.search(r'aria-label="(Agent Stability Index: [^"]+)"', page)

    assert label
    assert re.search(r"\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \d\.\d\d, coverage \d+%", label[1])
    assert "in alarm" in label[1]
    assert '<rect class="s-bad"' in page
    assert "<b>Alarm.</b> constraints: not as in the baseline in 3 windows in a row" in page


def test_an_agent_has_week_against_week_in_words(browser: Browser) -> None:
    """What is different from the week before and from the baseline, and the first handoff that shows it."""
    page = shown(browser, "/drift/clerk?weeks=6")

    assert re.search(r"<h3>\d{4}-\d\d-\d\d to \S+ against \d{4}", page)
    assert "discount <= 15 percent → <= 25 percent" in page
    assert re.search(r'first at <a href="/handoffs/handoff_\w+">', page)


def test_what_is_not_counted_yet_is_said(house: House, browser: Browser) -> None:
    """A large rest is counted by a thread, and the page says how far it is; a small one at once."""
    counts = FleetCounts(house.plane)

    assert counts.bring_up().is_current
    assert b"is one of 6, 12, 26" in browser.get("/drift?weeks=1000").body


def test_an_agent_has_its_card_its_ceiling_and_its_reputation_with_reasons(browser: Browser) -> None:
    """The counts in a sentence, and what its latest work came to."""
    clerk, drafter = shown(browser, "/agents/clerk"), shown(browser, "/agents/drafter")

    for words in ("prices things", "<code>call:*</code>", f"of {OF_A_WEEK * WEEKS} closed", "Price item"):
        assert words in clerk
    for words in ("0 of 1 judged results verified", "refuted by user:ana", "why: it is rude", "No card"):
        assert words in drafter
    assert 404 == browser.get("/agents/nobody").status


def test_a_policy_is_tried_on_what_is_recorded(house: House, browser: Browser) -> None:
    """What each rule would have held and denied, with examples; one that never applies is named. Nothing is written."""
    before = _recorded(house)
    page = unescape(browser.submit("/policy/try", "/policy/try", text=POLICY, last="50").body.decode())
    told = re.findall(r"<p><b>([^<]+)</b> ([^<]+)", page)
    found = {name: words.strip() for name, words in told}

    assert re.fullmatch(r"would have held \d+", found["prices-need-somebody"])
    assert "never applies: is it spelled right?" in page
    assert '<b>grant.clerk</b> <span class="none">would have denied nothing' in page
    assert before == _recorded(house)


def test_a_grant_table_that_is_too_narrow_is_seen_before_it_is_copied(browser: Browser) -> None:
    """The calls that it would have denied are counted, with what was tried."""
    table = '[grant.clerk]\nmay = ["call:other"]\n'
    page = unescape(browser.submit("/policy/try", "/policy/try", text=table, last="50").body.decode())

    assert re.search(r"would have denied [1-9]", page)
    assert "clerk may call:other, and tried call:price" in page
    assert 'data-copy="#policy-text"' in page


def test_the_example_of_the_form_is_a_policy(browser: Browser) -> None:
    """Whoever presses the button without writing anything sees what an answer looks like."""
    form = shown(browser, "/policy/try")
    example = form[form.index("# Rules and grants") : form.index("</textarea>")]
    page = unescape(browser.submit("/policy/try", "/policy/try", text=example).body.decode())

    assert "writes-need-somebody" in page
    assert "Of the latest" in page


def test_a_policy_with_a_mistake_has_the_sentence_of_the_command_line(browser: Browser) -> None:
    """With the line; a form of nobody's page is refused, and so is a number that is not offered."""
    wrong = unescape(browser.submit("/policy/try", "/policy/try", text="[[rules]]\ngate = 'x'\n").body.decode())

    assert "batonpass.toml:1: rules[1]: has no name" in wrong
    assert "[[rules]]\ngate = 'x'\n</textarea>" in wrong
    assert 403 == browser.post("/policy/try", {"text": POLICY, "form": "guessed"}).status
    assert 400 == browser.submit("/policy/try", "/policy/try", text=POLICY, last="9999999").status


def test_the_policy_in_force_is_told(house: House, browser: Browser, tmp_path: Path) -> None:
    """Rules with their lines, tiers and grants; without a file, that the shipped one holds."""
    (tmp_path / "batonpass.toml").write_text(POLICY, encoding="utf-8")
    home = tmp_path / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, policy=tmp_path / "batonpass.toml", keys_in_files=True) as relay:
        page = unescape(a_browser(a_house(relay), "auditor").get("/policy").body.decode())

    assert "the shipped policy" in shown(browser, "/policy")
    for words in ("prices-need-somebody", "approve for every call with tool price", "<code>call:price</code>"):
        assert words in page
    del house


def _recorded(house: House) -> int:
    house.relay.store.sequence()
    with house.relay.store.view() as view:
        return view.last_position()


def test_what_is_still_being_counted_is_not_called_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the receipts of a large ledger are counted, the page says how far it is, and nothing about alarms."""
    monkeypatch.setattr(fleet_counts, "_AT_ONCE", 0)
    monkeypatch.setattr(FleetCounts, "_keep_up", lambda _: None)
    with Relay.open(tmp_path / "ledger.db", home=tmp_path) as relay:
        with relay.start("Price the goods", by="user:ana") as lead, lead.hand_off("clerk", "Price item 1") as clerk:
            clerk.report("priced")
        shown = a_browser(a_house(relay), "auditor").get("/drift").body.decode()

    assert "It is still being counted." in shown
    assert re.search("Counted up to receipt 0 of [0-9]+; it goes on", shown)
    assert "nobody is in alarm" not in shown
