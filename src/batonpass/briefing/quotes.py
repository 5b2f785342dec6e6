"""Quotations: exact text between two lines with a marker that its author could not know.

A model cannot be kept from believing a text, but it can be told which words are whose. Anybody can close a fixed fence
by writing it. So every briefing has its own random marker, chosen after all texts are known.
"""

import json
import secrets
from collections.abc import Iterable
from typing import Final

from batonpass.errors import InvalidValueError

_BYTES: Final = 8


def new_marker(texts: Iterable[str]) -> str:
    """Return a marker that occurs in none of the texts."""
    quoted = tuple(texts)
    while True:
        marker = secrets.token_hex(_BYTES)
        if not any(marker in text for text in quoted):
            return marker


def require_marker(marker: str, texts: Iterable[str]) -> str:
    """Return a given marker. Raises `InvalidValueError` if a text contains it, or it could be guessed."""
    if len(marker) < 2 * _BYTES or not marker.isalnum() or any(marker in text for text in texts):
        raise InvalidValueError("marker", "is too short, or occurs in the quoted text; leave it out")
    return marker


def quoted(marker: str, name: str, text: str, /, **facts: str) -> str:
    """Return a text, unchanged, between two marker lines with this name."""
    told = "".join(f" {key}={inline(value)}" for key, value in facts.items())
    return f"[[{marker} {name}{told}]]\n{text}\n[[{marker} end of {name}]]"


def inline(text: str) -> str:
    """Return a text that stays on its line: unchanged if that is safe, else as JSON."""
    return text if is_inline(text) and '"' not in text and " " not in text else json.dumps(text)


def is_inline(text: str) -> bool:
    """Return whether a text is one line with nothing hidden in it: no control, direction or line-break characters."""
    return text.isprintable() and text == text.strip() != ""


def on_one_line(text: str) -> str:
    """Return somebody's words so that they stay on one line."""
    return text if not text or is_inline(text) else inline(text)
