"""Review on the page: findings by severity, kind and agent, and the checklist that is printed."""

import re
from collections.abc import Iterator
from html import unescape

import pytest

from batonpass import Brief, OpenQuestion
from batonpass.clock import SystemClock
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay
from batonpass.review.finding import Finding
from batonpass.review.review import review_roots
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Let three agents work: one changes nothing, one verifies itself, and one leaves a question open."""
    home = tmp_path_factory.mktemp("project")
    with Relay.open(home / "ledger.db", home=home, work_tree=home) as relay:
        with relay.start("Mend the invoices", by="user:ana") as lead:
            with lead.hand_off("editor", "Write src/invoice.py", brief=Brief(expects=["src/invoice.py"])) as editor:
                editor.report("done")
            done = lead.hand_off("checker", f"Check the totals of {', '.join(map(str, range(60)))}")
            with done as checker:
                checker.report("checked")
            done.verify(by="agent:checker", verdict="it adds up")
            with lead.hand_off("asker", "Ask the tax office") as asker:
                asker.report("asked", open_questions=[OpenQuestion("which rate?", blocking=True)])
        yield a_house(relay)


@pytest.fixture(scope="module")
def browser(house: House) -> Browser:
    """Return an auditor."""
    return a_browser(house, "auditor")


@pytest.fixture(scope="module")
def root(house: House) -> RunId:
    """Return the task of the story."""
    with house.relay.store.view() as view:
        return next(iter(view.find_runs(roots=True))).id


@pytest.fixture(scope="module")
def findings(house: House, root: RunId) -> list[Finding]:
    """Return the findings of the story, as the command line has them."""
    with house.relay.store.view() as view:
        return list(review_roots(view, [root], SystemClock().now()).findings)


def _shown(browser: Browser, address: str) -> set[str]:
    return set(re.findall('id="f-([0-9a-f]+)"', browser.get(address).body.decode()))


def test_the_page_has_the_findings_of_the_command_line(browser: Browser, root: RunId, findings: list[Finding]) -> None:
    """Whether one task is asked for or the latest ones: the same findings."""
    keys = {one.key for one in findings}

    assert len(keys) > 2
    assert keys == _shown(browser, f"/review?root={root}")
    assert keys == _shown(browser, "/review")


def test_findings_are_filtered_by_severity_kind_and_agent(
    browser: Browser, root: RunId, findings: list[Finding]
) -> None:
    """Each filter leaves exactly the findings that it names, alone and together with the others."""
    severities = {str(one.severity) for one in findings}
    agents = {str(one.agent) for one in findings}
    first = findings[0]
    filtered = {
        **{f"severity={name}": {one.key for one in findings if str(one.severity) == name} for name in severities},
        **{f"agent={name}": {one.key for one in findings if one.agent == name} for name in agents},
        **{
            f"kind={code}": {one.key for one in findings if one.kind.code == code}
            for code in {one.kind.code for one in findings}
        },
        f"severity={first.severity}&agent={first.agent}&kind={first.kind.code}": {
            one.key
            for one in findings
            if (one.severity, one.agent, one.kind.code) == (first.severity, first.agent, first.kind.code)
        },
    }

    assert len(agents) > 1
    assert filtered == {asked: _shown(browser, f"/review?root={root}&{asked}") for asked in filtered}


def test_a_filter_that_leaves_nothing_leads_back(browser: Browser, root: RunId) -> None:
    """Nobody takes an empty filter for a clean task."""
    shown = browser.get(f"/review?root={root}&agent=nobody").body.decode()

    assert f'<a href="/review?root={root}">All findings</a>' in shown
    assert "none was there" not in shown


def test_the_checklist_answers_for_each_handoff(house: House, browser: Browser, root: RunId) -> None:
    """The root and each handoff of the task have a row, with the whole task: paper has no link to follow."""
    shown = unescape(browser.get(f"/review?root={root}").body.decode())
    with house.relay.store.view() as view:
        handoffs = list(view.find_handoffs(root=root))
        (told,) = review_roots(view, [root], SystemClock().now()).roots
    table = shown.partition('<table class="checklist">')[2].partition("</table>")[0]

    assert {one.id for one in handoffs} == set(re.findall('/handoffs/([^"?]+)', table))
    assert [root] == re.findall('/tasks/([^"?]+)', table)
    assert len(handoffs) + 1 == table.count("<tr>") - 1
    assert [] == [row.task for row in told.rows if " ".join(row.task.split()) not in " ".join(table.split())]


def test_which_tasks_are_looked_at_is_said(browser: Browser, root: RunId) -> None:
    """Those that began lately; the command takes in older ones that go on. Of one task there is nothing to say."""
    latest = unescape(browser.get("/review").body.decode())
    one = unescape(browser.get(f"/review?root={root}").body.decode())

    assert "1 task that began in the last week" in latest
    assert "<code>batonpass review --since 7d</code> takes in older tasks that go on" in latest
    assert "in the last week" not in one
