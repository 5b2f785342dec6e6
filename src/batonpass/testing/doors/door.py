"""A door: how one program, framework or protocol asks for calls, and what answer it gets."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from batonpass.errors import (
    BatonpassError,
    CallError,
    CallSuspendedError,
    GrantError,
    HandoffHeldError,
    PolicyRefusedError,
    StoreError,
)
from batonpass.model.base.kinds import Relation
from batonpass.model.base.lifecycle import State
from batonpass.testing.doors.acts import TIERS, Act, Delegate, target_of

if TYPE_CHECKING:
    from batonpass.testing.doors.stage import Stage

_HELD: Final = ("Held, and not made: ", "Held, and not begun: ")
_DENIED: Final = "Denied, and not made: "
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Verdict(StrEnum):
    """The result of an act, as the caller learns it."""

    MADE = "made"
    DENIED = "denied"
    HELD = "held"
    FAILED = "failed"  # not made, because nothing could decide about it or record it


class Listener(StrEnum):
    """Who calls at a door. A program gets one of our errors; a model is also told what to do next."""

    PROGRAM = "program"
    MODEL = "model"
    STRANGER = "stranger"  # somebody elsewhere, who is not told how a person here approves it


class Ending(StrEnum):
    """Events that may end the caller, so that it gets no answer."""

    HELD = "held"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to the caller; no sentence if the act was made, or if the caller has ended."""

    verdict: Verdict
    sentence: str | None = None


MADE: Final = Told(Verdict.MADE)


def raised(error: BatonpassError) -> Told:
    """Return the answer that one of our errors gives to a program."""
    match error:
        case CallSuspendedError() | HandoffHeldError():
            return Told(Verdict.HELD, str(error))
        case CallError() | GrantError() | PolicyRefusedError():
            return Told(Verdict.DENIED, str(error))
        case StoreError():
            return Told(Verdict.FAILED, str(error))
        case _:
            raise error


def heard(sentence: str) -> Told:
    """Return the answer that a sentence gives to a model."""
    verdict = Verdict.HELD if sentence.startswith(_HELD) else Verdict.DENIED
    return Told(verdict if sentence.startswith((*_HELD, _DENIED)) else Verdict.FAILED, sentence)


class Opened(ABC):
    """A caller at an open door, which asks for one act after the other."""

    @abstractmethod
    def call(self, act: Act) -> Told:
        """Ask for an act; if it is allowed, make it with `stage.do`. Return the answer."""

    def hand_off(self, task: Delegate) -> Told:
        """Ask for a handoff, and return the answer."""
        raise NotImplementedError

    def interrupt(self, act: Act) -> None:
        """Ask for an act that starts and never ends: a process dies, or a server does not answer."""
        raise NotImplementedError

    def again(self) -> None:
        """Let this attempt at the handoff fail; the next act belongs to a new attempt."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Close the run, or the attempt."""


class Door(ABC):
    """One way in. The declarations here must be true of its tools: the table is checked against them."""

    agent: ClassVar[str] = "lead"  # the agent in receipts
    listener: ClassVar[Listener] = Listener.PROGRAM
    in_process: ClassVar[bool] = True  # ledger in memory, a frozen clock and a broken guard are possible
    on_handoff: ClassVar[bool] = False  # the caller works on a handoff, not on a root run
    ended_by: ClassVar[frozenset[Ending]] = frozenset()  # events after which the caller is gone
    refuses: ClassVar[bool] = True  # can keep a call from being made; a door that cannot only records
    always: ClassVar[tuple[str, ...]] = ()  # flags of all of its calls, which say how they come
    outside: ClassVar[bool] = False  # the caller knows what came from outside before its first act
    relation: ClassVar[Relation] = Relation.LEAD_TO_WORKER  # of the handoffs that it makes
    offered: ClassVar[State] = State.OFFERED  # their state at first; `ready` where a worker takes them
    policy: ClassVar[str] = ""  # lines for `batonpass.toml` about its tools
    cannot: ClassVar[Mapping[str, str]] = _NOTHING  # situation, need or mode -> why it cannot be played at this door
    unfinished: ClassVar[Mapping[str, str]] = _NOTHING  # case -> how the door still differs from the table

    @abstractmethod
    def tool(self, act: Act) -> str:
        """Return the name of the act's tool, as in receipts and rules."""

    @abstractmethod
    def pattern(self, act: Act) -> str:
        """Return the action and resource of an act, as in a grant: `write:out/a.txt`."""

    def besides(self, act: Act) -> tuple[str, ...]:  # noqa: ARG002 - most doors need nothing more
        """Return further patterns that a grant must cover for the act."""
        return ()

    @abstractmethod
    def open(self, stage: "Stage") -> Opened:
        """Start a run, or take the handoff, and return its caller."""

    def task(self, asked: Delegate) -> str:
        """Return the task of a handoff, as in receipts."""
        return asked.task

    def target(self, act: Act) -> str | None:
        """Return the target that the tool declares for an act."""
        return target_of(act)

    def shown(self, act: Act) -> str | None:
        """Return the target that people are shown."""
        return self.target(act)

    def tiers(self, act: Act) -> tuple[str, ...]:
        """Return the tiers that the tool declares."""
        return TIERS[type(act)]
