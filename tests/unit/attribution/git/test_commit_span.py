"""Which lines a commit or a diff changed, as git says it, whatever the files are called and hold."""

from pathlib import Path

import pytest

from batonpass.attribution.git.commit_span import ChangedLines, find_commits, find_uncommitted
from batonpass.attribution.git.file_git import Repository
from batonpass.errors import NotFoundError
from tests.attribution.repository import ENVIRONMENT, git

WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with two commits; the second changes, adds, removes and renames."""
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "a.py").write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    (root / "gone.py").write_text("gone\ngone too\n", encoding="utf-8")
    (root / "old name.py").write_text("".join(f"line {n}\n" for n in range(20)), encoding="utf-8")
    (root / "raw.bin").write_bytes(b"\0\1")
    commit(root, "one")
    (root / "a.py").write_text("one\n@@ -1 +1 @@\ndiff --git a b\nfour\nfive\n", encoding="utf-8")
    (root / "gone.py").unlink()
    (root / "old name.py").rename(root / "naïve\tname.py")
    (root / "raw.bin").write_bytes(b"\0\2")
    (root / "new").write_text("no end of line", encoding="utf-8")
    commit(root, "two")
    return root


def commit(root: Path, message: str) -> None:
    git(root, "add", "--all")
    git(root, *WHO, "commit", "--quiet", f"--message={message}")


def changed(root: Path, where: str) -> list[ChangedLines]:
    span = find_commits(Repository(root, ENVIRONMENT), where)
    assert span is not None
    return list(span.read())


def test_a_commit_is_told_hunk_by_hunk(root: Path) -> None:
    """What looks like a header inside of a file is a line of it; of renames and bytes it is said what differs."""
    found = changed(root, "HEAD")

    assert [
        ChangedLines(path="a.py", first=2, added=2, removed=2),
        ChangedLines(path="a.py", first=5, added=1, removed=0),
        ChangedLines(path="gone.py", first=0, added=0, removed=2),
        ChangedLines(path="new", first=1, added=1, removed=0),
    ] == [one for one in found if one.instead is None]
    assert {"naïve\tname.py": "renamed from old name.py, no line changed", "raw.bin": "no text"} == {
        one.path: one.instead for one in found if one.instead is not None
    }


def test_the_first_commit_has_no_parent_and_is_told_all_the_same(root: Path) -> None:
    """Everything in it is new."""
    assert [("a.py", 4), ("gone.py", 2), ("old name.py", 20), ("raw.bin", 0)] == [
        (one.path, one.added) for one in changed(root, "HEAD~1")
    ]


def test_two_ends_are_compared(root: Path) -> None:
    """`A..B` as it stands, `..B` and `A..` with the head, and `A...B` from where they went apart."""
    git(root, "checkout", "--quiet", "-b", "topic", "HEAD~1")
    (root / "b.py").write_text("b\n", encoding="utf-8")
    commit(root, "aside")

    assert {"b.py"} == {one.path for one in changed(root, "main...topic")}
    assert {"a.py", "b.py", "gone.py", "new"} == {
        one.path for one in changed(root, "main..topic") if one.instead is None
    }
    assert changed(root, "main..topic") == changed(root, "main..")
    assert changed(root, "topic..main") == changed(root, "..main")


def test_work_that_is_not_committed_is_told_with_files_that_git_does_not_have(root: Path) -> None:
    """Below a directory, if one is named."""
    (root / "a.py").write_text("zero\n", encoding="utf-8")
    (root / "sub").mkdir()
    (root / "sub" / "x.py").write_text("x\n", encoding="utf-8")
    repository = Repository(root, ENVIRONMENT)
    whole, below = find_uncommitted(repository, ""), find_uncommitted(repository, "sub")

    assert whole is not None
    assert below is not None
    assert [("a.py", False), ("sub/x.py", True)] == [(one.path, one.is_whole) for one in whole.read()]
    assert ["sub/x.py"] == [one.path for one in below.read()]


def test_what_is_no_commit_is_none_and_an_end_that_is_none_is_an_error(root: Path) -> None:
    """A name may look like an option, and is none."""
    repository = Repository(root, ENVIRONMENT)

    assert [None] * 4 == [find_commits(repository, name) for name in ("nothing", "--all", "-n1", "a.py")]
    with pytest.raises(NotFoundError):
        find_commits(repository, "HEAD..nothing")


def test_a_file_that_became_a_link_is_two_changes_of_one_file(root: Path) -> None:
    """Git tells it as one gone and another come: whatever follows is not mistaken for it."""
    (root / "a.py").unlink()
    (root / "a.py").symlink_to("new")
    (root / "new").write_text("other\n", encoding="utf-8")
    commit(root, "linked")

    assert {"a.py": {5, 1}, "new": {1}} == {
        path: {max(one.added, one.removed) for one in changed(root, "HEAD") if one.path == path}
        for path in ("a.py", "new")
    }
