"""Declarations about a server's tools: the user's file is trusted, the server is not.

A server's hints can only make a call more serious. Its claims that a tool only reads or may be repeated count for
nothing until `batonpass.toml` says so too.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from batonpass.errors import InvalidValueError
from batonpass.guard.policy.name_patterns import fits
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import MCP as CALLED
from batonpass.handoff.tools.foreign_call import resource_of_mcp
from batonpass.policy.document import MCP, Document, DocumentPlace, read_document

RESOURCE: Final = "mcp-resource"
PROMPT: Final = "mcp-prompt"
SUBSCRIPTION: Final = "mcp-subscription"
COMPLETION: Final = "mcp-completion"
METHOD: Final = "mcp-method"

_LISTS: Final = ("reads", "reversible", "irreversible", "costly", "idempotent")
_KEYS: Final = ("local", *_LISTS, "targets")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")
_LONGEST: Final = 48
_STRANGE: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_TOOL: Final = 60
_DIGITS: Final = 6


class _Said(NamedTuple):
    """The user's declaration of a server, without the arguments of single tools."""

    server: str
    local: bool
    reads: tuple[str, ...]
    reversible: tuple[str, ...]
    irreversible: tuple[str, ...]
    costly: tuple[str, ...]
    idempotent: tuple[str, ...]


@lru_cache(maxsize=1024)
def _declare(said: _Said, tool: str, argument: str | None, destructive: bool) -> Declared:  # noqa: FBT001 - a key
    reads = _any(said.reads, tool)
    reversible = None
    if _any(said.irreversible, tool):
        reversible = False
    elif _any(said.reversible, tool):
        reversible = True
    elif destructive and not reads:
        reversible = False
    return Declared(
        name=recorded_name(f"{CALLED}{said.server}__", tool),
        target=None if argument is None or reads else _argument(argument),
        idempotent=_any(said.idempotent, tool),
        reversible=reversible,
        reads=reads,
        external=not said.local,
        costly=_any(said.costly, tool),
    )


class Server(Struct, frozen=True, kw_only=True):
    """The user's declaration of one server: who owns it, and what its tools do. Patterns match names of tools."""

    name: str
    local: bool = False  # its results are trusted, and its effects stay here
    reads: tuple[str, ...] = ()
    reversible: tuple[str, ...] = ()
    irreversible: tuple[str, ...] = ()
    costly: tuple[str, ...] = ()
    idempotent: tuple[str, ...] = ()
    targets: Mapping[str, str] = field(default_factory=dict)  # by tool, the argument that names the target

    def declare(self, tool: str, hints: "Hints") -> Declared:
        """Return the declaration that applies to a tool."""
        said = _Said(
            self.name, self.local, self.reads, self.reversible, self.irreversible, self.costly, self.idempotent
        )
        # A client calls few tools, each often. A name that is too long is not cached.
        declare = _declare if len(tool) <= _LONGEST_TOOL else _declare.__wrapped__
        return declare(said, tool, self.targets.get(tool), tool in hints.destructive)

    def resource_of(self, tool: str) -> str:
        """Return the resource of a call as a grant names it: the tool, below its server."""
        return resource_of_mcp(self.name, recorded_name("", tool))

    def declare_reading(self, what: str) -> Declared:
        """Return the declaration for reading resources, subscribing, and asking for prompts or completions."""
        return Declared(name=f"{what}__{self.name}", reads=True, external=not self.local)

    def declare_unknown(self, what: str) -> Declared:
        """Return the declaration for a request with an unknown method: nothing is known."""
        return Declared(name=f"{what}__{self.name}", external=not self.local)


class Hints(Struct):
    """The warnings of a server about its own tools; it cannot take them back."""

    destructive: set[str] = field(default_factory=set)

    def learn(self, tools: Iterable[Any]) -> None:
        """Note the warnings in a list of tools."""
        for tool in tools:
            name, said = _read_tool(tool)
            if name is not None and said.get("destructiveHint") is True:
                self.destructive.add(name)


def _read_tool(tool: object) -> tuple[str | None, Mapping[str, Any]]:
    name = tool.get("name") if isinstance(tool, dict) else None
    said = tool.get("annotations") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else None, said if isinstance(said, dict) else {}


def read_server(path: Path | None, name: str) -> Server:
    """Return the declaration of a server in a file; an empty one without a file. Raises `PolicyFileError`."""
    return Server(name=name) if path is None else read_servers(read_document(path)).get(name, Server(name=name))


def read_servers(document: Document) -> dict[str, Server]:
    """Return the declarations of all servers in a document. Raises `PolicyFileError`."""
    return {name: _server(name, place) for name, place in document.table(MCP).table().items()}


def _server(name: str, place: DocumentPlace) -> Server:
    if not _NAME.fullmatch(name):
        raise place.error(f"{name!r} is no name of a server: {_NAMING}")
    given = place.table(_KEYS)
    lists = {key: given[key].texts("tools") for key in _LISTS if key in given}
    targets = given["targets"].table() if "targets" in given else {}
    return Server(
        name=name,
        local="local" in given and given["local"].boolean(),
        targets={tool: argument.text() for tool, argument in targets.items()},
        **lists,
    )


_NAMING: Final = "letters, digits and ._- , at most 48, the first a letter or a digit"


def require_name(name: str) -> str:
    """Return a valid name of a server. Raises `InvalidValueError`."""
    if not _NAME.fullmatch(name):
        raise InvalidValueError("name", f"{name!r} is not one: {_NAMING}"[:200])
    return name


def name_for(words: str) -> str:
    """Return a name for an unnamed server, from its command or URL."""
    return _STRANGE.sub("-", words).strip("._-")[:_LONGEST] or "server"


def distinct_name(words: str) -> str:
    """Return a name for a server from the client's name for it: unchanged if it is valid.

    Otherwise invalid characters become dashes, and part of a digest keeps two such servers apart: they must not share
    rules and records. The name depends on nothing else, so it stays when other servers come and go.
    """
    if _NAME.fullmatch(words):
        return words
    digest = sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name_for(words)[: _LONGEST - _DIGITS - 1]}-{digest}"


def recorded_name(before: str, given: str) -> str:
    """Return the recorded form of another program's name: unchanged if it is valid.

    Otherwise invalid characters become dashes, and part of a digest keeps it apart from any other name.
    """
    cleaned = _STRANGE.sub("-", given)
    if cleaned == given and 0 < len(given) <= _LONGEST_TOOL:
        return before + given
    digest = sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{before}{cleaned[:_LONGEST_TOOL]}+{digest}"


def _any(patterns: tuple[str, ...], tool: str) -> bool:
    return any(fits(pattern, tool, across=True) for pattern in patterns)


def _argument(name: str) -> Any:  # noqa: ANN401 - as a tool declares it
    return lambda arguments: None if arguments.get(name) is None else str(arguments[name])
