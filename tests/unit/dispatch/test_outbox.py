"""Notices about what waits for people: at least once each, by position, whatever becomes of the command."""

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.dispatch.notifier import OUTBOX, Notifier
from batonpass.dispatch.outbox import Notice, Outbox, WaitKind
from batonpass.errors import CallSuspendedError, PolicyFileError
from batonpass.handoff.tools.declaration import tool
from batonpass.ledger.progress_file import ProgressFile
from batonpass.model.policy.notify_settings import NotifySettings
from batonpass.model.policy.policy_rules import Policy
from batonpass.policy.notify_table import read_notify
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.testing import FrozenClock

ANA = "user:ana"


class Place:
    """A relay with a lead, and somebody who is told."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = FrozenClock()
        self.relay = Relay(MemoryStore(), clock=self.clock, policy=Policy(enforce=True, proven=False))
        self.lead = self.relay.start("Ship", by=ANA)
        self.told: list[Notice] = []
        self.broken = False

    def tell(self, notice: Notice) -> None:
        """Take a notice, or fail."""
        if self.broken:
            raise OSError("nobody there")
        self.told.append(notice)

    def deliver(self) -> tuple[int, int]:
        """Deliver by a new outbox, as a process that was started again would."""
        return Outbox(self.relay.store, self.home, OUTBOX, self.tell, self.clock).deliver_all()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return a place where nothing waits."""
    return Place(tmp_path)


def test_whatever_waits_for_somebody_is_told_once(place: Place) -> None:
    """A held offer, a held attempt, a question and a root's held call, in order; what goes on by itself is not."""
    deploy = tool("deploy", reversible=False, target="place")(lambda place: f"deployed {place}")
    offer = place.lead.hand_off("mailer", "Tell them", hold=True)
    attempt = place.lead.hand_off("shipper", "Ship it", criteria=["done"])
    with pytest.raises(CallSuspendedError):
        attempt.accept().call(deploy, "prod")
    asked = place.lead.hand_off("asker", "What?", criteria=["done"])
    asked.ask("which?")
    with pytest.raises(CallSuspendedError) as held:
        place.lead.call(deploy, "prod")
    place.lead.hand_off("worker", "goes on", criteria=["done"])

    assert ((4, 0), (0, 0)) == (place.deliver(), place.deliver())
    held_, question = WaitKind.HELD, WaitKind.ASKED
    assert [(held_, offer.id), (held_, attempt.id), (question, asked.id), (held_, held.value.call)] == [
        (notice.waits, notice.handoff or notice.call) for notice in place.told
    ]
    assert f"batonpass handoff answer {asked.id[-6:]}" == place.told[2].command


def test_a_failing_command_loses_nothing_and_blocks_nobody(place: Place) -> None:
    """It is tried again after a pause that grows, with the same id; meanwhile others are told."""
    first = place.lead.hand_off("mailer", "Tell them", hold=True)
    place.broken = True
    assert ((0, 1), (0, 0)) == (place.deliver(), place.deliver())
    place.broken = False
    second = place.lead.hand_off("mailer", "Tell others", hold=True)
    assert (1, 0) == place.deliver()
    place.clock.tick(timedelta(minutes=1))

    assert (1, 0) == place.deliver()
    assert [second.id, first.id] == [notice.handoff for notice in place.told]


def test_what_was_decided_meanwhile_is_not_told(place: Place) -> None:
    """Whoever comes back after an outage is told what still waits."""
    gone = place.lead.hand_off("mailer", "Tell them", hold=True)
    waits = place.lead.hand_off("mailer", "Tell others", hold=True)
    gone.approve(by=ANA)
    place.deliver()

    assert [waits.id] == [notice.handoff for notice in place.told]


def test_a_crash_before_the_cursor_is_written_repeats_a_notice(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ran, and the process died: the same notice comes again, and its id says so."""
    place.lead.hand_off("mailer", "Tell them", hold=True)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(ProgressFile, "write", die)
        with pytest.raises(KeyboardInterrupt):
            place.deliver()
    place.deliver()

    assert [place.told[0].id] * 2 == [notice.id for notice in place.told]


def test_a_cursor_that_cannot_be_read_tells_everything_again(place: Place) -> None:
    """Twice is better than never."""
    place.lead.hand_off("mailer", "Tell them", hold=True)
    place.deliver()
    (place.home / "outbox" / f"{OUTBOX}.json").write_text("{", encoding="utf-8")

    assert (1, 0) == place.deliver()


def test_the_command_gets_the_notice_and_may_hang(place: Place) -> None:
    """It reads JSON on its standard input; one that does not end is killed, and tried again."""
    told = place.home / "told.txt"
    held = place.lead.hand_off("mailer", "Tell them", hold=True)
    slow = NotifySettings(command=(sys.executable, "-c", "while 1: pass"), timeout=timedelta(milliseconds=50))
    assert (0, 1) == Notifier(place.relay, slow, place.home).notify_all()
    place.clock.tick(timedelta(minutes=1))
    script = f"import os,sys; open({str(told)!r}, 'a').write(os.environ['BATONPASS_NOTICE'] + ' ' + sys.stdin.read())"
    good = NotifySettings(command=(sys.executable, "-c", script))
    assert (1, 0) == Notifier(place.relay, good, place.home).notify_all()
    id_, _, notice = told.read_text(encoding="utf-8").partition(" ")

    assert {"id": id_, "waits": "held", "handoff": held.id}.items() <= json.loads(notice).items()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[notify]\ntimeout = '5s'", "needs a command"),
        ("[notify]\ncommand = []", "is a list of words"),
        ("[notify]\ncommand = ['x']\ntimeout = 'soon'", "soon"),
        ("[notify]\nwebhook = 'x'", "there is no such key"),
    ],
    ids=["no command", "an empty one", "no duration", "an unknown key"],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    """As in every other table of the file."""
    file = tmp_path / "batonpass.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyFileError, match=problem):
        read_notify(file)


def test_the_table_names_the_command(tmp_path: Path) -> None:
    """Without the table nobody is told."""
    file = tmp_path / "batonpass.toml"
    file.write_text("", encoding="utf-8")
    assert read_notify(file) is None
    file.write_text("[notify]\ncommand = ['tell', 'ana']\ntimeout = '5s'", encoding="utf-8")

    assert NotifySettings(command=("tell", "ana"), timeout=timedelta(seconds=5)) == read_notify(file)
