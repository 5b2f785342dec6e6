"""A handoff on the page: every part of its baton, the hop before, grants against use, attempts, briefing, chain."""

import re
from collections.abc import Iterator
from contextlib import suppress
from html import unescape

import pytest

from batonpass import Brief, Claim, Constraint, Decision, OpenQuestion, Relay, tool
from batonpass.audit.bundle import verify_bundle
from batonpass.briefing.render import LIMIT, brief
from batonpass.errors import BatonpassError
from batonpass.handoff.grants.effective_grant import read_grant_of
from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.model.grants.grant_request import GrantRequest
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser

ANA = "user:ana"


class Told:
    """A chain of two hops with an attempt that failed, and a server that shows it."""

    def __init__(self, house: House, root: str, first: LiveHandoff, second: LiveHandoff) -> None:
        self.house, self.root, self.first, self.second = house, root, first, second
        self._browsers: dict[str, Browser] = {}

    def browser(self, role: str = "auditor") -> Browser:
        """Return somebody in a role, who came in once."""
        if role not in self._browsers:
            self._browsers[role] = a_browser(self.house, role)
        return self._browsers[role]

    def shown(self, handoff: LiveHandoff, part: str) -> str:
        """Return a part of a handoff, as text with markup."""
        return unescape(self.browser().get(f"/handoffs/{handoff.id}?part={part}").body.decode())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Hand a task on twice; the second agent fails once, is tried again, and exceeds nothing."""
    directory = tmp_path_factory.mktemp("handoff")
    home = directory / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=directory, keys_in_files=True) as relay:
        lead = relay.start("Find out why the total is off", by=ANA, agent="lead")
        lead.record(Constraint("no rounding by hand"), Decision("begin with the taxes", why="they changed"))
        first = lead.hand_off(
            "finder",
            "Find the wrong total in the taxes",
            grant=GrantRequest(may=["look:**", "call:count"], may_delegate=["look:**"]),
        )
        read, count = (
            tool("look", reads=True, action="look", target="book")(lambda book: book),
            tool("count", reads=True)(lambda text: text),
        )
        with first as finder:
            finder.call(count, "abc")
            finder.call(count, "defg")
            finder.attach("notes.txt", "line 7 is odd", source="finder")
            finder.record(Decision("it is line 7", why="all others add up"), OpenQuestion("Who wrote it?"))
            second = finder.hand_off(
                "checker",
                "Find the wrong total in the notes",
                may=["look:**"],
                brief=Brief(rationale="two eyes see more", criteria=["says which line"]),
            )
            with suppress(BatonpassError, RuntimeError), second as checker:
                checker.call(read, str(directory / "notes"))
                raise RuntimeError("the model is gone")
            second.retry(by=ANA, reason="it is back")
            with second as checker:
                checker.call(read, str(directory / "notes"))
                checker.call(read, str(directory / "other"))
                checker.report("line 7", claims=[Claim("it was rounded down", confidence=800)])
            finder.report("line 7")
        first.refute("it is line 8", by=ANA)
        yield Told(a_house(relay), lead.id, first, second)


def test_the_baton_says_everything_that_came_along(told: Told) -> None:
    """Reasons, criteria, files with their origin, the report and its verdict."""
    shown = told.shown(told.second, "baton")
    expected = [
        "Find out why the total is off",
        "Find the wrong total in the notes",
        "two eyes see more",
        "says which line",
        "no rounding by hand",
        "they changed",
        "all others add up",
        "Who wrote it?",
        "notes.txt",
        "nobody verified it",
    ]

    assert [] == [words for words in expected if words not in shown]


def test_what_no_longer_stands_is_marked(told: Told) -> None:
    """A refuted result carries its fate, and who said so."""
    shown = told.shown(told.first, "baton")
    back = shown[shown.index("What came back") :]

    assert re.search(r"refuted", shown[: shown.index('<nav class="tabs"')])
    assert "ana" in back


def test_the_hop_before_is_compared_word_by_word_and_item_by_item(told: Told) -> None:
    """The words that changed in the task, the items that were added, and how many are the same bytes."""
    shown = told.shown(told.second, "changed")
    added = shown[shown.index("Added by finder") : shown.index("<h2>Inherited")]

    assert ["taxes"] == re.findall(r'<span class="minus"><span class="unseen">taken out: </span>([^<]+)</span>', shown)
    assert ["notes"] == re.findall(r'<span class="plus"><span class="unseen">added: </span>([^<]+)</span>', shown)
    assert ("it is line 7" in added, "begin with the taxes" in added) == (True, False)
    assert re.search(r"<h2>Inherited</h2><p class=\"quiet\">\d+ items?, the same bytes", shown)


def test_a_grant_stands_beside_what_was_used_of_it(told: Told) -> None:
    """Given, inherited, and how often each permit was used; the permit of each call beside the call."""
    first, second = told.shown(told.first, "calls"), told.shown(told.second, "calls")
    table = re.search(r"Grant: given, and used.*?</table>", first, re.DOTALL)

    assert table
    assert {"look:**": "never", "call:count": "2"} == dict(
        re.findall(r"<code>([^<]+)</code></td><td>.*?</td><td class=\"num\">(?:<span class=\"quiet\">)?(\w+)", table[0])
    )
    assert 2 == len(re.findall(r'data-name="permit"><code>call:count</code>', first))
    assert re.search(r'data-name="permit"><code>look:\*\*</code>', second)


def test_attempts_stand_side_by_side(told: Told) -> None:
    """Why the first ended, in its own words; each call with its outcome in each attempt; one is kept."""
    shown = told.shown(told.second, "attempts")
    calls = re.findall(r"<td><code>look</code> <span class=\"quiet\">[^<]*/(\w+)</span></td>(.*?)</tr>", shown)
    outcomes = {path: re.findall(r">([\w –]+)</td>", cells) for path, cells in calls}

    assert "RuntimeError: the model is gone" in shown
    assert "Traceback" not in shown
    assert ["completed", "kept"] == outcomes["notes"]
    assert ["–", "completed"] == outcomes["other"]


def test_the_briefing_is_the_one_that_the_model_gets(told: Told) -> None:
    """Word for word, but for the marker that is new each time."""
    shown = told.shown(told.second, "briefing")
    page = re.search(r'<pre class="briefing"[^>]*>(.*?)</pre>', shown, re.DOTALL)
    with told.house.relay.store.view() as view:
        baton = read_offer(view, view.get_handoff(told.second.id)).baton
        grant = read_grant_of(view, view.get_handoff(told.second.id), told.house.plane.clock.now())
        made = brief(baton, read=lambda content: view.get_content(content).body, limit=LIMIT, grant=grant, can_ask=True)
    marker = re.compile(r"[0-9a-f]{16}")

    assert page
    assert marker.sub("…", made.instructions).strip() == marker.sub("…", page[1]).strip()


def test_the_chain_names_its_signatures_and_the_task_is_exported(told: Told) -> None:
    """Receipts and keys of each attempt; the file verifies offline, and is for auditors and administrators."""
    shown = told.shown(told.second, "receipts")
    auditor = told.browser().ask("GET", f"/tasks/{told.root}/export")
    operator = told.browser("operator").ask("GET", f"/tasks/{told.root}/export")

    assert re.search(r"attempt 1: \d+ receipts, 1 key of the run", shown)
    assert "relay" in shown
    assert "and the run" in shown
    assert f'href="/tasks/{told.root}/export"' in shown
    assert (200, 403) == (auditor.status, operator.status)
    assert auditor.headers["content-disposition"].startswith('attachment; filename="batonpass-')
    assert verify_bundle(auditor.body.decode().splitlines(keepends=True)).receipts > 10
