"""The port that every handle speaks to, and its carrier in this process. It checks roles and idempotency keys."""

from typing import Protocol, TypeVar

from msgspec import Struct, json

from batonpass.api.acts import Act, Caller
from batonpass.errors import AccessError, BatonpassError, ConflictError, InvalidValueError, OutcomeUnknownError
from batonpass.log.append import CURRENT_REQUEST, Request
from batonpass.runtime.context import Context
from batonpass.wire.canonical import encode

Q = TypeVar("Q", bound=Struct)
A = TypeVar("A", bound=Struct)


class Port(Protocol):
    """Does acts: here, or at the other end of a connection."""

    def do(self, act: Act[Q, A], request: Q, key: str | None = None) -> A:
        """Return the answer. With a key the same request again has the same answer. Raises `BatonpassError`."""
        ...

    def close(self) -> None:
        """Give back what the port holds."""
        ...


class LocalPort:
    """Acts in this process, for one caller. A request is passed as it is, after a look at its types."""

    def __init__(self, context: Context, caller: Caller = Caller()) -> None:  # noqa: B008 - frozen
        self.context = context
        self.caller = caller

    def do(self, act: Act[Q, A], request: Q, key: str | None = None) -> A:
        """Return the answer."""
        if self.caller.role not in act.roles:
            roles = ", ".join(sorted(act.roles - {"process"}))
            raise AccessError(f"{act.name} is for {roles}, and this token is an {self.caller.role}'s")
        _check(act, request)
        if key is not None and act.again is not None:
            return self._do_once(act, request, key)
        return act.run(self.context, self.caller, request)

    def _do_once(self, act: Act[Q, A], request: Q, key: str) -> A:
        mark = self.context.request(self.caller.principal, act.name, request, key)
        # One of equal requests at a time: the others wait for its answer, and are not refused by what it began. What
        # comes to the same ledger by another process is told apart in the commit.
        requests = self.context.requests
        with requests.setdefault(mark.digest, self.context.recorder.system.lock()):
            try:
                return self._do_marked(act, request, mark)
            finally:
                requests.pop(mark.digest, None)

    def _do_marked(self, act: Act[Q, A], request: Q, mark: Request) -> A:
        earlier = self._answer_of(act, request, mark.digest, mark.fingerprint)
        if earlier is not None:
            return earlier
        token = CURRENT_REQUEST.set(mark)
        try:
            return act.run(self.context, self.caller, request)
        except OutcomeUnknownError:
            raise
        except BatonpassError:
            # Whatever refused it: if the same request is in the ledger by now, it came first, and its answer is ours.
            earlier = self._answer_of(act, request, mark.digest, mark.fingerprint)
            if earlier is None:
                raise
            return earlier
        finally:
            CURRENT_REQUEST.reset(token)

    def _answer_of(self, act: Act[Q, A], request: Q, digest: str, fingerprint: str) -> A | None:
        receipts = self.context.recorder.store.find_request(digest)
        if not receipts or act.again is None:
            return None
        if receipts[0].receipt.fingerprint != fingerprint:
            detail = f"this idempotency key was used for another request before {act.name}: take a new key"
            raise ConflictError(detail, code="idempotency.key_reused")
        return act.again(self.context, request, receipts)

    def close(self) -> None:
        """Close the ledger."""
        self.context.recorder.store.close()


def _check(act: Act[Q, A], request: Q) -> None:
    """Raise `InvalidValueError` if a request is not of its types: what no reader accepts would be signed for good.

    Structs check nothing when they are made. There and back through JSON takes some microseconds, and is said in the
    words that a caller elsewhere gets.
    """
    try:
        json.decode(encode(request), type=act.request)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidValueError(f"{act.name}: {error}") from None
