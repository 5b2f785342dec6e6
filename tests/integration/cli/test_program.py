"""The program as a process: streams, exit codes, and what it does when the ground gives way."""

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from batonpass.model.base.ids import AgentId
from batonpass.relay import recording_of
from batonpass.testing.plain_acts import plainly
from tests.integration.cli.shell import PATIENCE, PROGRAM, batonpass_in, on_terminal, surroundings
from tests.unit.cli.desk import ANA, Desk, record_in

pytestmark = pytest.mark.slow

HEAVY = ("apsw", "nacl", "msgspec", "re2", "rich", "batonpass.relay", "batonpass.store", "asyncio")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return record_in(tmp_path)


@pytest.mark.parametrize("arguments", ["--help", "--version", "nonsense"])
def test_the_front_door_is_light(tmp_path: Path, arguments: str) -> None:
    """Help needs no database, no cryptography and nothing that draws: a hook starts us for every event."""
    script = (
        "import sys\nfrom batonpass.cli.main import main\n"
        "try:\n    main()\nfinally:\n    print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [PROGRAM[0], "-c", script, arguments],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    loaded = done.stderr.splitlines()[-1].split()

    assert [] == [name for name in HEAVY if name in loaded]


def test_data_and_words_are_on_different_streams(desk: Desk) -> None:
    """A seal on stdout is only the seal; what there is to say about it is on stderr."""
    done = batonpass_in(desk.directory, "ledger", "seal")

    assert (0, True, True) == (
        done.returncode,
        done.stdout.startswith("batonpass/ledger_"),
        done.stderr.startswith("sealed 10 receipts"),
    )


def test_the_nearest_ledger_is_found(desk: Desk) -> None:
    """From any directory below, a command finds the ledger; a variable or an option names another."""
    below = desk.directory / "src" / "deep"
    below.mkdir(parents=True)
    elsewhere = {"BATONPASS_LEDGER": str(desk.directory / "none.db")}

    assert [0, 3, 0, 0] == [
        batonpass_in(below, "run", "list").returncode,
        batonpass_in(below, "run", "list", environment=elsewhere).returncode,
        batonpass_in(below, "--ledger", str(desk.ledger), "run", "list", environment=elsewhere).returncode,
        batonpass_in(below, "run", "list", "--ledger", f"sqlite:///{desk.ledger}", environment=elsewhere).returncode,
    ]


def a_directory(path: Path) -> None:
    path.mkdir()


def a_text(path: Path) -> None:
    path.write_text("hello " * 1000, encoding="utf-8")


def anothers_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE t (x)")
    connection.close()


def nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "code", "sentence"),
    [
        pytest.param(nothing, "store.no_ledger", "there is no ledger at", id="nothing is there"),
        pytest.param(a_directory, "store.unavailable", "is a directory", id="a directory is there"),
        pytest.param(a_text, "store.not_a_ledger", "is not a ledger", id="a text is there"),
        pytest.param(anothers_database, "store.not_a_ledger", "another program's database", id="another's database"),
    ],
)
def test_what_is_no_ledger_is_one_sentence(
    tmp_path: Path, make: Callable[[Path], None], code: str, sentence: str
) -> None:
    """Whatever lies where the ledger should be: one clear sentence, exit code 3, and it is left as it was."""
    path = tmp_path / "ledger.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    words = batonpass_in(tmp_path, "--ledger", str(path), "run", "list")
    answer = batonpass_in(tmp_path, "--ledger", str(path), "run", "list", "--json")

    assert (3, 3, "") == (words.returncode, answer.returncode, words.stdout)
    assert (code, 1, True) == (
        json.loads(answer.stdout)["error"]["code"],
        len(words.stderr.splitlines()),
        sentence in words.stderr,
    )
    assert before == (path.read_bytes() if path.is_file() else None)


@pytest.fixture
def guarded_desk() -> Iterator[Desk]:
    """Give a ledger that its reader cannot write, not even beside it."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        desk = record_in(directory)
        directory.chmod(0o755)
        for path in [desk.ledger.parent, *desk.ledger.parent.rglob("*")]:
            path.chmod(0o500 if path.is_dir() else 0o400)
        yield desk
        desk.ledger.parent.chmod(0o755)


def test_a_ledger_that_can_only_be_read_is_read(guarded_desk: Desk) -> None:
    """Reading and verifying need no permission to write; sealing says which it lacks."""
    results = [
        batonpass_in(guarded_desk.directory, *words.split(), humbled=True)
        for words in ("run list", "ledger verify", "doctor", "ledger seal")
    ]

    assert [0, 0, 1, 3] == [done.returncode for done in results], results
    assert ("", 1, True) == (
        results[3].stdout,
        len(results[3].stderr.splitlines()),
        "[store.read_only]" in results[3].stderr,
    )


def test_hostile_words_never_reach_a_terminal(desk: Desk) -> None:
    """On a real terminal, no command lets an agent's escape sequences through."""
    hostile = "\x1b]0;pwned\x07 \x1b[8mhidden \u202e \x9b2J timeout"
    with desk.relay() as relay:
        recording = recording_of(relay)
        scout = recording.start(hostile, agent=AgentId("scout"), by=ANA)
        plainly(recording).close(scout, report=hostile)
    commands = ("run list", "run show scout", "receipt show last", "receipt grep timeout", "run show scout --json")
    shown = "".join(on_terminal(desk.directory, words.split())[1] for words in commands)

    assert [] == [mark for mark in ("\x1b]", "\x07", "\x1b[8m", "\u202e", "\x9b") if mark in shown]
    assert "\\x1b]0;pwned\\x07" in shown


def test_a_terminal_gets_colours_unless_it_wants_none(desk: Desk) -> None:
    """Colours are for terminals; NO_COLOR and a dumb terminal are respected."""
    shown = [
        on_terminal(desk.directory, ["run", "list"])[1],
        on_terminal(desk.directory, ["run", "list"], NO_COLOR="1")[1],
        on_terminal(desk.directory, ["run", "list"], TERM="dumb")[1],
        batonpass_in(desk.directory, "run", "list").stdout,
    ]

    assert [True, False, False, False] == ["\x1b[" in output for output in shown]


def test_a_person_on_a_terminal_is_asked_before_words_are_erased(desk: Desk) -> None:
    """Without a yes nothing is erased."""
    command = ["ledger", "erase", "editor", "--reason", "privacy"]
    no = on_terminal(desk.directory, command, typed=b"n\n")
    yes = on_terminal(desk.directory, command, typed=b"y\n")

    assert [(130, 0), (0, 5)] == [(code, len(re.findall(r"content_\w{26} erased", shown))) for code, shown in (no, yes)]


def test_whoever_has_read_enough_is_not_bothered(desk: Desk) -> None:
    """A closed pipe ends us quietly."""
    with subprocess.Popen(
        [*PROGRAM, "receipt", "grep", "."],
        cwd=desk.directory,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()

    assert (141, b"") == (process.returncode, complaint)


def test_a_full_disk_under_the_output_is_one_sentence(desk: Desk) -> None:
    """What cannot be printed is said, and the exit code is not that of a success."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, "run", "list"],
            cwd=desk.directory,
            env=surroundings(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert (3, "batonpass: the output: No space left on device\n") == (done.returncode, done.stderr)


def test_ctrl_c_is_130(desk: Desk) -> None:
    """An interrupt ends a command at once, without a traceback."""
    fifo = desk.directory / "bundle"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [*PROGRAM, "ledger", "verify", "--bundle", str(fifo)],
        cwd=desk.directory,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # It has opened the bundle when we can, and then waits for a line that never comes.
        with fifo.open("w"):
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)
        complaint = process.stderr.read() if process.stderr is not None else ""

    assert (130, "batonpass: stopped\n") == (process.returncode, complaint)


def test_a_missing_git_is_one_sentence(desk: Desk) -> None:
    """Where git is not on the PATH, that is the sentence."""
    done = batonpass_in(desk.directory, "git", "install", environment={"PATH": "/nowhere"})

    assert (1, "batonpass: git is not installed here\n") == (done.returncode, done.stderr)


def test_output_is_utf_8_wherever_we_are(desk: Desk) -> None:
    """A seal keeps its bytes, and a list its marks, also where the environment knows only ASCII."""
    done = batonpass_in(desk.directory, "ledger", "seal", environment={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})

    assert (0, True) == (done.returncode, "\n\N{EM DASH} batonpass/ledger_" in done.stdout)


def test_bytes_on_stdin_that_are_no_text_are_a_finding(desk: Desk) -> None:
    """A bundle may come from a pipe, and may be anything."""
    done = subprocess.run(
        [*PROGRAM, "ledger", "verify", "--bundle", "-"],
        cwd=desk.directory,
        env=surroundings(),
        input=b"\xff\xfe\x00",
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (1, True) == (done.returncode, b"[verify.edited]" in done.stderr)
