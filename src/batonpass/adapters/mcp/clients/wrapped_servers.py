"""A client's servers, put behind the proxy and taken out again: only what starts a server is changed."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from batonpass.adapters.mcp.clients import jsonc
from batonpass.adapters.mcp.server_declaration import distinct_name
from batonpass.errors import InvalidValueError

PROGRAM: Final = "batonpass"
COMMAND: Final = "mcp-proxy"
MARK: Final = "--from-init"  # says that we wrote this, and not a person, who may have written the same otherwise

_OURS: Final = re.compile(rf"(?:^|[/\\]){PROGRAM}(?:\.exe)?$")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HTTP: Final = frozenset({"http", "streamable-http", "streamableHttp"})
_VARIABLE: Final = "MCP_PROXY_HEADER_"
_TYPE: Final = "type"
_END: Final = "--"  # of our options; what follows is the server's command

Keys = tuple[str, ...]
Span = tuple[int, int, str]


class Wrapper(Struct, frozen=True, kw_only=True):
    """How servers are started behind the proxy."""

    program: str
    options: tuple[str, ...] = ()


class ServerEntry(Struct, frozen=True):
    """A server in a client's settings."""

    name: str
    keys: Keys
    node: jsonc.Node

    @property
    def value(self) -> Mapping[str, Any]:
        """Return what is said of it."""
        return self.node.value if isinstance(self.node.value, dict) else {}

    @property
    def words(self) -> list[str]:
        """Return the command that starts it; nothing for one that is not started."""
        command, arguments = self.value.get("command"), self.value.get("args", [])
        if not isinstance(command, str) or not isinstance(arguments, list):
            return []
        return [command, *map(str, arguments)]

    @property
    def is_wrapped(self) -> bool:
        """Return whether it is behind the proxy, whoever wrote that, and however the proxy is started."""
        before = self.words[: self.words.index(_END)] if _END in self.words else self.words
        return any(_OURS.search(word) and after == COMMAND for word, after in pairwise(before))

    @property
    def is_ours(self) -> bool:
        """Return whether it says itself that we put it behind the proxy."""
        return self.is_wrapped and self.words[1:3] == [COMMAND, MARK]

    @property
    def url(self) -> str | None:
        """Return where it is, if it is reached by HTTP and the proxy can reach it as the client does.

        A client may have to sign in at a server elsewhere, in its own way: without a header for that, it is left alone.
        """
        url, kind = self.value.get("url"), self.value.get(_TYPE, "http")
        if not isinstance(url, str) or kind not in _HTTP:
            return None
        headers = self.value.get("headers")
        signed = isinstance(headers, dict) and any(name.lower() == "authorization" for name in headers)
        return url if signed or urlsplit(url).hostname in _LOOPBACK else None


def find_entries(text: str, places: Sequence[Keys]) -> Iterator[ServerEntry]:
    """Yield the servers in settings. Raises `ValueError` for what is no JSON."""
    if not text.strip():
        return
    document = jsonc.read(text)
    for keys in places:
        servers = document.find(*keys)
        for name, node in ({} if servers is None else servers.members).items():
            yield ServerEntry(name, (*keys, name), node)


def wrap(text: str, places: Sequence[Keys], wrapper: Wrapper) -> str:
    """Return settings in which every server that can be is behind the proxy.

    One that somebody put there stays as it is. Those that we put there have to be taken out before.
    """
    spans: list[Span] = []
    for entry in find_entries(text, places):
        words = [COMMAND, MARK, "--name", distinct_name(entry.name), *wrapper.options]
        if entry.is_wrapped:
            continue
        if entry.words:
            spans += _with_command(text, entry, wrapper.program, [*words, _END, *entry.words])
        elif entry.url is not None:
            spans.append(_without_url(text, entry, wrapper.program, [*words, "--url", entry.url]))
    return _replaced(text, spans)


def unwrap(text: str, places: Sequence[Keys], before: str, after: str) -> str:
    """Return settings without the proxy: as they were, to the byte, as far as nobody has changed them since.

    `before` and `after` are what was there when they were wrapped, and what became of it. What somebody else put behind
    the proxy stays there.
    """
    if text == after:
        return before
    old = {entry.keys: entry.node for entry in find_entries(before, places)}
    new = {entry.keys: entry.node for entry in find_entries(after, places)}
    spans: list[Span] = []
    for entry in find_entries(text, places):
        if not entry.is_wrapped:
            continue
        was, became = old.get(entry.keys), new.get(entry.keys)
        here = text[entry.node.start : entry.node.end]
        if was is not None and became is not None and after[became.start : became.end] == here:
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
        raise InvalidValueError(entry.name, "goes through the proxy in a way that we did not write; edit it by hand")
    environment = dict(entry.value.get("env") or {})
    pairs = [words[at + 1].partition("=") for at, word in enumerate(words) if word == "--header"]
    headers = {name: environment.pop(variable, "") for name, _, variable in pairs}
    kept = {name: value for name, value in entry.value.items() if name not in {"command", "args", "env", _TYPE}}
    value = {_TYPE: "http", "url": words[words.index("--url") + 1], **({"headers": headers} if headers else {}), **kept}
    return [_object(text, entry, value | ({"env": environment} if environment else {}))]


def _with_command(text: str, entry: ServerEntry, command: str, arguments: list[str]) -> Iterator[Span]:
    """Yield what to replace so that another command starts a server; what else is said of it keeps its bytes."""
    node, given = entry.node.members["command"], entry.node.members.get("args")
    if given is None:
        written = f'{json.dumps(command, ensure_ascii=False)}, "args": {json.dumps(arguments, ensure_ascii=False)}'
        yield node.start, node.end, written
        return
    yield node.start, node.end, json.dumps(command, ensure_ascii=False)
    yield given.start, given.end, _laid_out(text, given, arguments)


def _without_url(text: str, entry: ServerEntry, program: str, words: list[str]) -> Span:
    given = entry.value.get("headers")
    headers = given if isinstance(given, dict) else {}
    # Other processes see a command's words. What a header says stays in the environment, as it would in the settings.
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


def _laid_out(text: str, node: jsonc.Node, value: list[str]) -> str:
    return _dumped(text, node, value) if "\n" in text[node.start : node.end] else json.dumps(value, ensure_ascii=False)


def _dumped(text: str, node: jsonc.Node, value: object) -> str:
    """Return a value over several lines, as far to the right as the one whose place it takes."""
    found = _INDENT.search(text)
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    margin = line[: len(line) - len(line.lstrip())]
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, indent=found[1] if found else "  ", ensure_ascii=False).replace("\n", newline + margin)


def _replaced(text: str, spans: list[Span]) -> str:
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text
