"""What was checked out when, from git's own log."""

from datetime import UTC, datetime
from pathlib import Path

from batonpass.attribution.git.head_log import Move, read_moves

A, B, C = "a" * 40, "b" * 40, "c" * 40


def a_log(root: Path, *lines: str) -> None:
    (root / ".git" / "logs").mkdir(parents=True)
    (root / ".git" / "logs" / "HEAD").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_moves_are_read_in_order(tmp_path: Path) -> None:
    """A commit makes something new, and a checkout goes back; a line that says nothing moved is left out."""
    a_log(
        tmp_path,
        f"{A} {B} Ada <a@x> 100 +0000\tcommit: one > two",
        f"{B} {B} Ada <a@x> 150 +0000\tcheckout: moving from main to topic",
        f"{B} {C} Ada <a@x> 200 +0200\tcheckout: moving from topic to old",
    )
    at = [datetime.fromtimestamp(seconds, UTC) for seconds in (100, 200)]

    assert [Move(at[0], B, is_back=False), Move(at[1], C, is_back=True)] == read_moves(tmp_path, since=None)
    assert [C] == [move.commit for move in read_moves(tmp_path, since=at[1])]


def test_lines_that_are_none_are_passed_over(tmp_path: Path) -> None:
    """Whoever runs there may have written anything into it."""
    a_log(tmp_path, "", "x", f"{A} {B} > 99999999999999999999 +0000\tcommit", f"{A} {B} Ada <a@x> 1 +0000\tcommit")

    assert [B] == [move.commit for move in read_moves(tmp_path, since=None)]


def test_without_a_log_nothing_is_known(tmp_path: Path) -> None:
    """A folder without git, and a repository that keeps no log."""
    assert [] == read_moves(tmp_path, since=None)
    (tmp_path / ".git").mkdir()
    assert [] == read_moves(tmp_path, since=None)
