"""Clients' settings: servers put behind the proxy and taken out again, with everything else as it was."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters import jsonc, toml_text
from batonpass.adapters.mcp.clients.client_settings import (
    Backup,
    Client,
    Config,
    config_of,
    find_backup,
    find_configs,
    find_wrapped,
    plan,
)
from batonpass.adapters.mcp.clients.wrapped_servers import TOML, Wrapper, find_entries, unwrap, wrap
from batonpass.adapters.mcp.server_declaration import require_name
from batonpass.errors import InvalidValueError

PLACES = (("mcpServers",), ("servers",))
WRAPPER = Wrapper(program="/bin/batonpass", options=("--enforce",))

EDITED = """{
  // what we use
  "inputs": [{"id": "token"}], /* kept */
  "servers": {
    "time": {"type": "stdio", "command": "mcp-server-time" /* no arguments */},
    "files": {
      "command": "npx",
      "args": [
        "-y", // yes
        "server-filesystem"
      ],
      "env": {"A": "${input:token}"},
    },
    "here": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "s3cret"}},
  },
}
"""


def test_servers_are_started_behind_the_proxy() -> None:
    """A command goes behind ours with all its words; an address becomes an option, headers go to the environment."""
    entries = {entry.name: entry.value for entry in find_entries(wrap(EDITED, PLACES, WRAPPER), PLACES)}

    before = ["mcp-proxy", "--from-init", "--name"]
    assert {
        "time": {
            "type": "stdio",
            "command": "/bin/batonpass",
            "args": [*before, "time", "--enforce", "--", "mcp-server-time"],
        },
        "files": {
            "command": "/bin/batonpass",
            "args": [*before, "files", "--enforce", "--", "npx", "-y", "server-filesystem"],
            "env": {"A": "${input:token}"},
        },
        "here": {
            "type": "stdio",
            "command": "/bin/batonpass",
            "args": [
                *[*before, "here", "--enforce", "--url", "http://127.0.0.1:9/mcp"],
                *["--header", "X-Key=MCP_PROXY_HEADER_1"],
            ],
            "env": {"MCP_PROXY_HEADER_1": "s3cret"},
        },
    } == entries


def test_comments_around_stay() -> None:
    """What is not about starting a server keeps its bytes."""
    wrapped = wrap(EDITED, PLACES, WRAPPER)

    assert [] == [
        kept for kept in ("// what we use", "/* kept */", "/* no arguments */", '"env": {"A":') if kept not in wrapped
    ]


def test_undoing_brings_back_every_byte() -> None:
    """With what was kept, comments inside of what was replaced come back too."""
    wrapped = wrap(EDITED, PLACES, WRAPPER)

    assert EDITED == unwrap(wrapped, PLACES, EDITED, wrapped)


def test_undoing_after_an_edit_brings_back_each_server() -> None:
    """Whoever changed the file since keeps the change; servers that are as we left them come back to the byte."""
    wrapped = wrap(EDITED, PLACES, WRAPPER)
    changed = wrapped.replace('"inputs": [{"id": "token"}]', '"inputs": []')

    assert EDITED.replace('"inputs": [{"id": "token"}]', '"inputs": []') == unwrap(changed, PLACES, EDITED, wrapped)


def test_undoing_without_a_backup_brings_back_what_is_started() -> None:
    """Each server says itself what it was; only comments inside are gone."""
    back = unwrap(wrap(EDITED, PLACES, WRAPPER), PLACES, "", "")

    values = {entry.name: entry.value for entry in find_entries(back, PLACES)}
    assert {
        "time": {"type": "stdio", "command": "mcp-server-time", "args": []},
        "files": {"command": "npx", "args": ["-y", "server-filesystem"], "env": {"A": "${input:token}"}},
        "here": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "s3cret"}},
    } == values


@pytest.mark.parametrize(
    "server",
    [
        pytest.param({"type": "http", "url": "https://example.org/mcp"}, id="where only the client can sign in"),
        pytest.param({"type": "sse", "url": "http://127.0.0.1:9/sse"}, id="by the older transport"),
        pytest.param({"command": ["npx"]}, id="what starts nothing"),
        pytest.param("npx", id="what is no object"),
    ],
)
def test_what_the_proxy_cannot_reach_is_left_alone(server: object) -> None:
    """Such a server works as before."""
    text = json.dumps({"mcpServers": {"a": server}})

    assert text == wrap(text, PLACES, WRAPPER)


def test_a_server_elsewhere_with_a_header_that_signs_in_is_wrapped() -> None:
    """The proxy can show it the same."""
    server = {"type": "http", "url": "https://example.org/mcp", "headers": {"authorization": "Bearer ${TOKEN}"}}
    text = json.dumps({"mcpServers": {"a": server}})

    (entry,) = find_entries(wrap(text, PLACES, WRAPPER), PLACES)

    assert (True, {"MCP_PROXY_HEADER_1": "Bearer ${TOKEN}"}) == (entry.is_wrapped, entry.value["env"])


def test_twice_is_once_and_other_options_replace_the_first(tmp_path: Path) -> None:
    """Wrapping again changes nothing; with other options each server is behind one proxy, not two."""
    config = _written(tmp_path, EDITED)
    first, backup = plan(config, Backup(path=config.path), WRAPPER)
    first.apply()

    again, _ = plan(config, backup, WRAPPER)
    other, _ = plan(config, backup, Wrapper(program="batonpass"))

    assert (False, wrap(EDITED, PLACES, Wrapper(program="batonpass"))) == (again.is_change, other.after)


def test_what_is_kept_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Settings hold secrets, and so does their backup."""
    config = _written(tmp_path, EDITED)
    _, backup = plan(config, Backup(path=config.path), WRAPPER)

    edit = backup.edit(tmp_path / "home")
    edit.apply()

    assert (0o600, EDITED, "") == (
        stat.S_IMODE(edit.path.stat().st_mode),
        find_backup(tmp_path / "home", config.path).before,
        find_backup(tmp_path / "elsewhere", config.path).before,
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('{"servers": {', "line 1: a key in quotes is missing", id="an end is missing"),
        pytest.param('{\n"a": 1,\n"a": 2}', "line 3: the key 'a' is there twice", id="a key stands twice"),
        pytest.param('{"a": }', "line 1: a value is missing", id="a value is missing"),
        pytest.param('{"a": "b}', "line 1: a string is not closed", id="a text does not end"),
        pytest.param('{"a" 1}', "line 1: a colon is missing", id="a colon is missing"),
        pytest.param("[1 2]", "line 1: a comma or ] is missing", id="a comma is missing"),
        pytest.param("{} x", "line 1: there is text after the end", id="there is more"),
        pytest.param("[" * 100_000, "maximum recursion depth", id="nested too deep"),
    ],
)
def test_a_file_that_we_do_not_understand_is_not_touched(tmp_path: Path, text: str, problem: str) -> None:
    """It is said where the mistake is."""
    with pytest.raises(InvalidValueError, match=problem):
        plan(_written(tmp_path, text), Backup(path=tmp_path), WRAPPER)


def test_a_file_that_is_not_text_is_not_touched(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are not guessed at."""
    config = _written(tmp_path, "{}")
    config.path.write_bytes(b"\xff")

    with pytest.raises(InvalidValueError, match="cannot be read"):
        plan(config, Backup(path=config.path), WRAPPER)


def test_each_client_has_its_files(tmp_path: Path) -> None:
    """One client's in a project, or all of a person's; those of Claude Code hold this project's own as well."""
    project, home = tmp_path / "project", tmp_path / "home"

    shared = [config.path for config in find_configs(project, home)]
    own = list(find_configs(project, home, Client.CLAUDE_CODE, user=True))

    of_agents = (".github/mcp.json", ".cursor/mcp.json", ".factory/mcp.json", ".gemini/settings.json")
    of_opencode = ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc")
    others = (".qwen/settings.json", ".vscode/mcp.json")
    names = (".mcp.json", ".codex/config.toml", *of_agents, *of_opencode, *others)
    assert [project / name for name in names] == shared
    assert [(home / ".claude.json", ("projects", str(project), "mcpServers"))] == [
        (config.path, config.places[1]) for config in own
    ]


def test_how_many_servers_are_behind_the_proxy_is_counted(tmp_path: Path) -> None:
    """Files that are not there, hold no server or cannot be read are passed over."""
    wrapped = _written(tmp_path, wrap(EDITED, PLACES, WRAPPER).replace('"here": {', '"a": {}, "here": {'))
    wrong = config_of(tmp_path / "wrong.json")
    wrong.path.write_text("{", encoding="utf-8")

    assert [(wrapped, 3, 4)] == list(find_wrapped([wrapped, wrong, config_of(tmp_path / "none.json")]))


BY_HAND = [
    pytest.param(["batonpass", "mcp-proxy", "--name", "shop", "--", "python", "shop.py"], id="as the guide says"),
    pytest.param(["/opt/bin/batonpass", "mcp-proxy", "--enforce", "--url", "http://127.0.0.1:9/mcp"], id="by HTTP"),
    pytest.param(["batonpass", "mcp-proxy"], id="not finished yet"),
    pytest.param(["uvx", "batonpass", "mcp-proxy", "--", "python", "shop.py"], id="started by another program"),
]


@pytest.mark.parametrize("words", BY_HAND)
def test_what_somebody_put_behind_the_proxy_stays_as_it_is(tmp_path: Path, words: list[str]) -> None:
    """It is not wrapped twice, its options are not replaced, and undoing does not take it away."""
    servers = {"mine": {"command": words[0], "args": words[1:]}, "other": {"command": "npx", "args": ["x"]}}
    text = json.dumps({"mcpServers": servers}, indent=2)
    config = _written(tmp_path, text)
    before, _ = plan(config, Backup(path=config.path), None)
    wrapped, backup = plan(config, Backup(path=config.path), WRAPPER)
    wrapped.apply()

    undone = [plan(config, kept, None)[0].after for kept in (backup, Backup(path=config.path))]

    assert (False, [text, text]) == (before.is_change, undone)
    entries = {entry.name: entry for entry in find_entries(wrapped.after or "", PLACES)}
    assert (words, True, True) == (entries["mine"].words, entries["mine"].is_wrapped, entries["other"].is_ours)


def test_what_somebody_put_behind_the_proxy_since_stays_there() -> None:
    """Undoing takes away what is marked as ours, and nothing that was written beside it later."""
    wrapped = wrap('{"mcpServers": {"a": {"command": "x", "args": []}}}', PLACES, WRAPPER)
    later = '"b": {"command": "batonpass", "args": ["mcp-proxy", "--", "y"]}'

    back = unwrap(wrapped.replace('"a": {', f'{later}, "a": {{'), PLACES, "", "")

    assert f'{{"mcpServers": {{{later}, "a": {{"command": "x", "args": []}}}}}}' == back


def test_servers_whose_names_look_alike_are_told_apart() -> None:
    """Two names that are cleaned to the same are two servers, to rules and to receipts; a name that is one is kept."""
    names = ["my-shop", "my shop", "my/shop", "-my-shop", "my.shop", "x" * 48, "x" * 49, "x" * 50, "é", "ü", ""]
    text = json.dumps({"mcpServers": {name: {"command": "x"} for name in names}})

    found = {entry.name: entry.words[4] for entry in find_entries(wrap(text, PLACES, WRAPPER), PLACES)}

    assert len(names) == len(set(found.values()))
    assert ["my-shop", "my.shop", "x" * 48] == [name for name in names if found[name] == name]
    assert list(found.values()) == [require_name(name) for name in found.values()]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, "\t", 2]))
@pytest.mark.slow
def test_all_json_is_read_as_it_is(value: object, indent: int | str | None) -> None:
    """Whatever JSON holds is read with its place: the text there is the value's own."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)

    node = jsonc.read(f" // {{\n/* [ */{text}\n")

    assert (value, text) == (node.value, f" // {{\n/* [ */{text}\n"[node.start : node.end])


NAMES = st.text(min_size=1)
SERVERS = st.dictionaries(
    NAMES,
    st.fixed_dictionaries({"command": NAMES}, optional={"args": st.lists(st.text()), "env": st.just({"A": "b"})}),
)


@given(SERVERS)
def test_any_command_survives_the_way_there_and_back(servers: dict[str, Any]) -> None:
    """Without any backup, what starts a server is the same in the end, whatever its words are."""
    text = json.dumps({"mcpServers": servers})

    back = unwrap(wrap(text, PLACES, WRAPPER), PLACES, "", "")

    assert {name: {"args": []} | server for name, server in servers.items()} == json.loads(back)["mcpServers"]


def _written(directory: Path, text: str) -> Config:
    path = directory / "mcp.json"
    path.write_text(text, encoding="utf-8", newline="")
    return config_of(path)


@pytest.mark.parametrize("user", [False, True], ids=["of a project", "of a person"])
@pytest.mark.parametrize("client", ["copilot", "droid", "gemini", "opencode", "qwen"])
def test_servers_of_coding_agents_go_behind_the_proxy_and_back(client: str, user: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    """Each agent's file, with the command as this agent writes it; what only the agent can reach stays."""
    config = next(find_configs(tmp_path, tmp_path, Client(client), user=user))
    listed = {"type": "local", "command": ["npx", "server"]}
    words = listed if client == "opencode" else {"command": "npx", "args": ["server"]}
    elsewhere = {"type": "remote", "url": "http://127.0.0.1:9/x"} if client == "opencode" else {"httpUrl": "x"}
    name = config.places[0][0]
    text = json.dumps({"theme": "dark", name: {"files": words, "elsewhere": elsewhere}}, indent=2)
    config.path.parent.mkdir(parents=True, exist_ok=True)
    config.path.write_text(text, encoding="utf-8")
    edit, backup = plan(config, Backup(path=config.path), WRAPPER)
    edit.apply()
    ((_, behind, every),) = find_wrapped([config])
    wrapped = json.loads(config.path.read_text(encoding="utf-8"))[name]
    plan(config, backup, None)[0].apply()

    assert (1, 2) == (behind, every)
    assert elsewhere == wrapped["elsewhere"]
    started = wrapped["files"]["command"]
    assert "/bin/batonpass" == (started[0] if client == "opencode" else started)
    assert text == config.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ({"type": "stdio", "command": "npx", "args": ["server"]}, ["--", "npx", "server"]),
        ({"type": "streamableHttp", "url": "http://127.0.0.1:9/mcp"}, ["--url", "http://127.0.0.1:9/mcp"]),
    ],
    ids=["a command", "an address"],
)
def test_servers_of_cline_are_started_by_what_is_in_their_transport(
    inner: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    """As its own command writes them; what else is set for a server stays beside it, and all of it comes back."""
    (config,) = find_configs(tmp_path, tmp_path, Client.CLINE, user=True)
    text = json.dumps({"mcpServers": {"files": {"disabled": False, "transport": inner}}}, indent=2)
    config.path.parent.mkdir(parents=True)
    config.path.write_text(text, encoding="utf-8")
    edit, backup = plan(config, Backup(path=config.path), WRAPPER)
    edit.apply()
    server = json.loads(config.path.read_text(encoding="utf-8"))["mcpServers"]["files"]
    ((_, behind, every),) = find_wrapped([config])
    plan(config, backup, None)[0].apply()

    assert {"disabled", "transport"} == set(server)
    assert ("stdio", "/bin/batonpass", words) == (
        server["transport"]["type"],
        server["transport"]["command"],
        server["transport"]["args"][-len(words) :],
    )
    assert (1, 1) == (behind, every)
    assert text == config.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("client", ["gemini", "qwen"])
def test_a_bare_address_of_these_is_the_older_transport(client: str, tmp_path: Path) -> None:
    """Gemini CLI and Qwen Code mean server-sent events by `url`, which the proxy does not speak."""
    (config,) = find_configs(tmp_path, tmp_path, Client(client))
    config.path.parent.mkdir()
    config.path.write_text('{"mcpServers": {"here": {"url": "http://127.0.0.1:9/sse"}}}', encoding="utf-8")

    assert not plan(config, Backup(path=config.path), WRAPPER)[0].is_change


CODEX = (
    """model = "gpt-6" # kept
[mcp_servers.time]
command = 'mcp-server-time'   # no arguments
startup_timeout_sec = 20

[mcp_servers."files and more"]
args = [
  "-y", # yes
  "server-filesystem",
]
command = "npx"

[mcp_servers."files and more".env]
TOKEN = """
    '"""'
    """
s3cret = ["x"]"""
    '"""'
    """

[mcp_servers.remote]
url = "https://mcp.example/mcp"
bearer_token_env_var = "TOKEN"

[mcp_servers]
short = { command = "x", args = [] }

[[skills.config]]
path = "a # b"
"""
)
OF_CODEX = (("mcp_servers",),)


def test_servers_of_codex_are_started_behind_the_proxy_and_the_rest_keeps_its_bytes() -> None:
    """A command with or without arguments; an address, and what is written on one line, stay as they are."""
    wrapped = wrap(CODEX, OF_CODEX, WRAPPER, form=TOML)
    before, after = (tomllib.loads(text) for text in (CODEX, wrapped))
    words = ["mcp-proxy", "--from-init", "--name"]

    assert ["/bin/batonpass", [*words, "time", "--enforce", "--", "mcp-server-time"]] == [
        after["mcp_servers"]["time"].pop(name) for name in ("command", "args")
    ]
    named = after["mcp_servers"]["files and more"]
    assert ("/bin/batonpass", ["--", "npx", "-y", "server-filesystem"]) == (
        named.pop("command"),
        named.pop("args")[-4:],
    )
    for server, names in (("time", ["command"]), ("files and more", ["command", "args"])):
        for name in names:
            del before["mcp_servers"][server][name]
    assert before == after
    assert "# kept" in wrapped
    assert "# no arguments" in wrapped
    assert wrapped == wrap(wrapped, OF_CODEX, WRAPPER, form=TOML)


def test_servers_of_codex_come_back() -> None:
    """Byte for byte if nobody changed the file since; else as they were started."""
    wrapped = wrap(CODEX, OF_CODEX, WRAPPER, form=TOML)
    edited = wrapped.replace('model = "gpt-6"', 'model = "gpt-7"')
    back = tomllib.loads(unwrap(edited, OF_CODEX, CODEX, wrapped, form=TOML))["mcp_servers"]

    assert CODEX == unwrap(wrapped, OF_CODEX, CODEX, wrapped, form=TOML)
    assert ("mcp-server-time", [], 20) == tuple(
        back["time"][name] for name in ("command", "args", "startup_timeout_sec")
    )
    assert ("npx", ["-y", "server-filesystem"]) == tuple(back["files and more"][name] for name in ("command", "args"))


@pytest.mark.parametrize(
    "text",
    ["x", "a = ", "[a", "a = [1", 'a = "', "a = 1\na = 2", "[mcp_servers.x]\ncommand = ", "a = " + "[" * 5000],
)
def test_what_is_not_toml_is_refused(tmp_path: Path, text: str) -> None:
    """The file is not touched."""
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidValueError, match="is not valid TOML"):
        plan(config_of(path), Backup(path=path), WRAPPER)


TOML_VALUES = st.recursive(
    st.text(alphabet="a\"'\\#[]{}=,.\n ", max_size=8) | st.integers() | st.booleans(),
    lambda one: st.lists(one, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(alphabet='ab."# ', min_size=1, max_size=4), TOML_VALUES, max_size=4))
def test_every_value_is_found_where_it_is(document: dict[str, Any]) -> None:
    """Whatever quotes, brackets and comment signs are inside of it."""
    text = "".join(f"{json.dumps(key)} = {json.dumps(value)} # {key}\n" for key, value in document.items())
    node = toml_text.read(text)

    for key, value in document.items():
        found = node.members[key]
        assert value == tomllib.loads(f"x = {text[found.start : found.end]}")["x"]
