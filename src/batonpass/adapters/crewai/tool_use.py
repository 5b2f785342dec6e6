"""One use of a tool by an agent: from the hook before it, over every time that it is made, to the hook after it.

CrewAI asks its hooks once for each call of a model. It may then answer from its cache or its limits, and make nothing;
or it makes a call that fails up to six times. So a call is judged in the hook, which is the only place that can refuse
it, and recorded where the tool really runs. It needs the extra.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool
from crewai.utilities.string_utils import sanitize_tool_name

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_call import FrameworkCall, framework_call
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.errors import BatonpassError, CallError, GrantError
from batonpass.handoff.calls.pending_call import Begun, Replayed
from batonpass.handoff.tools.refusal_sentences import sentence_for

Done = TypeVar("Done")

NOT_MADE: Final = "CrewAI answered it without making it: from its cache, or because of a limit or another hook"


@dataclass
class CrewCall:
    """One time that a tool runs: its result, or why it does not."""

    refused: bool = False
    value: Any = None


class AskedUse:
    """A call that a model asked for."""

    def __init__(self, ledger: FrameworkLedger, work: AgentWork, context: Any) -> None:
        tool = getattr(context.tool, "_original_tool", None) or context.tool
        self._ledger = ledger
        self.work = work
        self.name: str = sanitize_tool_name(context.tool_name)
        self.given = context.tool_input  # the same object in the hook before and in the hook after
        self.delegates = isinstance(tool, BaseAgentTool)
        self.refused: BatonpassError | None = None  # why an agent that was asked here did not begin, or stopped
        self.outer = ASKED.get()
        self._declared = ledger.tools.find(self.name, getattr(tool, "func", None))
        self._schema: Any = getattr(tool, "args_schema", None)
        self._call: FrameworkCall | None = None
        self._begun: Begun | None = None
        self._told: Replayed | BatonpassError | None = None
        self._waits = False  # judged, and not made yet

    def ask(self) -> bool:
        """Judge the call, and return whether it is made. A delegation is judged as a handoff, once its agent begins."""
        if not self.delegates:
            self._judge(self._known(self.given))
        return self._told is None

    def _judge(self, arguments: Mapping[str, Any]) -> None:
        self._call = framework_call(self._declared, arguments)
        self._begun, self._told = self.work.ask(self._call)
        self._waits = self._told is None

    @contextlib.contextmanager
    def making(self, arguments: Mapping[str, Any] | str) -> Iterator["CrewCall"]:
        """Let the tool run, and record it; each time is a call. If it is refused now, the sentence is the result."""
        if self.delegates:
            with self._within():
                yield CrewCall()
            return
        begun, call = self._tried(lambda: self._begin(self._known(arguments))) or (None, None)
        if self._told is not None:
            yield CrewCall(refused=True, value=self._answer(None))
            return
        made = CrewCall()
        try:
            with self._within(), contextlib.nullcontext() if self.work.run is None else self.work.run.as_current():
                yield made
        except BaseException as error:
            if begun is not None and call is not None:
                self._tried(functools.partial(self.work.fail, begun, call, error))
            raise
        if begun is not None and call is not None:
            self._tried(lambda: self._finish(begun, call, made.value))

    def _tried(self, act: Callable[[], Done]) -> Done | None:
        """Run a step of the recorder; its errors stop only enforced work."""
        return self._ledger.attempt(act, enforced=self.work.enforced)

    def _begin(self, arguments: Mapping[str, Any]) -> tuple[Begun | None, FrameworkCall | None]:
        """Return the call that was judged before, if it is the same; else judge it now: it is repeated, or changed."""
        if self._waits and self._call is not None and dict(self._call.kwargs) != dict(arguments):
            self._leave()
        if not self._waits:
            self._judge(arguments)
        if self._told is not None:
            return None, None
        self._waits = False
        return self._begun, self._call

    def _finish(self, begun: Begun, call: FrameworkCall, value: object) -> None:
        if type(value).__name__ == "ToolFailure":  # the tool says so itself
            self.work.fail(begun, call, RuntimeError(str(getattr(value, "message", value))))
            return
        try:
            self.work.finish(begun, call, value)
        except (CallError, GrantError) as error:
            self._told = error

    def _leave(self) -> None:
        """Record that a call was not made, though it was allowed."""
        if self._waits and self._begun is not None and self._call is not None:
            self.work.fail(self._begun, self._call, RuntimeError(NOT_MADE), made=False)
        self._waits = False

    def end(self, context: Any) -> str | None:
        """Return the text for the model instead of the result, or None: a refusal, a known result, or marked data."""
        self._leave()
        if self.refused is not None:
            return self.work.tell_refusal(self.refused)
        if self._told is not None:
            return self._answer(context.tool)
        if self._call is None:
            return None
        shown = self.work.show_outside(self._call, context.tool_result)
        return shown if isinstance(shown, str) and shown != context.tool_result else None

    def _answer(self, tool: Any) -> str:
        if isinstance(self._told, Replayed):
            spell = getattr(tool, "format_output_for_agent", str)
            return str(spell(self._told.value))
        return "" if self._told is None else sentence_for(self._told)

    def _known(self, given: Mapping[str, Any] | str) -> dict[str, Any]:
        """Return the arguments as the tool gets them: CrewAI lets the schema check, convert and complete them first.

        If they do not fit the schema, no tool gets them: CrewAI tells the model so.
        """
        arguments = dict(self.given if isinstance(given, str) else given)
        if not getattr(self._schema, "model_fields", None):
            return arguments
        try:
            return dict(self._schema.model_validate(arguments).model_dump())
        except Exception:  # noqa: BLE001 - a schema of the program may raise anything
            return arguments

    @contextlib.contextmanager
    def _within(self) -> Iterator[None]:
        """Let agents that begin here be handoffs from this work."""
        asked, making = ASKED.set(None), MAKING.set(self)
        try:
            yield
        finally:
            ASKED.reset(asked)
            MAKING.reset(making)


# The call that a hook has allowed, and the call that is being made: an agent that begins inside is a handoff from it.
ASKED: Final[ContextVar[AskedUse | None]] = ContextVar("batonpass_crewai_asked", default=None)
MAKING: Final[ContextVar[AskedUse | None]] = ContextVar("batonpass_crewai_making", default=None)


def asked_for(tool: Any) -> AskedUse | None:
    """Return the use for which a tool runs now; None if code runs it, and not a model."""
    use = ASKED.get()
    return use if use is not None and use.name == sanitize_tool_name(tool.name) else None
