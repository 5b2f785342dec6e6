"""A model that repeats a request if the answer is truncated. It needs the extra."""

import logging
from typing import Final

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

# These providers always give a finish reason: an answer without one is truncated.
_SAY_WHY: Final = frozenset({"anthropic", "openai"})
_LOG: Final = logging.getLogger("batonpass.agents")


class CutAnswerError(ConnectionError):
    """The stream ended before the answer was complete."""


class PatientModel(WrapperModel):
    """Repeats a request if the answer is truncated. Streaming avoids time-outs of long answers."""

    def __init__(self, wrapped: Model, *, retries: int, streams: bool) -> None:
        super().__init__(wrapped)
        self._retries = retries
        self._streams = streams

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the whole answer. Raises the error of the last try."""
        for left in range(self._retries, -1, -1):
            try:
                return await self._once(messages, model_settings, model_request_parameters)
            except Exception as error:
                # The provider would refuse the same request again; overload is retried below this layer.
                if left == 0 or isinstance(error, ModelHTTPError) or not _is_cut(error):
                    raise
                _LOG.info("an answer of %s was cut and is asked for again: %s", self.model_name, error)
        raise AssertionError("the last try returned or raised")

    async def _once(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        if self._streams:
            async with self.wrapped.request_stream(messages, model_settings, model_request_parameters) as stream:
                async for _ in stream:
                    pass
                answer = stream.get()
        else:
            answer = await self.wrapped.request(messages, model_settings, model_request_parameters)
        if answer.finish_reason is None and answer.provider_name in _SAY_WHY:
            raise CutAnswerError("the stream ended before the answer was complete")
        return answer


def _is_cut(error: Exception) -> bool:
    if isinstance(error, ModelAPIError | UnexpectedModelBehavior | ConnectionError | TimeoutError):
        return True
    return type(error).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2", "anyio"}
