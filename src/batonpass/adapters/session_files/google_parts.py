"""Messages in the form of Google's API, which Gemini CLI and Qwen Code keep: texts, calls, and diffs of files."""

from collections.abc import Iterator, Mapping
from typing import Any

from batonpass.adapters.session_files.patches import changed_file, edited_file, read_unified
from batonpass.adapters.session_files.session_values import FilePatch
from batonpass.adapters.session_files.told_values import as_mapping, as_objects, as_text


def texts_of(parts: object) -> str:
    """Return the words of a message, without the model's thoughts."""
    if isinstance(parts, str):
        return parts
    return "\n".join(
        text
        for part in as_objects(parts)
        if not part.get("thought") and (text := as_text(part.get("text"))) is not None
    )


def response_of(parts: object) -> str:
    """Return what a tool answered."""
    for part in as_objects(parts):
        response = as_mapping(as_mapping(part.get("functionResponse")).get("response"))
        if (text := as_text(response.get("output")) or as_text(response.get("error"))) is not None:
            return text
    return ""


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
