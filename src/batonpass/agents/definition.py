"""The values of native agents: a definition, the configuration of a runner, and the result of a run."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from batonpass.errors import InvalidValueError
from batonpass.handoff.transfer.held_work import HeldWork
from batonpass.model.base.checks import require_instance, require_integer, require_text, require_texts
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import AgentId, PrincipalId, RunId, require_agent, require_principal
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Report
from batonpass.model.grants.scope_text import read_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefinition:
    """An agent: its stable id, its model, its system prompt, its tools and its grant."""

    name: str
    model: str
    system_prompt: str = ""
    tools: Iterable[str] | None = None  # by name, in either spelling; None: all tools of its executor
    may: Iterable[str] = ()  # permits that it may use by default; its runs are enforced then
    may_delegate: Iterable[str] = ()  # permits that it may delegate
    ceiling: Iterable[str] | None = None  # the most that it may ever be granted

    def __post_init__(self) -> None:
        require_agent("name", AgentId(self.name))
        require_text("model", self.model)
        require_text("system_prompt", self.system_prompt, empty=True)
        if self.tools is not None:
            object.__setattr__(self, "tools", require_texts("tools", self.tools))
        for name in ("may", "may_delegate", "ceiling"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_scope(given).lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerConfig:
    """How agents are run."""

    max_iterations: int = 10  # model answers in one run, tool calls included
    recall: int = 0  # earlier handoffs of the same kind that a receiver's briefing tells of, as data
    enable_memory: bool = False  # the agent may remember and recall; every entry keeps its label
    stream: bool = False  # stream answers: long ones do not time out, and truncated ones are requested again
    retries: int = 2  # of a failed request, of a truncated answer, of malformed arguments
    max_tokens: int | None = None  # of one answer; None: as many as the model allows
    timeout: timedelta | str = timedelta(minutes=5)  # for one answer
    principal: str = "user:unknown"  # for whom work is done unless the run names somebody
    gates: Literal["hold", "report"] = "hold"  # whether what does harm waits for a person, also in an observed run

    def __post_init__(self) -> None:
        require_integer("max_iterations", self.max_iterations, least=1)
        require_integer("recall", self.recall)
        require_instance("enable_memory", self.enable_memory, bool)
        require_instance("stream", self.stream, bool)
        require_integer("retries", self.retries)
        if self.max_tokens is not None:
            require_integer("max_tokens", self.max_tokens, least=1)
        require_principal("principal", PrincipalId(self.principal))
        if self.gates not in {"hold", "report"}:
            raise InvalidValueError(
                "gates", f"{self.gates!r}: what does harm waits (hold) or is only reported (report)"
            )
        object.__setattr__(self, "timeout", as_duration("timeout", self.timeout))
        if as_duration("timeout", self.timeout) <= timedelta(0):
            raise InvalidValueError("timeout", "must be longer than zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run for a person: the answer, and the ids under which it is recorded."""

    output: str
    run: RunId
    session_id: str | None = None
    report: Report | None = None  # the full report
    reused: bool = False  # the run was completed before under the same key: nobody worked for it now
    state: State = State.COMPLETED  # `held`: a person has to decide first, and the run goes on after that
    held: tuple[HeldWork, ...] = ()  # calls and handoffs that wait for a person, each with the command to approve it

    @property
    def value(self) -> Any:  # noqa: ANN401 - whatever the model reported
        """Return the result for programs: the reported value if there is one, else the answer."""
        given = None if self.report is None else self.report.value
        return self.output if given is None else json.loads(given)
