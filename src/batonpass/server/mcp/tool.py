"""One tool of the MCP server: its arguments, its roles, and the act of the HTTP interface behind it."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec import Struct

from batonpass.errors import InvalidValueError, RoleRefusedError
from batonpass.model.base.checks import shorten
from batonpass.model.base.kinds import AccessRole
from batonpass.server.endpoint import AGENTS, ApiRequest, Endpoint
from batonpass.server.mcp.directory_answers import DirectoryAnswers
from batonpass.server.mcp.mcp_caller import McpCaller
from batonpass.server.mcp.run_handle import run_of
from batonpass.server.mcp.tool_answer import ToolAnswer
from batonpass.server.routes import ENDPOINTS
from batonpass.wire.documents import DocumentReader

RUN: Final = "run"
_PART: Final = re.compile(r"\{(\w+)\}")
_REFS: Final = "#/$defs/{name}"
# Who somebody is says the token or the user of this machine, and never a model.
_NEVER: Final = frozenset({"by"})
_BY_NAME: Final = {one.name: one for one in ENDPOINTS}
_READERS: Final = {
    one.name: DocumentReader[Any](taken) for one in ENDPOINTS if (taken := one.body or one.query) is not None
}
_HANDLE: Final = "The run in whose name you act: `run` as `start` or `accept` returned it."
_ABOUT_PARTS: Final = {
    "handoff": "The id of the handoff.",
    "call": "The id of the call, as `begin_call` returned it.",
    "held": "The id of what waits.",
    "receipt": "The id of the receipt.",
}


class McpCall(Struct, frozen=True, kw_only=True, eq=False):
    """One call of a tool."""

    caller: McpCaller
    arguments: Mapping[str, Any]
    answers: DirectoryAnswers | None
    step: Callable[[int, int], None]  # so much of so much is done; raises if nobody waits for it any more

    @property
    def handle(self) -> str | None:
        """Return the run in whose name it is called, as the model gave it."""
        given = self.arguments.get(RUN)
        return None if given is None else required(self.arguments, RUN)


class McpTool(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One tool."""

    name: str
    title: str
    about: str
    roles: frozenset[AccessRole]
    schema: Mapping[str, Any]
    act: Callable[[McpCall], ToolAnswer]
    reads: bool = False
    is_idempotent: bool = False
    needs_files: bool = False  # it looks at files of this machine
    repeats: bool = True  # it is done again once a person has decided what held it up
    only_asks: bool = False  # it does nothing but have the person at the client asked

    @cached_property
    def known(self) -> frozenset[str]:
        """Return the names of its arguments."""
        return frozenset(self.schema["properties"])

    def is_for(self, caller: McpCaller, *, has_files: bool) -> bool:
        """Return whether the caller can use it."""
        return bool(self.roles & self._present(caller)) and (has_files or not self.needs_files)

    def _present(self, caller: McpCaller) -> frozenset[AccessRole]:
        if self.only_asks:
            return frozenset() if caller.person is None else frozenset({caller.person.role})
        return frozenset({caller.worker.role, caller.reader.role})

    def call(self, call: McpCall) -> ToolAnswer:
        """Do it. Raises `RoleRefusedError`, `InvalidValueError` for an unknown argument, and the errors of its act.

        The endpoint behind it checks the role and the reach again. A tool without an endpoint is checked only here.
        """
        if not self.roles & self._present(call.caller):
            raise RoleRefusedError(call.caller.reader.role, tuple(sorted(self.roles)))
        if unknown := next((name for name in call.arguments if name not in self.known), None):
            raise InvalidValueError(shorten(unknown), f"is no argument of {self.name}")
        return self.act(call)


def required(arguments: Mapping[str, Any], name: str) -> str:
    """Return an argument that is a text. Raises `InvalidValueError`."""
    given = arguments.get(name)
    if not isinstance(given, str) or not given:
        raise InvalidValueError(name, "is missing, or is no text")
    return given


def endpoint_named(name: str) -> Endpoint:
    """Return one of the endpoints of the HTTP interface."""
    return _BY_NAME[name]


def answered(endpoint: Endpoint, request: ApiRequest) -> dict[str, Any]:
    """Return the answer of an endpoint, which is JSON for every one that a tool calls."""
    told = endpoint.act(request)
    if not isinstance(told, dict):
        raise TypeError(endpoint.name)
    return told


class EndpointTool:
    """How a tool calls an endpoint: which arguments are parts of the path, and which are the body or the query."""

    def __init__(self, name: str, shows: Collection[str] | None = None) -> None:
        self.endpoint = _BY_NAME[name]
        self._parts = _PART.findall(self.endpoint.path)
        self._type = self.endpoint.body or self.endpoint.query
        self._reader = _READERS.get(name)
        self._shows = shows

    def request(self, call: McpCall) -> ApiRequest:
        """Return the request to the endpoint. Raises `InvalidValueError`, `RoleRefusedError` and `RunProofError`."""
        given = call.arguments
        needs_run = self.endpoint.roles == AGENTS and self.endpoint.needs_proof
        if needs_run and call.handle is None and call.caller.proof is None:
            required(given, RUN)
        names = {part: self._part(call, part) for part in self._parts}
        rest = {name: value for name, value in given.items() if name not in {RUN, *self._parts}}
        said = None if self._reader is None else self._reader.read(rest, "arguments")
        place = "body" if self.endpoint.body is not None else "query"
        return call.caller.request(self.endpoint, handle=call.handle, names=names, **{place: said})

    def act(self, call: McpCall) -> dict[str, Any]:
        """Call the endpoint, and return its answer."""
        return answered(self.endpoint, self.request(call))

    def schema(self) -> dict[str, Any]:
        """Return the schema of the arguments."""
        properties: dict[str, Any] = {}
        needed: list[str] = []
        if AccessRole.AGENT in self.endpoint.roles and self.endpoint.needs_proof:
            properties[RUN] = {"type": "string", "description": _HANDLE}
            needed += [RUN] if self.endpoint.roles == AGENTS else []
        for part in self._parts:
            if part != RUN:
                properties[part] = {"type": "string", "description": _ABOUT_PARTS[part]}
                needed.append(part)
        definitions: dict[str, Any] = {}
        if self._type is not None:
            definitions = msgspec.json.schema_components([self._type], ref_template=_REFS)[1]
            own = definitions.pop(self._type.__name__)
            properties |= {name: said for name, said in own["properties"].items() if self._is_shown(name)}
            needed += [name for name in own.get("required", ()) if name not in needed]
        used = _used(properties, definitions)
        return {
            "type": "object",
            "properties": properties,
            "required": needed,
            "additionalProperties": False,
            **({"$defs": used} if used else {}),
        }

    def _is_shown(self, name: str) -> bool:
        return name not in _NEVER and (self._shows is None or name in self._shows)

    def _part(self, call: McpCall, part: str) -> str:
        if part != RUN:
            return required(call.arguments, part)
        return run_of(call.handle or call.caller.proof or "")


def _used(said: object, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions to which a schema refers, and those to which these refer."""
    found: dict[str, Any] = {}
    waiting = list(_refs(said))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting += _refs(definitions[name])
    return dict(sorted(found.items()))


def _refs(said: object) -> Iterator[str]:
    if isinstance(said, dict):
        for name, part in said.items():
            if name == "$ref":
                yield str(part).rpartition("/")[2]
            else:
                yield from _refs(part)
    elif isinstance(said, list):
        for part in said:
            yield from _refs(part)
