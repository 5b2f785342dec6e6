"""The table `[login]`: a provider of OpenID Connect, and the claims that give people their roles."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.kinds import AccessRole
from batonpass.model.policy.login_settings import LoginRole, LoginSettings
from batonpass.policy.document import LOGIN, DocumentPlace, read_document

_ROLE_KEYS: Final = ("claim", "value", "role")


def _role(place: DocumentPlace) -> LoginRole:
    given = place.table(_ROLE_KEYS)
    if missing := [key for key in _ROLE_KEYS if key not in given]:
        raise place.error(f"{missing[0]} is missing")
    return LoginRole(claim=given["claim"].text(), value=given["value"].text(), role=given["role"].member(AccessRole))


_KEYS: Final[Mapping[str, Callable[[DocumentPlace], Any]]] = {
    "issuer": DocumentPlace.text,
    "client_id": DocumentPlace.text,
    "secret_variable": DocumentPlace.text,
    "principal_claim": DocumentPlace.text,
    "scopes": lambda place: place.texts("scopes"),
    "roles": lambda place: tuple(_role(one) for one in place.elements("roles")),
}


def read_login(path: Path | None) -> LoginSettings | None:
    """Return the settings for logging in; None if a file has none. Raises `PolicyFileError`."""
    if path is None:
        return None
    place = read_document(path).table(LOGIN)
    given = place.table(_KEYS)
    if not given:
        return None
    try:
        return LoginSettings(**{key: _KEYS[key](value) for key, value in given.items()})
    except InvalidValueError as error:
        raise place.error(error.problem) from None
    except TypeError:
        raise place.error("needs issuer, client_id and roles") from None
