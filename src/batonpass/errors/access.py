"""Errors about who may come in through a server, and their reach."""

from batonpass.errors.base import BatonpassError


class AccessError(BatonpassError):
    """Somebody may not come in, or not do this."""


class UnknownTokenError(AccessError):
    """There is no token, or none that lets anybody in: it is wrong, expired or revoked."""

    code = "access.unknown_token"

    def __init__(self) -> None:
        super().__init__(
            "send a token that is valid, as `Authorization: Bearer TOKEN`; `batonpass token add` makes one, "
            "and `batonpass token list` shows which are still valid"
        )


class RoleRefusedError(AccessError):
    """The role of a token does not cover this."""

    code = "access.role"

    def __init__(self, role: str, needed: tuple[str, ...]) -> None:
        super().__init__(f"a token with the role {role} cannot do this; it takes the role {' or '.join(needed)}")
        self.role = role
        self.needed = needed


class OutOfReachError(AccessError):
    """A token does not reach this run, handoff or receipt. It may not even exist."""

    code = "access.out_of_reach"

    def __init__(self, given: str) -> None:
        super().__init__(f"{given} is not within the reach of this token: it is not a run of its own, nor below one")
        self.given = given


class RunProofError(AccessError):
    """A request in the name of a run has no proof by the run's key, or a wrong one."""

    code = "access.run_proof"

    def __init__(self, run: str | None) -> None:
        super().__init__(
            "send the proof that came with the run, as `Batonpass-Proof: PROOF`, or over MCP as `run`"
            if run is None
            else f"the proof is not one of {run} and this token; send the one that came with the run"
        )
        self.run = run


class AnotherPrincipalError(AccessError):
    """A request names another principal than the token does."""

    code = "access.principal"

    def __init__(self, given: str, own: str) -> None:
        super().__init__(f"this token acts for {own} and for nobody else; leave `by` out, or do not say {given}")
        self.given = given
        self.own = own


class SessionEndedError(AccessError):
    """A browser has no session, or one that has ended: by its time, by leaving, or because its token was revoked."""

    code = "access.session"

    def __init__(self) -> None:
        super().__init__(
            "come in again, with the link that `batonpass ui` or `batonpass serve` prints, or with a token"
        )


class LoginRefusedError(AccessError):
    """Somebody who logs in by a provider is not let in: the login does not hold, or gives no role here."""

    code = "access.login"

    def __init__(self, problem: str) -> None:
        super().__init__(f"the login did not work: {problem}; begin it again, or ask whoever runs this server")
        self.problem = problem


class WrongFormError(AccessError):
    """A form was not made by this server for this session."""

    code = "access.form"

    def __init__(self) -> None:
        super().__init__(
            "this form was not made for your session; load the page again. What was recorded is still there"
        )


class LockedOutError(AccessError):
    """There were too many wrong tokens from one address."""

    code = "access.locked_out"

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong tokens came from this address; wait {seconds} seconds")
        self.seconds = seconds


class WrongHostError(AccessError):
    """A request is for another host than this server serves."""

    code = "access.host"

    def __init__(self, host: str) -> None:
        super().__init__(f"this server does not serve {host!r}; to let it, start it with --host-name {host or 'NAME'}")
        self.host = host


class WrongOriginError(AccessError):
    """A request was made by a page of another site."""

    code = "access.origin"

    def __init__(self, origin: str) -> None:
        super().__init__(f"pages of {origin!r} may not use this server")
        self.origin = origin


class TooManyRequestsError(AccessError):
    """A token makes more requests than are allowed."""

    code = "access.too_many"

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many requests came from this caller; wait {seconds} seconds")
        self.seconds = seconds


class SignatureMissingError(AccessError):
    """The holder of a run's key did not sign in time, or refused to."""

    code = "access.signature_missing"

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"the holder of the key {key[:16]} did not sign ({why}); nothing was recorded, so do it again")
        self.key = key


class SignatureWrongError(AccessError):
    """A signature is not one of the bytes that were asked for, by the key that was asked."""

    code = "access.signature_wrong"

    def __init__(self, key: str) -> None:
        super().__init__(f"this is no signature of these bytes by the key {key[:16]}; sign exactly what was asked for")
        self.key = key


class RequestError(BatonpassError):
    """A request cannot be understood or taken."""


class NoSuchRouteError(RequestError):
    """Nothing is at this path."""

    code = "http.no_route"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is nothing at {path}; /openapi.json lists all paths")
        self.path = path


class WrongMethodError(RequestError):
    """The path exists, and not for this method."""

    code = "http.method"

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"{method} is not possible here, only {', '.join(allowed)}")
        self.allowed = allowed


class MediaTypeError(RequestError):
    """The body of a request is not JSON."""

    code = "http.media_type"

    def __init__(self, given: str) -> None:
        super().__init__(f"send the body as application/json, not as {given or 'nothing'}")


class RequestTooLargeError(RequestError):
    """The body of a request is larger than this server takes."""

    code = "http.too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body of a request has at most {limit:,} bytes")
        self.limit = limit


class RepeatedKeyError(RequestError):
    """An idempotency key was used for another request."""

    code = "http.key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(f"the Idempotency-Key {key!r} was used for another request; choose a new one")
        self.key = key


class ServerNotStartedError(BatonpassError):
    """A server cannot be started as it was asked for."""

    code = "server.not_started"


class InternalFaultError(RequestError):
    """The server failed unexpectedly. The cause is in its log, never in the answer."""

    code = "http.internal"

    def __init__(self, number: str) -> None:
        super().__init__(f"the server failed; its log says more under {number}")
        self.number = number
