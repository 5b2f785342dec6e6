"""`batonpass review`: findings with evidence, an exit code for CI, and the forms that other programs read."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from batonpass.audit.feed import Feed
from batonpass.cli.review import watch
from batonpass.errors import CallSuspendedError, StoreBusyError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId, RunId
from batonpass.model.bodies.body import Gate
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import Relay
from batonpass.review.finding import Severity
from batonpass.review.review import ReviewedRoot, review_root
from batonpass.store.port import LedgerView
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.clock import FrozenClock
from tests.unit.accounts.trees import ANA, write
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


def repeat(relay: Relay) -> str:
    """Record a tree with one finding of low severity, and return its root."""
    with relay.start("Fix it", by=ANA) as lead, lead.hand_off("editor", "Fix a.py in the shop") as editor:
        for _ in range(3):
            editor.call(write, "a.py")
        editor.report("fixed")
    return lead.id


def test_a_finding_is_told_with_its_evidence(desk: Desk, relay: Relay) -> None:
    """The checklist first, then the finding, why it matters, and how to go on; the exit code is 1."""
    repeat(relay)
    result = desk.run("review")
    text = result.output

    assert 1 == result.exit_code
    for words in (
        "user:ana: Fix it",
        "task     Fix a.py in the shop",
        "low · Repeated step: editor called write 3 times with the same arguments",
        "MAST 1.3",
        "$ batonpass handoff show ",
        "1 low",
    ):
        assert words in text


def test_a_task_of_several_lines_is_shown_line_by_line(desk: Desk, relay: Relay) -> None:
    """In the checklist, on its page and in what is remembered, each marked as a part of the task."""
    lead = relay.start("Fix it", by=ANA)
    with lead, lead.hand_off("editor", "Do this:\n\n1. look\n  granted  everything") as editor:
        editor.report("done:\n- looked")

    marked = "  task     │ Do this:\n           │\n           │ 1. look\n           │   granted  everything\n"
    assert marked in desk.run("review", lead.id).output
    assert marked in desk.run("recall", "look").output
    assert "  result   │ done:\n           │ - looked\n" in desk.run("recall", "look").output
    assert "<bdi>Do this:<br><br>1. look<br>  granted  everything</bdi>" in desk.run("review", lead.id, "--html").output


def test_a_clean_tree_has_nothing_to_look_at(desk: Desk, relay: Relay) -> None:
    """The exit code is 0, also if what was found is not bad enough."""
    repeat(relay)

    assert 0 == desk.run("review", "--severity", "medium").exit_code
    with relay.start("Look", by=ANA):
        pass
    result = desk.run("review", "last")
    assert (0, "nothing to look at") == (result.exit_code, result.output.splitlines()[-1])


def test_programs_get_facts_of_a_review(desk: Desk, relay: Relay) -> None:
    """Findings with receipts, and the checklist of each tree."""
    root = repeat(relay)
    answer = json.loads(desk.run("review", root, "--json").output)

    assert ({"high": 0, "medium": 0, "low": 1}, root) == (answer["counts"], answer["trees"][0]["root"])
    assert ("repeated-step", "editor", 3) == (
        answer["findings"][0]["kind"],
        answer["findings"][0]["agent"],
        len(answer["findings"][0]["receipts"]),
    )
    assert [("lead", "Fix it"), ("editor", "Fix a.py in the shop")] == [
        (row["agent"], row["task"]) for row in answer["trees"][0]["checklist"]
    ]


def test_all_trees_of_a_day(desk: Desk, relay: Relay) -> None:
    """Each tree with findings is told, and the sum at the end."""
    for _ in range(2):
        repeat(relay)
    lines = desk.run("review", "--since", "1d").output.splitlines()

    assert "2 trees, 2 low" == lines[-1]


@pytest.mark.parametrize("form", ["md", "html", "sarif"])
def test_other_forms_go_to_a_file(form: str, desk: Desk, relay: Relay, tmp_path: Path) -> None:
    """A page, Markdown for a comment, or SARIF; the exit code stays."""
    repeat(relay)
    target = tmp_path / f"review.{form}"
    result = desk.run("review", f"--{form}", "-o", str(target))

    assert 1 == result.exit_code
    assert "with the same arguments" in target.read_text(encoding="utf-8")


def test_suspects_and_the_story(desk: Desk, relay: Relay) -> None:
    """Candidates with reasons, and a page of prose; both as JSON too."""
    root = repeat(relay)

    assert "nothing points at anybody" in desk.words("review", root, "--suspects")
    assert 'lead asked editor to "Fix a.py in the shop".' in desk.words("review", "--story")
    assert [] == desk.answer("review", root, "--suspects")["suspects"]
    assert root == desk.answer("review", "--story")["root"]


def test_findings_are_told_as_they_come(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before is not told; what comes is told once, with each tree that it is in."""
    repeat(relay)
    lead = relay.start("Fix it again", by=ANA)
    looks: list[int] = []

    def act_between_two_looks() -> None:
        looks.append(len(looks))
        if len(looks) == 1:
            for _ in range(3):
                lead.call(write, "b.py")
        elif len(looks) == 2:
            lead.call(write, "c.py")
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("batonpass.cli.trail.live_events.pause", act_between_two_looks)
    result = desk.run("review", "--watch", "--json")
    told = [json.loads(line) for line in result.stdout.splitlines()]

    assert [("repeated-step", lead.id)] == [(one["kind"], one["root"]) for one in told]


def watched(desk: Desk, monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> list[tuple[str, str]]:
    """Watch while others act, one act before each look but the first; return what was told, and about what."""
    left = [*acts]

    def pause() -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr("batonpass.cli.trail.live_events.pause", pause)
    told = [json.loads(line) for line in desk.run("review", "--watch", "--json").stdout.splitlines()]
    return [(one["kind"], one["root"]) for one in told]


def nothing() -> None:
    """Let somebody look once more."""


def test_what_a_request_of_before_came_to_is_told(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request proves it and is older than the watch; only the end of its run is new."""

    @tool("send", reversible=False)
    def break_off() -> None:
        raise KeyboardInterrupt

    lead = relay.start("Pay them", by=ANA)
    with pytest.raises(KeyboardInterrupt):
        lead.call(break_off)

    assert ("effect-in-doubt", lead.id) in watched(desk, monkeypatch, lambda: lead.fail(RuntimeError("stopped")))


def test_a_ruling_on_a_call_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in the stream of a relay and belongs to no tree, and is about one."""
    asks = Rule(name="look", on=Subject.CALL, gate=Gate.APPROVE, tool="write")
    ledger = f"sqlite:///{desk.ledger}"
    with Relay.open(ledger, home=desk.ledger.parent, policy=Policy(enforce=True, rules=(asks,))) as relay:
        lead = relay.start("Fix it", by=ANA)
        with pytest.raises(CallSuspendedError) as held:
            lead.call(write, "a.py")
        waiting = relay.held_call(CallId(held.value.call))
        told = watched(desk, monkeypatch, lambda: waiting.approve(by="user:bob"))

    assert ("unproven-approval", lead.id) in told


def test_what_comes_while_the_command_starts_is_told(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine that takes seconds, and whoever gave the command has begun to work."""
    before = repeat(relay)
    sequence = Feed.sequence
    roots: list[str] = []

    def start_slowly(feed: Feed) -> None:
        roots.extend([] if roots else [repeat(relay)])
        sequence(feed)

    monkeypatch.setattr(Feed, "sequence", start_slowly)
    told = watched(desk, monkeypatch, nothing)

    assert [("repeated-step", roots[0])] == told
    assert before != roots[0]


def test_a_run_that_says_nothing_any_more_is_told(relay: Relay, capsys: pytest.CaptureFixture[str]) -> None:
    """No receipt comes that would tell: open trees are looked at now and then, and each finding is told once."""
    lead = relay.start("Fix it", by=ANA)
    clock = FrozenClock(datetime.now(UTC))
    watching = watch.FindingWatch(Severity.LOW, clock.now(), as_json=True, clock=clock)
    with relay.store.view() as view:
        watching.begin(view)
        for hours in (2, 23, 2):
            clock.tick(timedelta(hours=hours))
            watching.look(view, iter(()))
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [("unclosed-run", lead.id)] == [(one["kind"], one["root"]) for one in told]


def test_a_store_that_fails_once_loses_nothing(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipts were read already: their tree is looked at again."""
    lead = relay.start("Fix it", by=ANA)
    failing: list[str] = []

    def fail_once(view: LedgerView, root: RunId, now: datetime) -> ReviewedRoot:
        if failing:
            raise StoreBusyError(failing.pop())
        return review_root(view, root, now)

    monkeypatch.setattr(watch, "review_root", fail_once)

    def act() -> None:
        for _ in range(3):
            lead.call(write, "b.py")
        failing.append("another program has locked the ledger")

    assert [("repeated-step", lead.id)] == watched(desk, monkeypatch, act, nothing)


def test_writers_stop_no_reader(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """While others write all the time, nobody gives positions to receipts; they are read without one."""
    lead = relay.start("Fix it", by=ANA)

    def be_busy(_: SqliteStore) -> int:
        raise StoreBusyError("another program has locked the ledger")

    monkeypatch.setattr(SqliteStore, "sequence", be_busy)

    def act() -> None:
        for _ in range(3):
            lead.call(write, "b.py")

    assert [("repeated-step", lead.id)] == watched(desk, monkeypatch, act, nothing)


def test_an_acknowledged_finding_stops_nobody(desk: Desk, relay: Relay) -> None:
    """It is a receipt of a person, is listed apart, and the exit code is 0."""
    root = repeat(relay)
    key = json.loads(desk.run("review", "--json").output)["findings"][0]["finding"]
    told = desk.words("acknowledge", key[:6], "--by", ANA, "--reason", "a test of mine")
    result = desk.run("review", root)
    again = json.loads(desk.run("review", root, "--json").output)

    assert f"repeated-step {key} · acknowledged by user:ana (unproven): a test of mine" == told.strip()
    assert (0, True) == (result.exit_code, "acknowledged by user:ana on " in result.output)
    assert ([], [ANA]) == (again["findings"], [one["acknowledged"]["by"] for one in again["acknowledged"]])
    relay.verify()


def test_further_evidence_is_a_new_finding(desk: Desk, relay: Relay) -> None:
    """Whoever acknowledged three calls has not seen the fourth."""
    lead = relay.start("Fix it", by=ANA)
    for _ in range(3):
        lead.call(write, "a.py")
    desk.words("acknowledge", "repeated-step", "--by", ANA, "--reason", "a test of mine")
    before = desk.run("review").exit_code
    lead.call(write, "a.py")

    assert (0, 1) == (before, desk.run("review").exit_code)


REFUSED = {
    "an agent": ("repeated-step", "agent:editor", "handoff.not_person"),
    "another finding": ("ghost-task", ANA, "id.not_found"),
    "no finding": ("", ANA, "id.not_found"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_only_a_person_acknowledges_what_is_there(case: str, desk: Desk, relay: Relay) -> None:
    """The sentence says why, and nothing is recorded."""
    finding, by, code = REFUSED[case]
    repeat(relay)
    result = desk.run("acknowledge", finding, "--by", by, "--reason", "x", "--json")

    assert code == json.loads(result.output)["error"]["code"]
    assert 1 == desk.run("review").exit_code


def test_several_of_a_kind_are_named_by_key(desk: Desk, relay: Relay) -> None:
    """A kind with two findings in one tree means neither."""
    with relay.start("Fix it", by=ANA) as lead:
        for name in ("a.py", "b.py"):
            for _ in range(3):
                lead.call(write, name)

    assert "could be any of these" in desk.run("acknowledge", "repeated-step", "--reason", "x").output


WRONG = {
    "an id and a time": ["last", "--since", "1d"],
    "two forms": ["--json", "--md"],
    "a file without a form": ["-o", "x"],
    "a story as a page": ["--story", "--html"],
    "a page that never ends": ["--watch", "--html"],
}


@pytest.mark.parametrize("words", WRONG)
def test_what_means_nothing_is_refused(words: str, desk: Desk, relay: Relay) -> None:
    """The sentence says what to give instead."""
    repeat(relay)

    assert 2 == desk.run("review", *WRONG[words]).exit_code


def test_without_a_ledger_there_is_no_review(desk: Desk) -> None:
    """Nothing was recorded, and that is said."""
    assert 3 == desk.run("review").exit_code
