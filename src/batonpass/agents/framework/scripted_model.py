"""A script in place of a model. It needs the extra."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel


@dataclass(frozen=True, slots=True)
class Turn:
    """The input of a model for one answer: its instructions, the messages so far, and its tools."""

    model: str
    instructions: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[str, ...]

    @property
    def prompt(self) -> str:
        """Return the last message of the user; for a handed-off run, the briefing."""
        return self._said[-1]

    @property
    def known(self) -> str:
        """Return the state of its session, which it gets beside the words of the user. Empty if there is none."""
        return "\n\n".join(self._said[:-1])

    @property
    def _said(self) -> list[str]:
        """Return the texts of the last message of the user. The user's own words are the last."""
        said = [part.content for part in self._parts() if isinstance(part, UserPromptPart)]
        if not said:
            return [""]
        return [said[-1]] if isinstance(said[-1], str) else [str(text) for text in said[-1]]

    @property
    def returned(self) -> tuple[tuple[str, str], ...]:
        """Return the results of calls since then, the oldest first: the tool and its text."""
        parts = list(self._parts())
        last = max((number for number, part in enumerate(parts) if isinstance(part, UserPromptPart)), default=-1)
        return tuple(
            (
                part.tool_name or "",
                part.model_response_str() if isinstance(part, ToolReturnPart) else part.model_response(),
            )
            for part in parts[last + 1 :]
            if isinstance(part, ToolReturnPart | RetryPromptPart)
        )

    def _parts(self) -> Any:  # noqa: ANN401 - parts of requests
        return (part for message in self.messages if isinstance(message, ModelRequest) for part in message.parts)


Script = Callable[[Turn], str | Mapping[str, Any]]


def scripted_model(script: Script, name: str) -> Model:
    """Return a model that answers and calls tools by a script."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=_parts(script(_turn(messages, info, name))))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for number, part in enumerate(_parts(script(_turn(messages, info, name)))):
            if isinstance(part, ToolCallPart):
                yield {
                    number: DeltaToolCall(
                        name=part.tool_name, json_args=part.args_as_json_str(), tool_call_id=part.tool_call_id
                    )
                }
            elif isinstance(part, TextPart):
                yield part.content

    return FunctionModel(answer, stream_function=stream, model_name=name)


def _turn(messages: list[ModelMessage], info: AgentInfo, name: str) -> Turn:
    tools = (*info.function_tools, *info.output_tools)
    return Turn(name, info.instructions or "", tuple(messages), tuple(tool.name for tool in tools))


def _parts(said: str | Mapping[str, Any]) -> list[ModelResponsePart]:
    if isinstance(said, str):
        return [TextPart(said)]
    return [ToolCallPart(tool, args) for tool, args in said.items()]
