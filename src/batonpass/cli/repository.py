"""The git repository that we stand in: where its hooks are, and which seals its commits carry."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from batonpass.errors import InvalidValueError, SealError
from batonpass.ledger.note import from_trailer, parse_note
from batonpass.ledger.sealing import origin_of
from batonpass.model.ids import LedgerId

TRAILER: Final = "Batonpass-Seal"


class GitError(click.ClickException):
    """Git could not do what was asked."""

    code = "git.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seals:
    """Seals that were found in commits: those of one ledger, and how many there are of others or beyond reading."""

    notes: tuple[str, ...]
    foreign: int
    unreadable: int


def git(*arguments: str, text: str | None = None) -> str:
    """Run git and return what it printed. Raises `GitError` with what git complained about."""
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments, and no shell
            ["git", *arguments],  # noqa: S607 - whichever git the person uses
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise GitError("git is not installed here") from None
    if done.returncode != 0:
        raise GitError(done.stderr.strip().removeprefix("fatal: ") or f"git {arguments[0]} failed")
    return done.stdout


def hooks_directory() -> Path:
    """Return where git looks for hooks here: `core.hooksPath`, or the repository's own directory."""
    return Path(git("rev-parse", "--git-path", "hooks").strip()).absolute()


def is_private(directory: Path) -> bool:
    """Return whether a directory belongs to this clone alone, and is never committed."""
    common = Path(git("rev-parse", "--git-common-dir").strip()).resolve()
    return directory.resolve().is_relative_to(common)


def find_trailers() -> list[str]:
    """Return the seals that commits carry, on every branch and every remote that was fetched."""
    # The remote is the witness, so what was fetched from it counts even if the local branch was rewritten.
    printed = git("log", "--all", f"--format=%(trailers:key={TRAILER},valueonly,unfold)")
    return list(dict.fromkeys(line for line in printed.splitlines() if line))


def find_seals(ledger: LedgerId) -> Seals:
    """Return the seals of a ledger that commits carry.

    Raises `GitError` if no commit carries any, `SealError` if all are of other ledgers: a ledger that was replaced
    as a whole looks like that.
    """
    notes, foreign, unreadable = [], 0, 0
    for trailer in find_trailers():
        try:
            note = from_trailer(trailer)
            origin = parse_note(note).checkpoint.origin
        except InvalidValueError:
            unreadable += 1
            continue
        if origin == origin_of(ledger):
            notes.append(note)
        else:
            foreign += 1
    if foreign and not notes:
        raise SealError(
            f"the commits here carry {foreign} seals and none is of {ledger}: "
            "the ledger was replaced, or belongs to another repository",
            field="origin",
        )
    if not notes:
        raise GitError(f"no commit here carries a {TRAILER}; run `batonpass git install` and commit")
    return Seals(notes=tuple(notes), foreign=foreign, unreadable=unreadable)
