"""Patches in the form of `apply_patch`: which files one names."""

import re
from typing import Final

_FILE: Final = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)


def paths_in_patch(patch: object) -> tuple[str, ...]:
    """Return the files that a patch creates, changes, deletes or moves, each once, in order; nothing for other text."""
    return tuple(dict.fromkeys(_FILE.findall(patch))) if isinstance(patch, str) else ()
