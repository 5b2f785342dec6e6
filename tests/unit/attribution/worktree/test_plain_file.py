"""Files where agents write too: only plain ones are opened, and nothing else keeps anybody waiting or stays open."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from batonpass.attribution.worktree.plain_file import NotPlainFileError, open_plain


def next_descriptor() -> int:
    """Return the lowest number that no open file has."""
    with Path(os.devnull).open("rb") as file:
        return file.fileno()


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    """By its path, through a link, or by its name in an open directory."""
    (tmp_path / "a.txt").write_bytes(b"words")
    (tmp_path / "link").symlink_to("a.txt")
    within = os.open(tmp_path, os.O_RDONLY)
    try:
        opened = [open_plain(tmp_path / "a.txt"), open_plain(tmp_path / "link"), open_plain("a.txt", within=within)]
    finally:
        os.close(within)
    read = []
    for file in opened:
        with file:
            read.append(file.read())

    assert [b"words"] * 3 == read


@pytest.mark.parametrize("make", [pytest.param(os.mkdir, id="a directory"), pytest.param(os.mkfifo, id="a pipe")])
def test_anything_else_is_refused_and_closed(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """An agent decides how often it is looked at: a process would run out of open files."""
    make(tmp_path / "a.txt")
    before = next_descriptor()
    for _ in range(3):
        with pytest.raises(NotPlainFileError):
            open_plain(tmp_path / "a.txt")

    assert before == next_descriptor()


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    """In the files of a repository it may lead anywhere."""
    (tmp_path / "a.txt").write_bytes(b"words")
    (tmp_path / "link").symlink_to("a.txt")

    with pytest.raises(OSError, match="symbolic links"):
        open_plain(tmp_path / "link", follows=False)
