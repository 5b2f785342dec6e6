"""The demonstration, with lines to try that work."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Final

import click

from batonpass.cli.render import Screen
from batonpass.demo.analysis import SUMMARY
from batonpass.demo.story import BLAMED_LINE, FLIPPED, play
from batonpass.errors import InvalidValueError
from batonpass.narrate.tokens import Line, Token, Tone, line
from batonpass.place import find_place, find_repository

_INDENT: Final = "   "
_LINES: Final = (
    "run list",
    "handoff show drafter",
    "blame {summary}:{number}",
    "ledger verify",
    "ledger verify --ledger {flipped}",
)


@click.command()
@click.option("--keep", metavar="DIR", help="Play it in this new folder, and keep it with its record.")
def demo(keep: str | None) -> None:
    """See in seconds how work is handed over, killed and retried.

    Three agents make a quarterly analysis; the last one is killed in the middle of a call, and goes on.
    """
    screen = Screen()
    with _folder(keep) as folder, chdir(folder):
        for number, step in enumerate(play(folder), 1):
            title = line(Token(f"{number}  ", Tone.QUIET), Token(step.title, Tone.ACCENT))
            rows = [Line(each.tokens, _INDENT + each.lead, _INDENT + each.rest) for each in step.lines]
            screen.lines([title, *rows, line()])
            sys.stdout.flush()
    screen.lines([line(Token("Nothing was done twice, and the change was found.", Tone.GOOD)), line()])
    program = _program()
    if keep is None:
        home = Path(tempfile.gettempdir())
        kept = next(each for number in count(1) if not (each := home / f"batonpass-demo-{number}").exists())
        command = f"{program} demo --keep {quote(str(kept))}"
        screen.lines([line("Play it and look around: ", Token(command, Tone.ACCENT))])
        return
    words = {"summary": SUMMARY, "number": BLAMED_LINE, "flipped": FLIPPED}
    unset = ["unset BATONPASS_LEDGER"] if os.environ.get("BATONPASS_LEDGER") else []
    commands = [f"cd {quote(str(folder))}", *unset, *(f"{program} {each.format(**words)}" for each in _LINES)]
    screen.lines([line("Look around:"), *(line(Token(each, Tone.ACCENT), lead="  ") for each in commands)])


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    """Lend a folder of its own, with its record: for good, or for as long as the demonstration lasts.

    What is kept has its record where that of any folder is, so commands find it from there. What is not leaves nothing.
    """
    ledger, state = os.environ.pop("BATONPASS_LEDGER", None), os.environ.get("BATONPASS_STATE_DIR")
    try:
        if keep is not None:
            yield _make_folder(Path(keep))
            return
        with tempfile.TemporaryDirectory(prefix="batonpass-demo-") as directory:
            folder = Path(directory).resolve() / "analysis"
            folder.mkdir()
            os.environ["BATONPASS_STATE_DIR"] = str(folder.with_name("state"))
            yield folder
    finally:
        for name, value in (("BATONPASS_LEDGER", ledger), ("BATONPASS_STATE_DIR", state)):
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _make_folder(path: Path) -> Path:
    folder = path.resolve()
    root, _ = find_repository(folder.parent if folder.parent.exists() else Path("/"))
    if (root / ".git").exists():
        detail = f"{folder} is in the repository {root}, whose record is one: keep the demonstration elsewhere"
        raise InvalidValueError(detail)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidValueError(f"{folder} is there already: give a folder that is new, or empty")
    folder.mkdir(parents=True, exist_ok=True)
    place = find_place(work_tree=folder)
    if (place.directory / "ledger.db").exists():
        detail = f"something is recorded of {folder} already, in {place.directory}: keep the demonstration elsewhere"
        raise InvalidValueError(detail)
    return folder


def _program() -> str:
    """Return how this program is called from another folder."""
    own = Path(sys.argv[0]).resolve()
    if own.name == "__main__.py":
        return f"{quote(sys.executable)} -m batonpass"
    found = shutil.which("batonpass")
    return "batonpass" if found is not None and Path(found).resolve() == own else quote(str(own))
