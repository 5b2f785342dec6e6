"""Values that all readers take out of foreign JSON: a text, some words, arguments. Another shape counts as missing."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from batonpass.adapters.session_files.json_lines import UNREADABLE


def as_text(value: object) -> str | None:
    """Return a text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_objects(value: object) -> Iterable[dict[str, Any]]:
    """Yield the objects in a list; nothing of anything else."""
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def as_arguments(given: object) -> dict[str, Any]:
    """Return arguments, also those that are written as a text of JSON."""
    if isinstance(given, str):
        with contextlib.suppress(*UNREADABLE):
            found = msgspec.json.decode(given)
            return found if isinstance(found, dict) else {"arguments": found}
    return given if isinstance(given, dict) else {"arguments": given}


def read_object(text: object) -> Mapping[str, Any]:
    """Return the object that a text of JSON holds; an empty one for anything else."""
    if isinstance(text, str) and text[:1] == "{":
        with contextlib.suppress(*UNREADABLE):
            return as_mapping(msgspec.json.decode(text))
    return {}


def words_of(content: object) -> str:
    """Return the texts of a message, one below the other."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in as_objects(content))
    return "\n".join(text for text in texts if isinstance(text, str))
