"""The hook command in itself: what it finds, what it keeps, what it says when nobody answers."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import batonpass
from batonpass.adapters.coders import client
from batonpass.adapters.coders.client import HookInvocation
from batonpass.adapters.coders.spool import drain, find_spooled
from batonpass.config import find_settings

EVENT = b'{"hook_event_name":"PreToolUse","session_id":"s"}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with the home of a ledger, and stand in it."""
    folder = tmp_path / "shop"
    (folder / ".batonpass").mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the command an event on its stdin."""
    reading, writing = os.pipe()
    os.write(writing, EVENT)
    os.close(writing)
    monkeypatch.setattr(client, "_read_event", lambda _: os.read(reading, 1 << 16))


def refused(call: HookInvocation, *_: object) -> bytes:
    raise client.UnansweredError(f"nobody answered in {call.patience:g}")


def reason_in(answer: bytes) -> str:
    return str(json.loads(answer)["hookSpecificOutput"]["permissionDecisionReason"])


def test_it_knows_its_version() -> None:
    """A recorder of another version makes room for one of this."""
    assert batonpass.__version__ == client.VERSION


def test_it_imports_next_to_nothing() -> None:
    """Everything that takes a while is left to the recorder."""
    names = ["json", "socket", "typing", "dataclasses", "pathlib", "subprocess", "enum", "re", "batonpass"]
    program = f"import sys; exec(open({client.__file__!r}).read(), {{'__name__': 'it'}}); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)

    assert [] == [name for name in names if repr(name) in done.stdout]


@pytest.mark.parametrize(
    ("ledger", "home"),
    [
        (None, None),
        ("kept/all.db", None),
        ("sqlite:////somewhere/all.db", None),
        ("sqlite:////somewhere/.batonpass/ledger.db", None),
        ("postgresql://db.example/ledger", None),
        ("postgresql://db.example/ledger", "~/keys"),
        (None, "/somewhere/keys"),
    ],
)
@pytest.mark.parametrize("by_option", [True, False])
def test_it_finds_the_home_that_the_settings_name(
    project: Path, ledger: str | None, home: str | None, *, by_option: bool
) -> None:
    """The same rule, written twice for the sake of time."""
    environment = {} if home is None else {"BATONPASS_HOME": home}
    words = ["--project", str(project)]
    if ledger is not None and by_option:
        words += ["--ledger", ledger]
    elif ledger is not None:
        environment["BATONPASS_LEDGER"] = ledger
    found = find_settings(ledger if by_option else None, directory=project, environment=environment)

    assert str(found.home) == HookInvocation(words, environment).home


def test_a_project_is_found_from_below(project: Path) -> None:
    """Claude Code may have been started anywhere in it."""
    below = project / "src" / "deep"
    below.mkdir(parents=True)

    assert str(project) == HookInvocation([], {"CLAUDE_PROJECT_DIR": str(below)}).project
    assert str(project) == HookInvocation([], {}).project
    assert str(below) == HookInvocation(["--project", str(below)], {}).project


def test_two_projects_have_two_recorders(tmp_path: Path) -> None:
    """Also if they share a ledger."""
    names = {
        HookInvocation(["--project", str(tmp_path / folder), "--ledger", ledger], {}).name
        for folder in "ab"
        for ledger in "xy"
    }

    assert 4 == len(names)


@pytest.mark.usefixtures("told")
def test_observed_nothing_is_said_and_the_event_is_kept(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Claude Code goes on; the event waits for a recorder, with the reason."""
    monkeypatch.setattr(client, "ask", refused)
    monkeypatch.setattr(sys, "argv", ["client.py", "--project", str(project), "--patience", "3"])
    code = client.main()
    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)  # else it would end this process in a few seconds
    noted: list[object] = []
    drained = drain(project / ".batonpass", lambda event, why, _: noted.append((event, why)))

    assert (0, "", "batonpass: nobody answered in 3\n") == (code, *capfd.readouterr())
    assert 1 == drained
    assert [({"hook_event_name": "PreToolUse", "session_id": "s"}, "nobody answered in 3")] == noted
    assert [] == [*find_spooled(project / ".batonpass")]


@pytest.mark.usefixtures("told")
def test_enforced_the_call_is_refused_with_advice(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call may be made unrecorded; the model is told to try again and then to ask."""
    monkeypatch.setattr(client, "ask", refused)
    answer = client.attend(HookInvocation(["--project", str(project), "--enforce"], {}))

    assert "nobody answered in 8. Try the same call again" in reason_in(answer)
    assert 1 == len([*find_spooled(project / ".batonpass")])


def test_only_a_call_is_refused() -> None:
    """A denial means nothing to other events; what cannot be read is taken for a call."""
    answers = [client.deny(event, "x") for event in (b'{"hook_event_name":"Stop"}', b"[]", b"{", EVENT)]

    assert [False, True, True, True] == [bool(answer) for answer in answers]


@pytest.mark.usefixtures("told")
def test_without_a_ledger_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks of the user's own settings run in projects that nobody records; enforced ones refuse."""
    monkeypatch.chdir(tmp_path)
    silent = client.attend(HookInvocation(["--project", str(tmp_path)], {}))
    denied = client.attend(HookInvocation(["--project", str(tmp_path), "--enforce"], {}))

    assert b"" == silent
    assert "there is no ledger at" in reason_in(denied)
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.usefixtures("told")
def test_a_home_that_others_can_write_to_is_not_trusted(project: Path) -> None:
    """Somebody else could be listening there."""
    (project / ".batonpass").chmod(0o777)
    answer = client.attend(HookInvocation(["--project", str(project), "--enforce"], {}))

    assert "other users can write to" in reason_in(answer)
    assert [] == [*(project / ".batonpass").iterdir()]


@pytest.mark.usefixtures("told")
def test_what_cannot_be_kept_is_told(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A full disk costs the gap, and nothing else."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(client, "ask", refused)
    monkeypatch.setattr(client, "spool", fail)
    answer = client.attend(HookInvocation(["--project", str(project)], {}))

    assert b"" == answer
    assert "the event could not be stored either: [Errno 28]" in capfd.readouterr().err


def test_an_error_of_ours_stops_only_an_enforced_session(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 blocks in every version."""
    codes = []
    for words in ([], ["--enforce"]):
        monkeypatch.setattr(sys, "argv", ["client.py", "--patience", "soon", *words])
        codes.append(client.main())

    assert [0, 2] == codes
    assert "ask the user to run `batonpass doctor`" in capfd.readouterr().err


def test_of_an_event_that_is_too_large_the_beginning_is_kept(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spool must not fill the disk."""
    monkeypatch.setattr(client, "LARGEST", 10)
    monkeypatch.setattr(client, "BEGINNING", 4)
    monkeypatch.chdir(project / ".batonpass")
    with pytest.raises(client.UnansweredError, match="49 bytes is too large"):
        client.ask(HookInvocation([], {}), EVENT)
    client.spool(EVENT, "too\nlarge")
    (kept,) = find_spooled(project / ".batonpass")

    assert b'too large\n{"ho' == kept.read_bytes()
    assert (0o600, 0o700) == (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777)


def test_the_recorder_gets_none_of_claude_codes_secrets() -> None:
    """It outlives the session that started it."""
    given = {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_MESSAGING_TOKEN": "t", "CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"}

    assert {"CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"} == client._harmless(given)


def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started us may have forgotten to close it."""
    reading, writing = os.pipe()
    monkeypatch.setattr(os, "read", lambda _, size: io.FileIO(reading, closefd=False).read(size))
    monkeypatch.setattr("select.select", lambda *_: ([], [], []))
    with pytest.raises(client.UnansweredError, match="is incomplete"):
        client._read_event(HookInvocation([], {}))
    os.close(reading)
    os.close(writing)
