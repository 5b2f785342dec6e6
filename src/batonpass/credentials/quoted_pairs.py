r"""Finds quoted names and values anywhere in a text: `"password": "x"`, and in JSON `\"password\": \"x\"`."""

from collections.abc import Iterator
from typing import Any, Final

from batonpass.credentials.secret_names import GONE, is_secret_name, is_secret_option

# A quoted name and the opening quote of its value; each quote with the backslashes before it. A comma separates the
# items of a list, so it counts only after an option.
PAIR: Final = (
    r"""\\*["'](?:([A-Za-z0-9_. -]{1,64})\\*["']\s*(?::|=>?)|(--?[A-Za-z0-9_.-]{1,64})\\*["']\s*,)\s*(\\*)(["'])"""
)


def without_secrets(text: str, pair: Any) -> str:  # noqa: ANN401 - PAIR, compiled by RE2, which has no types
    """Return a text with the values of secret names replaced."""
    parts: list[str] = []
    at = 0
    for start, end in _find(text, pair):
        parts += text[at:start], GONE
        at = end
    return "".join((*parts, text[at:])) if parts else text


def _find(text: str, pair: Any) -> Iterator[tuple[int, int]]:  # noqa: ANN401 - as above
    seen = 0
    for found in pair.finditer(text):
        name, option, escapes, quote = found.groups()
        is_secret = is_secret_option(option) if name is None else is_secret_name(name)
        if found.start() < seen or not is_secret:
            continue
        start = found.end()
        end = _closing(text, start, len(escapes), quote)
        if end > start:
            yield start, end
        seen = end


def _closing(text: str, start: int, depth: int, quote: str) -> int:
    """Return where a value ends: at a quote that is escaped like the opening one.

    With n backslashes before the opening quote, a quote inside the value has 2n + 1, and a backslash at its end adds n
    + 1 twice. So the closing quote has n backslashes, or n more than a multiple of 2n + 2. If the value is cut off, it
    ends with the text.
    """
    at = text.find(quote, start)
    while at >= 0:
        first = at
        while first > start and text[first - 1] == "\\":
            first -= 1
        if (at - first) % (2 * depth + 2) == depth:
            return at - depth
        at = text.find(quote, at + 1)
    return len(text)
