"""`batonpass init mcp`: what it shows, what it changes, what it leaves, and the way back."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from batonpass.cli.nouns import cli

TEXT = """{
  "mcpServers": {
    "time": {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"]},
    "remote": {"type": "http", "url": "https://example.org/mcp"}
  }
}
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with servers, and stand in it; the person's home is beside it."""
    project, home = tmp_path / "shop", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    (project / ".mcp.json").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    return project


def init(*words: str) -> Result:
    return CliRunner().invoke(cli, ["init", "mcp", *words], prog_name="batonpass")


def server_in(path: Path, name: str = "time") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["mcpServers"][name]
    return found


def test_servers_go_behind_the_proxy_and_record_in_the_projects_ledger(shop: Path) -> None:
    """The difference is shown, the ledger is made, and what cannot be reached for the client is named."""
    done = init()

    server = server_in(shop / ".mcp.json")
    ledger = str(shop / ".batonpass" / "ledger.db")
    assert (
        0,
        [
            "mcp-proxy",
            "--from-init",
            "--name",
            "time",
            "--ledger",
            ledger,
            "--",
            "mcp-server-time",
            "--local-timezone",
            "UTC",
        ],
    ) == (
        done.exit_code,
        server["args"],
    )
    assert ("batonpass", True, True) == (
        Path(server["command"]).name,
        Path(server["command"]).is_absolute(),
        Path(ledger).exists(),
    )
    assert ["--- " + str(shop / ".mcp.json"), "+++ " + str(shop / ".mcp.json")] == done.stdout.splitlines()[:2]
    for part in ("created a ledger in", "1 server: from the client's next start, calls are recorded", "remote stays"):
        assert part in done.stderr


def test_the_second_time_changes_nothing(shop: Path) -> None:
    """Twice is once."""
    init()
    before = (shop / ".mcp.json").read_bytes()

    done = init()

    assert (0, before, "") == (done.exit_code, (shop / ".mcp.json").read_bytes(), done.stdout)
    assert "nothing to do: 1 of 2 servers behind the proxy" in done.stderr


def test_undoing_brings_the_file_back(shop: Path) -> None:
    """To the byte; and where nothing of ours is, that is said, with exit code 1."""
    init("--enforce")
    enforced = server_in(shop / ".mcp.json")["args"]

    codes = [init("--undo").exit_code, init("--undo").exit_code]

    assert ([0, 1], TEXT, True) == (codes, (shop / ".mcp.json").read_text(encoding="utf-8"), "--enforce" in enforced)


def test_a_dry_run_changes_nothing(shop: Path) -> None:
    """Neither the file nor the ledger."""
    done = init("--dry-run")

    assert (0, TEXT, False, True) == (
        done.exit_code,
        (shop / ".mcp.json").read_text(encoding="utf-8"),
        (shop / ".batonpass").exists(),
        "nothing was changed" in done.stderr,
    )


def test_a_shared_file_holds_no_path_of_this_machine(shop: Path) -> None:
    """Whoever has batonpass on the PATH can use it."""
    init("--shared")

    assert {"command": "batonpass", "args": ["mcp-proxy", "--from-init", "--name", "time", "--"]} == {
        "command": server_in(shop / ".mcp.json")["command"],
        "args": server_in(shop / ".mcp.json")["args"][:5],
    }


def test_git_is_not_given_paths_of_this_machine_unnoticed(shop: Path) -> None:
    """A file that others get says so."""
    subprocess.run(["git", "init", "-q", str(shop)], check=True)

    assert (True, False) == (
        "git does not ignore .mcp.json" in init().stderr,
        "git does not ignore" in init("--shared").stderr,
    )


def test_a_persons_own_servers_are_theirs_in_every_project(shop: Path, tmp_path: Path) -> None:
    """Those in the home, and those that it holds for this project; each finds the ledger where it is started."""
    path = tmp_path / "home" / ".claude.json"
    path.write_text(json.dumps({"projects": {str(shop): json.loads(TEXT)}, **json.loads(TEXT)}), encoding="utf-8")

    done = init("--user", "--client", "claude-code")

    found = json.loads(path.read_text(encoding="utf-8"))
    places = [found["mcpServers"]["time"]["args"], found["projects"][str(shop)]["mcpServers"]["time"]["args"]]
    assert (0, [["mcp-proxy", "--from-init", "--name", "time", "--"]] * 2) == (
        done.exit_code,
        [args[:5] for args in places],
    )


def test_one_file_can_be_named(shop: Path) -> None:
    """Whichever client it belongs to; others stay as they are."""
    other = shop / "other.json"
    other.write_text('{"servers": {"a": {"command": "x"}}}', encoding="utf-8")

    done = init("--config", "other.json")

    assert (0, TEXT, True) == (
        done.exit_code,
        (shop / ".mcp.json").read_text(encoding="utf-8"),
        "mcp-proxy" in other.read_text(encoding="utf-8"),
    )


@pytest.fixture
def three(shop: Path) -> list[Path]:
    """Return the settings of three clients, the last of which cannot be written: its name has no room beside it."""
    paths = [shop / ".mcp.json", shop / ".cursor" / "mcp.json", shop / ".vscode" / "mcp.json"]
    long = shop / ("x" * 250)
    long.write_text(TEXT.replace("mcpServers", "servers"), encoding="utf-8")
    for path in paths[1:]:
        path.parent.mkdir()
    paths[1].write_text(TEXT, encoding="utf-8")
    paths[2].symlink_to(long)
    return paths


def test_all_files_are_written_or_none(shop: Path, three: list[Path]) -> None:
    """If the third of three cannot be written, the first two are as they were, and nothing is left beside them."""
    before = {path: path.read_bytes() for path in three}

    done = init()

    assert (2, before, True) == (
        done.exit_code,
        {path: path.read_bytes() for path in three},
        "nothing was changed" in done.stderr,
    )
    left = [path.name for path in shop.rglob("*") if ".mcp.json." in path.name or ".batonpass/mcp/" in str(path)]
    assert ([], "") == (left, done.stdout)


def test_a_file_that_is_wrong_keeps_the_others_from_being_written(shop: Path, three: list[Path]) -> None:
    """Also the ledger is not made: whoever corrects the file starts anew."""
    three[2].unlink()
    three[2].write_text("{", encoding="utf-8")

    done = init()

    assert (2, TEXT, TEXT, False) == (
        done.exit_code,
        three[0].read_text(encoding="utf-8"),
        three[1].read_text(encoding="utf-8"),
        (shop / ".batonpass").exists(),
    )


def test_an_undoing_that_fails_leaves_all_behind_the_proxy(shop: Path, three: list[Path]) -> None:
    """And once it can be done it brings every byte back: what was kept is not lost either."""
    long = three[2].resolve()
    short = shop / "short.json"
    long.rename(short)
    three[2].unlink()
    three[2].symlink_to(short)
    init()
    wrapped = {path: path.read_bytes() for path in three}
    short.rename(long)
    three[2].unlink()
    three[2].symlink_to(long)

    failed = init("--undo").exit_code
    enforced = init("--enforce").exit_code
    still = {path: path.read_bytes() for path in three}
    long.rename(short)
    three[2].unlink()
    three[2].symlink_to(short)
    undone = init("--undo").exit_code

    assert (2, 2, wrapped, 0) == (failed, enforced, still, undone)
    assert [TEXT, TEXT, TEXT.replace("mcpServers", "servers")] == [path.read_text(encoding="utf-8") for path in three]


def test_a_server_that_was_put_behind_the_proxy_by_hand_is_left_there(shop: Path) -> None:
    """By init, by undoing, and by undoing on a machine that knows of nothing."""
    by_hand = {"command": "batonpass", "args": ["mcp-proxy", "--name", "mine", "--may", "call:mine/*", "--", "x"]}
    (shop / ".mcp.json").write_text(json.dumps({"mcpServers": {"mine": by_hand, "time": {"command": "y"}}}), "utf-8")

    init()
    wrapped = server_in(shop / ".mcp.json", "mine")
    first = init("--undo")
    second = init("--undo")

    assert (by_hand, by_hand, {"command": "y"}) == (
        wrapped,
        server_in(shop / ".mcp.json", "mine"),
        server_in(shop / ".mcp.json"),
    )
    assert (0, 1) == (first.exit_code, second.exit_code)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(("--client", "cursor"), 1, "no settings found: looked for", id="a client that is not used here"),
        pytest.param(("--config", ".mcp.json", "--user"), 2, "--config names a file", id="two ways to say which file"),
        pytest.param(("--ledger", "postgresql://a:b@c/d"), 2, "password", id="a password"),
    ],
)
def test_what_cannot_be_done_is_said(shop: Path, words: tuple[str, ...], code: int, said: str) -> None:
    """Nothing is changed then."""
    done = init(*words)

    assert (code, True, TEXT) == (done.exit_code, said in done.stderr, (shop / ".mcp.json").read_text(encoding="utf-8"))


def test_the_doctor_counts_the_servers_that_are_recorded(shop: Path) -> None:
    """Before and after."""
    (shop / ".batonpass").mkdir()
    before = CliRunner().invoke(cli, ["doctor"]).stdout
    init()
    after = CliRunner().invoke(cli, ["doctor"]).stdout

    assert (True, True) == (
        f"0 of 2 MCP servers in {shop / '.mcp.json'} recorded" in before,
        f"1 of 2 MCP servers in {shop / '.mcp.json'} recorded" in after,
    )
