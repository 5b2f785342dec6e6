"""One way into the HTTP interface: its path, its roles, its request and its answer.

The table of endpoints is the only place where these are said. The routes, the OpenAPI document and the tests that go
through every endpoint and every role are made from it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from batonpass.model.base.kinds import AccessRole
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff
from batonpass.server.access import AccessCaller
from batonpass.server.control_plane import ControlPlane
from batonpass.server.reach import CallerReach, claimable
from batonpass.store.port import LedgerView

EVERYBODY: Final = frozenset(AccessRole)
PEOPLE: Final = EVERYBODY - {AccessRole.AGENT}  # who read the whole ledger
DECIDERS: Final = frozenset({AccessRole.OPERATOR, AccessRole.ADMIN})
AUDITORS: Final = frozenset({AccessRole.AUDITOR, AccessRole.ADMIN})
ADMINS: Final = frozenset({AccessRole.ADMIN})
AGENTS: Final = frozenset({AccessRole.AGENT})


class ApiRequest(Struct, frozen=True, kw_only=True, eq=False):
    """A request of somebody who was let in, with everything in it read and checked."""

    plane: ControlPlane
    caller: AccessCaller
    names: Mapping[str, str]  # the parts of the path
    query: Any  # of the type that the endpoint says
    body: Any  # as above
    proof: str | None = None  # of the run in whose name an agent acts
    key: str | None = None  # the idempotency key
    accepts: str = ""  # the media types that the client takes, as it says it
    signs: bool = False  # the client keeps the keys of its runs, and signs

    def readable_handoff(self) -> Handoff:
        """Return the handoff in the path, if the caller may read it: from its run, or as a worker for its agent."""
        given = self.names["handoff"]
        with self.plane.relay.store.view() as view:
            found = claimable(view, self.caller, self.proof, given)
            return found or CallerReach(view, self.caller, self.proof).readable_handoff(given)

    @contextmanager
    def looking(self) -> Iterator[tuple[LedgerView, CallerReach]]:
        """Open a view of the ledger, with the caller's reach in it."""
        with self.plane.relay.store.view() as view:
            yield view, CallerReach(view, self.caller, self.proof)


class RawAnswer(Struct, frozen=True, kw_only=True):
    """An answer that is not JSON: bytes that somebody attached."""

    body: bytes
    media_type: str


class Endpoint(Struct, frozen=True, kw_only=True):
    """One way into the HTTP interface."""

    method: str
    path: str  # with its parts in braces
    name: str  # of the operation, unique
    about: str  # one sentence
    roles: frozenset[AccessRole]
    act: Callable[[ApiRequest], object]
    answers: Any  # the type of the answer, for the document; `bytes` for raw ones, `str` for text
    raw_types: tuple[str, ...] = ("application/octet-stream",)  # the media types of an answer that is no JSON
    query: type[Struct] | None = None
    body: type[Struct] | None = None
    status: int = 200
    streams: bool = False  # it goes on answering, with server-sent events
    asks_others: bool = False  # it makes a request to somebody else, who may not answer
    needs_proof: bool = True  # of an agent: that the run in question is its own
    signed: bool | None = None  # whether its caller may have to sign; None: agents may, where something changes
    next_step: bool = False  # it answers what another act would have answered
    # What the act answered, from the receipt that its client had signed when the connection was lost; None if the
    # receipt does not say: then the act is done as if for the first time.
    recall: Callable[[ApiRequest, Receipt], object | None] | None = None

    @property
    def is_signed(self) -> bool:
        """Return whether its caller may have to sign: for a run of an agent, or a ruling."""
        changes = not self.is_read and AccessRole.AGENT in self.roles
        return changes if self.signed is None else self.signed

    @property
    def may_wait(self) -> bool:
        """Return whether its answer may be something to sign first."""
        return self.is_signed or self.next_step

    @property
    def is_read(self) -> bool:
        """Return whether it changes nothing."""
        return self.method == "GET"
