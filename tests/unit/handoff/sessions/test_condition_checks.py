"""Looking at files for conditions: within the work tree, and only at files."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from batonpass.guard.constraints.conditions import CheckAnswer, SeenState
from batonpass.handoff.sessions.condition_checks import look_at_files, run_checks
from batonpass.model.base.ids import Digest

HEX = "a" * 64


def look(root: Path, path: str) -> SeenState:
    """Return what is seen at a path that a condition names."""
    return look_at_files([f"file:{path} sha256:{HEX}"], root)[path]


def test_a_file_has_a_digest(tmp_path: Path) -> None:
    """Of its bytes, however large it is."""
    (tmp_path / "a.txt").write_bytes(b"x" * 300_000)

    assert SeenState(Digest(sha256(b"x" * 300_000).hexdigest())) == look(tmp_path, "a.txt")


def test_a_path_counts_from_the_top_of_the_repository(tmp_path: Path) -> None:
    """Wherever below it somebody stands."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_bytes(b"x")

    assert look(tmp_path, "a.txt") == look(tmp_path / "src", "a.txt")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("gone.txt", "is not there", id="nothing"),
        pytest.param("a.txt/b", "is not there", id="below a file"),
        pytest.param("../other.txt", "lies outside of the work tree", id="above"),
        pytest.param("/etc/passwd", "lies outside of the work tree", id="elsewhere"),
        pytest.param("link", "lies outside of the work tree", id="a link that leads outside"),
        pytest.param("pipe", "is not a file", id="a pipe that nobody writes to"),
        pytest.param("folder", "is not a file", id="a directory"),
        pytest.param("x" * 4000, "cannot be read: File name too long", id="too long a name"),
        pytest.param("a\0b", "cannot be read: embedded null byte", id="a null character"),
    ],
)
def test_what_is_no_file_there_has_none(tmp_path: Path, path: str, why: str) -> None:
    """And nobody hangs or reads elsewhere for it: a path is somebody's words."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_bytes(b"x")
    (tmp_path / "other.txt").write_bytes(b"x")
    (root / "link").symlink_to(tmp_path / "other.txt")
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()

    assert SeenState(None, why) == look(root, path)


def test_links_in_a_circle_have_no_digest(tmp_path: Path) -> None:
    """They are named as what they are."""
    (tmp_path / "loop").symlink_to("loop")

    assert look(tmp_path, "loop").digest is None


def test_only_checks_that_are_asked_for_are_made() -> None:
    """Each once, however many conditions ask for it."""
    asked: list[str] = []

    def one() -> bool:
        asked.append("one")
        return True

    answers = run_checks(["check:one", "check:one", "check:none"], {"one": one, "other": one})

    assert ({"one": CheckAnswer(holds=True)}, ["one"]) == (answers, asked)


def test_what_a_check_raises_is_told_in_a_line() -> None:
    """However long, and whatever is in it."""

    def check() -> bool:
        raise ValueError("one\ntwo" + "x" * 1000)

    found = run_checks(["check:c"], {"c": check})["c"]

    assert (None, "ValueError: one twoxxx", 212) == (found.holds, found.why[:22], len(found.why))
