"""The contract of a credential provider: it returns a secret for one run, and the identity behind it."""

from typing import Final, NoReturn, Protocol

from msgspec import Struct

from batonpass.errors import CredentialError, InvalidValueError
from batonpass.model.base.checks import require_instance, require_text
from batonpass.model.base.ids import AgentId, PrincipalId, RunId

_LONGEST_IDENTITY: Final = 200


class Secret:
    """A secret that is not shown when printed or logged, and cannot be pickled or written as JSON."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = require_text("secret", value)

    def reveal(self) -> str:
        """Return the secret. The caller must not store it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> NoReturn:
        raise InvalidValueError("secret", "cannot be pickled or copied out of this process")


class Credential(Struct, frozen=True, kw_only=True):
    """A secret and the identity it acts as. The identity is recorded, the secret never is."""

    name: str
    identity: str
    secret: Secret

    def __post_init__(self) -> None:
        require_instance("secret", self.secret, Secret)
        if len(require_text("identity", self.identity)) > _LONGEST_IDENTITY:
            raise InvalidValueError("identity", f"has more than {_LONGEST_IDENTITY} characters")
        if self.secret.reveal() in self.identity:
            raise CredentialError(self.name, "its identity contains the secret; choose another identity")


class CredentialRequest(Struct, frozen=True, kw_only=True):
    """The run that needs a credential. A provider that supports it issues a separate one for each run."""

    name: str
    tool: str
    run: RunId
    agent: AgentId
    principal: PrincipalId


class Provider(Protocol):
    """A source of credentials."""

    def fetch(self, request: CredentialRequest) -> Credential:
        """Fetch the credential for a run; never cached. Raises `CredentialError`."""
