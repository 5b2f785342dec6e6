"""Hooks as Claude Code calls them: real processes, many at once; recorders that are killed, frozen, in the way."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batonpass.adapters.coders import client
from batonpass.model.bodies.body import HandoffInitiated
from batonpass.relay import Relay, recording_of
from tests.integration.cli.hooking import Hooked
from tests.integration.cli.shell import batonpass_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds processes by /proc"),
]

Make = Callable[..., Hooked]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Return what makes projects; every recorder is ended afterwards."""
    made: list[Hooked] = []

    def start(name: str = "shop", *words: str) -> Hooked:
        hooked = Hooked(tmp_path / name, list(words))
        hooked.folder.mkdir()
        subprocess.run(["git", "init", "--quiet"], cwd=hooked.folder, check=True)
        with Relay.open(f"sqlite:///{hooked.home}/ledger.db", home=hooked.home) as relay:
            _ = recording_of(relay)
        made.append(hooked)
        return hooked

    yield start
    for hooked in made:
        for pid in hooked.recorders():
            hooked.kill(pid)


@pytest.fixture
def shop(make: Make) -> Hooked:
    """Return one project."""
    return make()


def reason_in(answer: str) -> str:
    return str(json.loads(answer)["hookSpecificOutput"]["permissionDecisionReason"])


def test_events_are_recorded_by_one_process_that_stays(shop: Hooked) -> None:
    """The first event starts it, the next find it."""
    answers = [shop.tell(shop.prompt()), *(shop.tell(shop.call("PreToolUse", number)) for number in range(3))]

    assert [""] * 4 == answers
    assert (3, 1, 0) == (shop.requested(), len(shop.recorders()), shop.spooled())


def test_fifty_at_once_start_one_recorder(shop: Hooked) -> None:
    """Cold: nobody is there, and all of them come together."""
    waiting = [shop.begin(shop.call("PreToolUse", number), "--patience", "60") for number in range(50)]
    answers = [shop.end(process) for process in waiting]

    assert [""] * 50 == answers
    assert (50, 1, 0) == (shop.requested(), len(shop.recorders()), shop.spooled())


def test_a_large_event_is_recorded(shop: Hooked) -> None:
    """Ten megabytes of output."""
    shop.tell(shop.call("PreToolUse", 1))
    shop.tell(
        shop.event(
            "PostToolUse", tool_name="Read", tool_input={}, tool_use_id="toolu_1", tool_response="x" * 10_000_000
        )
    )

    assert (1, 0) == (shop.completed(), shop.spooled())


def test_a_killed_recorder_is_replaced(shop: Hooked) -> None:
    """Between two events: its socket is stale, and nothing is missed."""
    shop.tell(shop.call("PreToolUse", 1))
    shop.kill(shop.recorder())
    stale = [*shop.home.glob("*.sock")]
    shop.tell(shop.call("PostToolUse", 1))

    assert (1, 1, 1, 0) == (len(stale), shop.requested(), shop.completed(), shop.spooled())


def test_a_recorder_that_is_killed_at_work_leaves_no_hole(shop: Hooked) -> None:
    """Every event is recorded, or is a gap; the ledger is whole and nobody was stopped."""
    shop.tell(shop.prompt())
    waiting = []
    for number in range(30):
        waiting.append(shop.begin(shop.call("PreToolUse", number), "--patience", "60"))
        if number % 10 == 5:
            for pid in shop.recorders():
                shop.kill(pid)
    for process in waiting:
        shop.end(process)
    shop.tell(shop.event("Stop"))
    shop.drained()

    assert 30 <= shop.requested() + shop.gaps()


def test_a_frozen_recorder_holds_nobody_up_for_long(shop: Hooked) -> None:
    """The hook gives up, keeps the event, and a gap is noted when it thaws."""
    shop.tell(shop.prompt())
    pid = shop.recorder()
    os.kill(pid, signal.SIGSTOP)
    answer = shop.tell(shop.call("PreToolUse", 1), "--patience", "0.5")
    spooled = shop.spooled()
    os.kill(pid, signal.SIGCONT)
    shop.drained()

    assert ("", 1) == (answer, spooled)
    assert (0, 1) == (shop.requested(), shop.gaps())


def test_a_frozen_recorder_refuses_enforced_calls(make: Make) -> None:
    """What cannot be recorded may not be done; the model is told whom to ask."""
    shop = make("shop", "--enforce")
    shop.tell(shop.prompt())
    os.kill(shop.recorder(), signal.SIGSTOP)
    call = shop.tell(shop.call("PreToolUse", 1), "--patience", "0.5")
    other = shop.tell(shop.call("PostToolUse", 1), "--patience", "0.5")

    assert "did not answer within 0.5 seconds" in reason_in(call)
    assert ("", 2) == (other, shop.spooled())


def test_a_recorder_stops_when_it_is_asked(shop: Hooked) -> None:
    """It finishes what it has taken and takes its socket with it."""
    shop.tell(shop.prompt())
    shop.kill(shop.recorder(), signal.SIGTERM)

    assert ([], []) == ([*shop.home.glob("*.sock")], [*shop.home.glob("*-wal")])


def test_a_broken_ledger_stops_nobody(shop: Hooked) -> None:
    """What is missed is kept, and is recorded as gaps once the ledger is back."""
    ledger = shop.home / "ledger.db"
    away = ledger.rename(shop.home / "away.db")
    answers = [shop.tell(shop.call("PreToolUse", number)) for number in range(3)]
    spooled = shop.spooled()
    for pid in shop.recorders():
        shop.kill(pid)
    away.rename(ledger)
    shop.tell(shop.prompt())
    shop.drained()

    assert ([""] * 3, 3) == (answers, spooled)
    assert (0, 3) == (shop.requested(), shop.gaps())
    assert "there is no ledger at" in (shop.home / client.LOG).read_text(encoding="utf-8")


def test_a_recorder_that_cannot_start_is_not_waited_for(shop: Hooked, tmp_path: Path) -> None:
    """Its log is in the way of itself, so it never begins."""
    (shop.home / client.LOG).mkdir()
    answer = shop.tell(shop.call("PreToolUse", 1))

    assert ("", 1, []) == (answer, shop.spooled(), shop.recorders())
    assert tmp_path.is_dir()


def test_a_home_that_cannot_be_written_stops_nobody(shop: Hooked) -> None:
    """Nothing can be recorded and nothing kept; the session goes on, and says it where --debug shows it."""
    shop.home.chmod(0o500)
    humbled = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", humbled, sys.executable, "-I", "-S", client.__file__, "--project", str(shop.folder)]
    done = subprocess.run(words, input=shop.prompt(), capture_output=True, check=False)
    shop.home.chmod(0o700)

    assert (0, b"") == (done.returncode, done.stdout)
    assert b"the event could not be stored either" in done.stderr


def test_two_projects_do_not_meet(make: Make) -> None:
    """Each has its ledger and its recorder."""
    one, two = make("one"), make("two")
    for project in (one, two):
        project.tell(project.call("PreToolUse", 1))

    assert (1, 1) == (one.requested(), two.requested())
    assert one.recorder() != two.recorder()


def test_the_mode_can_be_changed_under_way(shop: Hooked) -> None:
    """A hook in another mode, or of another version, replaces the recorder; the session goes on."""
    shop.tell(shop.prompt())
    first = shop.recorder()
    answer = shop.tell(shop.call("PreToolUse", 1, "Write", file_path=".batonpass/x", content=""), "--enforce")
    second = shop.recorder()
    shop.tell(shop.call("PreToolUse", 2))

    assert first != second
    assert "would touch the ledger or its keys" in reason_in(answer)
    assert (["protected"], 1) == (shop.denied(), shop.requested())


def test_an_event_can_be_sent_by_hand(shop: Hooked) -> None:
    """To see what comes of it."""
    event = shop.folder / "event.json"
    event.write_bytes(shop.call("PreToolUse", 1, "Bash", command="batonpass doctor"))
    program = [sys.executable, "-c", "from batonpass.cli.main import main; main()", "hook", "claude-code", "--enforce"]
    with event.open("rb") as file:
        done = subprocess.run(program, cwd=shop.folder, stdin=file, capture_output=True, text=True, check=True)

    assert "would run or change `batonpass`" in reason_in(done.stdout)
    assert ["protected"] == shop.denied()


def test_the_doctor_sees_hooks_recorder_and_spool(shop: Hooked) -> None:
    """Where they are, who answers, what was missed."""
    init = batonpass_in(shop.folder, "init", "claude-code", environment={"HOME": str(shop.folder.parent)})
    before = batonpass_in(shop.folder, "doctor", environment={"HOME": str(shop.folder.parent)}).stdout
    shop.tell(shop.prompt())
    pid = shop.recorder()
    os.kill(pid, signal.SIGSTOP)
    shop.tell(shop.call("PreToolUse", 1), "--patience", "0.3")
    frozen = batonpass_in(shop.folder, "doctor", environment={"HOME": str(shop.folder.parent)}).stdout
    os.kill(pid, signal.SIGCONT)
    shop.drained()
    after = batonpass_in(shop.folder, "doctor", environment={"HOME": str(shop.folder.parent)}).stdout

    assert 0 == init.returncode
    assert f"observed, by {shop.folder}/.claude/settings.local.json" in before
    assert "not running: the next event starts it" in before
    assert "1 event reached no recorder" in frozen
    assert "does not answer" in frozen
    assert f"process {pid} answers, {client.VERSION}/observe" in after
    assert "reached no recorder" not in after


def test_a_sub_agent_s_offer_points_into_the_transcript(shop: Hooked, tmp_path: Path) -> None:
    """Through the hook command and the process that stays: the byte at which the line with the call begins."""
    transcript = tmp_path / "session.jsonl"
    said = {"type": "tool_use", "id": "toolu_1", "name": "Agent", "input": {"prompt": "Edit it"}}
    lines = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Fix the rounding"}},
        {"type": "assistant", "uuid": "m1", "message": {"role": "assistant", "content": [said]}},
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    shop.tell(shop.prompt())
    given = {"prompt": "Edit it", "subagent_type": "editor"}
    asked = {"tool_name": "Agent", "tool_input": given, "tool_use_id": "toolu_1", "transcript_path": str(transcript)}
    shop.tell(shop.event("PreToolUse", **asked))
    (offer,) = (body for body in shop.bodies() if isinstance(body, HandoffInitiated))

    assert offer.reasoning is not None
    assert (len(json.dumps(lines[0])) + 1, None) == (offer.reasoning.offset, offer.reasoning.checkpoint)
