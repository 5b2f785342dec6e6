"""A2A over gRPC: the same requests as over HTTP, with the same tokens and limits, in the event loop of the server.

gRPC has no paths. The tenant of a request names the agent, and the card of an agent says so; without one the agent is
the one whose card is at the well-known address.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import anyio
import grpc
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import DefaultGrpcServerCallContextBuilder, GrpcHandler
from a2a.types import a2a_pb2, a2a_pb2_grpc
from a2a.utils.constants import PROTOCOL_VERSION_1_0, VERSION_HEADER
from a2a.utils.errors import A2A_ERROR_REASONS, VersionNotSupportedError
from a2a.utils.grpc_status import status_to_grpc
from a2a.utils.version_validator import validate_version
from google.rpc import error_details_pb2, status_pb2

from batonpass.errors import (
    BatonpassError,
    LockedOutError,
    NotFoundError,
    ServerNotStartedError,
    TooManyRequestsError,
    UnknownTokenError,
)
from batonpass.ledger.trace_scope import traced
from batonpass.server.a2a.asked_card import asked_card
from batonpass.server.a2a.caller import a2a_caller
from batonpass.server.a2a.request_handler import AGENT_ASKED, A2aRequests, AgentAsked
from batonpass.server.a2a.settings import A2aSettings, GrpcPlace
from batonpass.server.app import in_thread
from batonpass.server.boundary import TRACEPARENT
from batonpass.server.control_plane import ControlPlane

Unary = Callable[[Any, "grpc.aio.ServicerContext"], Awaitable[Any]]
Stream = Callable[[Any, "grpc.aio.ServicerContext"], AsyncIterator[Any]]

_THREADS: Final = 16
_MOST_CALLS: Final = 1000
_MOST_METADATA: Final = 16 * 1024
_HANDSHAKE_MS: Final = 20_000
_IDLE_MS: Final = 15 * 60_000
_DOMAIN: Final = "a2a-protocol.org"
_SERVICE: Final = a2a_pb2.DESCRIPTOR.services_by_name["A2AService"]
# Whom a request asks, between the door and what answers it. Each request is a task of its own.
_ASKED: ContextVar[AgentAsked] = ContextVar("agent asked")
_CODES: Final[tuple[tuple[type[BatonpassError], Any], ...]] = (
    (UnknownTokenError, grpc.StatusCode.UNAUTHENTICATED),
    (TooManyRequestsError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (LockedOutError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (NotFoundError, grpc.StatusCode.NOT_FOUND),
)


class GrpcDoor:
    """A2A over gRPC, once it listens."""

    def __init__(self, plane: ControlPlane, settings: A2aSettings, requests: A2aRequests) -> None:
        self._plane = plane
        self._service = _Service(plane, settings, requests)
        self._server: grpc.aio.Server | None = None

    async def begin(self, place: GrpcPlace) -> None:
        """Listen, in the event loop that runs. Raises `ServerNotStartedError`."""
        options = (
            ("grpc.max_receive_message_length", self._plane.limits.body_bytes),
            ("grpc.max_metadata_size", _MOST_METADATA),
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
            ("grpc.max_connection_idle_ms", _IDLE_MS),
            # Two servers at one port would each get a part of the requests.
            ("grpc.so_reuseport", 0),
        )
        server = grpc.aio.server(options=options, maximum_concurrent_rpcs=_MOST_CALLS)
        a2a_pb2_grpc.add_A2AServiceServicer_to_server(self._service, server)  # type: ignore[no-untyped-call]  # generated
        where = f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"
        try:
            if place.certificate is None or place.key is None:
                server.add_insecure_port(where)
            else:
                pair = (place.key.read_bytes(), place.certificate.read_bytes())
                server.add_secure_port(where, grpc.ssl_server_credentials([pair]))
        except RuntimeError:
            raise ServerNotStartedError(
                f"cannot listen at {where} for gRPC; give another port with --grpc-port, or stop what listens there"
            ) from None
        await server.start()
        self._server = server

    async def end(self, drain_seconds: float) -> None:
        """Take no more requests, let those under way finish for so long, and tell listeners to come again."""
        self._service.stopping.set()
        if self._server is not None:
            await self._server.stop(drain_seconds)


class _Service(a2a_pb2_grpc.A2AServiceServicer):
    """The methods of the service. Each finds out who asks whom, and leaves the rest to the SDK."""

    def __init__(self, plane: ControlPlane, settings: A2aSettings, requests: A2aRequests) -> None:
        self._plane = plane
        self._settings = settings
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._inner = GrpcHandler(requests, _Contexts())
        self.stopping = asyncio.Event()
        for method in _SERVICE.methods:
            act = getattr(self._inner, method.name)
            setattr(self, method.name, self._streamed(act) if method.server_streaming else self._answered(act))

    def _answered(self, act: Unary) -> Unary:
        async def handle(request: Any, context: "grpc.aio.ServicerContext") -> Any:  # noqa: ANN401 - any message
            metadata = _metadata(context)
            with traced(metadata.get(TRACEPARENT)):
                await self._let_in(request, context, metadata)
                return await act(request, context)

        return handle

    def _streamed(self, act: Stream) -> Stream:
        async def handle(request: Any, context: "grpc.aio.ServicerContext") -> AsyncIterator[Any]:  # noqa: ANN401 - as above
            metadata = _metadata(context)
            with traced(metadata.get(TRACEPARENT)):
                await self._let_in(request, context, metadata)
                stopping = asyncio.ensure_future(self.stopping.wait())
                events = act(request, context)
                try:
                    while (event := await self._next(events, stopping, context)) is not None:
                        yield event
                finally:
                    stopping.cancel()

        return handle

    async def _next(
        self, events: AsyncIterator[Any], stopping: "asyncio.Future[Any]", context: "grpc.aio.ServicerContext"
    ) -> Any | None:  # noqa: ANN401 - any message
        """Return the next event; None at the end. A server that stops ends the stream, and the client may resume."""
        following = asyncio.ensure_future(anext(events, None))
        try:
            await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the server stops; subscribe to the task again")
            return following.result()
        finally:
            following.cancel()

    async def _let_in(
        self,
        request: Any,  # noqa: ANN401 - any message
        context: "grpc.aio.ServicerContext",
        metadata: Mapping[str, str],
    ) -> None:
        """Find out who asks whom, or end the request with the reason."""
        try:
            card = asked_card(self._plane, self._settings, request.tenant or None)
            let_in = partial(a2a_caller, self._plane, card, metadata.get("authorization"), _address(context))
            caller = await in_thread(self._threads, let_in)
            if card is None:
                raise NotFoundError("agent", request.tenant or "that serves A2A")
            _ASKED.set(AgentAsked(caller=caller, card=card))
            await _require_version(context=ServerCallContext(state={"headers": metadata}))
        except BatonpassError as error:
            await context.abort(_code_of(error), f"{error} [{error.code}]")
        except VersionNotSupportedError as error:
            await _refuse_version(error, context)


class _Contexts(DefaultGrpcServerCallContextBuilder):
    """Says who asks whom, as the door has found out."""

    def build(self, context: "grpc.aio.ServicerContext") -> ServerCallContext:
        built = super().build(context)
        built.state[AGENT_ASKED] = _ASKED.get()
        return built


@validate_version(PROTOCOL_VERSION_1_0)
async def _require_version(*, context: ServerCallContext) -> None:
    """Raise `VersionNotSupportedError` unless the client speaks the version that is served."""
    del context


async def _refuse_version(error: VersionNotSupportedError, context: "grpc.aio.ServicerContext") -> None:
    """End a request of another version. The specification's code is not the SDK's; clients go by the reason."""
    status = status_pb2.Status(code=grpc.StatusCode.UNIMPLEMENTED.value[0], message=str(error))
    reason = A2A_ERROR_REASONS[VersionNotSupportedError]
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain=_DOMAIN))
    told = status_to_grpc(status)
    context.set_trailing_metadata(tuple(told.trailing_metadata))
    await context.abort(told.code, told.details)


def _metadata(context: "grpc.aio.ServicerContext") -> dict[str, str]:
    """Return the metadata of a request, the first of each name. The SDK looks for the version in mixed case too."""
    told: dict[str, str] = {}
    for name, value in context.invocation_metadata() or ():
        if isinstance(value, str):
            told.setdefault(name.lower(), value)
    if VERSION_HEADER.lower() in told:
        told[VERSION_HEADER] = told[VERSION_HEADER.lower()]
    return told


def _address(context: "grpc.aio.ServicerContext") -> str:
    """Return the address of a client: gRPC tells `ipv4:127.0.0.1:50000` or `ipv6:%5B::1%5D:50000`."""
    return unquote(context.peer().partition(":")[2]).rpartition(":")[0].strip("[]")


def _code_of(error: BatonpassError) -> Any:  # noqa: ANN401 - gRPC has no types
    return next((code for kind, code in _CODES if isinstance(error, kind)), grpc.StatusCode.PERMISSION_DENIED)
