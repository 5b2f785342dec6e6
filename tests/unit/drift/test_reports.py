"""Reports of drift: the same facts in a terminal, a chart, a page and for programs, and hostile text inert in each."""

import json
import re
import sqlite3
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from shutil import copytree

import pytest
from click.testing import CliRunner

from batonpass import Constraint, Relay, tool
from batonpass.cli.nouns import cli
from batonpass.drift.drift import DayCounts, DriftReport, find_drift
from batonpass.drift.report.drift_html import render_html_drift
from batonpass.drift.report.drift_markdown import render_markdown_drift
from batonpass.drift.report.drift_svg import render_svg
from batonpass.drift.report.drift_text import report_facts
from batonpass.model.base.ids import AgentId
from batonpass.testing.clock import FrozenClock
from examples.drift import compare_weeks, six_weeks, tell_weeks
from tests.unit.accounts.trees import HOSTILE
from tests.unit.drift.fleets import MONDAY, a_handoff, question


class Page(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def hostile_report(text: str) -> DriftReport:
    """Return a report in which a hostile text stands wherever words of others can stand."""
    chance = Random(1)
    days = []
    for week in range(5):
        for _ in range(30):
            held = a_handoff(chance)
            if week:
                held["constraint"] = {text[:200]: 1}  # as it is rolled up
                held["granted"] = {text[:200]: 1}
                held["config"] = {f"model: {text}"[:200]: 1}
            days.append(
                DayCounts(
                    agent=AgentId("analyst"),
                    task_kind=text[:80],
                    config="",
                    day=MONDAY + timedelta(weeks=week),
                    counts=held,
                )
            )
    return find_drift(days, question(5))


def live_in(markdown: str) -> list[str]:
    """Return the lines with something live in them that is not ours: markup, an address, a name, a cell too many."""
    found = []
    for line in markdown.splitlines():
        # GitHub looks for names, issues and formulas where no backslash is left, but not in code.
        left = re.sub(r"^#+ |\\.|`[@#$]+`", "", line).replace("**alarm:**", "")
        cells = left.count("|") if line.startswith("|") else 0
        if re.search(r"[<>\[\]`*@#&$~]|\\[@#$]|://|www\\.", left) or cells not in {0, 4, 5}:
            found.append(line)
    return found


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_is_inert_in_pages_and_charts(what: str) -> None:
    """No tag, attribute or control character of it gets out."""
    report = hostile_report(HOSTILE[what])
    page = "".join(render_html_drift(report))
    markdown = "\n".join(render_markdown_drift(report))
    picture = "".join(render_svg(report))
    read = Page()
    read.feed(page)

    assert report.alarmed
    assert set() == read.tags & {"script", "img", "a", "iframe", "link", "object"}
    assert not any(name.startswith("on") or name in {"href", "src", "style"} for name in read.attributes)
    drawn = ET.fromstring(picture)  # noqa: S314 - our own picture
    names = {element.tag.rpartition("}")[2] for element in drawn.iter()}
    assert names <= {"svg", "title", "g", "text", "line", "polyline", "circle"}
    assert [] == live_in(markdown)
    for shown in (page, picture, markdown):
        assert not any(c < " " and c != "\n" for c in shown)
        assert not any(c in shown for c in "\x7f\x9b\u202e\u2066")


def test_markdown_of_drift_calls_nobody() -> None:
    """On GitHub a name or a number would be live where only a backslash stands before it."""
    markdown = "\n".join(render_markdown_drift(hostile_report("@ana closes #12 for $5")))

    assert "`@`ana closes `#`12 for `$`5" in markdown


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the ledger of the example: six weeks."""
    return six_weeks(tmp_path_factory.mktemp("weeks"))


def drift(ledger: Path, *given: str) -> tuple[int, str]:
    """Run the command."""
    answered = CliRunner().invoke(cli, ["drift", "--ledger", str(ledger), *given])
    return answered.exit_code, answered.output


@tool(reads=True)
def look() -> str:
    """Pretend to look."""
    return "it is there"


@tool(reads=True)
def guess() -> str:
    """Pretend to guess."""
    return "it may be there"


@pytest.mark.slow
def test_the_command_tells_week_one_against_week_six(ledger: Path) -> None:
    """Each change in words with the first handoff that shows it, the alarm, and the weeks side by side."""
    code, output = drift(ledger, "--agent", "analyst")

    for words in (
        "constraint threshold >= 3.0 sigma → >= 2.5 sigma (100% of handoffs), first at handoff ",
        "granted call:read_archive: new, in 100% of handoffs, first at handoff ",
        "handed off by intern: new, in ",
        "alarm: constraints: not as in the baseline in 3 windows in a row",
        "Agent Stability Index 0.99",
        "1 agent in alarm",
    ):
        assert words in output
    assert (1, False) == (code, "ASI" in output)


@pytest.mark.slow
def test_all_forms_have_the_same_facts(ledger: Path, tmp_path: Path) -> None:
    """JSON from roll-ups and from receipts alone, the page and the chart."""
    kept, full = (json.loads(drift(ledger, "--json", *given)[1]) for given in ((), ("--full",)))
    page, chart = tmp_path / "drift.html", tmp_path / "drift.svg"
    codes = [drift(ledger, "--html", "-o", str(page))[0], drift(ledger, "--svg", "-o", str(chart))[0]]

    assert ([1, 1], kept) == (codes, full)
    told_in_markdown = drift(ledger, "--md")[1]
    assert "**alarm:** constraints\\: not as in the baseline in 3 windows in a row" in told_in_markdown
    assert "constraint threshold \\>= 3\\.0 sigma → \\>= 2\\.5 sigma" in told_in_markdown
    (told,) = kept["agents"]
    first = next(change["first_handoff"] for window in told["windows"] for change in window["changes"])
    assert first.startswith("handoff_")
    assert all(alarm["sentence"].split(":")[0] in page.read_text() for alarm in told["alarms"])
    assert "<polyline" in chart.read_text()
    assert kept == json.loads(json.dumps(report_facts(compare_weeks(ledger))))


@pytest.mark.slow
def test_the_full_computation_reads_no_roll_up(ledger: Path, tmp_path: Path) -> None:
    """Whoever changed the rows that are kept changes nothing of it: the first handoffs come from receipts as well."""
    copied = Path(copytree(ledger.parent, tmp_path / ".batonpass")) / ledger.name
    drift(copied)  # keeps rows, if no test before it has
    before = json.loads(drift(copied, "--json", "--full")[1])
    with sqlite3.connect(copied) as connection:
        connection.execute("UPDATE rolled_handoffs SET body = '{}', closed_at = 0")
        connection.execute("DELETE FROM rolled_days")
    connection.close()

    after = json.loads(drift(copied, "--json", "--full")[1])

    firsts = [change["first_handoff"] for told in after["agents"] for w in told["windows"] for change in w["changes"]]
    assert (before, True) == (after, any(firsts))
    assert before != json.loads(drift(copied, "--json")[1])


@pytest.mark.slow
@pytest.mark.parametrize(("changed_on", "more_often"), [(28, False), (27, False), (28, True)])
def test_the_first_handoff_is_the_first(
    changed_on: int,
    more_often: bool,  # noqa: FBT001 - a row
    tmp_path: Path,
) -> None:
    """The earliest with the new threshold, also if its window had too few; if only its share grew, of that window."""
    began = datetime.now(UTC).replace(hour=6, minute=0, second=0, microsecond=0) - timedelta(days=41)
    clock, shown = FrozenClock(began), []
    with Relay.open(tmp_path / "ledger.db", clock=clock, work_tree=tmp_path) as relay:
        for day in range(42):
            clock.tick(began + timedelta(days=day) - clock.now())
            for number in range(3):
                clock.tick(timedelta(minutes=1))
                is_new = day >= changed_on
                value = "2.5" if is_new or (more_often and not number and day % 2) else "3.0"
                bound = Constraint(key="threshold", operator=">=", value=value, unit="sigma")
                with relay.start("Look at it", by="user:ana") as lead:
                    handoff = lead.hand_off("analyst", f"Analyse batch {day}-{number}", items=[bound])
                    with handoff as analyst:
                        analyst.report("analysed")
                shown += [handoff.id] if is_new else []
    report = compare_weeks(tmp_path / "ledger.db")
    changes = [change for window in report.agents[0].windows for change in window.changes]

    assert "constraint threshold" in changes[0].sentence
    assert shown[0] == changes[0].first


@pytest.mark.slow
def test_the_first_use_of_what_was_granted_long_before_is_named(tmp_path: Path) -> None:
    """The permit stands in every handoff, and more of them than are looked at at once come before the first use."""
    began = datetime.now(UTC).replace(hour=6, minute=0, second=0, microsecond=0) - timedelta(days=41)
    clock, used = FrozenClock(began), []
    with Relay.open(tmp_path / "ledger.db", clock=clock, work_tree=tmp_path) as relay:
        for day in range(42):
            clock.tick(began + timedelta(days=day) - clock.now())
            for number in range(4):
                clock.tick(timedelta(minutes=1))
                with relay.start("Look at it", by="user:ana") as lead:
                    handoff = lead.hand_off("analyst", f"Analyse batch {day}-{number}", may=["call:look", "call:guess"])
                    with handoff as analyst:
                        analyst.call(look)
                        if day >= 30:
                            analyst.call(guess)
                            used.append(handoff.id)
                        analyst.report("analysed")
    report = compare_weeks(tmp_path / "ledger.db")
    changes = [change for window in report.agents[0].windows for change in window.changes]

    assert {used[0]} == {one.first for one in changes if one.sentence.startswith("used call:guess")}


@pytest.mark.slow
def test_the_example_tells_the_story(ledger: Path) -> None:
    """What is printed is what changed."""
    told: list[str] = []

    tell_weeks(compare_weeks(ledger), told.append)

    assert (True, "week 1 against week 6:") == (any(line.startswith("alarm") for line in told), told[-4])


REFUSED = {
    "two forms": ("--json", "--html"),
    "a file without a form": ("-o", "x"),
    "no window": ("--window", "soon"),
    "no span": ("--baseline", "then..now"),
    "a span that ends before it begins": ("--baseline", "2026-02-01..2026-01-01"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_means_nothing_is_refused(what: str, tmp_path: Path) -> None:
    """A sentence, and the exit code of wrong usage."""
    assert 2 == drift(tmp_path / "ledger.db", *REFUSED[what])[0]
