"""Opening by URL."""

import os
import sys
from pathlib import Path

import pytest

from batonpass.errors import BatonpassError, InvalidValueError, StoreUnavailableError
from batonpass.store.factory import home_by_default, open_store
from batonpass.store.home import find_intruders, prepare_home
from batonpass.store.memory import MemoryStore
from batonpass.store.sqlite.store import SqliteStore


def test_a_file_is_opened_by_its_path(tmp_path: Path) -> None:
    """A SQLite URL makes the file and what lies beside it, and says where it is."""
    store = open_store(f"sqlite:///{tmp_path}/.batonpass/ledger.db")
    store.close()

    assert isinstance(store, SqliteStore)
    assert f"sqlite:///{tmp_path}/.batonpass/ledger.db" == store.url
    assert (tmp_path / ".batonpass" / "ledger.db").is_file()
    assert "*\n" == (tmp_path / ".batonpass" / ".gitignore").read_text()


def test_a_relative_path_is_relative_to_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three slashes and a name mean a file in this directory, wherever one goes afterwards."""
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///here.db")
    store.close()

    assert f"sqlite:///{tmp_path}/here.db" == store.url


def test_a_tilde_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that begins at home is found there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    store = open_store("sqlite:///~/mine.db")
    store.close()

    assert (tmp_path / "mine.db").is_file()


def test_memory_is_memory() -> None:
    """Two memories have nothing in common."""
    first, second = open_store("memory:"), open_store("memory:")

    assert isinstance(first, MemoryStore)
    assert first is not second


def test_a_file_that_must_exist_is_not_made(tmp_path: Path) -> None:
    """Whoever only wants to read is told that there is nothing, and nothing is made."""
    with pytest.raises(StoreUnavailableError, match=f"no ledger at {tmp_path}/ledger.db"):
        open_store(f"sqlite:///{tmp_path}/ledger.db", create=False)

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ledger.db",
        "sqlite:ledger.db",
        "sqlite://ledger.db",
        "mysql://localhost/x",
        "MEMORY:",
        "memory:x",
        "postgresql:",
        "http://[::1",
        "postgresql://[::1/x",
        "://",
    ],
    ids="the URL {!r}".format,
)
def test_what_is_no_ledgers_url_is_refused(url: str) -> None:
    """Anything else is refused with one sentence that says what it may be."""
    with pytest.raises(BatonpassError):
        open_store(url)


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """SQLite cannot open it, and the sentence says that another place is needed."""
    place = tmp_path / os.fsdecode(b"caf\xe9") / "ledger.db"
    with pytest.raises(InvalidValueError, match="is not UTF-8"):
        open_store(f"sqlite:///{place}")


@pytest.mark.parametrize("url", ["", "mysql://user:secret@localhost/x"], ids="the URL {!r}".format)
def test_a_refusal_names_the_choices_and_no_password(url: str) -> None:
    """The error says what would have been understood, and does not repeat what may hold a password."""
    with pytest.raises(InvalidValueError, match=r"sqlite:///PATH.*postgresql://.*memory:") as refused:
        open_store(url)

    assert "ledger" == refused.value.field
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/", id="the root directory"),
        pytest.param("", id="no name"),
        pytest.param("/a\0b", id="a null byte"),
        pytest.param("~nobody-has-this-name/x.db", id="the home of nobody"),
        pytest.param("/" + "x" * 300, id="a name that is too long"),
        pytest.param("/dev/null/x.db", id="a device in the place of a directory"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused(path: str) -> None:
    """Whatever is typed as a path, the answer is one of our sentences."""
    with pytest.raises(BatonpassError):
        open_store(f"sqlite:///{path}")


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL is an extra: without it the error is the command that brings it."""
    for name in [name for name in sys.modules if name.startswith(("psycopg", "batonpass.store.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(StoreUnavailableError, match=r"pip install '\.\[postgres\]'"):
        open_store("postgresql://localhost/ledger")


@pytest.mark.parametrize(
    ("url", "home"),
    [
        pytest.param("memory:", None, id="memory keeps its keys in memory"),
        pytest.param("sqlite:////a/.batonpass/ledger.db", Path("/a/.batonpass"), id="a file in a home, there"),
        pytest.param("sqlite:////a/b.db", Path("/a/b.db.batonpass"), id="another file, beside itself"),
    ],
)
def test_keys_are_beside_the_ledger(url: str, home: Path | None) -> None:
    """Where the keys are follows from where the ledger is."""
    assert home == home_by_default(url)


def test_a_server_is_no_place_for_keys() -> None:
    """For a database on a server, somebody must say where this relay's keys are."""
    with pytest.raises(InvalidValueError, match="name a directory") as refused:
        home_by_default("postgresql://localhost/ledger")

    assert "home" == refused.value.field


def test_what_is_no_ledger_is_not_asked_for_a_home() -> None:
    """Whoever names a bare file is told how a file is named, and not that something else is missing."""
    with pytest.raises(InvalidValueError, match="ledger: is none of sqlite:///PATH"):
        home_by_default("ledger.db")


@pytest.mark.parametrize(
    ("mode", "named"), [(0o777, True), (0o770, True), (0o702, True), (0o755, False), (0o700, False)]
)
def test_a_home_that_others_can_write_is_named(tmp_path: Path, mode: int, named: bool) -> None:  # noqa: FBT001 - a table
    """Whoever can write there can put another ledger or another key in its place; who can only look cannot."""
    home = tmp_path / ".batonpass"
    prepare_home(home)
    home.chmod(mode)

    found = find_intruders(home)
    assert named == (found is not None and f"chmod 700 {home}" in found)


def test_a_home_that_is_not_there_has_no_intruders(tmp_path: Path) -> None:
    """It is made for its owner alone."""
    assert find_intruders(tmp_path / "none") is None
