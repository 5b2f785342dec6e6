"""Puts the servers of a client behind the proxy and takes them out again, changing only how they are started."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from batonpass.adapters import jsonc, toml_text
from batonpass.adapters.mcp.server_declaration import distinct_name
from batonpass.errors import InvalidValueError

PROGRAM: Final = "batonpass"
COMMAND: Final = "mcp-proxy"
MARK: Final = "--from-init"  # marks entries that we wrote, as opposed to the user

_OURS: Final = re.compile(rf"(?:^|[/\\]){PROGRAM}(?:\.exe)?$")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HTTP: Final = frozenset({"http", "streamable-http", "streamableHttp"})
_VARIABLE: Final = "MCP_PROXY_HEADER_"
_TYPE: Final = "type"
_LOCAL: Final = "local"
_TRANSPORT: Final = "transport"  # Cline keeps in it how a server is started or reached
_END: Final = "--"  # ends our options; the server's command follows

Keys = tuple[str, ...]
Span = tuple[int, int, str]


class Wrapper(Struct, frozen=True, kw_only=True):
    """The command that starts a server behind the proxy."""

    program: str
    options: tuple[str, ...] = ()


class SettingsForm(Struct, frozen=True, kw_only=True):
    """How settings are written. Strings, and lists of them on one line, are the same in both forms."""

    read: Callable[[str], jsonc.Node]
    between: str  # stands between a command and its arguments, where there were none
    takes_urls: bool = True  # a server at a URL can be put behind the proxy


JSON: Final = SettingsForm(read=jsonc.read, between=', "args": ')
TOML: Final = SettingsForm(read=toml_text.read, between="\nargs = ", takes_urls=False)


class ServerEntry(Struct, frozen=True):
    """A server in a client's settings."""

    name: str
    keys: Keys
    node: jsonc.Node
    bare_url: bool = True  # a URL without a type is one of HTTP
    form: SettingsForm = JSON

    @property
    def value(self) -> Mapping[str, Any]:
        """Return its settings."""
        return self.node.value if isinstance(self.node.value, dict) else {}

    @property
    def words(self) -> list[str]:
        """Return the command that starts it; nothing if it is not started by a command."""
        if "command" not in self.node.members:
            return []  # an inline table of TOML, which has no places for us to write to
        command, arguments = self.value.get("command"), self.value.get("args", [])
        if isinstance(command, list) and self.value.get(_TYPE) == _LOCAL:
            return list(map(str, command))  # OpenCode has one list for both
        if not isinstance(command, str) or not isinstance(arguments, list):
            return []
        return [command, *map(str, arguments)]

    @property
    def is_wrapped(self) -> bool:
        """Return whether it is behind the proxy, put there by us or by a person."""
        before = self.words[: self.words.index(_END)] if _END in self.words else self.words
        return any(_OURS.search(word) and after == COMMAND for word, after in pairwise(before))

    @property
    def is_ours(self) -> bool:
        """Return whether it is marked as put behind the proxy by us."""
        return self.is_wrapped and self.words[1:3] == [COMMAND, MARK]

    @property
    def url(self) -> str | None:
        """Return its URL, if it uses HTTP and the proxy can reach it as the client does.

        A client may have its own way to sign in at a remote server. Without a header for that, the server is left
        alone.
        """
        url, kind = self.value.get("url"), self.value.get(_TYPE, "http" if self.bare_url else "sse")
        if not isinstance(url, str) or kind not in _HTTP or not self.form.takes_urls:
            return None
        headers = self.value.get("headers")
        signed = isinstance(headers, dict) and any(name.lower() == "authorization" for name in headers)
        return url if signed or urlsplit(url).hostname in _LOOPBACK else None


def find_entries(
    text: str, places: Sequence[Keys], *, bare_url: bool = True, form: SettingsForm = JSON
) -> Iterator[ServerEntry]:
    """Yield the servers in settings. Raises `ValueError` if they are not of their form."""
    if not text.strip():
        return
    document = form.read(text)
    for keys in places:
        servers = document.find(*keys)
        for name, node in ({} if servers is None else servers.members).items():
            inner = node.members.get(_TRANSPORT)
            if inner is not None and isinstance(inner.value, dict):
                yield ServerEntry(name, (*keys, name, _TRANSPORT), inner, bare_url, form)
            else:
                yield ServerEntry(name, (*keys, name), node, bare_url, form)


def wrap(
    text: str, places: Sequence[Keys], wrapper: Wrapper, *, bare_url: bool = True, form: SettingsForm = JSON
) -> str:
    """Return settings with every possible server behind the proxy.

    A server that the user put there stays as it is. Those that we put there must be taken out first.
    """
    spans: list[Span] = []
    for entry in find_entries(text, places, bare_url=bare_url, form=form):
        words = [COMMAND, MARK, "--name", distinct_name(entry.name), *wrapper.options]
        if entry.is_wrapped:
            continue
        if entry.words:
            spans += _with_command(text, entry, wrapper.program, [*words, _END, *entry.words])
        elif entry.url is not None:
            spans.append(_without_url(text, entry, wrapper.program, [*words, "--url", entry.url]))
    return _replaced(text, spans)


def unwrap(text: str, places: Sequence[Keys], before: str, after: str, *, form: SettingsForm = JSON) -> str:
    """Return settings without the proxy: byte for byte as before, where nobody changed them since.

    `before` and `after` are the texts when the servers were put behind the proxy. Servers that the user put there stay.
    """
    if text == after:
        return before
    old = {entry.keys: entry.node for entry in find_entries(before, places, form=form)}
    new = {entry.keys: entry.node for entry in find_entries(after, places, form=form)}
    spans: list[Span] = []
    for entry in find_entries(text, places, form=form):
        if not entry.is_wrapped:
            continue
        was, became = old.get(entry.keys), new.get(entry.keys)
        here = text[entry.node.start : entry.node.end]  # nothing for a table of TOML, which has no place of its own
        if here and was is not None and became is not None and after[became.start : became.end] == here:
            spans.append((entry.node.start, entry.node.end, before[was.start : was.end]))
        elif entry.is_ours:
            spans += _restored(text, entry)
    return _replaced(text, spans)


def _restored(text: str, entry: ServerEntry) -> list[Span]:
    words = entry.words[2:]
    if _END in words[:-1]:
        command, *arguments = words[words.index(_END) + 1 :]
        return list(_with_command(text, entry, command, arguments))
    if "--url" not in words[:-1]:
        raise InvalidValueError(entry.name, "is behind the proxy in an unknown way; edit it by hand")
    environment = dict(entry.value.get("env") or {})
    pairs = [words[at + 1].partition("=") for at, word in enumerate(words) if word == "--header"]
    headers = {name: environment.pop(variable, "") for name, _, variable in pairs}
    kept = {name: value for name, value in entry.value.items() if name not in {"command", "args", "env", _TYPE}}
    value = {_TYPE: "http", "url": words[words.index("--url") + 1], **({"headers": headers} if headers else {}), **kept}
    return [_object(text, entry, value | ({"env": environment} if environment else {}))]


def _with_command(text: str, entry: ServerEntry, command: str, arguments: list[str]) -> Iterator[Span]:
    """Yield the replacements that start a server with another command; its other settings keep their bytes."""
    node, given = entry.node.members["command"], entry.node.members.get("args")
    if isinstance(node.value, list):
        words = [command, *arguments]
        is_long = "\n" in text[node.start : node.end]
        yield node.start, node.end, _dumped(text, node, words) if is_long else json.dumps(words, ensure_ascii=False)
        return
    if given is None:
        between = entry.form.between
        written = f"{json.dumps(command, ensure_ascii=False)}{between}{json.dumps(arguments, ensure_ascii=False)}"
        yield node.start, node.end, written
        return
    yield node.start, node.end, json.dumps(command, ensure_ascii=False)
    is_long = "\n" in text[given.start : given.end]
    yield (
        given.start,
        given.end,
        _dumped(text, given, arguments) if is_long else json.dumps(arguments, ensure_ascii=False),
    )


def _without_url(text: str, entry: ServerEntry, program: str, words: list[str]) -> Span:
    given = entry.value.get("headers")
    headers = given if isinstance(given, dict) else {}
    # Other processes can see the arguments of a command, so the values of headers go into the environment.
    environment = {f"{_VARIABLE}{number}": str(value) for number, value in enumerate(headers.values(), 1)}
    for name, variable in zip(headers, environment, strict=True):
        words += ["--header", f"{name}={variable}"]
    kept = {name: value for name, value in entry.value.items() if name not in {_TYPE, "url", "headers", "env"}}
    value: dict[str, Any] = {_TYPE: "stdio", "command": program, "args": words, **kept}
    own = entry.value.get("env")
    if environment or own:
        value["env"] = (own if isinstance(own, dict) else {}) | environment
    return _object(text, entry, value)


def _object(text: str, entry: ServerEntry, value: Mapping[str, Any]) -> Span:
    return entry.node.start, entry.node.end, _dumped(text, entry.node, value)


def _dumped(text: str, node: jsonc.Node, value: object) -> str:
    """Return a value over several lines, indented like the one that it replaces."""
    indent, newline = jsonc.layout_of(text)
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    margin = line[: len(line) - len(line.lstrip())]
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline + margin)


def _replaced(text: str, spans: list[Span]) -> str:
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text
