"""The tree of a task: its strip, its graph, its time, its list and its trail."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from batonpass.accounts.trail.trail import read_trail
from batonpass.accounts.trail.trail_text import render_text
from batonpass.errors import BatonpassError
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser

WORDS = "Write to everybody who asked in October"


class Task:
    """A task of four handoffs over three days, and a server that shows it."""

    def __init__(self, house: House, root: str, handoffs: dict[str, str]) -> None:
        self.house, self.root, self.handoffs = house, root, handoffs
        self.browser: Browser = a_browser(house, "operator")

    def shown(self, query: str = "") -> str:
        """Return a way to look at it, as text with markup."""
        return unescape(self.browser.get(f"/tasks/{self.root}{query}").body.decode())


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Task]:
    """Play it: a writer fails, is replaced two days later, and a mailer waits for somebody."""
    directory = tmp_path_factory.mktemp("tree")
    home = directory / ".batonpass"
    clock = FrozenClock(datetime.now(UTC) - timedelta(days=3))
    with Relay.open(home / "ledger.db", home=home, work_tree=directory, keys_in_files=True, clock=clock) as relay:
        lead = relay.start(WORDS, by="user:ana", agent="lead")
        with lead.hand_off("reader", "Read the questions of October") as reader:
            clock.tick(timedelta(seconds=90))
            with reader.hand_off("sorter", "Sort them by subject") as sorter:
                clock.tick(timedelta(seconds=30))
                sorter.report("sorted")
            reader.report("read")
        offer = lead.hand_off("drafter", "Write the answers")
        with suppress(BatonpassError, RuntimeError), offer:
            clock.tick(timedelta(seconds=45))
            raise RuntimeError("out of tokens")
        clock.tick(timedelta(days=2))
        offer.replace("writer", by="user:ana", reason="the drafter is out of tokens")
        with lead.handoff(offer.id) as writer:
            clock.tick(timedelta(seconds=60))
            writer.report("written")
        held = lead.hand_off("mailer", "Send the answers", hold=True)
        with relay.store.view() as view:
            handoffs = {str(one.to): str(one.id) for one in view.find_handoffs()}
        assert held.id == handoffs["mailer"]
        yield Task(a_house(relay), lead.id, handoffs)


def test_the_humans_words_and_one_square_for_each_run_stand_on_top(task: Task) -> None:
    """The strip says in words what its squares show; a failed attempt has one, and so has work that nobody took."""
    shown = task.shown()
    strip = re.search(r'<svg class="strip"[^>]*aria-label="(\d+) runs: ([^"]+)".*?</svg>', shown, re.DOTALL)

    assert strip
    assert re.search(rf"<h1[^>]*>{WORDS}</h1>", shown)
    assert int(strip[1]) == len(re.findall("<rect", strip[0])) == 6
    assert {"1 held", "1 failed", "1 open", "3 completed"} == {*strip[2].split(", ")}


def test_an_attempt_stands_beside_the_one_that_it_replaces(task: Task) -> None:
    """On one card: who failed, why, and who took over."""
    shown = task.shown()
    card = re.search(rf'<article id="n-{task.handoffs["writer"]}".*?</article>', shown, re.DOTALL)

    assert card
    assert re.search(r"1 drafter\s+failed, <code>runtime</code>.*replaced →.*2\s+completed", card[0], re.DOTALL)


def test_something_that_waits_says_for_how_long(task: Task) -> None:
    """Not how long its attempt took."""
    shown = task.shown()
    states = dict(re.findall(r'<article id="n-(handoff_\w+)".*?<span class="state">([^<]+)</span>', shown, re.DOTALL))

    assert re.fullmatch(r"held · \d+ h \d\d min", states[task.handoffs["mailer"]])


def test_time_folds_gaps_and_has_attempts_in_one_row(task: Task) -> None:
    """Two days in which nobody worked are a tear with its length; no two marks of the axis are called the same."""
    shown = task.shown("?as=time")
    rows = re.findall(r'<tr><th scope="row".*?</tr>', shown, re.DOTALL)
    writer = next(row for row in rows if task.handoffs["writer"] in row)
    ticks = re.findall(r"<text [^>]*>([^<]+)</text>", shown)

    assert 5 == len(rows)
    assert (2, 'aria-label="failed, completed"') == (
        len(re.findall('<rect class="b-', writer)),
        next(iter(re.findall('aria-label="[^"]+"', writer))),
    )
    assert re.search(r"Folded: .*48 h.* in which nobody worked", shown)
    assert len(ticks) == len({*ticks})


def test_the_list_is_found_by_words_and_by_state(task: Task) -> None:
    """And says when nothing is like that."""
    rows = {
        query: re.findall(r'class="words-cell[^"]*"><a href="/handoffs/(\w+)"', task.shown(f"?as=list{query}"))
        for query in ("", "&q=answers", "&state=held", "&q=nothing")
    }

    assert [4, 2, 1, 0] == [len(found) for found in rows.values()]
    assert "No handoff is like that." in task.shown("?as=list&q=nothing")


def test_the_trail_is_the_one_of_the_command_line(task: Task) -> None:
    """Line by line."""
    shown = task.shown("?as=trail")
    lines = re.search(r'<div class="card trail"[^>]*>(.*?)\n', shown)
    with task.house.relay.store.view() as view:
        told = [
            row.prefix + "".join(part.text for part in row.parts)
            for row in render_text(read_trail(view, RunId(task.root)))
        ]

    assert lines
    assert told == [re.sub("<[^>]+>", "", line) for line in re.findall(r"<div>(.*?)</div>", lines[1])]


def test_finding_marks_hits_and_keeps_the_way_to_them(task: Task) -> None:
    """Everything else is left out; only what needs somebody is the same with another question."""
    found, needs = task.shown("?q=subject"), task.shown("?only=needs")

    def cards(shown: str) -> set[str]:
        return {*re.findall(r'<article id="n-(handoff_\w+)"', shown)}

    assert {task.handoffs["reader"], task.handoffs["sorter"]} == cards(found)
    assert [task.handoffs["sorter"]] == re.findall(r'<article id="n-(handoff_\w+)" class="[^"]*is-hit', found)
    assert {task.handoffs["mailer"]} == cards(needs)


def test_an_address_opens_at_the_same_place_again(task: Task) -> None:
    """The selected run, the way to look and the filter are in it; links on the page keep them."""
    address = f"?as=graph&at={task.handoffs['sorter']}"
    first, second = (re.sub(r'(nonce|value)="[^"]*"|after=\d+', "", task.shown(address)) for _ in range(2))
    side = re.search(r'<aside class="card side".*?</aside>', first, re.DOTALL)

    assert first == second
    assert side
    assert "Sort them by subject" in side[0]
    assert re.search(rf'<a href="/tasks/{task.root}\?as=time&at={task.handoffs["sorter"]}"', first)
    assert 1 == len(re.findall(r'<article [^>]*aria-current="true"', first))


def test_another_task_is_not_there(task: Task, tmp_path: Path) -> None:
    """The sentence of the command line, and its code."""
    del tmp_path
    answer = task.browser.get("/tasks/7f3b7f3b")

    assert (404, True) == (answer.status, b"id.not_found" in answer.body)
