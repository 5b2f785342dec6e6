"""One run of one agent on pydantic-ai. Everything that needs the extra is imported from here, when an agent runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_ai import Agent, StructuredDict, Tool, ToolOutput
from pydantic_ai.exceptions import ModelRetry, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from batonpass.agents.agent_at_work import AT_WORK, AgentAtWork, agent_at_work
from batonpass.agents.agent_tools import ToolDefinition
from batonpass.agents.definition import AgentDefinition, RunnerConfig
from batonpass.agents.framework.agent_recorder import AgentRecorder
from batonpass.agents.framework.patient_model import PatientModel
from batonpass.briefing.reports import DESCRIPTION, NAME, SCHEMA, plain_report, read_report
from batonpass.errors import IncompleteReportError, InvalidValueError, TurnsExhaustedError
from batonpass.model.base.durations import as_duration
from batonpass.model.baton.items import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """The answer of a model: its report, whether it used the report schema, and all messages as JSON."""

    report: Report
    reported: bool
    messages: bytes


async def ask(
    here: AgentAtWork,
    definition: AgentDefinition,
    model: Model,
    *,
    tools: Mapping[str, ToolDefinition],
    config: RunnerConfig,
    prompt: str | list[str] | None,
    history: Sequence[ModelMessage] = (),
    reports: bool,
    checkpoints: bool,
) -> ModelAnswer:
    """Let a model work on a run until it answers. If it `reports`, it may answer by the report schema.

    With `checkpoints`, its messages are kept on the way, so that another process can go on after a crash. A sender's
    words are in the user's role; only the operator's prompt is in the system's.
    """
    recorder = AgentRecorder(run=here.run, tools=tools, checkpoints=checkpoints)
    outputs: list[Any] = [str]
    if reports:
        outputs.append(ToolOutput(StructuredDict(dict(SCHEMA)), name=NAME, description=DESCRIPTION))
    agent: Agent[None, Any] = Agent(
        PatientModel(model, retries=config.retries, streams=config.stream),
        name=definition.name,
        instructions=definition.system_prompt or None,
        tools=[_described(name, tool) for name, tool in tools.items()],
        output_type=outputs,
        capabilities=[recorder],
        retries=config.retries,
        # If a model reports and calls tools in one answer, do both.
        end_strategy="exhaustive",
        model_settings=_settings(config),
    )
    agent.output_validator(_checked)
    token = AT_WORK.set(here)
    try:
        async with agent:
            with here.run.as_current():
                result = await agent.run(
                    prompt,
                    message_history=list(history) or None,
                    usage_limits=UsageLimits(request_limit=config.max_iterations),
                )
    except UsageLimitExceeded:
        raise TurnsExhaustedError(definition.name, config.max_iterations) from None
    finally:
        AT_WORK.reset(token)
    reported = isinstance(result.output, dict)
    report = read_report(result.output) if reported else plain_report(result.output)
    return ModelAnswer(report=report, reported=reported, messages=result.all_messages_json())


@lru_cache(maxsize=4096)
def _described(name: str, tool: ToolDefinition) -> Tool[None]:
    """Return a tool as its model sees it; cached, because reading the signature takes milliseconds."""
    return Tool(tool.function, name=name, description=tool.description or None)


def _settings(config: RunnerConfig) -> ModelSettings:
    settings = ModelSettings(timeout=as_duration("timeout", config.timeout).total_seconds(), max_retries=config.retries)
    if config.max_tokens is not None:
        settings["max_tokens"] = config.max_tokens
    return settings


def read_history(messages: object | None) -> list[ModelMessage]:
    """Return kept messages; none if this version cannot read them, because the briefing lists finished work too."""
    if messages is None:
        return []
    try:
        return ModelMessagesTypeAdapter.validate_python(messages)
    except ValidationError:
        return []


def _checked(output: Any) -> Any:  # noqa: ANN401 - a text, or a report as it was given
    run = agent_at_work().run
    try:
        report = read_report(output) if isinstance(output, dict) else plain_report(output)
        if run.parent is not None:
            run.report(report)  # refused if it lacks what the policy requires: then the model reports again
    except (InvalidValueError, IncompleteReportError) as error:
        raise ModelRetry(str(error)) from None
    return output
