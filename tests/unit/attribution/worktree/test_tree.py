"""A work tree before and after a call: all that changed is found, and nothing else."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.worktree import seen_file, tree_difference
from batonpass.attribution.worktree import tree as worktree
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.attribution.worktree.write_intent import UNTOLD
from tests.unit.attribution.trees import ENVIRONMENT, Tree, a_tree

AT: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a repository with a few files."""
    rules = "build/\n*.log\n"
    return a_tree(tmp_path / "tree", {".gitignore": rules, "a.py": "one\ntwo\n", "src/b.py": "b\n", "src/c.py": "c\n"})


@pytest.fixture(params=[True, False], ids=["watched", "compared"])
def looking(tree: Tree, request: pytest.FixtureRequest) -> Iterator[WorkTree]:
    """Return what looks at it, for the third time: watched, where it is."""
    looking = tree.looking(watch=request.param)
    looking.look()
    looking.look()
    yield looking
    looking.close()


def found(looking: WorkTree, act: Callable[[], object]) -> list[tuple[str, bytes | None, bytes | None]]:
    """Return path, bytes before and bytes after of what an act changed."""
    before = looking.look()
    act()
    return [(each.path, each.before, each.after) for each in looking.differences(before, looking.look())]


def test_nothing_done_is_nothing_found(looking: WorkTree) -> None:
    """A call that only reads changed nothing."""
    assert [] == found(looking, lambda: None)


def test_a_write_whose_time_was_set_back_is_found(tree: Tree, looking: WorkTree) -> None:
    """The same size and the same time do not hide other bytes: the time of the change cannot be set."""
    path = tree.root / "a.py"
    old = path.stat()

    def forge() -> None:
        path.write_bytes(b"eno\nowt\n")
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))

    assert [("a.py", b"one\ntwo\n", b"eno\nowt\n")] == found(looking, forge)


def test_two_writes_in_one_tick_are_both_found(tree: Tree, looking: WorkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes of one size that leave the same mark are told apart, because a fresh file is read again."""
    still = seen_file.FileMark(10**18, 10**18, 2, 1, 0o100644, 1)
    monkeypatch.setattr(seen_file, "_mark", lambda _: still)
    monkeypatch.setattr(seen_file, "_is_settled", lambda *_: False)
    tree.write("new.py", "1\n")
    looking.look()

    assert [("new.py", b"1\n", b"2\n")] == found(looking, lambda: tree.write("new.py", "2\n"))


def test_touching_and_changing_the_mode_is_no_difference(tree: Tree, looking: WorkTree) -> None:
    """The bytes decide."""

    def touch() -> None:
        (tree.root / "a.py").touch()
        (tree.root / "src/b.py").chmod(0o755)

    assert [] == found(looking, touch)


def test_a_commit_changes_no_file(tree: Tree, looking: WorkTree) -> None:
    """What was changed before and is committed by a call was not changed by it."""
    tree.write("a.py", "changed before\n")
    tree.write("new.py", "new before\n")

    assert [] == found(looking, tree.commit)


def test_a_checkout_changes_what_it_changes(tree: Tree, looking: WorkTree) -> None:
    """Between two branches, the bytes before come from the old commit, and those after from the new one."""
    tree.git("switch", "--quiet", "--create", "other")
    tree.write("a.py", "other\n")
    tree.write("only.py", "here\n")
    tree.commit()

    expected = [("a.py", b"other\n", b"one\ntwo\n"), ("only.py", b"here\n", None)]
    assert expected == found(looking, lambda: tree.git("switch", "--quiet", "main"))


def test_a_large_checkout_is_found_without_asking_file_by_file(
    tree: Tree, looking: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where too much changed for questions about each file, everything is compared."""
    monkeypatch.setattr(worktree, "_MOST_SUSPECTS", 3)

    def make() -> None:
        for number in range(5):
            tree.write(f"made{number}.py", "x\n")
            tree.write(f"made{number}/inner.py", f"{number}\n")

    assert 10 == len(found(looking, make))


@pytest.mark.parametrize(
    ("content", "before"),
    [
        pytest.param("a\nb\nc\n", b"a\nb\nc\n", id="as it was"),
        pytest.param("a\nb\nd\n", b"a\nb\nc\n", id="with an edit"),
    ],
)
def test_a_renaming_is_told_as_one(tree: Tree, looking: WorkTree, content: str, before: bytes) -> None:
    """A file that went and one much like it that came are one file with another name."""
    tree.write("old.py", "a\nb\nc\n")
    first = looking.look()
    (tree.root / "old.py").unlink()
    tree.write("lib/new.py", content)

    each, *others = looking.differences(first, looking.look())

    assert ("lib/new.py", "old.py", before, content.encode(), []) == (
        each.path,
        each.renamed_from,
        each.before,
        each.after,
        others,
    )


def test_files_that_have_nothing_in_common_are_not_renamed(tree: Tree, looking: WorkTree) -> None:
    """A deletion beside a creation is no renaming, nor are empty files, nor bytes that are no text."""
    for path, data in (("old.py", b"a\nb\nc\n"), ("empty", b""), ("old.bin", b"\xff\x00")):
        tree.write(path, data)
    first = looking.look()
    for path in ("old.py", "empty", "old.bin"):
        (tree.root / path).unlink()
    for path, data in (("new.py", b"x\ny\nz\n"), ("void", b""), ("new.bin", b"\xff\x01")):
        tree.write(path, data)

    assert [None] * 6 == [each.renamed_from for each in looking.differences(first, looking.look())]


def test_many_files_are_renamed_only_if_they_are_equal(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing every file that went with every file that came has its limit."""
    monkeypatch.setattr(tree_difference, "_MOST_TO_COMPARE", 0)
    looking = tree.looking()
    first = looking.look()
    (tree.root / "a.py").rename(tree.root / "moved.py")
    (tree.root / "src/b.py").unlink()
    tree.write("src/x.py", "b\nb\n")

    differences = looking.differences(first, looking.look())

    assert {"moved.py": "a.py", "src/b.py": None, "src/x.py": None} == {
        each.path: each.renamed_from for each in differences
    }


def test_what_is_ignored_is_not_looked_at(tree: Tree, looking: WorkTree) -> None:
    """Neither ignored files nor ours nor git's are what a call is asked about."""

    def make() -> None:
        for path in ("build/deep/x.o", "noise.log", ".batonpass/ledger", "src/.batonpass/x", ".git/mine"):
            tree.write(path, "x\n")

    assert [] == found(looking, make)


def test_a_tracked_file_that_a_rule_ignores_is_looked_at(tree: Tree, looking: WorkTree) -> None:
    """Who adds an ignored file by force wants it seen from then on."""
    tree.write("build/kept.o", "1\n")
    looking.look()
    tree.git("add", "--force", "build/kept.o")
    looking.look()
    looking.look()

    assert [("build/kept.o", b"1\n", b"2\n")] == found(looking, lambda: tree.write("build/kept.o", "2\n"))


def test_a_new_rule_neither_makes_nor_deletes_files(tree: Tree, looking: WorkTree) -> None:
    """A file that is ignored from now on is still there, and one that is no longer ignored was there before."""
    tree.write("notes.txt", "n\n")
    old = tree.write("old.log", "l\n")
    looking.look()
    before = looking.look()
    tree.write(".gitignore", "build/\n*.txt\n")

    after = looking.look()

    later = replace(before, at=old.stat().st_ctime_ns + 3 * seen_file.COARSE_TICK)
    assert [".gitignore"] == [each.path for each in looking.differences(later, after)]


def test_a_directory_that_is_no_longer_ignored_is_looked_at(tree: Tree) -> None:
    """Also if the rule went between the look that learned of it and the one that began to watch."""
    tree.write("build/x.o", "1\n")
    looking = tree.looking()
    looking.look()
    tree.write(".gitignore", "")
    looking.look()

    assert [("build/x.o", b"1\n", b"2\n")] == found(looking, lambda: tree.write("build/x.o", "2\n"))


def test_own_list_of_what_is_ignored_counts(tree: Tree, looking: WorkTree) -> None:
    """The list that is not committed ignores from the next look on."""
    tree.write(".git/info/exclude", "*.tmp\n")

    assert [] == found(looking, lambda: tree.write("x.tmp", "x\n"))


def test_any_name_and_any_bytes_are_recorded(tree: Tree, looking: WorkTree) -> None:
    """Names with line feeds or without a meaning in UTF-8 are found, and told so that a record can hold them."""
    names = ["line\nfeed", " blank ", "umläut", os.fsdecode(b"\xff.bin"), "-x", ":(glob)*", '"quoted"']

    def make() -> None:
        for name in names:
            tree.write(name, b"\xff\x00" + os.fsencode(name))

    before = looking.look()
    make()
    after = looking.look()

    others = {"call_c": UNTOLD, "call_b": UNTOLD}
    changes = looking.changes(before, after, call="call_a", run="run_a", at=AT, others=others)

    assert sorted(names) == [each.path for each in looking.differences(before, after)]
    assert {"\\xff.bin", *names} - {os.fsdecode(b"\xff.bin")} == {change.path for change in changes.changes}
    assert {(None, ("call_b", "call_c"))} == {(change.hunks, change.overlapping) for change in changes.changes}


def test_links_are_not_followed(tree: Tree, looking: WorkTree, tmp_path: Path) -> None:
    """What a link leads to is not read: of a link, there is where it points to."""
    secret = tmp_path / "secret"
    secret.write_text("secret\n")

    def link() -> None:
        (tree.root / "link").symlink_to(secret)
        (tree.root / "inside").symlink_to(tmp_path)

    expected = [("inside", os.fsencode(tmp_path), None), ("link", os.fsencode(secret), None)]
    assert [(path, None, data) for path, data, _ in expected] == found(looking, link)


def test_a_pipe_is_no_file(tree: Tree, looking: WorkTree) -> None:
    """What could block its reader forever is not opened."""
    assert [] == found(looking, lambda: os.mkfifo(tree.root / "pipe"))


def test_what_is_large_is_known_by_its_digest(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond one size there are digests and no lines; beyond another, there is the name."""
    for module in (seen_file, tree_difference):
        monkeypatch.setattr(module, "LARGEST_KEPT", 4)
        monkeypatch.setattr(module, "LARGEST_READ", 8)
    looking = tree.looking()
    before = looking.look()
    tree.write("a.py", "123456")
    tree.write("huge.bin", "123456789")

    changes = looking.changes(before, looking.look(), call="call_a", run="run_a", at=AT).changes

    expected = [("a.py", digest_of(b"one\ntwo\n"), digest_of(b"123456"), None), ("huge.bin", None, None, None)]
    assert expected == [(change.path, change.before, change.after, change.hunks) for change in changes]


def test_kept_bytes_are_bounded(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """When enough is kept, of further files there are only digests: before and after."""
    monkeypatch.setattr(worktree, "MOST_KEPT_BYTES", 1)
    monkeypatch.setattr(tree_difference, "_KEPT_BYTES", 3)
    looking = tree.looking()
    before = looking.look()
    for path in ("a.py", "src/b.py", "src/c.py"):
        tree.write(path, "new\n")

    differences = looking.differences(before, looking.look())

    assert [("a.py", None, b"new\n"), ("src/b.py", b"b\n", None), ("src/c.py", None, None)] == [
        (each.path, each.before, each.after) for each in differences
    ]
    assert {digest_of(b"new\n")} == {each.after_digest for each in differences}


def test_a_call_records_so_many_changes_and_says_so(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record has its limit, and does not keep silent about it."""
    monkeypatch.setattr(tree_difference, "MOST_CHANGES", 1)
    looking = tree.looking()
    before = looking.look()
    tree.write("x.py", "x\n")
    tree.write("y.py", "y\n")

    recorded = looking.changes(before, looking.look(), call="call_a", run="run_a", at=AT)

    assert (["x.py"], ("2 files changed; 1 of them are recorded",)) == (
        [change.path for change in recorded.changes],
        recorded.notes,
    )


def test_without_git_all_files_are_walked(tmp_path: Path) -> None:
    """A directory that git does not know is looked at file by file."""
    tree = Tree(tmp_path)
    tree.write("a/b.txt", "1\n")
    tree.write("z.txt", "1\n")
    tree.write("same.txt", "1\n")
    looking = WorkTree(tmp_path, environment=ENVIRONMENT)

    def change() -> None:
        tree.write("a/b.txt", "2\n")
        (tmp_path / "z.txt").unlink()
        (tmp_path / "shut").mkdir()

    assert [("a/b.txt", b"1\n", b"2\n"), ("z.txt", b"1\n", None)] == found(looking, change)


def test_a_walk_is_cut_off_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that comes first pushes the last one out of sight; that one is not deleted."""
    monkeypatch.setattr(worktree, "MOST_FILES", 2)
    tree = Tree(tmp_path)
    for path in ("b", "c/x", "d"):
        tree.write(path, "1\n")
    looking = WorkTree(tmp_path, environment=ENVIRONMENT)
    before = looking.look()
    tree.write("a", "new\n")

    recorded = looking.changes(before, looking.look(), call="call_a", run="run_a", at=AT)

    assert ["a"] == [change.path for change in recorded.changes]
    assert recorded.notes[0] == "only the first 2 files were looked at, those before d"
