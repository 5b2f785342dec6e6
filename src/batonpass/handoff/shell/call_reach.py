"""Which paths a call reaches, from what is declared of its tool and the arguments that it is given."""

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
from batonpass.handoff.tools.declaration import Declared, ToolCall

# By these names nearly every tool takes what is to be written, whoever made it.
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
# A pattern is looked at where it names something hidden: `*` is given to every search, and means no harm.
_HIDDEN: Final = re.compile(r"(?:^|/)\.[^/]*[A-Za-z]")
_GLOB: Final = re.compile(r"[*?\[]")
_TOO_MANY: Final = ProtectedFinding(
    f"be given more than {MOST_TEXTS:,} texts that could be paths, and so many are not looked at",
    "make smaller calls, or declare which arguments are content",
)


def find_touched(
    protected: Protected, call: ToolCall[Any], *, enforced: bool, looks: Looks | None = None
) -> ProtectedFinding | None:
    """Return why a call must not be made, because of what it would touch; None if nothing speaks against it.

    Where its paths lead is noted in `looks`, for whoever asks next.
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
        texts = [text for text in texts if text not in aim]  # more is done to these, as the tool says itself
        found = _find_aimed(ways, declared, aim)
        if found is not None:
            return found
    return _find_named(ways, declared, texts) or _told(protected, declared, given, bases, enforced=enforced)


def _left_out(declared: Declared) -> frozenset[str]:
    return _CONTENT.union(declared.content, declared.scripts)


def _bases(declared: Declared, given: Mapping[str, Any], work_tree: str) -> tuple[str, ...]:
    """Return the directories in which paths may begin: where it runs if that is known, else here and the work tree."""
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
    """What the texts of one call are held against: what is protected, and the directories in which paths may begin."""

    protected: Protected
    bases: tuple[str, ...]
    looks: Looks
    enforced: bool

    def find(self, text: str, access: Access) -> ProtectedFinding | None:
        """Return why a text must not be used so, whichever path a program may read in it; None if it may."""
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
    """Return why a call must not act on what its tool says: who changes a directory may remove it, with all in it."""
    access = Access.READS if declared.reads else Access.REPLACES
    for text in aim:
        if (found := ways.find(text, access)) is not None:
            return found
    if declared.place is None:
        return None
    return ways.protected.find((Reach(ways.bases[0], Access.LISTS),), enforced=ways.enforced)


def _find_named(ways: _Ways, declared: Declared, texts: list[str]) -> ProtectedFinding | None:
    # Of what is given to a program besides its words, nobody knows what it does with it.
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
    """Return what a program may read in its input: names are listed between zeros, and a shell leaves those out."""
    return (text.replace("\0", "\n"), text.replace("\0", "")) if "\0" in text else (text,)


def _told(
    protected: Protected, declared: Declared, given: Mapping[str, Any], bases: tuple[str, ...], *, enforced: bool
) -> ProtectedFinding | None:
    """Return why a shell must not be told what it is; None if it may, or if there is none."""
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
