"""`batonpass run`: who worked on what, and for whom."""

import re

from batonpass.model.base.ids import AgentId
from batonpass.relay import recording_of
from batonpass.store.port import ReceiptQuery
from batonpass.testing.plain_acts import plainly
from tests.unit.cli.desk import ANA, Desk, record_tree

HOSTILE = "\x1b]0;pwned\x07\x1b[2Jdone \u202e"


def test_runs_are_listed_the_latest_first(desk: Desk) -> None:
    """A list shows who, how it stands, when, how long, and what was asked."""
    header, editor, lead = desk.words("run", "list").splitlines()

    assert ["run", "state", "started", "took", "task"] == header.split()
    assert re.fullmatch(
        r'editor \w{4}  completed  \d{4}-\d\d-\d\d \d\d:\d\d  \S+ +"Make total\(\) round half-even"', editor
    )
    assert lead.startswith("lead ")


def test_a_list_can_be_narrowed_and_cut(desk: Desk) -> None:
    """An agent and a number make a list shorter, and what was left out is said on stderr."""
    cut = desk.run("run", "list", "--limit", "1")
    narrow = desk.run("run", "list", "--agent", "lead")

    assert (2, "the latest 1; there are more: --limit 5\n") == (len(cut.stdout.splitlines()), cut.stderr)
    assert (2, "") == (len(narrow.stdout.splitlines()), narrow.stderr)


def test_runs_are_listed_by_state_and_page_by_page(desk: Desk) -> None:
    """The next page begins where the last one ended; a state that nobody is in is an empty list."""
    first, *_ = desk.answer("run", "list", "--limit", "1")
    (second,) = desk.answer("run", "list", "--limit", "1", "--before", first["id"])
    completed = [run["id"] for run in desk.answer("run", "list", "--state", "completed")]
    failed = desk.run("run", "list", "--state", "failed")

    assert [first["id"], second["id"]] == completed
    assert [] == desk.answer("run", "list", "--before", second["id"])
    assert (0, "", "no such runs\n") == (failed.exit_code, failed.stdout, failed.stderr)
    assert 2 == desk.run("run", "list", "--state", "asleep").exit_code


def test_an_empty_list_says_so(desk: Desk) -> None:
    """Nobody wonders whether an empty output is an answer."""
    done = desk.run("run", "list", "--agent", "nobody")

    assert (0, "", "no runs of nobody\n") == (done.exit_code, done.stdout, done.stderr)


def test_programs_get_whole_runs(desk: Desk) -> None:
    """JSON has whole ids, exact times, and the task with its state."""
    editor, lead = desk.answer("run", "list")

    assert (lead["id"], lead["id"], None, 1) == (editor["parent"], editor["root"], lead["parent"], editor["attempt"])
    assert ("Make total() round half-even", "kept") == (editor["task"]["text"], editor["task"]["state"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", editor["started_at"])


def test_a_run_is_shown_up_to_the_principal(desk: Desk) -> None:
    """The task, everyone above, the calls with their outcome, the report, and the whole id."""
    lines = desk.words("run", "show", "editor").splitlines()

    assert [
        '  "Make total() round half-even"',
        "  ← user:ana",
        "2 calls",
        "  │ done",
        "  │ negative totals untested",
    ] == [line for line in lines if re.match(r'  "|  ← u|2|  │', line)]
    assert re.fullmatch(r'  ← lead \w{4} · completed · "Fix invoice rounding"', lines[2])
    assert re.fullmatch(r"  send_mail   failed     \S+ +smtp.timeout", lines[7])
    assert re.fullmatch(r"run_\w{26} · 6 receipts · observed", lines[-1])


def test_a_root_shows_its_children(desk: Desk) -> None:
    """Whom a run delegated to is listed with how that ended."""
    shown = desk.words("run", "show", "lead")

    assert re.search(r'^1 child\n  editor \w{4}  completed  \S+  "Make total', shown, re.MULTILINE)


def test_programs_get_everything_about_a_run(desk: Desk) -> None:
    """JSON has ancestors, children, calls, receipts and the report."""
    shown = desk.answer("run", "show", "editor")

    assert [("write_file", "completed", None), ("send_mail", "failed", "smtp.timeout")] == [
        (call["tool"], call["outcome"], call["why"]) for call in shown["calls"]
    ]
    assert (["lead"], [], 6, "done\nnegative totals untested", "observed") == (
        [ancestor["agent"] for ancestor in shown["ancestors"]],
        shown["children"],
        len(shown["receipts"]),
        shown["report"]["text"],
        shown["mode"],
    )


def test_calls_without_an_outcome_are_told_apart(desk: Desk) -> None:
    """In an open run a call may still end; a run that ended left it in doubt."""
    with desk.relay() as relay:
        recording = recording_of(relay)
        scout = recording.start("Look", agent=AgentId("scout"), by=ANA)
        plainly(recording).request(scout, "read", "{}")
        open_ = desk.words("run", "show", "scout")
        plainly(recording).close(scout)

    assert ("  read  no outcome yet", "  read  in doubt") == (
        open_.splitlines()[5].rstrip(),
        desk.words("run", "show", "scout").splitlines()[5].rstrip(),
    )


def test_a_long_task_is_shown_whole(desk: Desk) -> None:
    """A list cuts a task; the run itself shows all of it."""
    task = "First line\nsecond line"
    with desk.relay() as relay:
        recording_of(relay).start(task, agent=AgentId("scout"), by=ANA)

    assert "  │ First line\n  │ second line\n" in desk.words("run", "show", "scout")


def test_hostile_words_do_nothing(desk: Desk) -> None:
    """What an agent wrote cannot repaint the terminal, wherever it is shown."""
    with desk.relay() as relay:
        recording = recording_of(relay)
        scout = recording.start(HOSTILE, agent=AgentId("scout"), by=ANA)
        plainly(recording).close(scout, report=HOSTILE)
    outputs = [
        desk.words("run", "list"),
        desk.words("run", "show", "scout"),
        desk.words("run", "show", "scout", "--json"),
    ]

    assert [] == [character for output in outputs for character in output if character in "\x1b\x07\u202e"]


def test_erased_words_show_as_erased(desk: Desk) -> None:
    """Whoever looks for words that were erased sees that they were."""
    desk.run("ledger", "erase", "editor", "--reason", "privacy")

    assert ("  │ erased", "erased", None) == (
        next(line for line in desk.words("run", "show", "editor").splitlines() if "│" in line),
        desk.answer("run", "show", "editor")["report"]["state"],
        desk.answer("run", "show", "editor")["report"]["text"],
    )


def test_an_ambiguous_name_is_explained(desk: Desk) -> None:
    """Two runs of an agent are told apart by what they did."""
    with desk.relay() as relay:
        record_tree(recording_of(relay))
    done = desk.run("run", "show", "editor")

    assert (1, "", 3) == (done.exit_code, done.stdout, len(done.stderr.splitlines()))


def test_a_damaged_row_is_a_finding_and_not_wrong_usage(desk: Desk) -> None:
    """A value that cannot be right in a stored row is somebody's edit, not the caller's mistake."""
    with desk.relay() as relay, relay.store.view() as view:
        payload = next(view.find_receipts(ReceiptQuery(kind="run.started"))).payload
    data = desk.ledger.read_bytes()
    assert 1 == data.count(payload)
    desk.ledger.write_bytes(data.replace(payload, b" " * len(payload)))
    done = desk.run("run", "show", "lead")

    assert (1, True) == (done.exit_code, "[verify.edited]" in done.stderr)
