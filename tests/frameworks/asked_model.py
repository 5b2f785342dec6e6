"""A model that asks for what a test says, while its framework runs in a thread: for columns of the door suite."""

import asyncio
import threading
from abc import abstractmethod
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any, Final

from batonpass import Grant
from batonpass.errors import BatonpassError, CallSuspendedError, GrantRevokedError, HandoffHeldError
from batonpass.testing.doors import MADE, Act, Delegate, Opened, Stage, Told, Verdict, heard
from tests.doors.tools import NAMES, arguments_of

PATIENCE: Final = 60
EVERYTHING: Final = ("write:**", "read:**", "read:/**", "pay:**", "call:**")


class ModelGoneError(Exception):
    """The model's provider does not answer."""


class OpenedFramework(Opened):
    """An agent of a framework whose model asks for what a test says. A framework says how it runs, and how it asks."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._acts: SimpleQueue[Act | Delegate | str] = SimpleQueue()
        self._answers: SimpleQueue[Told] = SimpleQueue()
        self._waits = False  # the model has asked for something
        self._over = False
        self._working: threading.Thread | None = None
        self.may: tuple[str, ...] = ()

    @abstractmethod
    async def main(self) -> None:
        """Let the framework work until the model answers."""

    def grants(self) -> dict[str, Grant]:
        """Return what the agent at the door may, where no table says it; nothing if it is only observed."""
        if not self.stage.enforced or self.stage.allowed.may:
            return {}  # the table in the policy says it
        return {"lead": Grant(may=EVERYTHING, may_delegate=EVERYTHING)}

    def call(self, act: Act) -> Told:
        """Let the model ask for a call."""
        return self._ask(act)

    def hand_off(self, task: Delegate) -> Told:
        """Let the model ask another agent."""
        self.may = task.may
        return self._ask(task)

    def again(self) -> None:
        """Let the model's provider fail."""
        self._acts.put("fail")
        self._end()
        self.stage.retry()

    def close(self) -> None:
        """Let the model answer."""
        if self._working is not None:
            self._acts.put("done")
            self._end()

    def turn(self, result: str | None) -> tuple[str, Mapping[str, Any]] | str:
        """Return what the model says next: a tool and its arguments, or its answer. `result` is of its last call."""
        if self._waits and result is not None:
            refused = result.startswith(("Held", "Denied")) or "gave back nothing" in result
            self._answers.put(heard(result) if refused else MADE)
        self._waits = False
        act = self._acts.get()
        if act == "fail":
            raise ModelGoneError
        if isinstance(act, str):
            return act
        self._waits = True
        if isinstance(act, Delegate):
            return f"ask_{act.to}", {"input": act.task}
        return NAMES[type(act)], arguments_of(act)

    def _ask(self, act: Act | Delegate) -> Told:
        if self._working is None:
            self._waits = self._over = False
            self._working = threading.Thread(target=self._work, daemon=True)
            self._working.start()
        self._acts.put(act)
        told = self._answers.get(timeout=PATIENCE)
        if self._over:
            self._end()
        return told

    def _work(self) -> None:
        told = MADE
        try:
            asyncio.run(self.main())
        except (CallSuspendedError, HandoffHeldError):
            told = Told(Verdict.HELD)
        except GrantRevokedError:
            told = Told(Verdict.DENIED)
        except BatonpassError as error:
            told = Told(Verdict.FAILED, str(error))
        except ModelGoneError:
            return
        except Exception as error:  # noqa: BLE001 - a framework wraps errors in its own
            told = Told(Verdict.FAILED, str(error))
        self._over = True
        if self._waits:
            self._answers.put(told)

    def _end(self) -> None:
        assert self._working is not None
        self._working.join()
        self._working = None
