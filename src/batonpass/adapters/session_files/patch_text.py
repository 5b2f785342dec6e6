"""Patches as models write them for `apply_patch`: files that are added, updated, deleted and moved, without numbers."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from batonpass.adapters.session_files.patches import changed_file
from batonpass.adapters.session_files.session_values import FilePatch, PatchHunk

_ADD: Final = "*** Add File: "
_UPDATE: Final = "*** Update File: "
_DELETE: Final = "*** Delete File: "
_MOVE: Final = "*** Move to: "
_ENDS: Final = ("*** End Patch", "*** End of File")


def read_patch_text(patch: object, cwd: str | None) -> tuple[FilePatch, ...]:
    """Return the changes that a successful patch made. Where a change is in an updated file stays unknown."""
    return tuple(_files(patch.split("\n"), cwd)) if isinstance(patch, str) else ()


def _files(lines: Sequence[str], cwd: str | None) -> Iterator[FilePatch]:
    starts = [number for number, line in enumerate(lines) if line.startswith((_ADD, _UPDATE, _DELETE))]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head, body = lines[start], lines[start + 1 : end]
        if head.startswith(_ADD):
            text = "".join(f"{line[1:]}\n" for line in body if line.startswith("+"))
            path = _absolute(head.removeprefix(_ADD), cwd)
            yield replace(changed_file(path, None, text, written=True), perhaps_created=True)
        elif head.startswith(_UPDATE):
            yield from _updated(_absolute(head.removeprefix(_UPDATE), cwd), body, cwd)


def _updated(path: str, body: Sequence[str], cwd: str | None) -> Iterator[FilePatch]:
    moved = next((line.removeprefix(_MOVE) for line in body if line.startswith(_MOVE)), None)
    hunks: list[list[str]] = []
    for line in body:
        if line.startswith("@@"):
            hunks.append([])
        elif line[:1] in {" ", "+", "-"} and not line.startswith(_ENDS):
            if not hunks:
                hunks.append([])
            hunks[-1].append(line)
    unplaced = tuple(PatchHunk(old_start=None, new_start=None, lines=tuple(one)) for one in hunks if one)
    if moved is not None:
        yield FilePatch(path=_absolute(moved, cwd), renamed_from=path, hunks=unplaced)
    elif unplaced:
        yield FilePatch(path=path, hunks=unplaced)


def _absolute(path: str, cwd: str | None) -> str:
    path = path.strip()
    return os.path.normpath(os.path.join(cwd, path)) if cwd is not None else path  # noqa: PTH118 - a text
