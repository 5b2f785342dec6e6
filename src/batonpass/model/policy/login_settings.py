"""Who may log in to the page by a provider of OpenID Connect, and in which role."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.kinds import AccessRole

PEOPLE: Final = (AccessRole.OPERATOR, AccessRole.AUDITOR, AccessRole.ADMIN)


class LoginRole(Struct, frozen=True, kw_only=True):
    """A row of the table: people with this value in this claim get this role."""

    claim: str
    value: str
    role: AccessRole

    def covers(self, claims: Mapping[str, Any]) -> bool:
        """Return whether somebody with these claims gets the role. Only texts and lists of texts count."""
        found = claims.get(self.claim)
        return found == self.value if isinstance(found, str) else isinstance(found, list) and self.value in found


class LoginSettings(Struct, frozen=True, kw_only=True):
    """The provider, our id there, and the meaning of its claims here."""

    issuer: str
    client_id: str
    secret_variable: str | None = None  # the environment variable with our secret; None: we have none
    principal_claim: str = "sub"  # its value names the principal
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    roles: tuple[LoginRole, ...] = ()  # the first that fits counts; who fits none is refused

    def __post_init__(self) -> None:
        parts = urlsplit(self.issuer)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise InvalidValueError("issuer", "is the URL of a provider, such as https://accounts.example.org")
        if not self.client_id:
            raise InvalidValueError("client_id", "is missing")
        if not self.roles:
            raise InvalidValueError("roles", "are missing: nobody could log in")
        if "openid" not in self.scopes:
            raise InvalidValueError("scopes", "openid is missing, which makes it a login")
        if unfit := [row.role for row in self.roles if row.role not in PEOPLE]:
            raise InvalidValueError("roles", f"nobody logs in as {unfit[0]}; people are {', '.join(PEOPLE)}")
