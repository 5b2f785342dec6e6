r"""Names and values in quotes, in the middle of any text: `"password": "x"`, and in JSON `\"password\": \"x\"`."""

from collections.abc import Iterator
from typing import Any, Final

from batonpass.credentials.secret_names import GONE, is_secret_name, is_secret_option

# A name in quotes, and the quote with which its value begins; each quote with the backslashes in front of it.
# Beside a comma stands the next name of a list, unless the first one is an option.
PAIR: Final = (
    r"""\\*["'](?:([A-Za-z0-9_. -]{1,64})\\*["']\s*(?::|=>?)|(--?[A-Za-z0-9_.-]{1,64})\\*["']\s*,)\s*(\\*)(["'])"""
)


def without_secrets(text: str, pair: Any) -> str:  # noqa: ANN401 - PAIR, as whoever compiles it has it
    """Return a text without the values that stand beside the name of a secret."""
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
    """Return where a value ends: at a quote that is escaped as the first one was.

    With n backslashes in front of the first quote, a quote within the value has 2n + 1, and a backslash at its end
    adds n + 1 twice. So the last quote is one that has n of them, or n more than a multiple of 2n + 2. Of a value that
    is cut off, all is taken.
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
