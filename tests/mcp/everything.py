"""All that a client can do with the reference server that has everything, and all that it sees."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client, MCPError, stdio_client, types
from mcp.client.context import ClientRequestContext

from tests.mcp.servers import reached

_TIME: Final = re.compile(r"\d{1,4}[-:/]\d\d[-:/]\d\d[^\"]*|\b\d{1,2}:\d\d:\d\d[^\"]*")
_SEEN_BEFORE: Final = re.compile(r'"SHLVL": "\d+"|"_": "[^"]*"')


class Observer:
    """A client with every capability, which writes down what it sees."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []
        self.heard: list[str] = []

    def note(self, what: str, found: Any) -> None:  # noqa: ANN401 - whatever the SDK returns
        """Write down what an act brought, as it stands on the wire."""
        dumped = found.model_dump(mode="json", by_alias=True) if hasattr(found, "model_dump") else found
        self.seen.append((what, dumped))

    async def sample(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK's signature
        params: types.CreateMessageRequestParams,
    ) -> types.CreateMessageResult:
        """Answer as a model would."""
        self.note("sampling", params)
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="tea"), model="scripted"
        )

    async def elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - the SDK's signature
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        """Answer as a person would."""
        self.note("elicitation", params)
        return types.ElicitResult(action="accept", content={"name": "Ana"})

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:  # noqa: ARG002 - the SDK's signature
        """Say where the client works."""
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///tmp/here", "name": "here"})])

    async def hear(self, message: object) -> None:
        """Write down that a notification came."""
        self.heard.append(type(message).__name__)


async def observe(command: list[str], directory: Path) -> Observer:
    """Do all of it with a server, and return what was seen."""
    observer = Observer()
    async with Client(
        stdio_client(reached(command, directory)),
        mode="legacy",
        sampling_callback=observer.sample,
        elicitation_callback=observer.elicit,
        list_roots_callback=observer.roots,
        message_handler=observer.hear,
        client_info=types.Implementation(name="observer", version="1"),
    ) as client:
        observer.note("server", client.server_info)
        observer.note("capabilities", client.server_capabilities)
        observer.note("version", client.protocol_version)
        with anyio.fail_after(60):
            await _look_around(client, observer)
            await _call(client, observer)
            await _watch(client, observer)
    return observer


async def _look_around(client: Client, observer: Observer) -> None:
    observer.note("tools", await client.list_tools())
    observer.note("resources", await client.list_resources())
    observer.note("templates", await client.list_resource_templates())
    observer.note("prompts", await client.list_prompts())
    observer.note("prompt", await client.get_prompt("args-prompt", {"city": "Ulm"}))
    observer.note("resource", await client.read_resource("demo://resource/static/document/features.md"))
    dynamic = await client.read_resource("demo://resource/dynamic/blob/1")
    observer.note("blob", [part.mime_type for part in dynamic.contents])
    argument = {"name": "department", "value": "E"}
    reference = types.PromptReference(type="ref/prompt", name="completable-prompt")
    observer.note("completion", await client.complete(ref=reference, argument=argument))
    await client.send_ping()
    await _refused(observer, "no prompt", lambda: client.get_prompt("no-such-prompt"))
    await _refused(observer, "no resource", lambda: client.read_resource("demo://no-such-resource"))


async def _call(client: Client, observer: Observer) -> None:
    calls: dict[str, dict[str, Any]] = {
        "echo": {"message": "täa\u2028🍵"},
        "get-sum": {"a": 0.1, "b": 2},
        "get-tiny-image": {},
        "get-annotated-message": {"messageType": "error", "includeImage": True},
        "get-resource-links": {"count": 2},
        "get-structured-content": {"location": "Chicago"},
        "trigger-sampling-request": {"prompt": "What to drink?", "maxTokens": 5},
        "trigger-elicitation-request": {},
        "get-roots-list": {},
        "no-such-tool": {},
    }
    for name, arguments in calls.items():
        observer.note(name, await client.call_tool(name, arguments))
    await _refused(observer, "wrong arguments", lambda: client.call_tool("get-sum", {"a": "x"}))


async def _watch(client: Client, observer: Observer) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    long = "trigger-long-running-operation"
    observer.note(long, await client.call_tool(long, {"duration": 0.2, "steps": 2}, progress_callback=step))
    observer.note("progress", steps)
    await client.subscribe_resource("demo://resource/dynamic/text/1")
    await client.set_logging_level("debug")
    observer.note("logging", await client.call_tool("toggle-simulated-logging", {}))
    observer.note("no logging", await client.call_tool("toggle-simulated-logging", {}))
    await client.unsubscribe_resource("demo://resource/dynamic/text/1")
    # Given up in the middle: the server is told, and everything goes on.
    with anyio.move_on_after(0.3) as scope:
        await client.call_tool(long, {"duration": 30, "steps": 2})
    observer.note("given up", scope.cancelled_caught)
    observer.note("afterwards", await client.call_tool("echo", {"message": "still here"}))


async def _refused(observer: Observer, what: str, act: Callable[[], Any]) -> None:
    try:
        observer.note(what, await act())
    except MCPError as error:
        observer.note(what, [error.code, error.message])


def steadied(text: str) -> str:
    """Return what was seen without what differs from one time to the next."""
    return _SEEN_BEFORE.sub("", _TIME.sub("", text))
