"""Commands that go on while another process records: what they print as it comes, and how they end."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.handoff.tools.declaration import tool
from batonpass.relay import Relay
from tests.integration.cli.shell import PATIENCE, PROGRAM, batonpass_in, surroundings

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def relay(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Relay]:
    """Give a relay of ours on each store; the commands are other processes on the same one."""
    sqlite = f"sqlite:///{tmp_path / '.batonpass' / 'ledger.db'}"
    url = sqlite if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    (tmp_path / ".batonpass").mkdir()
    (tmp_path / "url").write_text(url)
    with Relay.open(url, home=tmp_path / ".batonpass") as relay:
        yield relay


@pytest.fixture
def live(tmp_path: Path, relay: Relay) -> Iterator["Live"]:
    """Give commands that are ended with the test, whatever it came to."""
    relay.start("Before anybody looked", by="user:ana").close()
    found = Live(tmp_path)
    yield found
    for process in found.started:
        process.kill()
        process.communicate()


@tool(reads=True)
def look_up(word: str) -> str:
    """Pretend to look something up."""
    return word


class Live:
    """Starts commands that go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._url = (folder / "url").read_text()
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command; return when it has begun to look."""
        environment = surroundings(BATONPASS_LEDGER=self._url, BATONPASS_HOME=str(self._folder / ".batonpass"))
        process = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.started.append(process)
        # A line that never comes fails the test, and does not keep it waiting for ever.
        killing = threading.Timer(PATIENCE, process.kill)
        killing.daemon = True
        killing.start()
        assert process.stderr is not None
        assert process.stderr.readline().startswith("following ")
        return process


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """Return the next lines of a command that goes on."""
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Press Ctrl-C; return the exit code and what else was printed."""
    process.send_signal(signal.SIGINT)
    said, words = process.communicate(timeout=PATIENCE)
    return process.returncode, said, words


def test_whatever_happens_is_told_as_it_comes(live: Live, relay: Relay) -> None:
    """One line for each receipt of another process, none for what was there before, and Ctrl-C ends it cleanly."""
    process = live.start("trail", "--follow")
    lead = relay.start("Fix invoice rounding", by="user:ana")
    first = lines(process, 1)
    lead.call(look_up, "half-even")
    editor = lead.hand_off("editor", "Make total() round half-even").accept()
    editor.fail(RuntimeError("connection lost"))
    more = lines(process, 5)

    assert ['run.started  "Fix invoice rounding"'] == [line.partition(f"lead {lead.id[-4:]}  ")[2] for line in first]
    assert [
        'tool.requested  look_up · "word=half-even"',
        "tool.completed  look_up",
        'handoff.initiated  editor · "Make total() round half-even"',
        "handoff.accepted",
        'handoff.failed  runtime · "RuntimeError: connection lost"',
    ] == [line.partition("  ")[2].partition("  ")[2] for line in more]
    assert (130, "", "batonpass: stopped\n") == interrupt(process)


def test_one_tree_is_told_from_its_beginning(live: Live, relay: Relay) -> None:
    """Of a handoff, what is below it; what others do is not told. Each line is one object for programs."""
    lead = relay.start("Fix invoice rounding", by="user:ana")
    editor = lead.hand_off("editor", "Make total() round half-even")
    run = editor.accept()
    process = live.start("trail", "--follow", "editor", "--json", "--no-calls")
    lead.call(look_up, "x")
    relay.start("Something else", by="user:bob", agent="other")
    run.call(look_up, "y")
    run.report("done")
    run.close()
    editor.verify(by="user:ana", verdict="read it")
    found = [json.loads(line) for line in lines(process, 3)]

    assert ["handoff.accepted", "handoff.completed", "verification.passed"] == [each["kind"] for each in found]
    assert {lead.id} == {each["root"] for each in found}
    assert (130, "") == interrupt(process)[:2]


def test_handoffs_are_watched(live: Live, relay: Relay) -> None:
    """What is there comes first; then a line for each change, also for the one that takes it out of the list."""
    lead = relay.start("Fix invoice rounding", by="user:ana")
    held = lead.hand_off("mailer", "Tell the customers", hold=True)
    process = live.start("handoff", "list", "--watch", "--open", "--json")
    first = json.loads(*lines(process, 1))
    editor = lead.hand_off("editor", "Make it").accept()
    states: list[str] = []
    while not states or states[-1] != "running":  # whether it was seen while it was offered, is a matter of luck
        states += [json.loads(line)["state"] for line in lines(process, 1)]
    editor.report("done")
    editor.close()
    states += [json.loads(line)["state"] for line in lines(process, 1)]
    held.cancel(by="user:ana", reason="no")
    states += [json.loads(line)["state"] for line in lines(process, 1)]

    assert (held.id, "held") == (first["id"], first["state"])
    assert ["running", "completed", "cancelled"] == [state for state in states if state != "offered"]
    assert (130, "") == interrupt(process)[:2]


def test_findings_are_watched(live: Live, relay: Relay) -> None:
    """Each as it comes, from another process, while the work goes on."""
    process = live.start("review", "--watch", "--json")
    lead = relay.start("Fix invoice rounding", by="user:ana")
    for _ in range(6):
        lead.call(look_up, "half-even")
    found = json.loads(*lines(process, 1))

    assert ("repeated-step", lead.id) == (found["kind"], found["root"])
    assert 130 == interrupt(process)[0]


def test_a_reader_that_has_enough_ends_it(live: Live, relay: Relay) -> None:
    """As `head` does: nothing is said about it."""
    process = live.start("trail", "--follow")
    assert process.stdout is not None
    process.stdout.close()
    relay.start("Fix it", by="user:ana")
    process.wait(timeout=PATIENCE)

    assert 141 == process.returncode


def test_what_cannot_be_followed_is_wrong_usage(tmp_path: Path, relay: Relay) -> None:
    """A page is not a line; and without --follow somebody has to say which tree."""
    environment = {"BATONPASS_LEDGER": (tmp_path / "url").read_text()}
    relay.start("Fix it", by="user:ana")

    assert [2, 2, 1] == [
        batonpass_in(tmp_path, *words.split(), environment=environment).returncode
        for words in ("trail --follow --html", "trail", "trail --follow nobody")
    ]
