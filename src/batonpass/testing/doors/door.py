"""A door: how one program, framework or protocol asks for calls, and what it is told."""

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
from batonpass.testing.doors.acts import TIERS, Act, Delegate, target_of

if TYPE_CHECKING:
    from batonpass.testing.doors.stage import Stage

_HELD: Final = ("Held, and not made: ", "Held, and not begun: ")
_DENIED: Final = "Denied, and not made: "
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Verdict(StrEnum):
    """What became of an act, as whoever asked for it learns it."""

    MADE = "made"
    DENIED = "denied"
    HELD = "held"
    FAILED = "failed"  # it was not made, for want of anybody who could decide or record


class Listener(StrEnum):
    """Who asks at a door. A program gets an error of ours; a model is told what to do about it."""

    PROGRAM = "program"
    MODEL = "model"


class Ending(StrEnum):
    """After what whoever asks may be ended, and so is told nothing."""

    HELD = "held"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Told:
    """What whoever asked for an act is told; nothing if it was made, or if nobody is left who could be told."""

    verdict: Verdict
    sentence: str | None = None


MADE: Final = Told(Verdict.MADE)


def raised(error: BatonpassError) -> Told:
    """Return what an error of ours tells a program."""
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
    """Return what a sentence tells a model that asked for a call."""
    verdict = Verdict.HELD if sentence.startswith(_HELD) else Verdict.DENIED
    return Told(verdict if sentence.startswith((*_HELD, _DENIED)) else Verdict.FAILED, sentence)


class Opened(ABC):
    """Somebody at a door, who asks for one act after the other."""

    @abstractmethod
    def call(self, act: Act) -> Told:
        """Ask for an act; if it may be made, make it with `stage.do`, and return what came of it."""

    def hand_off(self, task: Delegate) -> Told:
        """Ask for a handoff, and return what came of it."""
        raise NotImplementedError

    def interrupt(self, act: Act) -> None:
        """Ask for an act that is begun and never comes to an end: a process dies, or a server does not answer."""
        raise NotImplementedError

    def again(self) -> None:
        """Let this attempt at the handoff fail; the next act is asked for in another one."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Leave."""


class Door(ABC):
    """One way in. What is declared here must be true of its tools: the table is compared with it."""

    agent: ClassVar[str] = "lead"  # who calls, as receipts say it
    listener: ClassVar[Listener] = Listener.PROGRAM
    in_process: ClassVar[bool] = True  # its ledger can be in memory, its clock can be held still, its guard broken
    on_handoff: ClassVar[bool] = False  # it works on what somebody handed off, and not for itself
    ended_by: ClassVar[frozenset[Ending]] = frozenset()  # after which nobody is left who could be told
    policy: ClassVar[str] = ""  # what `batonpass.toml` has to say about its tools
    cannot: ClassVar[Mapping[str, str]] = _NOTHING  # by situation or by what one needs: why it cannot be played here
    unfinished: ClassVar[Mapping[str, str]] = _NOTHING  # by case: what it does not do yet as the table says

    @abstractmethod
    def tool(self, act: Act) -> str:
        """Return the name of the tool, as receipts and rules have it."""

    @abstractmethod
    def pattern(self, act: Act) -> str:
        """Return action and resource of an act, as a grant names them: `write:out/a.txt`."""

    def besides(self, act: Act) -> tuple[str, ...]:  # noqa: ARG002 - most doors need nothing more
        """Return what else a grant has to cover, so that nobody regrets the act once it is made."""
        return ()

    @abstractmethod
    def open(self, stage: "Stage") -> Opened:
        """Begin a run, or take what was handed off, and return whoever works on it."""

    def target(self, act: Act) -> str | None:
        """Return what the tool says that an act changes."""
        return target_of(act)

    def shown(self, act: Act) -> str | None:
        """Return what people are told that an act is about."""
        return self.target(act)

    def tiers(self, act: Act) -> tuple[str, ...]:
        """Return the tiers that the tool declares."""
        return TIERS[type(act)]
