"""The recorder that stays, with a fake in place of the ledger: who is let in, what is answered, when it leaves."""

import gc
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.coders import client, resident
from batonpass.adapters.coders.client import HookInvocation
from batonpass.adapters.coders.resident import EventRecorder, Resident, ask_who, has_lock, listen
from batonpass.adapters.coders.spool import find_spooled

PATIENCE = 30


class Fake:
    """Records in memory; answers and fails as it is told."""

    def __init__(self, answer: Mapping[str, Any] | None = None) -> None:
        self.answer = answer or {}
        self.events: list[Mapping[str, Any]] = []
        self.gaps: list[tuple[Mapping[str, Any] | None, str]] = []
        self.failing: Exception | None = None
        self.gaps_fail = False
        self.closed = False
        self.noted = threading.Event()

    def handle(self, event: Mapping[str, Any], *_: object) -> Mapping[str, Any]:
        """Record an event."""
        if self.failing is not None:
            raise self.failing
        self.events.append(event)
        return self.answer

    def note_gap(self, event: Mapping[str, Any] | None, reason: str, *_: object) -> None:
        """Record a gap."""
        if self.gaps_fail:
            raise OSError(28, "No space left on device")
        self.gaps.append((event, reason))
        self.noted.set()

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


Serve = Callable[..., Resident]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project and stand in its ledger's home, as the hook command does."""
    home = tmp_path / "shop" / ".batonpass"
    home.mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(home)
    monkeypatch.setattr(client, "start", lambda _: None)
    return home.parent


@pytest.fixture
def serve(project: Path) -> Iterator[Serve]:
    """Return what starts a recorder in a thread; all of them are stopped in the end."""
    running: list[tuple[Resident, threading.Thread]] = []

    def start(opening: EventRecorder | Callable[[], EventRecorder], *words: str) -> Resident:
        call = a_call(project, *words)
        made = Resident(listen(call.name), call, opening if callable(opening) else lambda: opening)
        thread = threading.Thread(target=made.serve)
        thread.start()
        running.append((made, thread))
        return made

    yield start
    for made, thread in running:
        made.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def a_call(project: Path, *words: str) -> HookInvocation:
    return HookInvocation(["--project", str(project), "--patience", str(PATIENCE), *words], {})


def an_event(**more: object) -> bytes:
    return json.dumps({"hook_event_name": "PreToolUse", **more}).encode()


def test_an_event_is_recorded_and_answered(project: Path, serve: Serve) -> None:
    """The answer is JSON; nothing is the answer to most."""
    fake = Fake()
    serve(fake)
    nothing = client.ask(a_call(project), an_event(n=1))
    fake.answer = {"hookSpecificOutput": {"a": "é"}}
    something = client.ask(a_call(project), an_event(n=2))

    assert (b"", {"hookSpecificOutput": {"a": "é"}}) == (nothing, json.loads(something))
    assert [1, 2] == [event["n"] for event in fake.events]


def test_large_events_arrive(project: Path, serve: Serve) -> None:
    """Ten megabytes, as a tool may print."""
    fake = Fake()
    serve(fake)
    client.ask(a_call(project), an_event(text="x" * 10_000_000))

    assert 10_000_000 == len(fake.events[0]["text"])


def test_many_at_once_are_all_recorded(project: Path, serve: Serve) -> None:
    """Each has a thread of its own."""
    fake = Fake()
    serve(fake)
    threads = [threading.Thread(target=client.ask, args=(a_call(project), an_event(n=n))) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert [*range(50)] == sorted(event["n"] for event in fake.events)


def test_an_error_is_a_gap_and_the_session_goes_on(project: Path, serve: Serve) -> None:
    """Whatever fails in us stays with us."""
    fake = Fake()
    fake.failing = RuntimeError("no such\nthing")
    serve(fake)
    answer = client.ask(a_call(project), an_event(n=1))

    assert b"" == answer
    assert [({"hook_event_name": "PreToolUse", "n": 1}, "RuntimeError: no such thing")] == fake.gaps


def test_an_error_refuses_an_enforced_call(project: Path, serve: Serve) -> None:
    """It is a gap as well."""
    fake = Fake()
    fake.failing = RuntimeError("no such thing")
    serve(fake, "--enforce")
    answer = json.loads(client.ask(a_call(project, "--enforce"), an_event()))

    assert "deny" == answer["hookSpecificOutput"]["permissionDecision"]
    assert 1 == len(fake.gaps)


def test_what_cannot_even_be_noted_is_kept_by_the_hook(project: Path, serve: Serve) -> None:
    """It is told so, and spools the event."""
    fake = Fake()
    fake.failing, fake.gaps_fail = RuntimeError("broken"), True
    serve(fake)

    with pytest.raises(client.UnansweredError, match="RuntimeError: broken"):
        client.ask(a_call(project), an_event())


@pytest.fixture
def no_garbage_is_collected() -> Iterator[None]:
    """Keep finalizers of other tests out of the deepest frame of this one, where each would fail."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_is_collected")
def test_what_is_no_event_is_a_gap(project: Path, serve: Serve) -> None:
    """Somebody called us with something else."""
    fake = Fake()
    serve(fake)
    answers = [client.ask(a_call(project), body) for body in (b"{", b"[]", b"[" * 100_000)]

    assert [b""] * 3 == answers
    assert [(None, "ValueError: the event is not a JSON object")] * 3 == fake.gaps


def test_the_spool_is_drained_at_the_start(serve: Serve) -> None:
    """What was missed becomes a gap, with the reason of back then."""
    client.spool(an_event(n=1), "nobody was there")
    fake = Fake()
    serve(fake)

    assert fake.noted.wait(PATIENCE)
    assert [({"hook_event_name": "PreToolUse", "n": 1}, "nobody was there")] == fake.gaps


def test_a_spool_that_cannot_be_noted_stays(project: Path, serve: Serve) -> None:
    """The next one tries again."""
    client.spool(an_event(), "nobody was there")
    fake = Fake()
    fake.gaps_fail = True
    serve(fake)
    client.ask(a_call(project), an_event())

    assert 1 == len([*find_spooled(project / ".batonpass")])


def test_a_ledger_that_cannot_be_opened_is_told_at_once(project: Path, serve: Serve) -> None:
    """Nobody waits for a recorder that will never be ready."""

    def fail() -> EventRecorder:
        raise OSError(13, "Permission denied")

    serve(fail)

    with pytest.raises(client.UnansweredError, match="Permission denied"):
        client.ask(a_call(project), an_event())


@pytest.mark.parametrize(("there", "comes"), [((), ("--enforce",)), (("--enforce",), ())])
def test_another_mode_or_version_makes_room(
    project: Path, serve: Serve, there: tuple[str, ...], comes: tuple[str, ...]
) -> None:
    """It finishes, lets go of the ledger, and the next one takes over."""
    old, new = Fake(), Fake()
    left = serve(old, *there)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(f"{a_call(project).name}.sock")
    line.sendall(f"{a_call(project, *comes).stamp} 2\n{{}}".encode())
    answer = line.recv(100)
    line.close()
    while os.path.exists(f"{a_call(project).name}.sock"):  # noqa: PTH110 - it takes a moment, and says when it is over
        threading.Event().wait(0.01)
    serve(new, *comes)
    client.ask(a_call(project, *comes), an_event())

    assert (b"other\n", 0, 1) == (answer, len(old.events), len(new.events))
    assert left is not None


def test_whoever_gave_up_is_not_recorded_late(project: Path) -> None:
    """The event is in the spool by then; to record it as well would tell it twice."""
    fake = Fake()
    call = a_call(project)
    listener = listen(call.name)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(f"{call.name}.sock")
    line.sendall(f"{call.stamp} 2\n{{}}".encode())
    line.close()
    made = Resident(listener, call, lambda: fake)
    thread = threading.Thread(target=made.serve)
    thread.start()
    client.ask(call, an_event(n=2))
    made.stop()
    thread.join(PATIENCE)

    assert ([2], True) == ([event.get("n") for event in fake.events], fake.closed)


@pytest.mark.parametrize("sent", [b"", b"nonsense", b"{stamp} many\n", b"{stamp} 99999999999\n", b"{stamp} 10\nshort"])
def test_nonsense_is_not_recorded(project: Path, serve: Serve, sent: bytes) -> None:
    """And stops nobody."""
    fake = Fake()
    serve(fake)
    call = a_call(project)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(f"{call.name}.sock")
    line.sendall(sent.replace(b"{stamp}", call.stamp.encode()))
    line.shutdown(socket.SHUT_WR)
    heard = line.recv(100)
    line.close()

    assert (b"", []) == (heard if not heard.startswith(b"other") else b"", fake.events)


def test_strangers_are_not_let_in(project: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says who is at the other end."""
    fake = Fake()
    serve(fake)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    call = HookInvocation(["--project", str(project), "--patience", "0.2"], {})

    with pytest.raises(client.UnansweredError):
        client.ask(call, an_event())
    assert [] == fake.events


def test_it_says_who_it_is(project: Path, serve: Serve) -> None:
    """To whoever looks after it."""
    before = ask_who(a_call(project), PATIENCE)
    serve(Fake())

    assert (None, f"{client.VERSION}/observe {os.getpid()}") == (before, ask_who(a_call(project), PATIENCE))


def test_it_leaves_when_nothing_happens(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes its socket with it."""
    monkeypatch.setattr(resident, "IDLE", 0.0)
    fake = Fake()
    call = a_call(project)
    Resident(listen(call.name), call, lambda: fake).serve()

    assert (True, False) == (fake.closed, Path(f"{call.name}.sock").exists())


def test_it_leaves_when_its_home_is_gone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And does not take away what somebody else has put in its place."""
    monkeypatch.setattr(resident, "_TICK", 0.01)
    fake = Fake()
    call = a_call(project)
    made = Resident(listen(call.name), call, lambda: fake)
    Path(f"{call.name}.sock").unlink()
    Path(f"{call.name}.sock").write_text("another's", encoding="ascii")
    made.serve()

    assert (True, "another's") == (fake.closed, Path(f"{call.name}.sock").read_text(encoding="ascii"))


def test_it_leaves_when_something_hangs(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes next gets a new one, instead of waiting behind it."""
    monkeypatch.setattr(resident, "HUNG", 0.05)
    monkeypatch.setattr(resident, "_TICK", 0.01)
    never = threading.Event()
    fake = Fake()
    call = a_call(project)

    def hang() -> EventRecorder:
        never.wait(PATIENCE)
        return fake

    Resident(listen(call.name), call, hang).serve()
    never.set()

    assert not fake.closed


def test_only_one_has_the_lock(project: Path) -> None:
    """Whoever comes second leaves."""
    name = a_call(project).name
    first, second = has_lock(name), has_lock(name)

    assert (True, False) == (first, second)


def test_a_stale_socket_is_replaced(project: Path, serve: Serve) -> None:
    """A process that was killed leaves one behind."""
    Path(f"{a_call(project).name}.sock").write_text("left behind", encoding="ascii")
    fake = Fake()
    serve(fake)
    client.ask(a_call(project), an_event(n=1))

    assert 1 == len(fake.events)
