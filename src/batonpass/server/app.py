"""The application: the HTTP interface, and whatever is mounted beside it, behind one boundary.

Each endpoint is a function of values that runs in a worker thread, because the use cases are synchronous. Reading the
request and sending the answer is done here, once for all.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cache, partial
from hashlib import sha256
from typing import Any, Final

import anyio
import msgspec
from msgspec import structs
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from batonpass.errors import (
    BatonpassError,
    InvalidValueError,
    MediaTypeError,
    NoSuchRouteError,
    RequestTooLargeError,
    WrongMethodError,
)
from batonpass.model.base.ids import PublicKey
from batonpass.server.access import AccessCaller
from batonpass.server.acts.signature_acts import recall
from batonpass.server.answer import JSON, etag_of, is_known, json_bytes
from batonpass.server.boundary import Boundary, refused
from batonpass.server.control_plane import ControlPlane
from batonpass.server.document.openapi import make_document
from batonpass.server.document.pages import docs_page, docs_policy
from batonpass.server.endpoint import ApiRequest, Endpoint, RawAnswer
from batonpass.server.event_stream import LAST_EVENT, EventStreams, resumed_after
from batonpass.server.idempotency import GivenAnswer
from batonpass.server.routes import ENDPOINTS
from batonpass.signing.ed25519 import require_strong
from batonpass.wire.documents import DocumentReader

PROOF: Final = "batonpass-proof"
KEY: Final = "idempotency-key"
SIGNER: Final = "batonpass-signer"  # the key for a run that this begins, or `NO_KEY`
SIGNED: Final = "batonpass-signed"  # the last receipt that was signed for this act before the connection was lost
NO_KEY: Final = "-"
_REPLAYED: Final = "Idempotent-Replayed"
_LONGEST_KEY: Final = 255
_SMALL: Final = 65_536  # bytes of a body that is read before its sender is let in
_THREADS: Final = 40
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
_SAME: Final = 304
_CREATED: Final = 201

_BODIES: Final = {one.name: DocumentReader(one.body) for one in ENDPOINTS if one.body is not None}
_QUERIES: Final = {one.name: DocumentReader(one.query) for one in ENDPOINTS if one.query is not None}

Handler = Callable[[Request], Awaitable[Response]]
Lifespan = Callable[[], AbstractAsyncContextManager[None]]


def make_app(
    plane: ControlPlane,
    *,
    hosts: Collection[str],
    mounts: Sequence[BaseRoute] = (),
    lifespans: Sequence[Lifespan] = (),
) -> ASGIApp:
    """Return the application of a control plane. `mounts` are other doors: they are behind the same boundary.

    A mounted door asks `plane.doorkeeper` who comes in, as the endpoints here do. `lifespans` are entered while
    the server runs.
    """
    threads = anyio.CapacityLimiter(_THREADS)
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    streams = EventStreams(plane)
    routes: list[BaseRoute] = [
        Route(path, _handler(plane, known, threads, streams), methods=[*known]) for path, known in by_path.items()
    ]
    own = [
        Route("/v1/enter", _enter(plane, threads), methods=["POST"]),
        Route("/docs", _docs),
        Route("/openapi.json", _document_of_all),
    ]
    return Boundary(_Doors([*routes, *own, *mounts], lifespans), hosts=hosts)


class _Doors:
    """All routes. Failures are left to the boundary, which tells the client nothing of them."""

    def __init__(self, routes: Sequence[BaseRoute], lifespans: Sequence[Lifespan]) -> None:
        @asynccontextmanager
        async def lifespan(_: object) -> AsyncIterator[None]:
            async with AsyncExitStack() as stack:
                for one in lifespans:
                    await stack.enter_async_context(one())
                yield

        self._app = ExceptionMiddleware(Router(routes, lifespan=lifespan), handlers={HTTPException: _no_route})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # a router that stands alone would answer what it does not know in its own words
        await self._app(scope, receive, send)


class EnterRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The code of a one-time link."""

    code: str


_ENTERS: Final = DocumentReader(EnterRequest)


def _enter(plane: ControlPlane, threads: anyio.CapacityLimiter) -> Handler:
    async def handle(request: Request) -> Response:
        try:
            body = await read_body(request, plane.limits.body_bytes)
            code = _ENTERS.read(_document(body), "body").code
            address = "" if request.client is None else request.client.host
            issued = await in_thread(threads, partial(plane.doorkeeper.exchange, plane.entrance, code, address))
        except BatonpassError as error:
            return refused(error)
        return Response(json_bytes({"id": issued.id, "token": issued.text}), _CREATED, None, JSON)

    return handle


async def _docs(_: Request) -> Response:
    return Response(docs_page(), headers={"Content-Security-Policy": docs_policy()}, media_type="text/html")


@cache
def _document_bytes() -> bytes:
    return json_bytes(make_document())  # the types do not change while we run


async def _document_of_all(_: Request) -> Response:
    return Response(_document_bytes(), media_type=JSON)


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else _NOT_FOUND
    if status == _NOT_ALLOWED and isinstance(error, HTTPException):
        allowed = tuple(one.strip() for one in (error.headers or {}).get("Allow", "").split(",") if one.strip())
        return refused(WrongMethodError(request.method, tuple(sorted(allowed))))
    return refused(NoSuchRouteError(request.url.path[:200]))


def _handler(
    plane: ControlPlane, known: Mapping[str, Endpoint], threads: anyio.CapacityLimiter, streams: EventStreams
) -> Handler:
    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        endpoint = known[method]
        try:
            if not endpoint.streams and (endpoint.body is None or _is_small(request, plane.limits.body_bytes)):
                # In one turn of a thread: a turn costs as much as a look at the ledger.
                early = b"" if endpoint.body is None else await request.body()
                answered: Response = await in_thread(threads, partial(_admit, plane, endpoint, request, early))
                return answered
            # Before the body is read: whoever is not let in sends nothing large.
            caller = await in_thread(threads, partial(let_in, plane, request))
            caller.require_role(endpoint.roles)
            body = b"" if endpoint.body is None else await read_body(request, plane.limits.body_bytes)
            given = GivenRequest(
                endpoint=endpoint, caller=caller, http=request, body=body, reader=_BODIES.get(endpoint.name)
            )
            if endpoint.streams:
                asked = await in_thread(threads, partial(_events_asked, plane, given))
                first = await in_thread(threads, partial(endpoint.act, asked))
                return streams.stream(asked, first, partial(in_thread, threads))
            answered = await in_thread(threads, partial(_served, plane, given))
        except BatonpassError as error:
            return refused(error)
        return answered

    return handle


def _is_small(request: Request, most: int) -> bool:
    """Return whether a request says that its body is small: the server then takes no more than that from it."""
    given = request.headers.get("content-length", "")
    if "transfer-encoding" in request.headers or not (given.isascii() and given.isdecimal()):
        return False
    return len(given) <= len(str(_SMALL)) and int(given) <= min(_SMALL, most)


def _admit(plane: ControlPlane, endpoint: Endpoint, request: Request, body: bytes) -> Response:
    """Let a caller in, and serve a request whose body is here already. A caller that is not let in learns only that."""
    caller = let_in(plane, request)
    caller.require_role(endpoint.roles)
    if endpoint.body is not None:
        _require_json(request)
    return _served(
        plane,
        GivenRequest(endpoint=endpoint, caller=caller, http=request, body=body, reader=_BODIES.get(endpoint.name)),
    )


def _served(plane: ControlPlane, given: "GivenRequest") -> Response:
    act = _serve_signed if _signs(given.http, given.endpoint) else _serve
    return act(plane, given)


def let_in(plane: ControlPlane, request: Request) -> AccessCaller:
    """Return who sent a request. Every door of the server asks this way."""
    address = "" if request.client is None else request.client.host
    return plane.doorkeeper.let_in(request.headers.get("authorization"), address)


async def in_thread(threads: anyio.CapacityLimiter, act: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    """Run something synchronous in a worker thread. It is not abandoned when the client goes: it may be writing."""
    with anyio.CancelScope(shield=True):
        return await anyio.to_thread.run_sync(act, limiter=threads)


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request, which is JSON and has at most so many bytes."""
    _require_json(request)
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > most:
            raise RequestTooLargeError(most)
    return bytes(read)


def _require_json(request: Request) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != JSON:
        raise MediaTypeError(given)


class GivenRequest(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A request of somebody who was let in, before it is read."""

    endpoint: Endpoint
    caller: AccessCaller
    http: Request
    body: bytes
    reader: DocumentReader[Any] | None


def _asked(plane: ControlPlane, given: GivenRequest) -> ApiRequest:
    request, reader = given.http, given.reader
    return ApiRequest(
        plane=plane,
        caller=given.caller,
        names=request.path_params,
        query=_query(given.endpoint, request),
        body=None if reader is None else reader.read(_document(given.body), "body"),
        proof=request.headers.get(PROOF),
        key=_key(request),
        accepts=request.headers.get("accept", ""),
        signs=_signs(request, given.endpoint),
    )


def _signs(request: Request, endpoint: Endpoint) -> bool:
    return SIGNER in request.headers and endpoint.is_signed


def _events_asked(plane: ControlPlane, given: GivenRequest) -> ApiRequest:
    asked = _asked(plane, given)
    last = resumed_after(given.http.headers.get(LAST_EVENT))
    # A browser that reconnects sends the same URL again, and says with this header how far it came.
    return asked if last is None else structs.replace(asked, query=structs.replace(asked.query, after=last))


def _serve(plane: ControlPlane, given: GivenRequest) -> Response:
    endpoint, caller, request = given.endpoint, given.caller, given.http
    asked = _asked(plane, given)
    key = asked.key
    if endpoint.is_read:
        return _read(endpoint, asked, request.headers.get("if-none-match"))

    if key is None:
        told, again = _done(endpoint, asked), False
    else:
        said = _fingerprint(given)
        told, again = plane.answers.once(caller.token.id, key, said, partial(_done, endpoint, asked))
        if again and asked.proof is not None:
            with asked.looking():  # the run may have been taken over since: what it was told is no longer its holder's
                pass
    return Response(told.body, told.status, {_REPLAYED: "true"} if again else None, JSON)


def _done(endpoint: Endpoint, asked: ApiRequest) -> GivenAnswer:
    found = endpoint.act(asked)
    return found if isinstance(found, GivenAnswer) else GivenAnswer(endpoint.status, json_bytes(found))


def _fingerprint(given: GivenRequest) -> bytes:
    # With the proof: somebody else who has the same token, and guesses the key, is not told what this run was told.
    method, path = given.endpoint.method.encode(), given.http.url.path.encode()
    proof = given.http.headers.get(PROOF, "").encode()
    return b"\n".join((method, path, sha256(proof).digest(), sha256(given.body).digest()))


def _serve_signed(plane: ControlPlane, given: GivenRequest) -> Response:
    """Do an act for a client that keeps the keys of its runs: it is asked to sign, and the act waits for that."""
    endpoint, headers = given.endpoint, given.http.headers
    asked = _asked(plane, given)
    if asked.key is None:
        raise InvalidValueError("Idempotency-Key", "is missing: whoever signs needs it to find the act again")
    key, token, said = asked.key, given.caller.token.id, _fingerprint(given)
    offered = headers[SIGNER]
    new_key = None if offered == NO_KEY else require_strong(PublicKey(offered))
    signed = headers.get(SIGNED)

    def act() -> GivenAnswer:
        recalled = None if signed is None else recall(endpoint, asked, signed)
        return _done(endpoint, asked) if recalled is None else GivenAnswer(endpoint.status, json_bytes(recalled))

    once = partial(plane.answers.once, token, key, said, act)
    told = plane.parked.begin(token, key, said, new_key, lambda: once()[0]).next_step()
    return Response(told.body, told.status, None, JSON)


def _read(endpoint: Endpoint, asked: ApiRequest, known: str | None) -> Response:
    found = endpoint.act(asked)
    raw = found if isinstance(found, RawAnswer) else RawAnswer(body=json_bytes(found), media_type=JSON)
    etag = etag_of(raw.body)
    # A client may keep it and has to ask each time whether it still holds: it may not be let in any more.
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization, Batonpass-Proof"}
    if isinstance(found, RawAnswer):
        headers["Content-Disposition"] = "attachment"
    if is_known(known, etag):
        return Response(status_code=_SAME, headers=headers)
    return Response(raw.body, endpoint.status, headers, raw.media_type)


def _key(request: Request) -> str | None:
    key = request.headers.get(KEY)
    if key is not None and not (0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()):
        raise InvalidValueError("Idempotency-Key", f"has 1 to {_LONGEST_KEY} printable ASCII characters")
    return key


def _query(endpoint: Endpoint, request: Request) -> object:
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise InvalidValueError(min(repeated), "is given more than once")
    if endpoint.query is None:
        if names:
            raise InvalidValueError(names[0], "there is no such parameter here")
        return None
    return _QUERIES[endpoint.name].read_texts(dict(given))


def _document(body: bytes) -> object:
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError("body", f"is not JSON: {error}") from None


def _no_number(text: str) -> object:
    raise ValueError(f"{text} is no number")
