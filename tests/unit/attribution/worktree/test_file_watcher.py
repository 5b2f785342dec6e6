"""Being told which files are written: what is noted, and when nothing can be relied on."""

import os
import struct
import sys
from pathlib import Path

import pytest

from batonpass.attribution.worktree import file_watcher
from batonpass.attribution.worktree.file_watcher import Noted, UnwatchableError, Watcher


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    """Return a watcher of a directory with one inside, and one that is ignored."""
    for name in ("inner", "ignored", "ours", ".git"):
        (tmp_path / name).mkdir()
    watcher = Watcher(tmp_path)
    watcher.watch("", without={"ours"}, ignored={"ignored"})
    return watcher


def watched(watcher: Watcher) -> list[str]:
    """Return the directories that are watched."""
    return sorted(watcher._directories.values())


def test_writes_and_deletions_are_noted(watcher: Watcher, tmp_path: Path) -> None:
    """Files by their paths, new directories apart, and each time only what is new."""
    (tmp_path / "a").write_text("1")
    (tmp_path / "inner/b").write_text("1")
    (tmp_path / "inner/b").unlink()
    (tmp_path / "ignored/c").write_text("1")
    (tmp_path / "new").mkdir()

    assert [Noted({"a", "inner/b"}, {"new"}), Noted()] == [watcher.drain(), watcher.drain()]
    for _ in range(2):
        watcher.watch("new", without=(), ignored=())
        assert ["", "inner", "new"] == watched(watcher)


def test_a_directory_that_went_is_watched_no_more(watcher: Watcher, tmp_path: Path) -> None:
    """Its end is no loss: each file in it was noted."""
    (tmp_path / "inner").rmdir()
    noted = watcher.drain()
    watcher.watch("inner", without=(), ignored=())

    assert (Noted(), [""]) == (noted, watched(watcher))


def test_a_directory_that_moved_needs_a_comparison(watcher: Watcher, tmp_path: Path) -> None:
    """Nothing is noted for the files in it, which have other names now."""
    (tmp_path / "inner").rename(tmp_path / "outer")

    assert watcher.drain().lost


@pytest.mark.parametrize("what", [0x4000, 0x2000, 0x400], ids=["too much", "unmounted", "the root went"])
def test_what_the_kernel_could_not_note_is_a_loss(watcher: Watcher, what: int) -> None:
    """A queue that ran over, a file system that went: only a comparison tells."""
    noted = Noted()

    watcher._note(struct.pack("iIII", -1, what, 0, 0), noted)

    assert noted.lost


def test_a_note_about_an_unknown_directory_is_passed_over(watcher: Watcher) -> None:
    """A directory that is no longer watched may still have notes in the queue."""
    noted = Noted()

    watcher._note(struct.pack("iIII4s", 999, 0x2, 0, 4, b"x"), noted)

    assert Noted() == noted


def test_after_a_fork_nothing_noted_is_relied_on(watcher: Watcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes share one queue, and each would miss what the other read."""
    monkeypatch.setattr(os, "getpid", lambda: -1)

    assert watcher.drain().lost


def test_a_closed_watcher_has_lost_everything(watcher: Watcher) -> None:
    """Closing twice is closing once."""
    watcher.close()
    watcher.close()

    assert watcher.drain().lost


def test_a_directory_nobody_may_watch_is_said(watcher: Watcher) -> None:
    """A failure of the kernel has its words."""
    watcher.close()

    with pytest.raises(UnwatchableError, match="Bad file descriptor"):
        watcher.watch("", without=(), ignored=())


def test_a_repository_inside_is_watched_no_deeper(tmp_path: Path) -> None:
    """The files of another repository are its own."""
    (tmp_path / "clone/.git").mkdir(parents=True)
    (tmp_path / "clone/src").mkdir()
    watcher = Watcher(tmp_path)
    watcher.watch("", without=(), ignored=())

    assert ["", "clone"] == watched(watcher)


def test_a_directory_nobody_may_list_is_watched_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in it stays unknown, and nothing fails."""

    def refuse(_: object) -> None:
        raise PermissionError

    (tmp_path / "inner").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    watcher = Watcher(tmp_path)
    watcher.watch("", without=(), ignored=())

    assert [""] == watched(watcher)


@pytest.mark.parametrize(
    ("mounts", "reason"),
    [
        pytest.param("1 0 0:1 / / rw - nfs4 host:/x rw\n", "/ is a file system of type nfs4", id="far away"),
        pytest.param(
            "1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / {root}/in\\040side rw shared:1 - fuse.sshfs x rw\n",
            "{root}/in side is a file system of type fuse.sshfs",
            id="far away below",
        ),
        pytest.param(
            "1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / / rw - 9p x rw\n", "/ is a file system of type 9p", id="hidden"
        ),
        pytest.param("nonsense", "the mounted file systems cannot be read", id="unreadable"),
    ],
)
def test_only_local_file_systems_are_watched(
    mounts: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another machine writes is not noted here."""
    root = tmp_path / "root"
    (tmp_path / "mounts").write_text(mounts.format(root=root))
    monkeypatch.setattr(file_watcher, "_MOUNTS", tmp_path / "mounts")

    with pytest.raises(UnwatchableError) as caught:
        Watcher(root)

    assert reason.format(root=root) == str(caught.value)


def test_only_linux_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere, whole trees are compared."""
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(UnwatchableError):
        Watcher(tmp_path)


def test_a_kernel_that_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may have only so many queues."""
    monkeypatch.setattr(os, "O_NONBLOCK", 1)  # not a flag that the kernel takes

    with pytest.raises(UnwatchableError, match=os.strerror(22)):
        Watcher(tmp_path)
