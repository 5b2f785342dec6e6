"""How a command ends: exit status, errors for people and for programs, pipes, terminals, texts that mean harm."""

import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from msgspec import json

from batonpass import Relay
from batonpass.errors import error_classes
from tests.cli.conftest import Story, Terminal

_PROGRAM: Final = (sys.executable, "-c", "from batonpass.cli.main import main; main()")
_PATIENCE: Final = 60


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        pytest.param(["handoff", "show", "nobody"], 1, "id.unknown", id="no such handoff"),
        pytest.param(["handoff", "show"], 2, "value.invalid", id="an argument is missing"),
        pytest.param(["run", "list", "--colour"], 2, "value.invalid", id="no such option"),
        pytest.param(["run", "list", "--state", "asleep"], 2, "value.invalid", id="no such state"),
        pytest.param(["run", "list", "--limit", "201"], 2, "value.invalid", id="a page that is too long"),
        pytest.param(["run", "list", "--after", "xx"], 2, "value.invalid", id="no cursor"),
        pytest.param(["run", "lst"], 2, "value.invalid", id="no such verb"),
        pytest.param(["rum"], 2, "value.invalid", id="no such noun"),
        pytest.param(["serve"], 2, "value.invalid", id="serve how"),
        pytest.param(["run", "list", "--ledger", "nowhere.db"], 3, "store.place", id="no ledger"),
        pytest.param(["run", "list", "--ledger", "/"], 3, "store.not_a_ledger", id="a folder"),
        pytest.param(["run", "list", "--ledger", "ftp://here"], 2, "value.invalid", id="a URL of something else"),
    ],
)
@pytest.mark.usefixtures("story")
def test_errors_have_a_status_and_a_code(terminal: Terminal, arguments: list[str], status: int, code: str) -> None:
    """A person gets a sentence with its code on stderr; a program one JSON object on stdout, shaped as in RFC 9457."""
    spoken = terminal.run(*arguments)
    assert (status, "") == (spoken.status, spoken.out)
    assert spoken.err.startswith("batonpass: ")
    assert spoken.err.splitlines()[0].endswith(f" [{code}]")

    written = terminal.run(*arguments, "--json")
    problem = written.json()
    assert (status, "", 1) == (written.status, written.err, len(written.out.splitlines()))
    assert (f"urn:batonpass:error:{code}", code) == (problem["type"], problem["code"])
    assert status == error_classes()[code].exit_status
    assert problem["detail"] in spoken.err


def test_words_that_are_nearly_right(terminal: Terminal) -> None:
    """A misspelled noun, verb or option is answered with the one that is alike."""
    for arguments in (["handof", "show"], ["handoff", "shw"], ["run", "list", "--jsn"]):
        terminal.run(*arguments)
    terminal.run()

    terminal.matches("misspelled")


HOSTILE: Final = (
    "line one\r\nroot 0000  completed\n\x1b[2J\x1b]0;owned\x07\u202edetrever\u2066\u200b\u2028\x9b1A"
    'end\u3164 " · verified'
)


def hostile_ledger() -> None:
    """Record a tree whose every text means harm."""
    with Relay.open() as relay, relay.start(HOSTILE, by=HOSTILE[:150], agent=HOSTILE[:150]) as lead:
        with lead.hand_off(HOSTILE[:150], HOSTILE, criteria=[HOSTILE]) as child:

            def work(text: str, **others: str) -> str:
                return text + str(others)

            work.__name__ = HOSTILE[:150]
            child.call(work, HOSTILE, **{HOSTILE: HOSTILE})
            child.report(HOSTILE, open_questions=[HOSTILE], none={HOSTILE: HOSTILE})
        handoff = lead.hand_off(HOSTILE[:150], HOSTILE + "2")
        handoff.accept().close(ValueError(HOSTILE))
        handoff.retry(by=HOSTILE[:150], reason=HOSTILE)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["run", "list"], id="run list"),
        pytest.param(["run", "list", "--json"], id="run list in JSON"),
        pytest.param(["handoff", "show", "last"], id="handoff show"),
        pytest.param(["handoff", "show", "last", "--json"], id="handoff show in JSON"),
        pytest.param(["handoff", "retry", "last", "--by", HOSTILE[:150]], id="handoff retry"),
        pytest.param(["handoff", "show", HOSTILE[:150]], id="choices"),
        pytest.param(["handoff", "show", HOSTILE], id="an unknown id"),
        pytest.param([HOSTILE], id="an unknown noun"),
    ],
)
def test_texts_of_others_move_and_hide_nothing(terminal: Terminal, arguments: list[str]) -> None:
    """Whatever somebody wrote, only letters that are seen reach the terminal, on stdout and on stderr."""
    hostile_ledger()
    answer = terminal.run(*arguments)

    for text in (answer.out, answer.err):
        assert "\u3164" not in text or "--json" in arguments
        assert "" == "".join(letter for letter in text if not letter.isprintable() and letter != "\n")


def test_texts_of_others_make_no_line_of_ours(terminal: Terminal) -> None:
    """A line break in a task or a report begins no line, and a quote in it ends no quotes."""
    hostile_ledger()
    lines = terminal.run("handoff", "show", "last").out.splitlines() + terminal.run("run", "list").out.splitlines()

    assert [] == [each for each in lines if each.startswith(("root", "line", "end"))]
    assert [] == [each for each in lines if 'end<U+3164> " ·' in each and "│" not in each]


def run_program(*arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | settings
    return subprocess.run([*_PROGRAM, *arguments], capture_output=True, env=environment, timeout=_PATIENCE, check=False)


def in_a_terminal(*arguments: str, answer: str = "", **settings: str) -> str:
    """Return what a command draws on a terminal of sixty columns, to a person who answers."""
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode() if answer else b"")
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"COLUMNS": "60", "TERM": "xterm-256color"} | settings
    with subprocess.Popen([*_PROGRAM, *arguments], stdout=theirs, stderr=theirs, stdin=theirs, env=environment):
        os.close(theirs)
        drawn = b""
        while select.select([ours], [], [], _PATIENCE)[0]:
            try:
                drawn += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    return drawn.decode().replace("\r\n", "\n")


@pytest.mark.usefixtures("story")
def test_a_terminal_gets_colours_and_folded_lines() -> None:
    """On a terminal tones are colours; what is too long goes on behind its lead, and NO_COLOR is heard."""
    coloured = in_a_terminal("handoff", "show", "drafter")
    plain = in_a_terminal("handoff", "show", "drafter", NO_COLOR="1")

    assert "\x1b[1;31mfailed" in coloured
    assert "\x1b[3" not in plain
    assert max(map(len, plain.splitlines())) <= 60 + len("\x1b[2m\x1b[0m") * 8


def test_folded_texts_do_not_reach_the_left_edge() -> None:
    """A text that is padded so that its end would fall on the next line stays behind its bar."""
    with Relay.open() as relay, relay.start("Look", by="user:ana") as lead:
        lead.hand_off("editor", "x" * 40 + " " * 16 + "drafter 0000 · verified")
    drawn = in_a_terminal("handoff", "show", "last", NO_COLOR="1", TERM="dumb")

    assert [] == [each for each in drawn.splitlines() if each.startswith("drafter")]
    assert "│ drafter 0000" in drawn


@pytest.mark.parametrize(("answer", "state"), [("n", "running"), ("y", "offered")])
def test_a_retry_of_running_work_is_asked_about(killed_story: Story, answer: str, state: str) -> None:
    """A person at a terminal is asked before an attempt is ended that may be alive."""
    drawn = in_a_terminal("handoff", "retry", "drafter", answer=answer)

    assert "Try it again? [y/N]" in drawn
    assert state == killed_story.drafter.state()


@pytest.mark.usefixtures("story")
def test_a_closed_pipe_is_no_fault() -> None:
    """Where the reader has gone, a command ends with 141 and says nothing."""
    ours, theirs = os.pipe()
    os.close(ours)
    ended = subprocess.run(
        [*_PROGRAM, "handoff", "show", "drafter"], stdout=theirs, stderr=subprocess.PIPE, timeout=_PATIENCE, check=False
    )
    os.close(theirs)

    assert (141, b"") == (ended.returncode, ended.stderr)


def test_an_interrupt_ends_with_130() -> None:
    """Ctrl-C ends a command that waits, with a word and without a trace."""
    process = subprocess.Popen(
        [*_PROGRAM, "serve", "--json-lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(b'{"id": 1, "act": "nothing"}\n')
    process.stdin.flush()
    assert json.decode(process.stdout.readline())["error"]["code"] == "value.invalid"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=_PATIENCE)

    assert (130, b"", b"batonpass: interrupted\n") == (process.returncode, out, err)


def test_programs_in_other_languages_are_served() -> None:
    """`serve --json-lines` makes acts over its pipes until there are no more lines."""
    start = {"id": 1, "act": "start", "request": {"intent": "Round totals", "by": "user:ana", "agent": "lead"}}
    ended = subprocess.run(
        [*_PROGRAM, "serve", "--json-lines"],
        input=json.encode(start),
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )

    run = json.decode(ended.stdout)["answer"]["run"]
    assert (0, b"") == (ended.returncode, ended.stderr)
    assert run == json.decode(run_program("run", "list", "--json").stdout)["items"][0]["id"]


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """Where the folder was deleted under it, a command says so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os; os.rmdir({str(gone)!r}); from batonpass.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", script, "run", "list"], cwd=gone, capture_output=True, timeout=_PATIENCE, check=False
    )

    assert 3 == ended.returncode
    assert b"the folder that this was started in is gone" in ended.stderr


@pytest.mark.usefixtures("story")
def test_a_command_loads_only_what_it_needs() -> None:
    """A command in a pipe draws nothing, and does not load what draws; help loads no noun."""
    script = (
        "import sys; from batonpass.cli.main import run_command; run_command(sys.argv[1:]); "
        "print([each for each in ('rich', 'asyncio', 'batonpass.cli.handoff', 'batonpass.cli.run')"
        " if each in sys.modules], file=sys.stderr)"
    )
    for arguments, expected in ((["--help"], []), (["run", "list"], ["batonpass.cli.run"])):
        ended = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, timeout=_PATIENCE, check=True
        )
        assert expected == json.decode(ended.stderr.replace(b"'", b'"'))


def test_a_fault_of_ours_is_said_and_traced_on_request(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody expected ends with 3, names itself as a fault, and shows its trace only to who asks."""
    quiet = terminal.run("run", "list", "--ledger", "a\0b")
    monkeypatch.setenv("BATONPASS_DEBUG", "1")
    loud = terminal.run("run", "list", "--ledger", "a\0b")

    assert (3, 1, True) == (quiet.status, len(quiet.err.splitlines()), quiet.err.endswith(" [internal]\n"))
    assert (3, True) == (loud.status, loud.err.startswith("Traceback"))
