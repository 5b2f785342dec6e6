"""The routes of the page: its views, its forms, and how people come in and leave."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from batonpass.errors import BatonpassError, NoSuchRouteError, SessionEndedError, UnknownTokenError
from batonpass.model.base.ids import TokenId
from batonpass.server.answer import JSON, status_of, told_error
from batonpass.server.app import in_thread
from batonpass.server.boundary import refused
from batonpass.server.control_plane import ControlPlane
from batonpass.server.event_stream import LAST_EVENT, resumed_after
from batonpass.server.page.deed import DEEDS, export, perform, prepare
from batonpass.server.page.fleet_counts import FleetCounts
from batonpass.server.page.form import read_form, require_own
from batonpass.server.page.frame import policy, render, static_files
from batonpass.server.page.ledger_check import LedgerCheck
from batonpass.server.page.live import LiveNews
from batonpass.server.page.need_count import count_waiting
from batonpass.server.page.passkey import make_passkey
from batonpass.server.page.request import PageMoved, PageRequest, PageView, Shown
from batonpass.server.page.session import LASTS, PageSessions, PageVisitor
from batonpass.server.page.shown_files import ShownFiles
from batonpass.server.page.view_table import VIEWS

_THREADS: Final = 20
_SEE_OTHER: Final = 303
_FOREVER: Final = "public, max-age=31536000, immutable"
_LONGEST_PATH: Final = 2000
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

Handler = Callable[[Request], Awaitable[Response]]


def page_routes(
    plane: ControlPlane, sessions: PageSessions | None = None, files: Sequence[ShownFiles] = ()
) -> Sequence[BaseRoute]:
    """Return the routes of the page, to be mounted beside the HTTP interface."""
    return PageDoor(plane, sessions or PageSessions(plane), files=files).routes()


def _routes(door: "PageDoor") -> Sequence[BaseRoute]:
    return [
        Route("/enter", door.show_entry),
        Route("/session", door.enter, methods=["POST"]),
        Route("/session/end", door.leave, methods=["POST"]),
        Route("/static/{digest}/{name}", door.send_file),
        Route("/events", door.stream),
        Route("/passkey", door.make_passkey, methods=["POST"]),
        Route("/approvals/{held}/ruling", door.prepare_ruling, methods=["POST"]),
        Route("/tasks/{run}/export", door.send_tree),
        *(Route(view.path, door.look_at(view)) for view in VIEWS),
        *(Route(view.path, door.ask_with_form(view), methods=["POST"]) for view in VIEWS if view.takes_form),
        *(Route(deed.path, door.do(deed.name), methods=["POST"]) for deed in DEEDS),
    ]


class PageDoor:
    """Answers requests of browsers."""

    def __init__(
        self, plane: ControlPlane, sessions: PageSessions, *, has_login: bool = False, files: Sequence[ShownFiles] = ()
    ) -> None:
        self.plane = self._plane = plane
        self.sessions = self._sessions = sessions
        self._files = tuple(files)
        self._has_login = has_login  # a provider lets people in as well
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._news = LiveNews(plane)
        self._check = LedgerCheck(plane)
        self._counts = FleetCounts(plane)

    def routes(self) -> Sequence[BaseRoute]:
        """Return its routes."""
        return _routes(self)

    def ask_again(self, request: Request, error: BatonpassError) -> Response:
        """Show the way in, with the error."""
        return self._send(request, "enter.html", {"to": "/", "error": told_error(error)}, status_of(error))

    def keep_session(self, request: Request, answer: Response, cookie: str) -> None:
        """Give a browser the cookie of its session."""
        self._set_cookie(request, answer, cookie, int(LASTS.total_seconds()))

    def look_at(self, view: PageView) -> Handler:
        """Return the handler of requests for a view."""

        async def handle(request: Request) -> Response:
            answered: Response = await in_thread(self._threads, partial(self._look, view, request))
            return answered

        return handle

    def ask_with_form(self, view: PageView) -> Handler:
        """Return the handler of a form that asks something, and changes nothing."""

        async def handle(request: Request) -> Response:
            try:
                require_own(request.headers)
                fields = await read_form(request)
            except BatonpassError as error:
                return self._refuse(request, None, error)
            answered: Response = await in_thread(self._threads, partial(self._look, view, request, fields))
            return answered

        return handle

    def _look(self, view: PageView, request: Request, fields: Mapping[str, str] | None = None) -> Response:
        try:
            visitor = self._visitor(request)
        except BatonpassError as error:
            return self._ask_in(request, error)
        try:
            visitor.caller.require_role(view.roles)
            if fields is not None:
                visitor.require_form(fields.get("form", ""))
            asked = self._asked(request, visitor, fields or {})
            return self._answer(request, visitor, view.template, {"view": view.name, **view.make(asked)})
        except PageMoved as moved:
            return RedirectResponse(moved.to, _SEE_OTHER)
        except BatonpassError as error:
            return self._refuse(request, visitor, error)

    def do(self, name: str) -> Handler:
        """Return the handler of a form that changes something."""

        async def handle(request: Request) -> Response:
            try:
                require_own(request.headers)
                fields = await read_form(request)
            except BatonpassError as error:
                return self._refuse(request, None, error)
            answered: Response = await in_thread(self._threads, partial(self._do, name, request, fields))
            return answered

        return handle

    def _do(self, name: str, request: Request, fields: dict[str, str]) -> Response:
        try:
            visitor = self._visitor(request)
        except BatonpassError as error:
            return self._ask_in(request, error)
        try:
            visitor.require_form(fields.get("form", ""))
            to = perform(name, self._asked(request, visitor), fields)
        except BatonpassError as error:
            return self._refuse(request, visitor, error, back=local_path(fields.get("back", "")))
        return RedirectResponse(to, _SEE_OTHER)

    async def make_passkey(self, request: Request) -> Response:
        """Show the public half of a passkey that a browser has just made. Nothing is recorded or kept."""

        def answer(fields: dict[str, str]) -> Response:
            visitor = self._visitor(request)
            try:
                visitor.require_form(fields.get("form", ""))
                shown = make_passkey(self._asked(request, visitor), fields)
            except BatonpassError as error:
                return self._refuse(request, visitor, error, back="/passkey")
            return self._answer(request, visitor, "passkey.html", {"view": "", **shown})

        try:
            require_own(request.headers)
            fields = await read_form(request)
            answered: Response = await in_thread(self._threads, partial(answer, fields))
        except BatonpassError as error:
            return self._refuse(request, None, error)
        return answered

    async def prepare_ruling(self, request: Request) -> Response:
        """Answer the script of the page with the ruling that a passkey has to sign, or with why there is none."""

        def answer(fields: dict[str, str]) -> bytes:
            visitor = self._visitor(request)
            visitor.require_form(fields.get("form", ""))
            return prepare(self._asked(request, visitor), fields)

        try:
            require_own(request.headers)
            fields = await read_form(request)
            made: bytes = await in_thread(self._threads, partial(answer, fields))
        except BatonpassError as error:
            return refused(error)
        return Response(made, media_type=JSON)

    async def stream(self, request: Request) -> Response:
        """Tell a page that something changed, without any content."""
        try:
            visitor: PageVisitor = await in_thread(self._threads, partial(self._visitor, request))
            root, after = request.query_params.get("root"), request.query_params.get("after")
            last = resumed_after(request.headers.get(LAST_EVENT) or after)
            return self._news.stream(visitor.caller.token.id, root, last, self._threads)
        except BatonpassError as error:
            return Response(told_error(error)["message"], status_of(error), media_type="text/plain")

    async def send_tree(self, request: Request) -> Response:
        """Send the tree of a task as a file, which verifies offline: the bundle of the HTTP interface."""
        answered: Response = await in_thread(self._threads, partial(self._export, request))
        return answered

    def _export(self, request: Request) -> Response:
        try:
            visitor = self._visitor(request)
        except BatonpassError as error:
            return self._ask_in(request, error)
        try:
            name, body, media_type = export(self._asked(request, visitor))
        except BatonpassError as error:
            return self._refuse(request, visitor, error)
        # The words of others are in it: a browser keeps it, and shows nothing of it.
        kept = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Security-Policy": "sandbox"}
        return Response(body, headers=kept, media_type=media_type)

    async def send_file(self, request: Request) -> Response:
        """Send a style, a script or a picture of ours. Its address changes with it, so it is kept for good."""
        found = static_files().get(request.path_params["name"])
        if found is None:
            return self._refuse(request, None, NoSuchRouteError(request.url.path[:200]))
        return Response(found.body, headers={"Cache-Control": _FOREVER}, media_type=found.media_type)

    async def show_entry(self, request: Request) -> Response:
        """Show the way in: it takes the code of a one-time link, which no server log has seen, or a token."""
        return self._send(request, "enter.html", {"to": local_path(request.query_params.get("to", "")), "error": None})

    async def enter(self, request: Request) -> Response:
        """Exchange a code or a token for a session."""
        fields: dict[str, str] = {}
        try:
            require_own(request.headers)
            fields = await read_form(request)
            cookie = await in_thread(self._threads, partial(self._open, request, fields))
        except BatonpassError as error:
            said = {
                "to": local_path(fields.get("to", "")),
                "error": told_error(error),
                "used_link": isinstance(error, UnknownTokenError) and bool(fields.get("code", "").strip()),
            }
            return self._send(request, "enter.html", said, status_of(error))
        answer = RedirectResponse(local_path(fields.get("to", "")), _SEE_OTHER)
        self._set_cookie(request, answer, cookie, int(LASTS.total_seconds()))
        return answer

    def _open(self, request: Request, fields: dict[str, str]) -> str:
        address = "" if request.client is None else request.client.host
        if code := fields.get("code", "").strip():
            issued = self._plane.doorkeeper.exchange(self._plane.entrance, code, address)
            return self._sessions.open_with(issued.id, is_own=True)
        given = fields.get("token", "").strip()
        caller = self._plane.doorkeeper.let_in(f"Bearer {given}" if given else None, address)
        return self._sessions.open_with(TokenId(caller.token.id), is_own=False)

    async def leave(self, request: Request) -> Response:
        """End the session."""
        try:
            require_own(request.headers)
            fields = await read_form(request)
            await in_thread(self._threads, partial(self._close, request, fields.get("form", "")))
        except BatonpassError as error:
            return self._refuse(request, None, error)
        answer = RedirectResponse("/enter", _SEE_OTHER)
        self._set_cookie(request, answer, "", 0)
        answer.headers["Clear-Site-Data"] = '"cache"'
        return answer

    def _close(self, request: Request, form: str) -> None:
        try:
            self._visitor(request).require_form(form)
        except SessionEndedError:
            return
        self._sessions.close(request.cookies.get(_cookie_name(request)))

    def _visitor(self, request: Request) -> PageVisitor:
        return self._sessions.find(request.cookies.get(_cookie_name(request)))

    def _asked(self, request: Request, visitor: PageVisitor, fields: Mapping[str, str] = _NOTHING) -> PageRequest:
        return PageRequest(
            plane=self._plane,
            visitor=visitor,
            path=request.url.path,
            names=request.path_params,
            query=dict(request.query_params),
            check=self._check,
            counts=self._counts,
            origin=f"{request.url.scheme}://{request.url.netloc}",
            files=self._files,
            fields=fields,
            is_refresh="hx-request" in request.headers,
        )

    def _ask_in(self, request: Request, error: BatonpassError) -> Response:
        to = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        if request.method != "GET":
            to = "/"
        elif request.headers.get("sec-fetch-site") == "cross-site":
            # A strict cookie does not come along from another site, such as a chat in which somebody was sent the link.
            # Asked again by our own page, the browser sends it.
            return self._send(request, "again.html", {"to": local_path(to)})
        unknown = isinstance(error, SessionEndedError | UnknownTokenError)
        said = {"to": local_path(to), "error": None if unknown else told_error(error)}
        return self._send(request, "enter.html", said, status_of(error))

    def _refuse(
        self, request: Request, visitor: PageVisitor | None, error: BatonpassError, back: str = "/"
    ) -> Response:
        said = {"view": "", "error": told_error(error), "back": back}
        if visitor is None:
            return self._send(request, "refused.html", said, status_of(error))
        return self._answer(request, visitor, "refused.html", said, status_of(error))

    def _answer(
        self, request: Request, visitor: PageVisitor, template: str, said: Shown, status: int = 200
    ) -> Response:
        with self._plane.relay.store.view() as view:
            frame = {
                "visitor": visitor,
                "waiting": count_waiting(view),
                "position": view.last_position(),
                "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
                "now": self._plane.clock.now(),
                "check_state": self._check.state,
            }
        return self._send(request, template, {**frame, **said}, status)

    def _send(self, request: Request, template: str, said: Shown, status: int = 200) -> Response:
        nonce = secrets.token_urlsafe(16)
        body = render(template, nonce, {"visitor": None, "has_login": self._has_login, **said})
        # Without a referrer a browser would not say either that a form is from our own page. Others are told nothing.
        headers = {"Content-Security-Policy": policy(nonce), "Referrer-Policy": "same-origin"}
        if request.method == "HEAD":
            body = ""
        return Response(body, status, headers, "text/html; charset=utf-8")

    def _set_cookie(self, request: Request, answer: Response, value: str, lasts: int) -> None:
        answer.set_cookie(
            _cookie_name(request),
            value,
            max_age=lasts,
            path="/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )


def _cookie_name(request: Request) -> str:
    """Return the name of our cookie.

    Over TLS it is bound to this host. Without, on one machine, cookies of all ports are sent to each: so each server
    has a name of its own.
    """
    if request.url.scheme == "https":
        return "__Host-batonpass"
    return f"batonpass-{request.url.port or 80}"


def local_path(path: str) -> str:
    """Return a path of this server; anything else leads to its beginning."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return quote(path, safe="/?&=%+,:@-._~#") if is_ours and len(path) <= _LONGEST_PATH else "/"
