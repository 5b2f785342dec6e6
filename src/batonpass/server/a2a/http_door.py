"""A2A over HTTP: JSON-RPC and HTTP+JSON for each agent, and the cards.

Who asks whom is found out before a request is read. The SDK does the rest, and asks `A2aRequests`.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import anyio
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.utils.constants import A2A_JSON_MEDIA_TYPE
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import ContentTypeNotSupportedError
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Message, Scope

from batonpass.errors import BatonpassError, MediaTypeError, NotFoundError, RequestTooLargeError
from batonpass.model.baton.card import Card
from batonpass.records.json_shapes import Shape
from batonpass.relay import cards_of, signer_of
from batonpass.server.a2a.asked_card import asked_card
from batonpass.server.a2a.caller import A2aCaller, a2a_caller
from batonpass.server.a2a.card_document import INVOKE, card_document, simple_card
from batonpass.server.a2a.request_handler import AGENT_ASKED, A2aRequests, AgentAsked
from batonpass.server.a2a.settings import CARD, SIMPLE_CARD, A2aSettings
from batonpass.server.answer import JSON, etag_of, is_known, json_bytes
from batonpass.server.app import in_thread
from batonpass.server.boundary import refused
from batonpass.server.control_plane import ControlPlane

Endpoint = Callable[[Request], Awaitable[Response]]

_THREADS: Final = 16
_AGENT: Final = "/a2a/agents/{agent:path}"
_TYPES: Final = frozenset({JSON, A2A_JSON_MEDIA_TYPE})
_SAME: Final = 304
_UNREAD: Final = 415


def make_door(plane: ControlPlane, settings: A2aSettings, requests: A2aRequests) -> ASGIApp:
    """Return the application that serves A2A over HTTP."""
    # It writes down what requests said, which is not ours to keep.
    logging.getLogger("a2a").setLevel(logging.CRITICAL)
    return Router(_HttpDoor(plane, settings).routes(requests))


class _HttpDoor:
    def __init__(self, plane: ControlPlane, settings: A2aSettings) -> None:
        self._plane = plane
        self._settings = settings
        self._threads = anyio.CapacityLimiter(_THREADS)

    def routes(self, requests: A2aRequests) -> list[BaseRoute]:
        """Return every route, with its whole path. The longest come first: an agent's id may contain a slash."""
        builder = _Contexts()
        given: list[BaseRoute] = [
            *create_jsonrpc_routes(requests, f"{_AGENT}/{INVOKE}", builder),
            *create_jsonrpc_routes(requests, f"{_AGENT}/{INVOKE}/", builder),
            *create_rest_routes(requests, builder, path_prefix=_AGENT),
        ]
        asked = [
            Route(
                one.path, self._asked(one.endpoint, is_rpc=one.path.rstrip("/").endswith(INVOKE)), methods=one.methods
            )
            for one in given
            if isinstance(one, Route)
        ]
        return [
            Route(CARD, self._card),
            Route(SIMPLE_CARD, self._simple),
            Route("/a2a/agents", self._list),
            Route(f"{_AGENT}{CARD}", self._card),
            *asked,
            Route(_AGENT, self._simple),
        ]

    def _asked(self, endpoint: Endpoint, *, is_rpc: bool) -> Endpoint:
        """Return an endpoint of the SDK behind our own door."""

        async def handle(request: Request) -> Response:
            try:
                caller, card = await self._let_in(request)
                body = await _body(request, self._plane.limits.body_bytes, frozenset({JSON}) if is_rpc else _TYPES)
            except MediaTypeError as error:
                return _unread(error, is_rpc=is_rpc)
            except BatonpassError as error:
                return refused(error)
            scope: Scope = {**request.scope, AGENT_ASKED: AgentAsked(caller=caller, card=card)}
            return _as_asked(request, await endpoint(Request(scope, _Repeated(body, request))))

        return handle

    async def _let_in(self, request: Request) -> tuple[A2aCaller, Card]:
        named = request.path_params.get("agent")
        card = asked_card(self._plane, self._settings, named)
        caller = await self._caller(request, card)
        if card is None:
            raise NotFoundError("agent", named or "that serves A2A")
        return caller, card

    async def _caller(self, request: Request, card: Card | None) -> A2aCaller:
        address = "" if request.client is None else request.client.host
        given = request.headers.get("authorization")
        found = await in_thread(self._threads, partial(a2a_caller, self._plane, card, given, address))
        if not isinstance(found, A2aCaller):
            raise TypeError("nobody was let in")
        return found

    async def _card(self, request: Request) -> Response:
        return await self._told(request, self._document)

    async def _simple(self, request: Request) -> Response:
        return await self._told(request, lambda card: simple_card(card, self._settings))

    def _document(self, card: Card) -> Shape:
        told: Shape = MessageToDict(card_document(card, self._settings, signer_of(self._plane.relay)))
        return told

    async def _told(self, request: Request, make: Callable[[Card], Shape]) -> Response:
        try:
            _, card = await self._let_in(request)
        except BatonpassError as error:
            return refused(error)
        return _answer(request, await in_thread(self._threads, partial(make, card)))

    async def _list(self, request: Request) -> Response:
        cards = list(cards_of(self._plane.relay).values())
        public = [card for card in cards if card.public]
        try:
            without_token = request.headers.get("authorization") is None
            caller = await self._caller(request, public[0] if public and without_token else None)
        except BatonpassError as error:
            return refused(error)
        shown = [card for card in cards if caller.may_ask(card.agent)] if caller.is_known else public
        return _answer(request, [simple_card(card, self._settings) for card in shown])


class _Contexts(DefaultServerCallContextBuilder):
    """Says who asks whom, as the door has found out."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state[AGENT_ASKED] = request.scope[AGENT_ASKED]
        # Whoever is let in is known by our own token. Nothing after this reads it.
        context.state["headers"].pop("authorization", None)
        return context


class _Repeated:
    """Gives the body of a request once more, and then whatever the client does."""

    def __init__(self, body: bytes, request: Request) -> None:
        self._body: bytes | None = body
        self._receive = request.receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _body(request: Request, most: int, types: frozenset[str]) -> bytes:
    """Return the body of a request. Raises `MediaTypeError` and `RequestTooLargeError`."""
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > most:
            raise RequestTooLargeError(most)
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if (read or given) and given not in types and request.method != "GET":
        raise MediaTypeError(given)
    return bytes(read)


def _unread(error: MediaTypeError, *, is_rpc: bool) -> Response:
    """Return that nobody reads such a type, as the protocol says it."""
    told = ContentTypeNotSupportedError(message=str(error))
    if is_rpc:
        return JSONResponse(build_error_response(None, told), _UNREAD)
    payload = build_rest_error_payload(told)
    payload["error"]["code"] = _UNREAD  # the specification's; the SDK says 400
    return JSONResponse(payload, _UNREAD)


def _as_asked(request: Request, answer: Response) -> Response:
    """Return an answer in the type of its request: versions of the specification differ in which one it is."""
    if request.headers.get("content-type", "").startswith(JSON) and answer.media_type == A2A_JSON_MEDIA_TYPE:
        answer.headers["Content-Type"] = JSON
    return answer


def _answer(request: Request, shape: object) -> Response:
    body = json_bytes(shape)
    etag = etag_of(body)
    headers = {"ETag": etag, "Cache-Control": "private, max-age=60", "Vary": "Authorization"}
    if is_known(request.headers.get("if-none-match"), etag):
        return Response(status_code=_SAME, headers=headers)
    return Response(body, 200, headers, JSON)
