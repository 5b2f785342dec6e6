"""Which calls write a whole file, as agents and their tools name that."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

_PATHS: Final = frozenset(["file", "filename", "filepath", "path", "targetfile", "absolutepath"])
_TEXTS: Final = frozenset(["content", "contents", "filecontent", "filecontents", "filetext", "newcontent", "text"])
_VERBS: Final = frozenset(["create", "overwrite", "save", "write"])
# Such a tool writes a part of a file, or its words mean something else.
_PARTS: Final = frozenset(["append", "cell", "edit", "insert", "line", "lines", "patch", "prepend", "replace", "stdin"])
# They do not change the written text. Any other argument may: an offset, a branch, a server.
_BESIDE: Final = frozenset(["description", "encoding", "explanation", "instructions", "overwrite"])
_MODES: Final = frozenset(["overwrite", "rewrite", "w", "write"])
_EDITORS: Final = frozenset(["edit", "editor"])
_COMMAND: Final = "command"  # of a tool that can do several things: the chosen one
_MODE: Final = "mode"
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class WholeWrite(Struct, frozen=True):
    """A file that a call replaces as a whole, and its new content."""

    path: str
    text: str


def find_whole_write(tool: str, arguments: object) -> WholeWrite | None:
    """Return the file that a call would write as a whole; None if it may do something else.

    That is read from the names of the tool and its arguments. If one of them is unknown, the answer is None: nobody is
    to be shown a file that would be replaced, if it would only grow.
    """
    if not isinstance(arguments, Mapping) or not _is_writer(tool, arguments):
        return None
    paths, texts = [], []
    for name, value in arguments.items():
        plain = str(name).replace("_", "").lower()
        if plain in _PATHS:
            paths.append(value)
        elif plain in _TEXTS:
            texts.append(value)
        elif not _is_beside(plain, value):
            return None
    if len(paths) != 1 or len(texts) != 1 or not isinstance(paths[0], str) or not isinstance(texts[0], str):
        return None
    return WholeWrite(paths[0], texts[0]) if paths[0] else None


def _is_writer(tool: str, arguments: Mapping[str, object]) -> bool:
    words = _words(tool)
    command = arguments.get(_COMMAND)
    if isinstance(command, str) and words & _EDITORS:
        words = _words(command)
    return bool(words & _VERBS) and not words & _PARTS


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))


def _is_beside(name: str, value: object) -> bool:
    if value is None or name == _COMMAND or name in _BESIDE:
        return True
    return name == _MODE and isinstance(value, str) and value.lower() in _MODES
