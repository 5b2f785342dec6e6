"""Where the record is: known by the identity of a repository or folder, and never in the tree that agents work in."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from batonpass import Relay
from batonpass.errors import InvalidValueError, StoreError
from batonpass.place import Place, find_place


def git(*words: str | Path) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "shop"
    git("init", "--quiet", path)
    git("-C", path, "commit", "--allow-empty", "-m", "first")
    return path


@pytest.mark.parity("record-is-outside-the-work-tree")
def test_the_record_is_in_the_state_directory(repository: Path, tmp_path: Path) -> None:
    """Nothing is written into the work tree; the directory of the record is its owner's alone."""
    place = find_place(work_tree=repository)

    assert tmp_path / "state" / "ledgers" == place.directory.parent
    assert ("shop", 0o700) == (place.directory.name.partition("-")[0], place.directory.stat().st_mode & 0o777)
    assert place.directory / "ledger.db" == place.sqlite_path
    assert [".git"] == [path.name for path in repository.iterdir()]


def from_inside(repository: Path) -> Path:
    (repository / "src" / "deep").mkdir(parents=True)
    return repository / "src" / "deep"


def through_a_link(repository: Path) -> Path:
    link = repository.with_name("link")
    link.symlink_to(repository)
    return link


def by_steps(repository: Path) -> Path:
    return repository / ".." / repository.name


def linked_work_tree(repository: Path) -> Path:
    git("-C", repository, "worktree", "add", "--quiet", repository.with_name("other"))
    return repository.with_name("other")


@pytest.mark.parametrize("spell", [from_inside, through_a_link, by_steps, linked_work_tree])
def test_one_repository_has_one_record(repository: Path, spell: Callable[[Path], Path]) -> None:
    """However somebody came there, and in all linked work trees, it is the same ledger."""
    assert find_place(work_tree=repository).url == find_place(work_tree=spell(repository)).url


def test_a_linked_work_tree_is_its_own_tree(repository: Path) -> None:
    """The record is shared, but paths are from the work tree in which they were written."""
    other = linked_work_tree(repository)

    assert (repository, other) == (find_place(work_tree=repository).work_tree, find_place(work_tree=other).work_tree)


def nested(repository: Path) -> Path:
    git("init", "--quiet", repository / "inner")
    return repository / "inner"


def a_copy(repository: Path) -> Path:
    return Path(copytree(repository, repository.with_name("copy")))


def same_name_elsewhere(repository: Path) -> Path:
    path = repository.parent / "elsewhere" / repository.name
    git("init", "--quiet", path)
    return path


def a_folder_that_names_it(repository: Path) -> Path:
    """Make what a hostile archive may hold: a file that claims to be a work tree of somebody's repository."""
    path = repository.with_name("hostile")
    path.mkdir()
    (path / ".git").write_text(f"gitdir: {repository}/.git\n", encoding="utf-8")
    return path


def a_folder_that_names_a_work_tree(repository: Path) -> Path:
    linked_work_tree(repository)
    path = a_folder_that_names_it(repository)
    (path / ".git").write_text(f"gitdir: {repository}/.git/worktrees/other\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "make", [nested, a_copy, same_name_elsewhere, a_folder_that_names_it, a_folder_that_names_a_work_tree]
)
def test_another_repository_has_another_record(repository: Path, make: Callable[[Path], Path]) -> None:
    """Inside, copied, or of the same name: it is another one."""
    assert find_place(work_tree=repository).url != find_place(work_tree=make(repository)).url


def test_a_repository_in_the_place_of_another_is_refused(repository: Path) -> None:
    """A new folder under an old name does not go on with the old one's ledger unless a person says so."""
    place = find_place(work_tree=repository)
    repository.rename(repository.with_name("before"))
    git("init", "--quiet", repository)

    with pytest.raises(StoreError, match=r"place\.json") as refusal:
        find_place(work_tree=repository)

    assert "store.place" == refusal.value.code
    (place.directory / "place.json").unlink()
    assert place == find_place(work_tree=repository)


def test_nothing_is_made_where_nothing_is_to_be_made(repository: Path, tmp_path: Path) -> None:
    """Looking does not begin a record."""
    with pytest.raises(StoreError):
        find_place(work_tree=repository, create=False)
    with pytest.raises(StoreError):
        find_place(tmp_path / "none.db", create=False)

    assert not (tmp_path / "state").exists()


def writable_by_others(place: Place) -> None:
    place.directory.chmod(0o777)


def a_link_elsewhere(place: Place) -> None:
    place.directory.rename(place.directory.with_name("real"))
    place.directory.symlink_to(place.directory.with_name("real"))


def a_broken_marker(place: Place) -> None:
    (place.directory / "place.json").write_text("{", encoding="utf-8")


@pytest.mark.parametrize("damage", [writable_by_others, a_link_elsewhere, a_broken_marker])
def test_a_place_that_others_may_have_changed_is_refused(repository: Path, damage: Callable[[Place], None]) -> None:
    """Where others may write, a ledger and its keys are not used."""
    damage(find_place(work_tree=repository))

    with pytest.raises(StoreError) as refusal:
        find_place(work_tree=repository)

    assert "store.place" == refusal.value.code


def test_without_a_repository_the_folder_counts(record_place: Path) -> None:
    """A folder without git has a record of its own, by its real path."""
    place = find_place()

    assert (record_place, find_place(work_tree=record_place)) == (place.work_tree, place)


@pytest.mark.parametrize("prefix", ["", "sqlite:///"])
def test_a_ledger_is_named_by_its_file(tmp_path: Path, prefix: str) -> None:
    """A file is the ledger; its keys are in the state directory all the same."""
    place = find_place(f"{prefix}{tmp_path}/made/here.db")

    assert tmp_path / "made" / "here.db" == place.sqlite_path
    assert tmp_path / "state" / "ledgers" == place.directory.parent


def test_the_environment_names_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BATONPASS_LEDGER stands for the argument, which goes before it."""
    monkeypatch.setenv("BATONPASS_LEDGER", str(tmp_path / "a.db"))

    assert (tmp_path / "a.db", tmp_path / "b.db") == (
        find_place().sqlite_path,
        find_place(tmp_path / "b.db").sqlite_path,
    )


def test_one_database_is_one_place() -> None:
    """A server's database is known by host, port and name: not by who connects to it."""
    one = find_place("postgresql://ana:secret@db.example/ledger")
    other = find_place("postgres://bob@db.example:5432/ledger")

    assert one.directory == other.directory
    assert one.directory != find_place("postgresql://ana@db.example/another").directory
    assert one.sqlite_path is None


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    """A URL of something else, and a folder, are refused in a sentence."""
    with pytest.raises(InvalidValueError, match="postgresql://"):
        find_place("mysql://host/ledger")
    with pytest.raises(StoreError, match="folder"):
        find_place(tmp_path)


def test_the_state_directory_follows_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a setting of ours it is where the system keeps state."""
    monkeypatch.delenv("BATONPASS_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))

    assert tmp_path / "xdg" / "batonpass" / "ledgers" == find_place().directory.parent


@pytest.mark.parity("relay-opens-its-ledger")
def test_a_relay_opens_the_ledger_of_its_place(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without words it is the one of the repository around the program, from any folder; a file is another one."""
    with Relay.open(work_tree=repository) as relay:
        run = relay.start("Ship", by="user:ana").id
    monkeypatch.chdir(from_inside(repository))

    with Relay.open() as here, Relay.open(tmp_path / "other.db") as other:
        assert ([run], []) == ([info.id for info in here.runs()], list(other.runs()))
