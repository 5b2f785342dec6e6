"""Patterns with which rules name tools: `deploy`, `mcp__github__*`, `Bash(git push *)`, `Edit(src/**)`."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_text, require_texts

_PATTERN: Final = re.compile(r"([^\s()]+)(?:\((.+)\))?", re.DOTALL)
_FETCH: Final = "WebFetch"
_DOMAIN: Final = "domain:"


class ToolPattern(Struct, frozen=True):
    """A tool, or several with `*`, and perhaps the object of the call, in brackets."""

    text: str
    tool: str
    of: str | None = None  # a command, a path, a type of agent, a domain, or the target of any other tool


def read_tools(field: str, given: str | Sequence[str] | None) -> tuple[ToolPattern, ...]:
    """Return the patterns in a text or a list of texts. Raises `InvalidValueError` naming the field."""
    if given is None:
        return ()
    texts = (require_text(field, given),) if isinstance(given, str) else require_texts(field, given)
    return tuple([_read(field, text) for text in texts])


@lru_cache(maxsize=1024)
def _read(field: str, text: str) -> ToolPattern:
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise InvalidValueError(
            field, f"{text!r} is not the name of a tool; examples are deploy, Bash(git *), Edit(src/**) and mcp__x__*"
        )
    # A pattern that can never match would look like protection, and protect nothing.
    if found[1] == _FETCH and found[2] is not None and not found[2].startswith(_DOMAIN):
        raise InvalidValueError(field, f"{text!r}: {_FETCH} takes a domain, as {_FETCH}({_DOMAIN}example.org)")
    return ToolPattern(text, found[1], found[2])
