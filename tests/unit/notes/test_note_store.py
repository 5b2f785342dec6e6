"""Notes as sets of lines in git's objects: added, merged and replaced, whoever else writes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from batonpass.attribution.git.git_process import GitSilentError
from batonpass.notes.note_exchange import NoteExchange
from batonpass.notes.note_store import NoteKind, NoteRepository
from tests.attribution.repository import ENVIRONMENT, git

NOW = datetime(2026, 2, 1, tzinfo=UTC)
LINES = NoteKind.LINES
ONE, TWO = "1" * 40, "2" * 40


@pytest.fixture
def repository(tmp_path: Path) -> NoteRepository:
    """Return an empty repository."""
    root = tmp_path / "here"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    return NoteRepository(root, ENVIRONMENT)


def read(repository: NoteRepository, *keys: str) -> dict[str, tuple[str, ...]]:
    return dict(repository.read_notes(LINES, keys).lines)


def test_lines_are_added_once_and_in_order(repository: NoteRepository) -> None:
    """Adding what is there writes nothing."""
    assert repository.add_notes(LINES, {ONE: ["b", "a"], TWO: ["c"]}, at=NOW)
    assert not repository.add_notes(LINES, {ONE: ["a"]}, at=NOW)
    assert repository.add_notes(LINES, {ONE: ["0"]}, at=NOW)

    assert {ONE: ("0", "a", "b"), TWO: ("c",)} == read(repository, ONE, TWO, "3" * 40)


def test_notes_that_git_itself_moved_are_found(repository: NoteRepository) -> None:
    """Git spreads notes over directories as it likes; adding puts a note together at one place."""
    repository.add_notes(LINES, {ONE: ["a"]}, at=NOW)
    blob = git(repository.root, "hash-object", "-w", "--stdin", given=b"b\n").strip()
    tree = git(repository.root, "mktree", given=f"100644 blob {blob}\t{ONE}\n".encode()).strip()
    made = git(
        repository.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-m", "x", "-p", LINES.ref, tree
    ).strip()
    git(repository.root, "update-ref", LINES.ref, made)

    assert {ONE: ("b",)} == read(repository, ONE)
    repository.add_notes(LINES, {ONE: ["c"]}, at=NOW)
    assert ({ONE: ("b", "c")}, 1) == (
        read(repository, ONE),
        len(git(repository.root, "ls-tree", "-r", "--name-only", LINES.ref).split()),
    )


def test_many_who_write_at_the_same_time_lose_nothing(repository: NoteRepository) -> None:
    """Two commits in two work trees may be noted at the same moment."""
    keys = [f"{number}" * 40 for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda key: repository.add_notes(LINES, {key: [key], ONE: [f"x{key[0]}"]}, at=NOW), keys))

    assert set(keys) <= set(read(repository, *keys))
    assert {"x0", "x1", "x2", "x3"} <= set(read(repository, ONE)[ONE])


def test_two_histories_are_joined(repository: NoteRepository) -> None:
    """A merge has all lines of both sides, twice is once, and nothing of ours is ever taken away."""
    repository.add_notes(LINES, {ONE: ["base"]}, at=NOW)
    base = repository.note_refs(LINES)[LINES.ref]
    repository.add_notes(LINES, {ONE: ["theirs"], TWO: ["theirs"]}, at=NOW)
    theirs = repository.note_refs(LINES)[LINES.ref]
    repository.point(LINES.ref, base)
    repository.add_notes(LINES, {ONE: ["ours"]}, at=NOW)

    assert (2, 0) == (repository.merge_notes(LINES, theirs, at=NOW), repository.merge_notes(LINES, theirs, at=NOW))
    assert {ONE: ("base", "ours", "theirs"), TWO: ("theirs",)} == read(repository, ONE, TWO)


def test_words_have_no_history(repository: NoteRepository) -> None:
    """Replacing leaves one commit without a parent, and is refused if somebody was first."""
    kind = NoteKind.WORDS
    first = repository.replace_notes(kind, {ONE: ["a"]}, expected=None, at=NOW)
    second = repository.replace_notes(kind, {TWO: ["b"]}, expected=first, at=NOW)

    assert ({TWO: ("b",)}, "1") == (
        dict(repository.all_notes(kind, second).lines),
        git(repository.root, "rev-list", "--count", kind.ref).strip(),
    )
    with pytest.raises(GitSilentError):
        repository.replace_notes(kind, {ONE: ["c"]}, expected=first, at=NOW)


def test_a_fetch_leaves_local_notes_alone(repository: NoteRepository, tmp_path: Path) -> None:
    """What a remote has is put beside; only the merge joins it."""
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", str(bare))
    other = NoteRepository(tmp_path / "other", ENVIRONMENT)
    other.root.mkdir()
    git(other.root, "init", "--quiet")
    for one in (repository, other):
        git(one.root, "remote", "add", "origin", str(bare))
    other.add_notes(LINES, {ONE: ["theirs"]}, at=NOW)
    NoteExchange(other, "origin").run(at=NOW)
    repository.add_notes(LINES, {ONE: ["ours"]}, at=NOW)
    before = repository.note_refs(LINES)[LINES.ref]
    exchange = NoteExchange(repository, "origin")
    exchange.fetch()

    assert before == repository.note_refs(LINES)[LINES.ref]
    assert {ONE: ("ours", "theirs")} == read(repository, ONE)
    done = exchange.run(at=NOW)
    assert (1, True, 1) == (done.received, done.sent, done.tries)
    assert not exchange.run(at=NOW).sent
    with pytest.raises(GitSilentError):
        NoteExchange(repository, "--upload-pack=x")
