"""Errors of programs that work against a control plane on another machine."""

from batonpass.errors.base import BatonpassError
from batonpass.errors.ledger import StoreUnavailableError


class RemoteError(BatonpassError):
    """Something between a program and its control plane is not as it should be."""


class ServerUnreachableError(StoreUnavailableError):
    """The control plane does not answer. Nothing is lost: acts that were not acknowledged can be repeated."""

    code = "remote.unreachable"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} does not answer ({why}); is `batonpass serve` running there?")
        self.url = url


class RemoteAnswerError(RemoteError):
    """Something answered that is no control plane, or one of a version that this one does not understand."""

    code = "remote.answer"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url} did not answer as a control plane does: {why}")
        self.url = url


class SigningRefusedError(RemoteError):
    """A control plane asked for a signature of something that the program did not ask for."""

    code = "remote.signing_refused"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the control plane asked for a signature of something that this program did not ask for ({what}); "
            "nothing was signed. "
            "Do not trust this server until somebody has looked at it"
        )
        self.what = what


class NotOverHttpError(RemoteError):
    """The method needs the ledger itself, and does not work through a control plane."""

    code = "remote.not_possible"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs the ledger itself; do it where the ledger is, not through its control plane")
        self.what = what
