"""Quoting: exact text between two lines that carry a marker, which the text cannot know.

A model cannot be kept from believing what it reads, but it can be told which words are whose. A fixed fence can be
closed by anybody who writes it; so each rendering has a marker of its own, made after all texts are known.
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
    """Return a marker that was chosen before. Raises `InvalidValueError` if a text has it, or it could be guessed."""
    if len(marker) < 2 * _BYTES or not marker.isalnum() or any(marker in text for text in texts):
        raise InvalidValueError("marker", "is too short, or stands in what is to be quoted; leave it out")
    return marker


def quoted(marker: str, name: str, text: str, /, **facts: str) -> str:
    """Return a text, exactly as it is, as a part of that name."""
    told = "".join(f" {key}={inline(value)}" for key, value in facts.items())
    return f"[[{marker} {name}{told}]]\n{text}\n[[{marker} end of {name}]]"


def inline(text: str) -> str:
    """Return a text that stays on its line: as it is where that is harmless, else as JSON writes it."""
    return text if is_inline(text) and '"' not in text and " " not in text else json.dumps(text)


def is_inline(text: str) -> bool:
    """Return whether a text is one line that shows all it has: nothing in it turns, hides or breaks the line."""
    return text.isprintable() and text == text.strip() != ""
