"""What each command prints. The sentences are in the snapshots."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass import Grant
from batonpass.errors import FencedError
from batonpass.testing import observe
from tests.cli.conftest import Story, Terminal

pytestmark = pytest.mark.parity("slice-commands")


def test_run_list(terminal: Terminal, story: Story) -> None:
    """Runs are listed, the latest first, by agent and state, page by page."""
    terminal.run("run", "list")
    terminal.run("run", "list", "--state", "completed")
    terminal.run("run", "list", "--agent", "nobody")
    terminal.run("run", "list", "--limit", "3")

    terminal.matches("run-list", story)


def test_pages_of_runs_follow_each_other(terminal: Terminal, story: Story) -> None:
    """The cursor of a page gives the next one, until there are no more."""
    first = terminal.run("run", "list", "--limit", "3", "--json").json()
    second = terminal.run("run", "list", "--limit", "3", "--json", "--after", first["next"]).json()

    assert list(observe(story.relay).runs)[::-1] == [run["id"] for run in first["items"] + second["items"]]
    assert second["next"] is None
    assert "" == terminal.run("run", "list", "--limit", "3", "--quiet").err


def test_handoff_show(terminal: Terminal, story: Story) -> None:
    """A handoff is shown with its task, chain, grants, attempts, calls and effects, doubts and report."""
    terminal.run("handoff", "show", "compiler")
    terminal.run("handoff", "show", "drafter")
    terminal.run("handoff", "show", "checker")
    story.lead.hand_off("mailer", "Send it", may=["call:**"])
    terminal.run("handoff", "show", "mailer")
    story.lead.close()
    terminal.run("handoff", "show", "mailer")

    terminal.matches("handoff-show", story)


def test_handoff_show_after_retries(terminal: Terminal, story: Story) -> None:
    """It is shown what was decided, what was kept, and which call was made again."""
    doubtful = {call.tool: call.id for call in story.drafter.info().in_doubt}
    story.drafter.retry(
        by="user:jonas", reason="the line works", repeat=[doubtful["publish"]], skip=[doubtful["pick_colours"]]
    )
    terminal.run("handoff", "show", "drafter")
    with story.drafter as run:

        def publish(title: str, *, to: str) -> str:
            return f"{title} {to}"

        run.call(publish, "Third quarter", to="ana@example.org")
        run.report("published")
    terminal.run("handoff", "show", "drafter")

    terminal.matches("handoff-show-retried", story)


def test_handoff_show_of_grants_that_end(terminal: Terminal, story: Story) -> None:
    """A grant says until when it holds, and that it was revoked."""
    grant = Grant(may=("call:**",), expires=timedelta(hours=24))
    handoff = story.lead.hand_off("mailer", "Send it", grant=grant)
    terminal.run("handoff", "show", "mailer")
    story.relay.revoke_grant(handoff.id, by="user:ana")
    terminal.run("handoff", "show", "mailer")

    terminal.matches("handoff-show-grants", story)


def test_handoff_show_of_calls_that_ended_badly(terminal: Terminal, story: Story) -> None:
    """A call that failed, one that was delivered too late, and one whose result nobody asks for any more."""
    handoff = story.lead.hand_off("sender", "Send it", may=["call:**"])

    def fail() -> None:
        raise ValueError("no such address")

    def send() -> str:
        handoff.retry(by="user:ana", reason="too slow")
        return "sent"

    def pack() -> tuple[str, ...]:
        return ("a", "b")

    run = handoff.accept()
    with pytest.raises(ValueError, match="address"):
        run.call(fail)
    terminal.run("handoff", "show", "sender")
    with pytest.raises(FencedError):
        run.call(send)
    terminal.run("handoff", "show", "sender")
    with handoff.accept() as again:
        again.call(pack)
    terminal.run("handoff", "show", "sender")

    terminal.matches("handoff-show-late", story)


@pytest.mark.parity("in-doubt-calls-are-listed")
def test_calls_in_doubt_are_what_a_retry_asks_about(terminal: Terminal, story: Story) -> None:
    """What the JSON of a handoff lists as in doubt are the calls that the ledger has in doubt."""
    shown = terminal.run("handoff", "show", "drafter", "--json").json()

    assert {call.id for call in story.drafter.info().in_doubt} == {call["id"] for call in shown["in_doubt"]}
    assert ["order_chart"] == [call["tool"] for call in shown["kept"]]


def test_handoff_retry(terminal: Terminal, story: Story) -> None:
    """A retry says which step it was, what is kept, and what is still in doubt; then it cannot be ordered again."""
    terminal.run("handoff", "retry", "drafter", "--repeat", "nothing")
    terminal.run("handoff", "retry", "drafter", "--skip", "publish", "--by", "user:jonas", "--reason", "the line works")
    terminal.run("handoff", "retry", "drafter")

    terminal.matches("handoff-retry", story)
    retried = observe(story.relay).last("handoff.retried")
    assert ("user:jonas", "the line works") == (retried.body["by"], retried.text("reason"))
    assert ["skip"] == [settled.body["settlement"] for settled in observe(story.relay).of("tool.settled")]


def test_retry_of_a_running_handoff_is_confirmed(terminal: Terminal, killed_story: Story) -> None:
    """An attempt that may be alive is ended only by somebody who says that it is gone."""
    refused = terminal.run("handoff", "retry", "drafter", "--skip", "publish", "--skip", "pick_colours")
    assert (2, "running") == (refused.status, killed_story.drafter.state())

    terminal.run("handoff", "retry", "drafter", "--skip", "publish", "--skip", "pick_colours", "--yes")
    terminal.matches("handoff-retry-running", killed_story)
    assert killed_story.drafter.state() == "offered"


def test_a_retry_in_json_is_the_handoff_as_it_is_now(terminal: Terminal, story: Story) -> None:
    """The answer of a retry has the shape that the handoff is shown in; --quiet says nothing at all."""
    answer = terminal.run("handoff", "retry", "drafter", "--json").json()
    assert terminal.run("handoff", "show", "drafter", "--json").json() == answer
    assert (story.drafter.id, "offered", 1) == (answer["id"], answer["state"], answer["attempt"])

    story.drafter.accept().close(RuntimeError("again"))
    assert (0, "", "") == terminal.run("handoff", "retry", "drafter", "--quiet")


@pytest.mark.parity("ledger-verify-command")
def test_ledger_verify(terminal: Terminal, story: Story) -> None:
    """What was checked is said, and what was not; the first fault is named, and the command says no."""
    terminal.run("ledger", "verify")
    terminal.run("ledger", "verify", "--json")
    terminal.run("ledger", "verify", "--root-key", "ab" * 32)
    Path("damaged.db").write_bytes(story.read_file().replace(b"third quarter", b"first quarter", 1))
    terminal.run("ledger", "verify", "--ledger", "damaged.db")

    terminal.matches("ledger-verify", story)


def test_a_copy_of_a_ledger_is_read_where_it_is(terminal: Terminal, story: Story, tmp_path: Path) -> None:
    """A ledger that somebody else began is read and verified without its keys, and nothing is begun for it here."""
    Path("copy.db").write_bytes(story.read_file())
    places = sorted((tmp_path / "state" / "ledgers").iterdir())

    assert 0 == terminal.run("ledger", "verify", "--ledger", "copy.db").status
    assert 4 == len(terminal.run("run", "list", "--ledger", "copy.db", "--json").json()["items"])
    problem = terminal.run("handoff", "retry", "drafter", "--ledger", "copy.db", "--json")
    assert (3, "store.key") == (problem.status, problem.json()["code"])
    assert places == sorted((tmp_path / "state" / "ledgers").iterdir())


def test_nothing_recorded_yet(terminal: Terminal) -> None:
    """Where nothing was recorded, a command says so and makes nothing."""
    terminal.run("run", "list")
    terminal.run("handoff", "show", "last", "--json")
    terminal.run("run", "list", "--ledger", "nowhere.db")
    Path("letter.db").write_text("Dear Ana")
    terminal.run("run", "list", "--ledger", "letter.db")
    text = "\n".join(terminal.transcript)
    terminal.transcript[:] = re.sub(r"/\S+/tree", "/TREE", text).splitlines()

    terminal.matches("no-ledger")


def test_a_folder_below_counts_only_where_there_is_no_repository(terminal: Terminal) -> None:
    """Where nothing is recorded, a folder of its own is said to be one; a repository has one record for all of them."""
    words = "outside of a git repository each folder has a record of its own"
    assert words in terminal.run("run", "list").err
    Path(".git").mkdir()
    below = terminal.run("run", "list").err

    assert ("nothing is recorded of" in below, words in below) == (True, False)


def test_help(terminal: Terminal) -> None:
    """Help names every command and option in words."""
    for arguments in (
        ["--help"],
        ["run", "list", "--help"],
        ["handoff", "show", "--help"],
        ["handoff", "retry", "--help"],
        ["ledger", "verify", "--help"],
        ["serve", "--help"],
    ):
        terminal.run(*arguments)

    terminal.matches("help")
