"""What an act is, and the table of all of them.

An act is a function of a context, a caller and a request. Handles, JSON lines, HTTP, MCP and OpenAPI are made from what
stands here and have no logic of their own. In process the structs are passed as they are.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct, ValidationError, convert

from batonpass.errors import AccessError, InvalidValueError
from batonpass.model.receipt import Signed
from batonpass.model.values import Name
from batonpass.runtime.context import Context

Role: TypeAlias = Literal["process", "agent", "operator", "auditor"]
WORK: Final[frozenset[Role]] = frozenset({"process", "agent"})
DECIDE: Final[frozenset[Role]] = frozenset({"process", "operator"})
READ: Final[frozenset[Role]] = frozenset({"process", "agent", "operator", "auditor"})

Q = TypeVar("Q", bound=Struct)
A = TypeVar("A", bound=Struct)


class Value(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request or an answer. A field that is unknown is a mistake, not an extension."""


class Caller(Struct, frozen=True):
    """What an entry point knows about who acts: the process itself, or what a token stands for.

    An agent finds what belongs to its principal and nothing else. The process, operators and auditors see the whole
    ledger; an auditor only reads, and only the process and operators decide about calls in doubt.
    """

    principal: str = ""  # empty: the process, which names a principal in each act
    role: Role = "process"

    def __post_init__(self) -> None:
        if self.principal and self.role == "process":
            raise InvalidValueError("a caller with a principal has a role: agent, operator or auditor")

    def act_as(self, by: str | None) -> str:
        """Return the principal of an act. A token speaks for one; the process says for whom."""
        if not by and not self.principal:
            raise InvalidValueError("by= is missing: for whom is this done? (by='user:ana')")
        if by and self.principal not in {"", by}:
            raise AccessError(f"this token acts for {self.principal}, not for {by}")
        try:
            return convert(by or self.principal, Name)
        except ValidationError as error:  # it is signed as a name, and no reader would accept it
            raise InvalidValueError(f"by=: {error}") from None


class Act(Struct, Generic[Q, A], eq=False, kw_only=True):
    """One row of the table."""

    name: str
    summary: str  # for people: OpenAPI, MCP, help
    method: Literal["GET", "POST"]
    path: str  # `{field}` is a field of the request
    roles: frozenset[Role]
    request: type[Q]
    answer: type[A]
    run: Callable[[Context, Caller, Q], A]
    again: Callable[[Context, Q, Sequence[Signed]], A] | None = None  # None: a read

    def repeated(self, again: Callable[[Context, Q, Sequence[Signed]], A]) -> Callable[..., A]:
        """Declare how a repeated request is answered: from the context and the receipts that it caused."""
        self.again = again
        return again


ACTS: Final[dict[str, Act[Any, Any]]] = {}


def act(route: str, *, roles: frozenset[Role]) -> Callable[[Callable[[Context, Caller, Q], A]], Act[Q, A]]:
    """Declare an act. Its name, its summary and its types are those of the function."""

    def declare(function: Callable[[Context, Caller, Q], A]) -> Act[Q, A]:
        method, _, path = route.partition(" ")
        row: Act[Q, A] = Act(
            name=function.__name__,
            summary=(function.__doc__ or "").partition("\n")[0],
            method="GET" if method == "GET" else "POST",
            path=path,
            roles=roles,
            request=function.__annotations__["request"],
            answer=function.__annotations__["return"],
            run=function,
        )
        ACTS[row.name] = row
        return row

    return declare


def receipt_of(receipts: Sequence[Signed], *kinds: str) -> Signed | None:
    """Return the first receipt of one of these kinds."""
    return next((signed for signed in receipts if signed.receipt.kind in kinds), None)
