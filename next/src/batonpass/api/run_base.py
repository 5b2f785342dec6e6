"""What a run's handles of both faces have in common, because it waits for nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypedDict, TypeVar
from weakref import WeakSet

from batonpass.api.repetition import Progress
from batonpass.api.runs import Opened
from batonpass.errors import InvalidValueError
from batonpass.model.grants import Grant
from batonpass.model.items import (
    AnyItem,
    Assumption,
    Baton,
    Brief,
    Claim,
    Decision,
    HandoffOptions,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)

if TYPE_CHECKING:
    from batonpass.reading.history import DoubtfulCall

AnyPort = TypeVar("AnyPort")
T = TypeVar("T")

CURRENT_RUN: Final[ContextVar[Any]] = ContextVar("batonpass_run", default=None)

# Runs that handles of this process hold open. What runs for nobody known may be the work of any of them.
ENFORCED_RUNS: Final[WeakSet[Progress]] = WeakSet()


class OfferArguments(TypedDict, total=False):
    """What `hand_off` may be told, whichever answer it gives."""

    may: Sequence[str] | None
    may_delegate: Sequence[str] | None
    grant: Grant | None
    criteria: Sequence[str]
    brief: Brief | None
    items: Sequence[AnyItem]
    options: HandoffOptions | None
    key: str | None


class RunBase(Generic[AnyPort]):
    """What a run is, and what it gathers for its close."""

    def __init__(self, port: AnyPort, opened: Opened, progress: Progress | None = None) -> None:
        self._port = port
        self.opened = opened
        self.progress = Progress() if progress is None else progress
        if progress is None and opened.mode == "enforced" and not opened.is_replayed:
            ENFORCED_RUNS.add(self.progress)
        self._token: Token[Any] | None = None
        self.id = opened.run
        self.epoch = opened.epoch
        self.root = opened.root
        self.parent = opened.parent
        self.handoff = opened.handoff
        self.agent = opened.agent
        self.principal = opened.principal
        self.attempt = opened.attempt
        self.mode = opened.mode
        self.is_replayed = opened.is_replayed
        self.is_recorded = opened.is_recorded
        self.baton: Baton = opened.baton
        self.in_doubt: tuple[DoubtfulCall, ...] = opened.in_doubt

    @property
    def task(self) -> str:
        """The exact task that it was given; of a root, what the person said."""
        return self.baton.task

    def report(
        self,
        result: str,
        *,
        value: Any = None,  # noqa: ANN401 - any JSON value
        completed: Sequence[str | WorkItem] = (),
        open_questions: Sequence[str | OpenQuestion] = (),
        rejected_paths: Sequence[str | RejectedPath] = (),
        decisions: Sequence[str | Decision] = (),
        assumptions: Sequence[str | Assumption] = (),
        claims: Sequence[str | Claim] = (),
        confidence: int | None = None,
        none: dict[str, str] | None = None,
        usage: dict[str, dict[str, int]] | None = None,
    ) -> None:
        """Say what the parent gets back. It is gathered here, and travels with the close."""
        self.progress.report = Report(
            result=result,
            value=value,
            completed=_as_items(completed, WorkItem),
            open_questions=_as_items(open_questions, OpenQuestion),
            rejected_paths=_as_items(rejected_paths, RejectedPath),
            decisions=_as_items(decisions, Decision),
            assumptions=_as_items(assumptions, Assumption),
            claims=_as_items(claims, Claim),
            confidence=confidence,
            none=none or {},
            usage=usage or {},
        )

    @contextmanager
    def as_current(self) -> Iterator[Self]:
        """Let code run for this run: `current_run()` gives it, also inside of tools."""
        token = CURRENT_RUN.set(self)
        try:
            yield self
        finally:
            CURRENT_RUN.reset(token)


def make_grant(may: Sequence[str] | None, may_delegate: Sequence[str] | None, grant: Grant | None) -> Grant | None:
    """Return the grant that is asked for; None if none is. An empty list grants nothing, and is not none."""
    if may is None and may_delegate is None:
        return grant
    if isinstance(may, str) or isinstance(may_delegate, str):
        raise InvalidValueError("may= is a list of permits: may=['write:src/**']")
    if grant is None:
        return Grant(may=tuple(may or ()), may_delegate=tuple(may_delegate or ()))
    raise InvalidValueError("either may= and may_delegate=, or grant=")


def _as_items(values: Sequence[Any], kind: Callable[[str], T]) -> tuple[T, ...]:
    if isinstance(values, str):
        values = (values,)
    return tuple(kind(value) if isinstance(value, str) else value for value in values)
