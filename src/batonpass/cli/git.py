"""`batonpass git`: the ledger's seal in every commit, so that whoever has the commit is a witness."""

import re
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from batonpass.cli import hook
from batonpass.cli.exits import tell_error
from batonpass.cli.opening import opened_relay, settings
from batonpass.cli.options import given_ledger, ledger_option
from batonpass.cli.printing import tell
from batonpass.cli.repository import TRAILER, GitError, git, hooks_directory, is_private
from batonpass.cli.words import counted
from batonpass.errors import BatonpassError
from batonpass.ledger.note import to_trailer
from batonpass.model.seal import Seal
from batonpass.relay import Relay
from batonpass.store.opening import MEMORY, SQLITE

# Below this line of `git commit --verbose` stands the diff.
_SCISSORS: Final = re.compile(r"^. -{24} >8 -{24}$", re.MULTILINE)


@click.group()
def command() -> None:
    """Put the seal into every commit; once pushed, the remote is the witness."""


@command.command()
@click.option(
    "--seal/--no-seal",
    default=True,
    show_default=True,
    help="Seal the ledger at every commit; else take the newest seal that there is.",
)
@click.option("--undo", is_flag=True, help="Take our lines out again.")
@ledger_option
def install(*, seal: bool, undo: bool) -> None:
    """Add the seal to every commit, by a hook.

    A commit-msg hook that is there already is kept and still runs. A failure of ours never stops a commit.
    """
    hooks = hooks_directory()
    if undo:
        if not hook.remove(hooks):
            raise GitError(f"nothing of ours is in {hooks / hook.HOOK}")
        tell(f"removed our lines from {hooks / hook.HOOK}")
        return
    program = Path(sys.executable).with_name("batonpass")
    # A directory of hooks that is committed is no place for a path on this machine.
    fallback = str(program) if program.exists() and is_private(hooks) else None
    words = [*_ledger_words(), "git", "trailer", *([] if seal else ["--no-seal"])]
    try:
        path = hook.install(hooks, words, fallback)
    except FileExistsError as error:
        raise GitError(f"{error.filename} is in the way: an older hook was set aside there; move it") from None
    tell(f"{path} adds a {TRAILER} trailer to every commit from now on")
    tell("push, and the remote is the witness; `batonpass ledger verify --seal git` asks it")


@command.command()
@click.argument("message", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--seal/--no-seal", default=True, show_default=True, help="Seal the ledger first.")
@ledger_option
def trailer(message: Path, *, seal: bool) -> None:
    """Add the seal to a commit message, for the hook.

    Nothing is added, and nothing fails, if there is no ledger, nothing recorded, or no message.
    """
    try:
        found = _find_seal(seal=seal)
        if found is None or not _has_words(message):
            return
        # Without a divider: in a commit message, a line of three dashes is just a line.
        git(
            "interpret-trailers",
            "--in-place",
            "--no-divider",
            "--if-exists",
            "replace",
            "--trailer",
            f"{TRAILER}: {to_trailer(found.note)}",
            str(message),
        )
    except BatonpassError as error:
        tell_error(error)
        tell("batonpass: this commit goes on without a seal")
    except GitError as error:
        tell(f"batonpass: {error.message}; this commit goes on without a seal")
    else:
        tell(f"batonpass: this commit carries a seal over {counted(found.size, 'receipt')}")


def _find_seal(*, seal: bool) -> Seal | None:
    url = settings().ledger
    if url == MEMORY or (url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).expanduser().exists()):
        return None
    with opened_relay() as relay:
        if not relay.store.founded():
            return None
        return relay.seal() if seal else _newest(relay)


def _newest(relay: Relay) -> Seal | None:
    with relay.store.view() as view:
        return max(view.find_seals(), key=lambda seal: seal.size, default=None)


def _has_words(message: Path) -> bool:
    """Return whether a message says anything: an empty one stops the commit, and a trailer must not change that."""
    text = _SCISSORS.split(message.read_text(encoding="utf-8", errors="replace"), maxsplit=1)[0]
    return bool(git("stripspace", "--strip-comments", text=text).strip())


def _ledger_words() -> list[str]:
    """Return how the hook is told which ledger, if we were told."""
    given = given_ledger()
    if given is None:
        return []
    if urlsplit(given).password is not None:
        raise click.UsageError("a hook would show the password in --ledger; set BATONPASS_LEDGER instead")
    return ["--ledger", given if "://" in given else str(Path(given).absolute())]
