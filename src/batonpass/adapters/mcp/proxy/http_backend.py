"""A server that is reached by HTTP, through the transport of the official SDK. No other module imports the SDK."""

import contextlib
import queue
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from httpx2 import AsyncClient, Timeout
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types import jsonrpc_message_adapter

from batonpass.adapters.mcp.messages.hidden_messages import read_messages
from batonpass.adapters.mcp.messages.json_text import fits_doubles
from batonpass.adapters.mcp.messages.message import CONNECTION_CLOSED, VERSION, Message, failure

if TYPE_CHECKING:
    from concurrent.futures import Future

_CONNECT: Final = 30.0
_GRACE: Final = 2.0


class HttpBackend:
    """A server at a URL. Headers that the SDK's session would set are made from the messages."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._error = ""
        self._headers = dict(headers)
        self._stamps = Stamps()
        self._found: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stack = contextlib.ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        self._stop, self._sender = self._portal.call(_make_channel)
        self._serving: Future[None] = self._portal.start_task_soon(self._serve)

    async def _serve(self) -> None:
        # No read timeout: the client decides how long it waits for a call.
        timeout = Timeout(_CONNECT, read=None)
        try:
            async with (
                self._stop,
                AsyncClient(headers=self._headers, timeout=timeout) as client,
                streamable_http_client(self._url, http_client=client, max_sse_event_size=None) as (reading, writing),
                anyio.create_task_group() as group,
            ):
                group.start_soon(self._take, reading)
                async for message in self._stop:
                    await writing.send(message)
                group.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - whatever ends the transport ends the server for its client
            self._error = f": {type(error).__name__}"
        finally:
            self._found.put(None)

    async def _take(self, reading: Any) -> None:  # noqa: ANN401 - a stream of the SDK's, which has no public type
        async for found in reading:
            if isinstance(found, SessionMessage):
                line = found.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                self._stamps.learn(line)
                self._found.put(line)

    def send(self, line: bytes) -> None:
        """Send a message to the server. Raises `OSError` if it is gone."""
        if self._serving.done():
            raise BrokenPipeError
        for found in read_messages(line):
            self._send(found)

    def _send(self, found: Message) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(found.line, by_name=False)
        except ValueError:
            message = None
        # The SDK sends null for a number that no double holds, and rounds others. That would not be the judged call.
        if message is None or not fits_doubles(found.body):
            self._found.put(failure(found.id, CONNECTION_CLOSED, "this is no message that can be sent by HTTP"))
            return
        wrapped = SessionMessage(message, ClientMessageMetadata(headers=self._stamps.headers(found)))
        try:
            self._portal.call(self._sender.send, wrapped)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, RuntimeError):
            raise BrokenPipeError from None

    def lines(self) -> Iterator[bytes]:
        """Yield the server's messages until it is gone."""
        while (line := self._found.get()) is not None:
            yield line

    def close(self) -> None:
        """End the session with the server."""
        with contextlib.suppress(RuntimeError):
            self._portal.call(self._sender.aclose)
        with contextlib.suppress(TimeoutError):
            self._serving.result(_GRACE)
        self._serving.cancel()
        self._stack.close()

    @property
    def end(self) -> str:
        """Return a sentence about how it ended."""
        return f"the connection to the server ended{self._error}"


async def _make_channel() -> Any:  # noqa: ANN401 - a pair of streams, made where they are used
    sender, receiver = anyio.create_memory_object_stream[SessionMessage](0)
    return receiver, sender


class Stamps:
    """The headers that repeat parts of a message, for intermediaries that do not read bodies."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._parameters: dict[str, dict[tuple[str, ...], str]] = {}

    def learn(self, line: bytes) -> None:
        """Note the protocol revision, and which arguments of which tools go into headers."""
        for message in read_messages(line):
            result = message.result or {}
            if isinstance(version := result.get("protocolVersion"), str):
                self._version = version
            for tool in result.get("tools", ()) if isinstance(result.get("tools"), list) else ():
                schema = tool.get("inputSchema") if isinstance(tool, dict) else None
                if isinstance(schema, dict) and find_invalid_x_mcp_header(schema) is None:
                    self._parameters[str(tool.get("name"))] = x_mcp_header_map(schema)

    def headers(self, message: Message) -> dict[str, str] | None:
        """Return the headers for a message; None if it has none of its own."""
        if not message.is_modern:
            return None if self._version is None else {MCP_PROTOCOL_VERSION_HEADER: self._version}
        headers = {MCP_PROTOCOL_VERSION_HEADER: str(message.meta[VERSION]), MCP_METHOD_HEADER: message.method or ""}
        if message.method is not None and message.method in NAME_BEARING_METHODS:
            name = str(message.params.get(NAME_BEARING_METHODS[message.method]))
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            arguments = message.params.get("arguments")
            if message.method == "tools/call" and isinstance(arguments, dict):
                headers.update(mcp_param_headers(self._parameters.get(name, {}), arguments))
        return headers
