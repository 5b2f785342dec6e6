"""The routes for people in browsers: the page, and a login by a provider if the settings name one."""

import os
from typing import TYPE_CHECKING

from batonpass.cli.input.ledger_access import settings
from batonpass.config import find_policy_file
from batonpass.credentials.port import Secret
from batonpass.errors import MissingExtraError, ServerNotStartedError
from batonpass.policy.login_table import read_login

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from starlette.routing import BaseRoute

    from batonpass.model.policy.login_settings import LoginSettings
    from batonpass.server.control_plane import ControlPlane


def people_routes(plane: "ControlPlane", repositories: "Sequence[Path]" = ()) -> "Sequence[BaseRoute]":
    """Return the routes of the page, which shows these repositories, and of the login.

    Raises `ServerNotStartedError` and `MissingExtraError`.
    """
    from batonpass.cli.server.shown_repository import ShownRepository  # noqa: PLC0415 - needs the extra
    from batonpass.server.page.door import PageDoor  # noqa: PLC0415 - needs the extra
    from batonpass.server.page.session import PageSessions  # noqa: PLC0415 - as above

    login = read_login(find_policy_file(settings().policy))
    files = {one.root: one for one in (ShownRepository(each, settings().home) for each in repositories)}
    if len({one.name for one in files.values()}) < len(files):
        raise ServerNotStartedError("two of the repositories have the same name, and an address could mean either")
    page = PageDoor(plane, PageSessions(plane), has_login=login is not None, files=[*files.values()])
    if login is None:
        return page.routes()
    try:
        from batonpass.server.login.door import login_routes  # noqa: PLC0415 - needs an extra
        from batonpass.server.login.provider import LoginProvider  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"jwt", "cryptography"}:
            raise
        raise MissingExtraError("logins by a provider", "oidc") from None
    return [*page.routes(), *login_routes(login, LoginProvider(login, plane.egress, _secret(login)), page)]


def _secret(login: "LoginSettings") -> Secret | None:
    if login.secret_variable is None:
        return None
    found = os.environ.get(login.secret_variable)
    if not found:
        raise ServerNotStartedError(
            f"[login] takes its secret from {login.secret_variable}, and that environment variable is not set"
        )
    return Secret(found)
