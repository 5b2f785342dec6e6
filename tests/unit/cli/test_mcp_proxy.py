"""`batonpass mcp-proxy`: what is refused before anything is started."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batonpass.cli import mcp_proxy
from batonpass.cli.mcp_proxy import _name_of
from batonpass.cli.nouns import cli


def proxy(*words: str) -> Result:
    return CliRunner().invoke(cli, ["mcp-proxy", *words], prog_name="batonpass")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param((), "give the server's command after --, or --url", id="no server"),
        pytest.param(("--url", "http://x", "--", "y"), "give the server's command", id="two servers"),
        pytest.param(("--header", "A=B", "--", "y"), "--header is for a server at --url", id="a header for a command"),
        pytest.param(("--name", "a b", "--", "y"), "'a b' is not one", id="a name that is none"),
        pytest.param(("--by", "ana", "--", "y"), "a principal such as user:ana", id="nobody"),
        pytest.param(("--", "/no/such/server"), "/no/such/server cannot be started", id="a program that is not there"),
        pytest.param(("--url", "http://x", "--header", "A=NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE", id="no value"),
    ],
)
def test_wrong_usage_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    """In one sentence, with exit code 2, and nothing is recorded."""
    monkeypatch.chdir(tmp_path)

    done = proxy(*words)

    assert (2, True, []) == (done.exit_code, said in done.stderr, list(tmp_path.iterdir()))


def test_a_policy_that_is_wrong_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it would enforce is in that very file."""
    monkeypatch.chdir(tmp_path)
    Path("batonpass.toml").write_text("[mcp.y]\nread = []\n", encoding="utf-8")

    done = proxy("--name", "y", "--", "/no/such/server")

    assert (2, True) == (done.exit_code, "batonpass.toml:2: mcp.y.read: there is no such key" in done.stderr)


def test_without_the_extra_the_way_to_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a server that is reached by HTTP needs the SDK."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mcp_proxy, "find_spec", lambda _: None)

    done = proxy("--url", "http://127.0.0.1:1/mcp")

    assert (1, True) == (done.exit_code, "pip install '.[mcp]'" in done.stderr)


@pytest.mark.parametrize(
    ("command", "url", "expected"),
    [
        (("/usr/bin/mcp-server-time",), None, "mcp-server-time"),
        (("npx", "-y", "@scope/server-files", "."), None, "server-files"),
        (("uvx", "mcp-server-git"), None, "mcp-server-git"),
        (("python3", "shop.py"), None, "shop.py"),
        (("node",), None, "node"),
        ((), "https://api.example.org/mcp", "api.example.org"),
    ],
)
def test_a_server_is_called_after_what_it_is(command: tuple[str, ...], url: str | None, expected: str) -> None:
    """Not after the program that only loads it."""
    assert expected == _name_of(command, url)
