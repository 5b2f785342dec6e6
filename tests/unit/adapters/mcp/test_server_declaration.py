"""What `batonpass.toml` says of servers."""

from pathlib import Path

import pytest

from batonpass.adapters.mcp.proxy.backend import headers_from
from batonpass.adapters.mcp.server_declaration import Hints, Server, name_for, read_server, require_name
from batonpass.errors import InvalidValueError, PolicyFileError

FILE = """
[mcp.files]
local = true
reads = ["read_*", "list"]
reversible = ["write"]
irreversible = ["write_all"]
costly = ["scan"]
idempotent = ["write"]
targets = { write = "path" }
"""


def test_a_table_says_what_a_servers_tools_do(tmp_path: Path) -> None:
    """Patterns are over the server's own names of its tools."""
    server = read_server(_written(tmp_path, FILE), "files")
    declared = {name: server.declare(name, Hints()) for name in ("read_file", "write", "write_all", "scan", "other")}

    assert {
        "read_file": (True, None, False, False),
        "write": (False, True, True, False),
        "write_all": (False, False, False, False),
        "scan": (False, None, False, True),
        "other": (False, None, False, False),
    } == {name: (each.reads, each.reversible, each.idempotent, each.costly) for name, each in declared.items()}
    assert {False} == {each.external for each in declared.values()}


def test_the_users_word_counts_against_the_servers(tmp_path: Path) -> None:
    """A file that says that a tool can be undone, or only reads, is believed; the server's hint is not."""
    server = read_server(_written(tmp_path, FILE), "files")
    hints = Hints({"write", "read_file", "other"})

    assert [True, None, False] == [server.declare(name, hints).reversible for name in ("write", "read_file", "other")]


def test_what_a_server_says_later_counts_from_then_on(tmp_path: Path) -> None:
    """A tool that was called before is not what it was declared to be then; nor is one of another server."""
    server, hints = read_server(_written(tmp_path, FILE), "files"), Hints()
    before = server.declare("other", hints)
    hints.learn([{"name": "other", "annotations": {"destructiveHint": True}}])

    assert (None, False) == (before.reversible, server.declare("other", hints).reversible)
    assert ("mcp__shop__other", True) == (
        Server(name="shop").declare("other", Hints()).name,
        Server(name="shop").declare("other", Hints()).external,
    )


def test_a_server_without_a_table_is_foreign(tmp_path: Path) -> None:
    """Nothing good is assumed of it, with a file or without."""
    assert [Server(name="mail")] * 2 == [read_server(_written(tmp_path, FILE), "mail"), read_server(None, "mail")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('[mcp.a]\nread = ["x"]', r"toml:2: mcp\.a\.read: there is no such key", id="an unknown key"),
        pytest.param('[mcp.a]\nreads = "x"', r"toml:2: mcp\.a\.reads: is not a list of tools", id="no list"),
        pytest.param("[mcp.a]\nlocal = 1", r"toml:2: mcp\.a\.local: 1 is neither true nor false", id="no boolean"),
        pytest.param('[mcp."a b"]', r"toml:1: .*'a b' is no name of a server", id="no name"),
        pytest.param("mcp = 1", r"toml:1: mcp: is not a table", id="no table"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    """A declaration that is passed over would protect nobody."""
    with pytest.raises(PolicyFileError, match=problem):
        read_server(_written(tmp_path, text), "a")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mcp-server-time", "mcp-server-time"),
        ("@scope/server x", "scope-server-x"),
        ("…", "server"),
        ("x" * 99, "x" * 48),
    ],
)
def test_a_server_that_nobody_named_gets_a_name(words: str, expected: str) -> None:
    """It is one that a file can say something of."""
    assert (expected, expected) == (name_for(words), require_name(name_for(words)))


def test_a_name_that_is_none_is_refused() -> None:
    """Before anything is recorded under it."""
    with pytest.raises(InvalidValueError, match="'a b' is not one"):
        require_name("a b")


@pytest.mark.parametrize("header", ["Authorization", "=TOKEN", "Authorization=", "Authorization=MISSING"])
def test_a_header_without_a_value_is_refused(header: str) -> None:
    """A server is not called without what was meant to be shown to it."""
    with pytest.raises(InvalidValueError, match="--header"):
        headers_from([header], {"TOKEN": "s3cret"})


def test_headers_take_their_values_from_the_environment() -> None:
    """Where no other process sees them."""
    assert {"Authorization": "s3cret"} == headers_from(["Authorization=TOKEN"], {"TOKEN": "s3cret"})


def _written(directory: Path, text: str) -> Path:
    path = directory / "batonpass.toml"
    path.write_text(text, encoding="utf-8")
    return path
