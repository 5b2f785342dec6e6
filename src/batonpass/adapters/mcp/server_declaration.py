"""What is declared about a server's tools: by the user's file, which is believed, and by the server, which is not.

A server's hints can only make a call graver. What it says in its favour, that a tool only reads or may be repeated,
counts for nothing until `batonpass.toml` says so too.
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
    """What a user says of a server, but for the arguments of single tools."""

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
    """What the user says of one server: whose it is, and which of its tools do what. Patterns are over tools' names."""

    name: str
    local: bool = False  # what its tools return and change is ours
    reads: tuple[str, ...] = ()
    reversible: tuple[str, ...] = ()
    irreversible: tuple[str, ...] = ()
    costly: tuple[str, ...] = ()
    idempotent: tuple[str, ...] = ()
    targets: Mapping[str, str] = field(default_factory=dict)  # by tool, the argument that says what is changed

    def declare(self, tool: str, hints: "Hints") -> Declared:
        """Return what counts as declared about a tool."""
        said = _Said(
            self.name, self.local, self.reads, self.reversible, self.irreversible, self.costly, self.idempotent
        )
        # A client calls few tools, and each of them often. What is too long for a name is not worth being kept.
        declare = _declare if len(tool) <= _LONGEST_TOOL else _declare.__wrapped__
        return declare(said, tool, self.targets.get(tool), tool in hints.destructive)

    def resource_of(self, tool: str) -> str:
        """Return what a call of a tool acts on, as a grant names it: the tool itself, below its server."""
        return resource_of_mcp(self.name, recorded_name("", tool))

    def declare_reading(self, what: str) -> Declared:
        """Return what is declared about reading resources or hearing of them, and asking for prompts or completions."""
        return Declared(name=f"{what}__{self.name}", reads=True, external=not self.local)

    def declare_unknown(self, what: str) -> Declared:
        """Return what is declared about a request whose method nobody knows: nothing."""
        return Declared(name=f"{what}__{self.name}", external=not self.local)


class Hints(Struct):
    """What a server has said against its own tools; it cannot take that back."""

    destructive: set[str] = field(default_factory=set)

    def learn(self, tools: Iterable[Any]) -> None:
        """Take note of a list of tools."""
        for tool in tools:
            name, said = _read_tool(tool)
            if name is not None and said.get("destructiveHint") is True:
                self.destructive.add(name)


def _read_tool(tool: object) -> tuple[str | None, Mapping[str, Any]]:
    name = tool.get("name") if isinstance(tool, dict) else None
    said = tool.get("annotations") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else None, said if isinstance(said, dict) else {}


def read_server(path: Path | None, name: str) -> Server:
    """Return what a file says of a server; without one, nothing. Raises `PolicyFileError`."""
    return Server(name=name) if path is None else read_servers(read_document(path)).get(name, Server(name=name))


def read_servers(document: Document) -> dict[str, Server]:
    """Return what a document says of all servers. Raises `PolicyFileError`."""
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
    """Return a name that a server can have. Raises `InvalidValueError`."""
    if not _NAME.fullmatch(name):
        raise InvalidValueError("name", f"{name!r} is not one: {_NAMING}"[:200])
    return name


def name_for(words: str) -> str:
    """Return a name for a server that nobody named, from what it is reached by."""
    return _STRANGE.sub("-", words).strip("._-")[:_LONGEST] or "server"


def distinct_name(words: str) -> str:
    """Return a name for a server as its client calls it: as it is, if it has the form of a name.

    Else what does not fit becomes a dash, and a piece of a digest keeps two such servers apart: they must not share
    rules and records. It depends on nothing but the words, so it stays when other servers come and go.
    """
    if _NAME.fullmatch(words):
        return words
    digest = sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name_for(words)[: _LONGEST - _DIGITS - 1]}-{digest}"


def recorded_name(before: str, given: str) -> str:
    """Return how something of another program's naming is recorded: as it is, if it has the form of a name.

    Else what does not fit becomes a dash, and a piece of a digest keeps two such names apart, and apart from any other.
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
