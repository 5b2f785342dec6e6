"""Which protected places a call reaches, judged by the declaration of its tool and by its arguments."""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from batonpass.handoff.files.path_spellings import (
    MOST_TEXTS,
    Looks,
    leads_to,
    look_below,
    real_path,
    spellings,
    texts_among,
)
from batonpass.handoff.files.protected_paths import Access, Protected, ProtectedFinding, Reach
from batonpass.handoff.shell.command_reach import find_in_shell, find_in_words
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.tool_call import ToolCall

# Nearly all tools use these names for text that is written, whoever made them.
_CONTENT: Final = frozenset(
    [
        "content",
        "contents",
        "file_text",
        "insert_text",
        "new_source",
        "new_str",
        "new_string",
        "new_text",
        "newText",
        "old_str",
        "old_string",
        "old_text",
        "oldText",
    ]
)
_EXCLUDED: Final = re.compile(r"(?:exclude|ignore)(?:d|s|_?patterns?|_?dirs?|_?globs?)?", re.IGNORECASE)
_SCRIPTS: Final = ("command", "cmd", "script")
_FED: Final = "stdin"
_WORDS: Final = ("argv", "command", "cmd")
_PLACES: Final = ("cwd", "workdir", "working_dir", "working_directory", "workingDirectory", "directory")
_ANY_PLACE: Final = frozenset(_PLACES)
# A pattern is checked only if it names something hidden. `*` occurs in every search and is harmless.
_HIDDEN: Final = re.compile(r"(?:^|/)\.[^/]*[A-Za-z]")
_GLOB: Final = re.compile(r"[*?\[]")
_TOO_MANY: Final = ProtectedFinding(
    f"be given more than {MOST_TEXTS:,} texts that could be paths, and so many are not looked at",
    "make smaller calls, or declare which arguments are content",
)


def find_touched(
    protected: Protected, call: ToolCall[Any], *, enforced: bool, looks: Looks | None = None
) -> ProtectedFinding | None:
    """Return why a call must not be made, because of a place that it would touch; None if it may.

    `looks` collects where its paths lead, for the checks that come later.
    """
    given, declared = call.mentioned, call.declared
    bases = _bases(declared, given, protected.root)
    left_out = _CONTENT if not declared.content and not declared.scripts else _left_out(declared)
    texts, whole = texts_among(given, left_out, _EXCLUDED)
    if enforced and not whole:
        return _TOO_MANY
    ways = _Ways(protected, bases, {} if looks is None else looks, enforced)
    if call.aim is not None or declared.place is not None:
        aim, _ = texts_among({"": call.aim}, ())
        texts = [text for text in texts if text not in aim]  # judged separately: the tool acts on these
        found = _find_aimed(ways, declared, aim)
        if found is not None:
            return found
    return _find_named(ways, declared, texts) or _told(protected, declared, given, bases, enforced=enforced)


def _left_out(declared: Declared) -> frozenset[str]:
    return _CONTENT.union(declared.content, declared.scripts)


def _bases(declared: Declared, given: Mapping[str, Any], work_tree: str) -> tuple[str, ...]:
    """Return the directories in which its paths may begin: its own if known, else the current one and the work tree."""
    known = [*_here(), work_tree] if declared.place is None else [real_path(declared.place)]
    if _ANY_PLACE.isdisjoint(given):
        return tuple(dict.fromkeys(known))
    said = [value for name in _PLACES if name in given and isinstance(value := given[name], str | os.PathLike)]
    more = [path for value in said for path in leads_to(os.fsdecode(value), known) if os.path.isdir(path)]  # noqa: PTH112 - of any text
    return tuple(dict.fromkeys([*known, *more]))


def _here() -> tuple[str, ...]:
    try:
        return (os.getcwd(),)  # noqa: PTH109 - a text is wanted
    except OSError:
        return ()  # somebody removed it


class _Ways(Struct, frozen=True):
    """Everything that the texts of one call are checked against."""

    protected: Protected
    bases: tuple[str, ...]
    looks: Looks
    enforced: bool

    def find(self, text: str, access: Access) -> ProtectedFinding | None:
        """Return why a text must not be used, whichever path a program may read in it; None if it may."""
        # Every spelling is tried from every base. Only the program knows which one it uses, so one bad reading is
        # enough.
        find_at, looks = self.protected.find_at, self.looks
        for one in spellings(text):
            for base in self.bases:
                look = look_below(base, one)
                if look is None:
                    reaches = (Reach(path, access) for path in leads_to(one, self.bases))
                    if (found := self.protected.find(reaches, enforced=self.enforced)) is not None:
                        return found
                    break
                looks[base, one] = look
                if (found := find_at(*look, access, enforced=self.enforced)) is not None:
                    return found
        return None


def _find_aimed(ways: _Ways, declared: Declared, aim: list[str]) -> ProtectedFinding | None:
    """Return why a call must not act on its target. Changing a directory may mean removing it with everything in it."""
    access = Access.READS if declared.reads else Access.REPLACES
    for text in aim:
        if (found := ways.find(text, access)) is not None:
            return found
    if declared.place is None:
        return None
    return ways.protected.find((Reach(ways.bases[0], Access.LISTS),), enforced=ways.enforced)


def _find_named(ways: _Ways, declared: Declared, texts: list[str]) -> ProtectedFinding | None:
    # Nobody knows what a program does with arguments other than its script. An enforced run is assumed to change them.
    harmless = declared.reads or (bool(declared.scripts) and not ways.enforced)
    access = Access.READS if harmless else Access.CHANGES
    for text in texts:
        if (found := ways.find(text, access)) is not None:
            return found
        if _GLOB.search(text) and _HIDDEN.search(text) and not re.search(r"\s", text):
            patterns = (os.path.normpath(os.path.join(base, text)) for base in ways.bases)  # noqa: PTH118 - as written
            reaches = (Reach(pattern, access, pattern=True) for pattern in patterns)
            if (found := ways.protected.find(reaches, enforced=ways.enforced)) is not None:
                return found
    return None


def _fed(text: str) -> tuple[str, ...]:
    """Return the text that a program may read from its input: names may be separated by NUL, and a shell drops NUL."""
    return (text.replace("\0", "\n"), text.replace("\0", "")) if "\0" in text else (text,)


def _told(
    protected: Protected, declared: Declared, given: Mapping[str, Any], bases: tuple[str, ...], *, enforced: bool
) -> ProtectedFinding | None:
    """Return why a shell must not execute these texts; None if it may, or if there are none."""
    for name in declared.scripts or _SCRIPTS:
        if isinstance(text := given.get(name), str) and name not in declared.content:
            for way in _fed(text) if name == _FED else (text,):
                found = find_in_shell(way, bases, protected, enforced=enforced, reads=declared.reads)
                if found is not None:
                    return found
    for name in () if declared.scripts else _WORDS:
        words = given.get(name)
        if isinstance(words, list | tuple) and words and all(isinstance(word, str) for word in words):
            found = find_in_words(words, bases, protected, enforced=enforced, reads=declared.reads)
            if found is not None:
                return found
    return None
