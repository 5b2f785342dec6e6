"""The routes of a login: to the provider, and back from it into a session of the page."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from batonpass.errors import BatonpassError, InvalidValueError, LoginRefusedError
from batonpass.model.base.ids import PrincipalId, require_principal
from batonpass.model.base.kinds import AccessRole
from batonpass.model.policy.login_settings import LoginSettings
from batonpass.server.app import in_thread
from batonpass.server.login.attempt import OPEN_FOR, LoginAttempts
from batonpass.server.login.provider import LoginProvider
from batonpass.server.page.door import PageDoor, local_path

LOGIN: Final = "/login"
BACK: Final = "/login/callback"
_COOKIE: Final = "batonpass-login"
_SEE_OTHER: Final = 303
_THREADS: Final = 8
_BY: Final = "service:login"


def login_routes(settings: LoginSettings, provider: LoginProvider, page: PageDoor) -> Sequence[BaseRoute]:
    """Return the routes of a login, to be mounted beside the page."""
    door = _LoginDoor(settings, provider, page)
    return [Route(LOGIN, door.leave_for_provider), Route(BACK, door.come_back)]


def identity_of(settings: LoginSettings, claims: Mapping[str, Any]) -> tuple[PrincipalId, AccessRole]:
    """Return whose claims these are, and in which role they come in. Raises `LoginRefusedError`."""
    named = claims.get(settings.principal_claim)
    if settings.principal_claim == "email" and claims.get("email_verified") is not True:
        raise LoginRefusedError("the provider has not verified your address")
    try:
        principal = require_principal("principal", PrincipalId(f"user:{named}"))
    except InvalidValueError:
        raise LoginRefusedError(f"your {settings.principal_claim} is no name of a principal") from None
    role = next((row.role for row in settings.roles if row.covers(claims)), None)
    if role is None:
        raise LoginRefusedError(f"no row of [login] gives {principal} a role")
    return principal, role


class _LoginDoor:
    """Sends browsers to the provider, and opens sessions for those that come back."""

    def __init__(self, settings: LoginSettings, provider: LoginProvider, page: PageDoor) -> None:
        self._settings = settings
        self._provider = provider
        self._page = page
        self._attempts = LoginAttempts(page.plane.clock)
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def leave_for_provider(self, request: Request) -> Response:
        """Send a browser to the provider."""
        attempt = self._attempts.begin(local_path(request.query_params.get("to", "")))
        asked = partial(
            self._provider.redirect,
            _here(request),
            state=attempt.state,
            nonce=attempt.nonce,
            challenge=attempt.challenge,
        )
        try:
            place = await in_thread(self._threads, asked)
        except BatonpassError as error:
            return self._page.ask_again(request, error)
        answer = RedirectResponse(place, _SEE_OTHER)
        self._keep(request, answer, attempt.browser, int(OPEN_FOR.total_seconds()))
        return answer

    async def come_back(self, request: Request) -> Response:
        """Open a session for a browser that comes back from the provider."""
        try:
            to, cookie = await in_thread(self._threads, partial(self._finish, request))
        except BatonpassError as error:
            answer = self._page.ask_again(request, error)
            self._keep(request, answer, "", 0)
            return answer
        answer = RedirectResponse(to, _SEE_OTHER)
        self._keep(request, answer, "", 0)
        self._page.keep_session(request, answer, cookie)
        return answer

    def _finish(self, request: Request) -> tuple[str, str]:
        given = request.query_params
        attempt = self._attempts.finish(given.get("state", ""), request.cookies.get(_COOKIE))
        code = given.get("code")
        if code is None:
            raise LoginRefusedError("the provider did not let you in")
        token = self._provider.exchange(code, _here(request), attempt.verifier)
        principal, role = identity_of(self._settings, self._provider.claims(token, attempt.nonce))
        return attempt.to, self._page.sessions.open_for(principal, role, by=_BY)

    def _keep(self, request: Request, answer: Response, value: str, lasts: int) -> None:
        # Lax: the browser comes back from another site, and has to bring it along.
        secure = request.url.scheme == "https"
        answer.set_cookie(_COOKIE, value, max_age=lasts, path=BACK, secure=secure, httponly=True, samesite="lax")


def _here(request: Request) -> str:
    """Return our own address as this browser knows it; the boundary has checked the host."""
    return f"{request.url.scheme}://{request.headers['host']}{BACK}"
