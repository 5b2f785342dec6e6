"""What a provider of credentials promises: a secret for one run, and whose it is."""

from typing import Final, NoReturn, Protocol

from msgspec import Struct

from batonpass.errors import CredentialError, InvalidValueError
from batonpass.model.base.checks import require_instance, require_text
from batonpass.model.base.ids import AgentId, PrincipalId, RunId

_LONGEST_IDENTITY: Final = 200


class Secret:
    """A secret that does not show itself: not when printed, logged, compared, copied into JSON or pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = require_text("secret", value)

    def reveal(self) -> str:
        """Return the secret itself. Whoever asks for it must not keep it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> NoReturn:
        raise InvalidValueError("secret", "leaves this process only where a tool sends it")


class Credential(Struct, frozen=True, kw_only=True):
    """A secret, and the identity that others know whoever uses it by. The identity is recorded, the secret never."""

    name: str
    identity: str
    secret: Secret

    def __post_init__(self) -> None:
        require_instance("secret", self.secret, Secret)
        if len(require_text("identity", self.identity)) > _LONGEST_IDENTITY:
            raise InvalidValueError("identity", f"has more than {_LONGEST_IDENTITY} characters")
        if self.secret.reveal() in self.identity:
            raise CredentialError(self.name, "its identity holds the secret; give it another identity")


class CredentialRequest(Struct, frozen=True, kw_only=True):
    """For whom a credential is fetched: a backend that can gives each run one of its own."""

    name: str
    tool: str
    run: RunId
    agent: AgentId
    principal: PrincipalId


class Provider(Protocol):
    """Where a credential comes from."""

    def fetch(self, request: CredentialRequest) -> Credential:
        """Return the credential for a run, fetched anew. Raises `CredentialError`."""
