"""Messages in the form of Google's API, which Gemini CLI and Qwen Code keep: texts, calls, and diffs of files."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from batonpass.adapters.session_files.patches import (
    changed_file,
    edit_in_excerpt,
    edited_file,
    read_unified,
    unplaced_hunk,
)
from batonpass.adapters.session_files.session_values import FilePatch
from batonpass.adapters.session_files.told_values import as_mapping, as_objects, as_text

_EXCERPT: Final = re.compile(r"Showing lines (\d{1,9})-\d{1,9} of \d{1,9} from the edited file:\n\n---\n\n")


def texts_of(parts: object) -> str:
    """Return the words of a message, without the model's thoughts."""
    if isinstance(parts, str):
        return parts
    said = (as_text(part.get("text")) for part in as_objects(parts) if not part.get("thought"))
    return "\n".join(text for text in said if text is not None)


def response_of(parts: object) -> str:
    """Return the answer of a tool."""
    for part in as_objects(parts):
        response = as_mapping(as_mapping(part.get("functionResponse")).get("response"))
        if (text := as_text(response.get("output")) or as_text(response.get("error"))) is not None:
            return text
    return ""


def is_error(parts: object) -> bool:
    """Return whether a tool answered with an error."""
    answers = (as_mapping(as_mapping(part.get("functionResponse")).get("response")) for part in as_objects(parts))
    return any("error" in answer for answer in answers)


def patches_in_words(path: str | None, given: Mapping[str, Any], told: str) -> Iterator[FilePatch]:
    """Yield the change that a successful call made, where the program kept only its words."""
    match given:
        case {"content": str(text)} if path is not None:
            if "created and wrote to new file" in told:
                yield changed_file(path, None, text, written=True)
            else:
                yield FilePatch(path=path, after=text, written=True)
        case {"old_string": str(old), "new_string": str(new)} if path is not None:
            shown = _EXCERPT.search(told)
            placed = None if shown is None else edit_in_excerpt(path, old, new, told[shown.end() :], int(shown[1]))
            yield placed or FilePatch(path=path, hunks=(unplaced_hunk(old, new),))


def find_patches(display: object, given: Mapping[str, Any]) -> Iterator[FilePatch]:
    """Yield the change of a file that the program shows for a call: both texts, or else a diff."""
    match display:
        case {"filePath": str(path), "originalContent": str(before), "newContent": str(after)}:
            # A new file has no text before; neither has an empty one, which says as much.
            yield changed_file(path, before or None, after, written=given.get("content") == after)
        case {"filePath": str(path), "originalContent": None, "newContent": str(after)}:
            yield changed_file(path, None, after, written=given.get("content") == after)
        case {"filePath": str(path), "fileDiff": str(diff)}:
            yield from edited_file(path, read_unified(diff))
