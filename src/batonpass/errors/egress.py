"""Errors about requests that Batonpass itself makes to others: webhooks, push notifications, cards.

None of them quotes more of a URL than its scheme, host and port: the rest is often a secret.
"""

from batonpass.errors.base import BatonpassError


class EgressError(BatonpassError):
    """A request to another server was not made, or failed."""


class EgressRefusedError(EgressError):
    """A URL may not be asked: it leads to an address that is not public, or is written in a way nobody needs."""

    code = "egress.refused"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where}: {problem}; if it is meant, list it in batonpass.toml under [egress] as allow = [...]"
        )
        self.where = where
        self.problem = problem


class EgressRedirectedError(EgressError):
    """The answer sends us elsewhere, where nobody allowed us to go."""

    code = "egress.redirected"

    def __init__(self, where: str, status: int) -> None:
        super().__init__(f"{where} answered with a redirect ({status}), and none is followed; give the final URL")
        self.where = where
        self.status = status


class EgressTooLargeError(EgressError):
    """The answer is larger than is read."""

    code = "egress.too_large"

    def __init__(self, where: str, limit: int) -> None:
        super().__init__(f"the answer of {where} has more than {limit} bytes; nothing of it is used")
        self.where = where
        self.limit = limit


class EgressFailedError(EgressError):
    """The other side could not be reached, was too slow, or is not who it should be."""

    code = "egress.failed"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}; see that it is there and answers, then try again")
        self.where = where
        self.problem = problem


class CollectorError(EgressError):
    """A collector of telemetry did not take a delivery, or it is unknown whether it did. It is sent again."""

    code = "telemetry.untaken"

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} did not take the data; they are sent again later, with the same ids")
        self.where = where
