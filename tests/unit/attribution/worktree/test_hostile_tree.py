"""A work tree that is hostile, broken or composed: nothing is started, nothing is locked, and nobody crashes."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.worktree import file_watcher, seen_file
from batonpass.attribution.worktree import tree as worktree
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.attribution.worktree.tree_difference import Look
from tests.unit.attribution.trees import ENVIRONMENT, Tree, a_tree

AT: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a repository with two files."""
    return a_tree(tmp_path / "tree", {"a.py": "one\n", "sub/b.py": "b\n"})


def paths(looking: WorkTree, before: Look) -> list[str]:
    """Return what changed since a look."""
    return [each.path for each in looking.differences(before, looking.look())]


def test_a_look_starts_no_program_that_the_repository_names(tree: Tree, tmp_path: Path) -> None:
    """Filters, file monitors, hooks, external diffs and drivers of text stay off, whatever their names are."""
    trap = tmp_path / "sprung"
    program = f"touch {trap}; cat"
    looking = tree.looking()
    before = looking.look()
    for key in (
        "filter.odd=name.clean",
        "filter.odd=name.smudge",
        "filter.plain.process",
        "diff.plain.textconv",
        "core.fsmonitor",
        "diff.external",
    ):
        tree.git("config", key, program)
    tree.git("config", "filter.plain.required", "true")
    hook = tree.write(".git/hooks/post-index-change", f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    tree.write(".gitattributes", "*.py filter=odd=name diff=plain\n*.md filter=plain\n")
    tree.write("a.py", "two\n")
    tree.write("read.md", "new\n")

    found = paths(looking, before)
    looking.look()

    assert ([".gitattributes", "a.py", "read.md"], False) == (found, trap.exists())


def test_a_look_takes_no_lock(tree: Tree) -> None:
    """Beside a git that is writing its index, a look is as good as ever, and leaves the index as it is."""
    looking = tree.looking()
    before = looking.look()
    tree.write(".git/index.lock", "")
    index = (tree.root / ".git/index").read_bytes()
    os.utime(tree.root / "sub/b.py")
    tree.write("a.py", "two\n")

    assert (["a.py"], index) == (paths(looking, before), (tree.root / ".git/index").read_bytes())


def test_what_a_filter_stored_is_not_taken_for_the_file(tree: Tree) -> None:
    """Of a file that git-lfs keeps elsewhere the digest before is known; of one that another filter made, nothing."""
    large, changed = b"large file", b"changed\n"
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest_of(large)}\nsize 10\n"
    tree.write("x.big", pointer)
    tree.write("x.secret", "ciphertext")
    tree.commit()
    tree.git("config", "filter.lfs.clean", "cat")
    tree.git("config", "filter.crypt.smudge", "cat")
    tree.write(".gitattributes", "*.big filter=lfs\n*.secret filter=crypt\n")
    looking = tree.looking()
    before = looking.look()
    for path in ("x.big", "x.secret"):
        tree.write(path, changed)

    changes = looking.changes(before, looking.look(), call="call_a", run="run_a", at=AT).changes

    expected = [("x.big", digest_of(large), digest_of(changed)), ("x.secret", None, digest_of(changed))]
    assert expected == [(change.path, change.before, change.after) for change in changes]


def test_line_ends_are_those_of_the_work_tree(tree: Tree) -> None:
    """What is committed with other line ends than it is checked out with is compared as checked out."""
    tree.write(".gitattributes", "*.txt text eol=crlf\n")
    tree.write("x.txt", "1\r\n2\r\n")
    tree.commit()
    looking = tree.looking()
    before = looking.look()
    tree.write("x.txt", "1\r\n3\r\n")

    (each,) = looking.differences(before, looking.look())

    assert (b"1\r\n2\r\n", b"1\r\n3\r\n") == (each.before, each.after)


def test_a_submodule_is_looked_at_as_well(tree: Tree, tmp_path: Path) -> None:
    """Files of a submodule are named from the outer root; one that is not checked out has none."""
    inner = a_tree(tmp_path / "inner", {"x.py": "x\n"})
    tree.git("submodule", "--quiet", "add", str(inner.root), "lib/inner")
    modules = (tree.root / ".gitmodules").read_text()
    outside = "".join(f'[submodule "{name}"]\n\tpath = {name}\n' for name in ("../inner", "gone", "."))
    tree.write(".gitmodules", modules + outside)
    tree.commit()
    looking = tree.looking()
    for _ in range(2):
        before = looking.look()
        tree.write("lib/inner/x.py", f"y{before.at}\n")
        tree.write("lib/inner/.batonpass/x", "ours\n")
        assert ["lib/inner/x.py"] == paths(looking, before)
    looking.close()


def test_of_many_submodules_some_are_looked_at(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is one too many is named."""
    monkeypatch.setattr(worktree, "MOST_MODULES", 0)
    inner = a_tree(tmp_path / "inner", {"x.py": "x\n"})
    tree.git("submodule", "--quiet", "add", str(inner.root), "lib")

    assert ("the submodule lib was not looked at: there are more than 0",) == tree.looking().look().notes


def test_a_work_tree_whose_git_is_elsewhere_is_looked_at(tree: Tree, tmp_path: Path) -> None:
    """In a linked work tree, .git is a file, and the index lies far away."""
    tree.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Tree(tmp_path / "linked")
    looking = linked.looking()
    looking.look()
    before = looking.look()
    linked.write("a.py", "two\n")
    linked.git("add", "a.py")

    assert ["a.py"] == paths(looking, before)


def test_a_repository_inside_is_named_and_left_alone(tree: Tree) -> None:
    """Whoever clones into a work tree did not write the files there."""
    looking = tree.looking()
    looking.look()
    before = looking.look()
    a_tree(tree.root / "clone", {"x.py": "x\n"})
    looking.look()
    after = tree.looking().look()

    assert ([], ("clone was not looked at: it is a repository of its own",)) == (paths(looking, before), after.notes)


def test_before_the_first_commit_every_file_is_new(tmp_path: Path) -> None:
    """A repository without a commit, in either format of names, is looked at like any other."""
    for name, more in (("one", ()), ("two", ("--object-format=sha256",))):
        (tmp_path / name).mkdir()
        tree = Tree(tmp_path / name)
        tree.git("init", "--quiet", *more)
        looking = tree.looking()
        first = looking.look()
        tree.write("a.py", "1\n")
        tree.commit()
        assert ["a.py"] == paths(looking, first)


@pytest.mark.parametrize("index", [b"not an index", None], ids=["broken", "a directory"])
def test_what_git_cannot_read_is_said(tree: Tree, index: bytes | None) -> None:
    """A look that failed names the reason, finds nothing, and the next one may succeed."""
    looking = tree.looking()
    before = looking.look()
    place = tree.root / ".git/index"
    good = place.read_bytes()
    place.unlink()
    if index is None:
        place.mkdir()
    else:
        place.write_bytes(index)

    failed = looking.look()
    recorded = looking.changes(before, failed, call="call_a", run="run_a", at=AT)
    if index is None:
        place.rmdir()
    place.write_bytes(good)

    assert ((), True, None) == (
        recorded.changes,
        recorded.notes[0].startswith("tree could not be"),
        looking.look().blind,
    )


def test_a_git_that_falls_silent_later_is_said(tree: Tree) -> None:
    """If the bytes before cannot be had, that is told instead of a guess."""
    looking = tree.looking()
    before = looking.look()
    tree.write("a.py", "two\n")
    after = looking.look()
    (tree.root / ".git").rename(tree.root / "gone")

    recorded = looking.changes(before, after, call="call_a", run="run_a", at=AT)

    assert ((), 1) == (recorded.changes, len(recorded.notes))


def test_what_becomes_a_repository_meanwhile_is_not_compared(tmp_path: Path) -> None:
    """Files that were walked and files that git listed are not the same set."""
    tree = Tree(tmp_path)
    tree.write("a.py", "1\n")
    looking = tree.looking()
    before = looking.look()
    tree.git("init", "--quiet")

    recorded = looking.changes(before, looking.look(), call="call_a", run="run_a", at=AT)

    assert ((), ["the changes are unknown: a repository was created or removed here meanwhile"]) == (
        recorded.changes,
        list(recorded.notes),
    )


def test_a_tree_of_uncommitted_files_is_too_much(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """More files than can be kept in mind are not looked at, which is said."""
    monkeypatch.setattr(worktree, "MOST_CHANGED", 1)
    looking = tree.looking()
    looking.look()
    looking.look()
    for name in ("x", "y", "z"):
        tree.write(name, "1\n")

    assert "tree could not be read: more than 1 files differ from the commit" == looking.look().blind


def test_a_file_with_two_names_changes_under_both(tree: Tree) -> None:
    """A write is noted under the name that was used; the other one is found as well."""
    (tree.root / "c.py").hardlink_to(tree.root / "a.py")
    looking = tree.looking()
    looking.look()
    before = looking.look()
    tree.write("a.py", "two\n")

    assert ["a.py", "c.py"] == paths(looking, before)


def test_what_may_not_be_read_is_known_by_name(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be opened is neither deleted nor a reason to stop."""

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError

    looking = tree.looking()
    before = looking.look()
    tree.write("a.py", "two\n")
    monkeypatch.setattr(os, "open", refuse)

    (each,) = looking.differences(before, looking.look())

    assert ("a.py", None, True) == (each.path, each.after_digest, each.too_large)


def test_a_file_that_turns_into_something_else_is_not_read(tree: Tree) -> None:
    """Between the look and the opening a file may become a pipe: it is opened without waiting, and left."""
    os.mkfifo(tree.root / "pipe")
    mark = seen_file.find_mark(tree.root / "a.py")
    assert mark is not None

    with pytest.raises(OSError, match="pipe"):
        seen_file._read(tree.root / "pipe", mark, keep=True, settled=True)


def test_a_file_that_grows_while_it_is_read_has_its_limits(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the size promised does not hold: beyond a limit nothing is kept, and beyond another nothing is known."""
    monkeypatch.setattr(seen_file, "LARGEST_KEPT", 6)
    monkeypatch.setattr(seen_file, "LARGEST_READ", 9)
    mark = seen_file.find_mark(tree.root / "a.py")
    assert mark is not None
    grown, huge = tree.write("a.py", "1234567"), tree.write("b.py", "1234567890")

    read = [seen_file._read(path, mark, keep=True, settled=True) for path in (grown, huge)]

    assert [(digest_of(b"1234567"), None), (None, None)] == [(each.digest, each.data) for each in read]


def test_a_directory_nobody_may_list_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without git, what cannot be listed is as good as empty."""

    def refuse(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)

    assert {} == WorkTree(tmp_path, environment=ENVIRONMENT).look().listed


def test_a_settled_mark_is_older_than_a_tick() -> None:
    """Where times have no fraction, a tick is as long as on the coarsest file system."""
    fine = seen_file.FileMark(10**18 + 1, 10**18 + 1, 1, 1, 1, 1)
    coarse = seen_file.FileMark(10**18, 10**18, 1, 1, 1, 1)

    assert [True, False, True] == [
        seen_file._is_settled(mark, 10**18 + after)
        for mark, after in ((fine, 10**8), (coarse, 10**8), (coarse, 3 * 10**9))
    ]


def test_unchanged_files_are_read_once(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with the mark that it had is not opened again."""
    tree.write("new.py", "1\n")
    monkeypatch.setattr(seen_file, "_is_settled", lambda *_: True)
    looking = tree.looking(watch=False)
    first = looking.look().listed["new.py"]

    assert first is looking.look().listed["new.py"]


def test_watching_is_given_up_quietly(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where directories cannot be watched, whole trees are compared, with the same result."""
    monkeypatch.setattr(file_watcher, "MOST_DIRECTORIES", 1)
    looking = tree.looking()
    looking.look()
    before = looking.look()
    tree.write("a.py", "two\n")

    assert (["a.py"], None) == (paths(looking, before), looking._watcher)


def test_watching_is_given_up_when_directories_become_too_many(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that cannot be watched any more is compared with all the others."""
    looking = tree.looking()
    looking.look()
    before = looking.look()
    monkeypatch.setattr(file_watcher, "MOST_DIRECTORIES", 2)
    tree.write("more/c.py", "c\n")

    assert (["more/c.py"], None) == (paths(looking, before), looking._watcher)
