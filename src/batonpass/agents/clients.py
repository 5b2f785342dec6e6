"""Model clients: they turn the name of a model into a model. Making a client needs no network."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from batonpass.agents.framework.extra_check import require_extra

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class ModelClient(Protocol):
    """A source of models by name: a provider, or a script in a test."""

    def model(self, name: str) -> "Model":
        """Return the model of this name."""


class _Provided:
    """A client of one provider; its connections belong to their event loop, and are closed after the last run."""

    def __init__(self, api_key: str | None = None, *, base_url: str | None = None) -> None:
        self._api_key = api_key
        self._base_url = base_url
        self._provider: Any = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # never the key

    def _provided(self, make: Callable[..., Any]) -> Any:  # noqa: ANN401 - a provider
        if self._provider is None:
            self._provider = make(api_key=self._api_key, base_url=self._base_url)
        return self._provider


class AnthropicClient(_Provided):
    """Claude models over the Messages API; the defaults are `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`."""

    def model(self, name: str) -> "Model":
        """Return the model of this name. Raises `MissingExtraError`."""
        require_extra()
        require_extra("anthropic")
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - the extra
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - the extra

        return AnthropicModel(name, provider=self._provided(AnthropicProvider))


class OpenAIClient(_Provided):
    """Models over the Chat Completions API; the defaults are `OPENAI_API_KEY` and `OPENAI_BASE_URL`."""

    def model(self, name: str) -> "Model":
        """Return the model of this name. Raises `MissingExtraError`."""
        require_extra()
        require_extra("openai")
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - the extra
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - the extra

        return OpenAIChatModel(name, provider=self._provided(OpenAIProvider))


class ScriptedClient:
    """A model that follows a script, for tests and examples: no key, no network.

    The script gets a `Turn` with the messages and tools, and returns a text, or a mapping from tool names to arguments
    for one or more tool calls.
    """

    def __init__(self, script: "Callable[[Any], Any]") -> None:
        self._script = script

    def __repr__(self) -> str:
        return f"ScriptedClient({getattr(self._script, '__qualname__', self._script)})"

    def model(self, name: str) -> "Model":
        """Return the script as a model of any name."""
        require_extra()
        from batonpass.agents.framework.scripted_model import scripted_model  # noqa: PLC0415 - the extra

        return scripted_model(self._script, name)
