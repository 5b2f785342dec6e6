"""Who wrote a line, on which task, under which grant, and for whom."""

import re
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from batonpass.cli.options import Session, common
from batonpass.errors import InvalidValueError
from batonpass.reports.blame import read_blame
from batonpass.reports.blame_words import narrate_blame
from batonpass.runtime.effects import from_work_tree

_PLACE: Final = re.compile(r"(?P<file>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")


@click.command()
@click.argument("place", metavar="FILE[:LINE[-LINE]]")
@common
def blame(session: Session, *, place: str) -> None:
    """Show who wrote a line: the call, its grant, and the chain up to the person's words.

    Without a line, every line of the file with its writer.
    """
    file, first, last = _read_place(place)
    tree = session.find_place().work_tree
    with session.reading() as store:
        number = first if last is None else None
        answer = read_blame(store, tree, tree / from_work_tree(tree, file), number)
    if first is not None and last is not None:
        if not first <= last or first < 1:
            raise InvalidValueError(f"{place!r} ends before it begins: write FILE:4-9")
        answer = replace(answer, lines=answer.lines[first - 1 : last])
        if not answer.lines:
            raise InvalidValueError(f"{file!r} ends before line {first}")
    if session.screen.is_json:
        session.screen.json(answer)
    else:
        session.screen.lines(narrate_blame(answer))


def _read_place(place: str) -> tuple[str, int | None, int | None]:
    match = _PLACE.fullmatch(place)
    if match is None or (Path(place).exists() and not Path(match["file"]).exists()):
        return place, None, None
    return match["file"], int(match["first"]), None if match["last"] is None else int(match["last"])
