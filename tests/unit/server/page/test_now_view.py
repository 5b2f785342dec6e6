"""Now: what needs somebody, what runs, waits and failed, who works, and the last day in numbers."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from tests.unit.server.conftest import a_house
from tests.unit.server.page.browser import Browser, a_browser


def section(shown: str, name: str) -> str:
    """Return the part of a page below a heading."""
    found = re.search(rf"<h2 [^>]*>{name}.*?</section>", shown, re.DOTALL)
    assert found, name
    return found[0]


def look(browser: Browser) -> str:
    """Return the page as text with markup."""
    return unescape(browser.get("/").body.decode())


def test_what_runs_waits_and_failed_who_works_and_the_last_day(tmp_path: Path) -> None:
    """Each in its list; a worker with the rest of its lease; charts whose labels say the numbers by the hour."""
    now = datetime.now(UTC).replace(microsecond=0)  # leases end by the clock of the store, and ids know milliseconds
    clock = FrozenClock(now - timedelta(hours=3, minutes=4))
    home = tmp_path / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=tmp_path, keys_in_files=True, clock=clock) as relay:
        lead = relay.start("Do it all", by="user:ana", agent="lead")
        with suppress(RuntimeError), lead.hand_off("drafter", "Draft it"):
            raise RuntimeError("out of tokens")
        clock.tick(timedelta(hours=3))
        slow = lead.hand_off("reader", "Read it")
        clock.tick(timedelta(minutes=4))
        reader = slow.accept()
        lead.hand_off("printer", "Print it", carrier="worker")
        lead.hand_off("mailer", "Mail it", carrier="worker")
        assert relay.claim(holder="worker-7", lease_for=timedelta(minutes=5), agents=["printer"]) is not None
        assert relay.claim(holder="worker-8", lease_for=timedelta(0), agents=["mailer"]) is not None
        shown = look(a_browser(a_house(relay), "auditor"))
        reader.report("read")
    labels = dict(re.findall(r'aria-label="(\w+) [^"]*oldest first: ([^"]+)"', shown))

    assert ["Read it"] == re.findall(r'class="what">([^<]+)<', section(shown, "Running"))
    assert {"Print it", "Mail it"} == {*re.findall(r'class="what">([^<]+)<', section(shown, "Waiting"))}
    assert ["Draft it"] == re.findall(r'class="what">([^<]+)<', section(shown, "Failed"))
    assert re.search(r"<b>worker-7</b>.*lease \d min left", section(shown, "Workers"))
    assert re.search(r"<b>worker-8</b>.*lease over since", section(shown, "Workers"))
    assert [0] * 20 + [1, 0, 0, 3] == [int(one) for one in labels["Handoffs"].split(", ")]
    assert [0] * 20 + [1, 0, 0, 0] == [int(one) for one in labels["Failures"].split(", ")]
    assert 240_000 in [int(one) for one in labels["Milliseconds"].split(", ")]
    assert "95 % within <b" in shown


def test_a_new_ledger_says_in_every_view_how_to_begin(tmp_path: Path) -> None:
    """No view is blank: each says what is missing, and most what to type."""
    home = tmp_path / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=tmp_path, keys_in_files=True) as relay:
        browser = a_browser(a_house(relay), "operator")
        told = {
            "/": "batonpass demo --keep demo",
            "/tasks": "batonpass demo --keep demo",
            "/handoffs": "batonpass demo --keep demo",
            "/approvals": "batonpass policy explain",
            "/blame": "batonpass serve --repository",
            "/review": "No task began in the last week.",
            "/drift": "A baseline takes 40 closed handoffs",
            "/ledger/seals": "batonpass ledger seal",
            "/ledger/verify": "Nobody has verified it",
            "/agents": "batonpass demo --keep demo",
            "/policy": "It has no rules of its own.",
        }
        blank = {
            address: words
            for address, words in told.items()
            if words not in unescape(browser.get(address).body.decode())
        }
        run = relay.start("Begin", by="user:ana", agent="lead")

        assert "lead has handed nothing on yet" in unescape(browser.get(f"/tasks/{run.id}").body.decode())
    assert {} == blank
