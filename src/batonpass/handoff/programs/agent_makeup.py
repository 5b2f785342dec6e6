"""The makeup of an agent: model, prompt and tools. Drift compares only work with the same ones.

Every door that knows its agents says it in the same form, so that the same change reads the same everywhere.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

# How frameworks call the name of a model. A name of the object itself comes last: some call it "model" or by its class.
_NAMES: Final = ("model_name", "model_id", "model", "deployment_name", "name")
_DIGITS: Final = 16


def makeup(*, model: object = None, prompt: object = None, tools: Iterable[object] | None = None) -> dict[str, Any]:
    """Return the known makeup of an agent; unknown parts are left out.

    A prompt is a text, or several. One that a function makes anew for each task is named by its function: with its
    words, each task would begin a new baseline.
    """
    said: dict[str, Any] = {}
    if (named := _model(model)) is not None:
        said["model"] = named
    if (digest := _prompt(prompt)) is not None:
        said["prompt"] = digest
    if tools is not None:  # an agent that has none is another one than an agent of which nobody knows any
        said["tools"] = sorted({name for tool in tools if (name := _name(tool)) is not None})
    return said


def _model(model: object) -> str | None:
    if model is None or isinstance(model, str):
        return model or None
    for name in _NAMES:
        if isinstance(found := getattr(model, name, None), str) and found:
            return found
    return type(model).__name__


def _prompt(prompt: object) -> str | None:
    """Return the digest of a prompt. The text may be long, and confidential."""
    texts = [prompt] if isinstance(prompt, str) or not isinstance(prompt, Iterable) else [*prompt]
    said = [text for one in texts if (text := _words(one))]
    return f"sha256:{sha256(chr(0).join(said).encode()).hexdigest()[:_DIGITS]}" if said else None


def _words(prompt: object) -> str | None:
    if isinstance(prompt, str):
        return prompt
    if callable(prompt):
        return f"function {getattr(prompt, '__module__', '')}.{getattr(prompt, '__qualname__', type(prompt).__name__)}"
    return None


def _name(tool: object) -> str | None:
    if isinstance(tool, Mapping):
        described = tool.get("function")
        found = tool.get("name") or (described.get("name") if isinstance(described, Mapping) else tool.get("type"))
    else:
        found = tool if isinstance(tool, str) else getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return found if isinstance(found, str) and found else None
