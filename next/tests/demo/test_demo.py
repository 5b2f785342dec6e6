"""The demonstration, as a user plays it: in a process of its own, with the lines that it prints tried."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("batonpass")


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", **more}


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = _environment(**environment)
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, env=env)


@pytest.mark.slow
@pytest.mark.parity("demo-quarterly-analysis")
def test_only_what_was_killed_runs_again(tmp_path: Path) -> None:
    """A and B are not asked again, C keeps its finished call, nothing is done twice, and the summary is whole."""
    played = _run("demo", "--keep", str(tmp_path / "kept"))

    assert (0, "") == (played.returncode, played.stderr)
    for promised in (
        "got SIGKILL; the record knows how far it was:\n     finished: order_chart",
        "in doubt: write_summary summary.md",
        "running -> offered, attempt 2 by drafter\n   kept 1 call",
        "the summary equals that of an undisturbed run, byte for byte",
        "may write:summary.md (granted by lead)",
        '"Draft the summary for Ana" ← lead ← ana: "What stood out in the third quarter?"',
        "its content 'task' is not what it committed to [verify.content]",
    ):
        assert promised in played.stdout
    tree = played.stdout.partition("5  Who did what, and for whom")[2].partition("\n6  ")[0]
    agents = re.findall(r"─ (\w+) \w{4}  (\w+)", tree)
    worked = [("compiler", "completed"), ("analyst", "completed"), ("drafter", "fenced"), ("drafter", "completed")]
    assert [("lead", "completed"), *worked] == agents
    assert [
        "pulled the sales of 2026-Q3",
        "compared the regions",
        "ordered a chart",
        "sent the summary to ana",
    ] == (tmp_path / "kept/outside.txt").read_text(encoding="utf-8").splitlines()
    assert (tmp_path / "kept/summary.md").read_text(encoding="utf-8") == (
        "# Third quarter\n\n"
        "- South changed by -18 % (medium)\n"
        "- East changed by +20 % (medium)\n\n"
        "Flagged is what changed by more than 10 %; left out: Islands.\n"
        "See chart of South, East.\n"
    )


@pytest.mark.slow
def test_the_printed_lines_work(tmp_path: Path) -> None:
    """Each line that the demonstration ends with does in a shell what it is there for."""
    other = str(tmp_path / "another.db")
    played = _run("demo", "--keep", str(tmp_path / "a folder's name"), BATONPASS_LEDGER=other)
    lines = [line.strip() for line in played.stdout.partition("Look around:\n")[2].splitlines()]
    go, commands = lines[:2], lines[2:]

    def look(command: str) -> subprocess.CompletedProcess[str]:
        script = "; ".join([*go, command])
        env = _environment(BATONPASS_LEDGER=other)
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, env=env)

    assert ["unset BATONPASS_LEDGER"] == go[1:]
    runs, handoff, blame, whole, flipped = map(look, commands)
    assert [0, 0, 0, 0, 1] == [each.returncode for each in (runs, handoff, blame, whole, flipped)]
    assert {"lead", "compiler", "analyst", "drafter"} < set(runs.stdout.split())
    assert "write_summary summary.md  no outcome: made again" in handoff.stdout
    assert blame.stdout.startswith("drafter ")
    assert whole.stdout.startswith("whole: ")
    assert "[verify.content]" in flipped.stderr
    assert not Path(other).exists()


@pytest.mark.slow
@pytest.mark.parametrize("program", [[PROGRAM], [sys.executable, "-m", "batonpass"]], ids=["command", "module"])
def test_nothing_is_left_of_what_is_not_kept(tmp_path: Path, program: list[str | Path]) -> None:
    """Without --keep no folder and no record stays, and the last line keeps them, whatever is there already."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = _environment(TMPDIR=str(temporary))
    played = subprocess.run([*program, "demo"], capture_output=True, text=True, check=False, env=environment)

    assert (0, "") == (played.returncode, played.stderr)
    assert ([], False) == (list(temporary.iterdir()), Path(os.environ["BATONPASS_STATE_DIR"]).exists())
    command = played.stdout.splitlines()[-1].partition(": ")[2]
    again = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=_environment())
    assert (0, "") == (again.returncode, again.stderr)
    assert ["batonpass-demo-1"] == [each.name for each in temporary.iterdir()]


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        pytest.param("full", "is there already: give a folder that is new, or empty", id="a folder with files"),
        pytest.param("full/file", "is there already: give a folder that is new, or empty", id="a file"),
        pytest.param("repository/below", "whose record is one: keep the demonstration elsewhere", id="in a repository"),
    ],
)
def test_a_folder_of_others_is_refused(tmp_path: Path, folder: str, words: str) -> None:
    """The demonstration touches neither the files nor the record of others."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("mine", encoding="utf-8")
    (tmp_path / "repository/.git").mkdir(parents=True)

    refused = _run("demo", "--keep", str(tmp_path / folder))

    assert (2, "") == (refused.returncode, refused.stdout)
    assert words in refused.stderr
    assert not (tmp_path / "repository/below").exists()
