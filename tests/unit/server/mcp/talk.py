"""A client in the same process: the SDK's own, with a token, and a person who answers what they are told to."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from mcp import Client, types

from batonpass.model.base.ids import PrincipalId
from batonpass.server.control_plane import ControlPlane
from batonpass.server.mcp.directory_answers import DirectoryAnswer, DirectoryAnswers
from batonpass.server.mcp.mcp_caller import McpCaller, caller_by_token, local_caller
from batonpass.server.mcp.protocol_server import ProtocolServer

Told = TypeVar("Told")
MODES = ("legacy", "auto")  # 2025-11-25, with a handshake; 2026-07-28, without


@dataclass(slots=True)
class Person:
    """Somebody in front of a client: what they were asked, and what they say."""

    action: str = "accept"
    content: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] | None = None  # what happens before they answer

    async def __call__(self, context: object, params: Any) -> types.ElicitResult:  # noqa: ANN401, ARG002 - the SDK's
        """Answer a question."""
        self.asked.append(params.message)
        if self.meanwhile is not None:
            self.meanwhile()
        return types.ElicitResult.model_validate({"action": self.action, "content": self.content or None})


@dataclass(slots=True)
class Talk:
    """A conversation."""

    client: Client

    async def call(self, tool: str, /, **arguments: object) -> types.CallToolResult:
        """Call a tool."""
        return await self.client.call_tool(tool, arguments)

    async def done(self, tool: str, /, **arguments: object) -> Any:  # noqa: ANN401 - any JSON
        """Call a tool that must succeed, and return its data."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, result.content
        return data_of(result)

    async def code(self, tool: str, /, **arguments: object) -> str | None:
        """Call a tool, and return the code of its error; None if it succeeds."""
        return code_of(await self.call(tool, **arguments))


def data_of(result: types.CallToolResult) -> Any:  # noqa: ANN401 - any JSON
    """Return the data of a result, whether or not others' words are in it."""
    told = result.structured_content
    return told["data"] if "about" in told else told


def code_of(result: types.CallToolResult) -> str | None:
    """Return the code of an error; None if it is none."""
    return result.structured_content["error"]["code"] if result.is_error else None


def text_of(result: types.CallToolResult) -> str:
    """Return all texts of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


class NoFiles:
    """Answers about a directory without files."""

    def blame(self, where: str) -> DirectoryAnswer:
        """Say who wrote something."""
        return DirectoryAnswer(facts={"where": where}, lines=(f"nobody wrote {where}",))

    def review(self, of: str | None) -> DirectoryAnswer:
        """Say what to look at."""
        return DirectoryAnswer(facts={"of": of}, lines=("nothing to look at",))

    def review_diff(self, span: str) -> DirectoryAnswer:
        """Say whose work a diff is."""
        return DirectoryAnswer(facts={"span": span}, lines=(f"{span} is by nobody",))


def by_token(plane: ControlPlane, token: str, proof: str | None = None) -> Callable[[object], McpCaller]:
    """Return who sits there: whoever has this token."""
    return lambda _: caller_by_token(plane, plane.doorkeeper.let_in(f"Bearer {token}", "127.0.0.1"), proof)


def by_user(plane: ControlPlane, principal: str = "user:ana") -> Callable[[object], McpCaller]:
    """Return who sits there: the user of this machine."""
    caller = local_caller(plane, PrincipalId(principal))
    return lambda _: caller


@asynccontextmanager
async def talking(
    find_caller: Callable[[Any], McpCaller],
    mode: str = "auto",
    person: Person | None = None,
    answers: DirectoryAnswers | None = None,
) -> AsyncIterator[Talk]:
    """Open a conversation."""
    server = ProtocolServer(find_caller, answers or NoFiles()).server
    async with Client(server, mode=mode, elicitation_callback=person) as client:
        yield Talk(client)


def run(talk: Callable[[], Coroutine[Any, Any, Told]]) -> Told:
    """Have a conversation, in at most a minute."""

    async def bounded() -> Told:
        with anyio.fail_after(60):
            return await talk()

    return anyio.run(bounded)
