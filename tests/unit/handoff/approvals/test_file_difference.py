"""A held write of a whole file: what goes and what comes stands on the sheet, and an approval is for that file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from batonpass.errors import CallSuspendedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.bodies.body import Gate
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from tests.unit.handoff.places import bodies

ANA = "user:ana"
HELD = Policy(enforce=True, rules=(Rule(name="ask", on=Subject.CALL, gate=Gate.APPROVE, tool="write_file"),))


@tool(reversible=True, target="path")
def write_file(path: str, text: str) -> None:
    """Write a whole file."""
    Path(path).write_text(text)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a work tree in which the calls run."""
    tree = tmp_path / "tree"
    tree.mkdir()
    monkeypatch.chdir(tree)
    return tree


def a_run() -> tuple[Relay, LiveRun]:
    """Return a relay that holds writes, and an open root."""
    relay = Relay(MemoryStore(), policy=HELD)
    return relay, relay.start("Fix it", by=ANA)


def hold(run: LiveRun, path: str, text: str) -> str:
    """Return the call that waits."""
    with pytest.raises(CallSuspendedError) as held:
        run.call(write_file, path, text)
    return held.value.call


def difference(relay: Relay, call: str) -> list[str]:
    """Return the lines of the difference, as the sheet has them."""
    lines = relay.held_call(call).material().text.split("\n")
    first = next((at for at, line in enumerate(lines) if line.startswith("  diff")), len(lines))
    found = [lines[first][12:]] if first < len(lines) else []
    for line in lines[first + 1 :]:
        if line[2:12].strip():
            break
        found.append(line[12:])
    return found


def test_a_write_of_a_whole_file_is_shown_as_a_difference(work: Path) -> None:
    """What is on disk against what would be written: what goes, what comes, and how much stays between."""
    before = [f"line {number}" for number in range(20)]
    (work / "a.py").write_text("\n".join(before) + "\n")
    relay, run = a_run()

    assert [
        "@ a.py: 1 line goes, 2 lines come",
        "@ 7 lines stay as they are",
        "  line 7",
        "  line 8",
        "  line 9",
        "- line 10",
        "+ ten",
        "+ and a half",
        "  line 11",
        "  line 12",
        "  line 13",
        "@ 7 lines stay as they are",
    ] == difference(relay, hold(run, "a.py", "\n".join([*before[:10], "ten", "and a half", *before[11:]]) + "\n"))


def a_pipe(path: Path) -> None:
    """Make something that nobody should open."""
    os.mkfifo(path)


def a_link_outside(path: Path) -> None:
    """Make a link to a file that is none of ours."""
    secret = path.parent.parent / "secret"
    secret.write_text("password of the machine\n")
    path.symlink_to(secret)


@pytest.mark.parametrize(
    ("make", "first"),
    [
        pytest.param(lambda _: None, "@ it: a new file", id="no file"),
        pytest.param(lambda path: path.write_bytes(b"\xff\x00\xfe"), "not text; all of it goes, 3 bytes", id="binary"),
        pytest.param(lambda path: path.write_bytes(b"x" * 3_000_000), "could not be read", id="huge"),
        pytest.param(a_pipe, "could not be read", id="a pipe"),
        pytest.param(Path.mkdir, "could not be read", id="a directory"),
        pytest.param(a_link_outside, "outside of the work tree", id="a link that leads outside"),
    ],
)
def test_what_cannot_be_compared_is_said_and_all_that_comes_is_shown(
    work: Path, make: Callable[[Path], object], first: str
) -> None:
    """Nothing of a file outside of the work tree is read, nor of what is no text."""
    make(work / "it")
    relay, run = a_run()
    lines = difference(relay, hold(run, "it", "one\ntwo\n"))

    assert first in lines[0]
    assert ["+ one", "+ two", "+ "] == lines[1:]


def test_a_file_outside_is_not_read(work: Path) -> None:
    """Neither by its path nor by `..`; and not a word of it gets into the ledger."""
    (work.parent / "other").write_text("password of the machine\n")
    relay, run = a_run()
    sheets = [relay.held_call(hold(run, path, "x")).material().text for path in ("../other", f"{work.parent}/other")]

    assert [(True, False)] * 2 == [("outside of the work tree" in one, "password" in one) for one in sheets]


def test_a_file_in_somebody_s_home_is_no_new_file(work: Path) -> None:
    """Tools put the home in the place of `~`; a name that only begins so is a name as any other."""
    (work / "~$a.docx").write_text("old\n")
    relay, run = a_run()
    outside = "it is outside of the work tree, so what is there was not read; all of it goes"
    lines = [difference(relay, hold(run, path, "x"))[0] for path in ("~/.profile", "~\0a/b", "~$a.docx")]

    assert [
        f"@ ~/.profile: {outside}",
        f"@ ~\\x00a/b: {outside}",
        "@ ~$a.docx: 2 lines go, 1 line comes",
    ] == lines


def test_a_call_is_held_even_if_the_working_directory_is_gone(work: Path) -> None:
    """Then nobody knows which file is meant, and that stands on the sheet."""
    (work / "gone").mkdir()
    relay, run = a_run()
    os.chdir(work / "gone")
    (work / "gone").rmdir()
    call = hold(run, "a.py", "one")
    os.chdir(work)

    first, *lines = difference(relay, call)
    assert first.startswith("@ a.py: what is there could not be read")
    assert ["+ one"] == lines


def test_an_approval_is_for_the_file_that_was_shown(work: Path) -> None:
    """If somebody changes the file after the sheet was made, the approved call is held anew with the new difference."""
    (work / "a.py").write_text("old\n")
    relay, run = a_run()
    first = hold(run, "a.py", "new\n")
    shown = relay.held_call(first).material()
    (work / "a.py").write_text("somebody's work\n")
    relay.held_call(first).approve(by=ANA, shown=shown)
    second = hold(run, "a.py", "new\n")

    assert ["@ a.py: 1 line goes, 1 line comes", "- somebody's work", "+ new", "  "] == difference(relay, second)
    assert "the file is not what it was when it was approved" in relay.held_call(second).material().text
    assert "somebody's work\n" == (work / "a.py").read_text()
    relay.held_call(second).approve(by=ANA)
    run.call(write_file, "a.py", "new\n")
    assert "new\n" == (work / "a.py").read_text()
    relay.verify()


def test_a_file_that_appears_after_the_hold_is_not_overwritten(work: Path) -> None:
    """The sheet said that it is a new file."""
    relay, run = a_run()
    call = hold(run, "a.py", "new\n")
    relay.held_call(call).approve(by=ANA)
    (work / "a.py").write_text("somebody's work\n")

    assert call != hold(run, "a.py", "new\n")


def test_a_file_that_is_as_it_would_be_needs_no_second_approval(work: Path) -> None:
    """The write would change nothing: an idempotent repetition, or somebody who did it by hand."""
    (work / "a.py").write_text("old\n")
    relay, run = a_run()
    relay.held_call(hold(run, "a.py", "new\n")).approve(by=ANA)
    (work / "a.py").write_text("new\n")
    run.call(write_file, "a.py", "new\n")

    assert 1 == len(bodies(relay, "tool.completed"))


def test_the_sheet_stays_the_same_while_the_file_changes(work: Path) -> None:
    """It is made from receipts alone, so what was shown can be shown again, and has the same digest."""
    (work / "a.py").write_text("old\n")
    relay, run = a_run()
    call = hold(run, "a.py", "new\n")
    before = relay.held_call(call).material()
    (work / "a.py").unlink()

    assert before == relay.held_call(call).material()


def test_hostile_names_and_lines_are_inert_and_imitate_nothing(work: Path) -> None:
    """Our own words have a sign that no line of a file can begin with; controls are visible, and names are one line."""
    name = "a\n+ nothing else.py"
    (work / name).write_text("@ 9 lines stay as they are\n\x1b[2Jgone\u202e\n")
    relay, run = a_run()
    lines = difference(relay, hold(run, name, "@ a.py: a new file\n\ud800\n"))

    assert [
        "@ a\\n+ nothing else.py: 2 lines go, 2 lines come",
        "- @ 9 lines stay as they are",
        "- \\x1b[2Jgone\\u202e",
        "+ @ a.py: a new file",
        "+ \\ud800",
        "  ",
    ] == lines


def test_a_secret_that_changes_is_not_shown_but_said(work: Path) -> None:
    """The ledger keeps no secrets; that the difference is not whole stands there."""
    (work / "env").write_text("one\nAKIAIOSFODNN7EXAMPLE\ntwo\n")
    relay, run = a_run()
    text = relay.held_call(hold(run, "env", "one\nAKIAIOSFODNN7EXAMPLF\n2\n")).material().text

    assert (False, True) == ("AKIAIOSF" in text, "not every difference is" in text)


def test_a_large_file_is_uncut_and_quick(work: Path) -> None:
    """Ten thousand equal lines that all go, and ten thousand others that come."""
    (work / "a.txt").write_text("same\n" * 10_000)
    relay, run = a_run()
    lines = difference(relay, hold(run, "a.txt", "other\n" * 10_000))

    assert (10_000, 10_000) == (lines.count("- same"), lines.count("+ other"))
