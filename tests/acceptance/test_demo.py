"""The demonstration: what it tells is what happens."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from batonpass.demo import story
from batonpass.demo.story import play
from batonpass.errors import VerificationError
from tests.integration.cli.shell import PROGRAM, batonpass_in, on_terminal, surroundings


def test_the_demonstration_tells_what_it_finds(tmp_path: Path) -> None:
    """It records, verifies, seals, changes a byte, deletes a tree, names each finding exactly, and leaves nothing."""
    done = batonpass_in(tmp_path, "demo", environment={"TMPDIR": str(tmp_path)})
    titles = re.findall(r"^\d  (\w+)", done.stdout, re.MULTILINE)

    assert (0, "", ["Record", "Verify", "Seal", "Change", "Delete"]) == (done.returncode, done.stderr, titles)
    assert re.search(r"stream run_\w{26}, seq 2, field content\.task  \[verify\.content\]", done.stdout)
    assert "whole, 15 receipts" in done.stdout
    assert "[verify.seal]" in done.stdout
    assert "\x1b" not in done.stdout
    assert [] == [*tmp_path.iterdir()]


def test_what_was_kept_can_be_looked_at(tmp_path: Path) -> None:
    """`--keep` leaves three ledgers and a seal, on which every command tells the same story."""
    kept = tmp_path / "kept"
    batonpass_in(tmp_path, "demo", "--keep", str(kept))
    finding = batonpass_in(kept / "flipped", "ledger", "verify", "--json")

    assert [0, 1, 0, 1] == [
        batonpass_in(kept, "ledger", "verify", "--seal", "seal.txt").returncode,
        finding.returncode,
        batonpass_in(kept / "shortened", "ledger", "verify").returncode,
        batonpass_in(kept / "shortened", "ledger", "verify", "--seal", "../seal.txt").returncode,
    ]
    assert ("content.task", 2) == tuple(json.loads(finding.stdout)["error"][name] for name in ("field", "seq"))


def test_the_flipped_ledger_differs_in_one_byte(tmp_path: Path) -> None:
    """One byte is one byte."""
    list(play(tmp_path))
    before, after = ((tmp_path / place / ".batonpass" / "ledger.db").read_bytes() for place in ("", "flipped"))

    assert (len(before), 1) == (len(after), sum(one != other for one, other in zip(before, after, strict=True)))


def test_a_directory_that_is_in_use_is_refused(tmp_path: Path) -> None:
    """The demonstration never writes among somebody's files."""
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    done = batonpass_in(tmp_path, "demo", "--keep", ".")

    assert (2, ["mine"]) == (done.returncode, [path.name for path in tmp_path.iterdir()])


def test_a_terminal_gets_colours(tmp_path: Path) -> None:
    """On a terminal, what is good is green and what is found is red."""
    code, shown = on_terminal(tmp_path, ["demo"])

    assert (0, True, True) == (code, "\x1b[32mwhole" in shown, "\x1b[31mfound" in shown)


def test_what_is_not_found_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If tampering were not noticed, the demonstration would say so and fail."""
    monkeypatch.setattr(story, "change_byte", lambda *_: 0)

    with pytest.raises(VerificationError, match="was not found"):
        list(play(tmp_path))


def test_it_needs_no_network(tmp_path: Path) -> None:
    """It runs where there is no network at all."""
    try:
        subprocess.run(["unshare", "--net", "true"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("cannot take the network away here")
    done = subprocess.run(
        ["unshare", "--net", *PROGRAM, "demo"],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        check=False,
    )

    assert 0 == done.returncode
