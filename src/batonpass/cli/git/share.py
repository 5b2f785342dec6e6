"""`batonpass git install --share`, `note` and `sync`: notes about lines travel with the commits."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from batonpass.attribution.git.git_process import GitSilentError
from batonpass.cli.git import commit_hook
from batonpass.cli.git.repository import GitError, fallback_program, git, hooks_directory
from batonpass.cli.input.ledger_access import ledger_word, opened_relay, settings, viewed
from batonpass.cli.output.terminal import paint, say, say_json, tell
from batonpass.cli.output.units import counted
from batonpass.errors import BatonpassError
from batonpass.notes.note_exchange import REFSPEC, Exchanged, NoteExchange
from batonpass.notes.note_store import NoteRepository
from batonpass.notes.trusted_keys import KEYS_FILE, find_trusted
from batonpass.store.factory import MEMORY, SQLITE

if TYPE_CHECKING:
    from batonpass.accounts.blame.commit_notes import CommitNotes
    from batonpass.relay import Relay

MOST_COMMITS: Final = 5_000  # that are named at once
_MOST_PUSHED: Final = 200  # of a push: older commits have their notes already, or were not made here
_FETCH: Final = "remote.{remote}.fetch"


def install_share(*, words: bool) -> None:
    """Install the hooks that write and send notes, and let a plain `git fetch` bring those of others."""
    hooks = hooks_directory()
    ledger = ledger_word()
    start = [*(() if ledger is None else ("--ledger", ledger)), "git"]
    program = fallback_program(hooks)
    try:
        for name, rest in (
            (commit_hook.POST_COMMIT, ["note", *(("--words",) if words else ())]),
            (commit_hook.PRE_PUSH, ["sync", "--hook"]),
        ):
            path = commit_hook.install(hooks, [*start, *rest], program, name)
            what = "writes a note about" if name == commit_hook.POST_COMMIT else "sends the notes with"
            tell(f"{path} {what} {_each(name)}")
    except FileExistsError as error:
        raise GitError(f"{error.filename} already exists: an older hook was set aside there; move it") from None
    for remote in repository_here().remotes():
        if REFSPEC.format(remote=remote) not in _fetched(remote):
            git("config", "--local", "--add", _FETCH.format(remote=remote), REFSPEC.format(remote=remote))
    if words:
        tell("the words of tasks are shared too; people who fetch them keep them, also if you erase them later")
    _tell_key()


def remove_share() -> None:
    """Take out the hooks and the setting. Notes that are written stay."""
    hooks = hooks_directory()
    removed = [name for name in (commit_hook.POST_COMMIT, commit_hook.PRE_PUSH) if commit_hook.remove(hooks, name)]
    if not removed:
        raise GitError(f"there are no lines of batonpass in {hooks / commit_hook.POST_COMMIT}")
    for name in removed:
        tell(f"removed our lines from {hooks / name}")
    for remote in repository_here().remotes():
        if REFSPEC.format(remote=remote) in _fetched(remote):
            setting = _FETCH.format(remote=remote), REFSPEC.format(remote=remote)
            git("config", "--local", "--fixed-value", "--unset", *setting)


def write_note(span: str, *, words: bool, drafts: bool, as_json: bool) -> None:
    """Write the notes of commits."""
    if not _has_ledger():
        if as_json:
            say_json([])
        return
    with said_by_git():
        repository = repository_here()
        commits = repository.commits(span, most=MOST_COMMITS)
        with opened_relay() as relay:
            notes = _write(relay, repository, commits, words=words, drafts=drafts)
    if as_json:
        say_json([_facts(one) for one in notes if one.files])
        return
    claimed = sum(one.claimed for one in notes)
    if claimed:
        files = sum(one.files for one in notes)
        tell(f"batonpass: noted who wrote {counted(claimed, 'line')} of {counted(files, 'file')}")


def sync_notes(remote: str | None, *, sends: bool, in_hook: bool, as_json: bool) -> None:
    """Exchange notes with a remote."""
    with said_by_git():
        repository = repository_here()
        known = repository.remotes()
        chosen = remote or ("origin" if "origin" in known else known[0] if len(known) == 1 else None)
        if chosen not in known:
            if in_hook:
                return  # a push to a URL that has no name: nobody asked for notes to go there
            raise GitError("name the remote" if chosen is None else f"there is no remote {chosen}")
        if in_hook:
            _catch_up(repository, chosen)
        done = NoteExchange(repository, chosen).run(at=datetime.now(UTC), sends=sends)
    _tell_exchanged(done, in_hook=in_hook, as_json=as_json)
    if not in_hook and not as_json and not find_trusted(repository).relays:
        tell(paint(f"no key is trusted here yet: {KEYS_FILE} on the default branch names those that are", dim=True))


def _tell_exchanged(done: Exchanged, *, in_hook: bool, as_json: bool) -> None:
    if as_json:
        say_json({"remote": done.remote, "received": done.received, "sent": done.sent, "tries": done.tries})
    elif not in_hook:
        sent = "sent ours" if done.sent else "nothing to send"
        say(f"{done.remote}: {counted(done.received, 'note')} received, {sent}")


def _catch_up(repository: NoteRepository, remote: str) -> None:
    """Write notes for commits that are pushed and have none: a rebase or a merge runs no hook of a commit."""
    if not _has_ledger():
        return
    from batonpass.accounts.blame.commit_notes import find_unnoted  # noqa: PLC0415 - slow to import
    from batonpass.relay import signer_of  # noqa: PLC0415 - as above

    commits = repository.missing_from(remote, most=_MOST_PUSHED)
    if not commits:
        return
    try:
        with opened_relay() as relay:
            key = signer_of(relay).public_key
            _write(relay, repository, find_unnoted(repository, commits, key), words=_shares_words(), drafts=False)
    except BatonpassError as error:
        tell(f"batonpass: {error}; some commits have no note")


def _write(
    relay: "Relay", repository: NoteRepository, commits: list[str], *, words: bool, drafts: bool
) -> "list[CommitNotes]":
    from batonpass.accounts.blame.commit_notes import (  # noqa: PLC0415 - slow to import, and a hook may have nothing to do
        NoteWriter,
        write_notes,
        write_shared_words,
    )
    from batonpass.credentials.redaction import Redactor  # noqa: PLC0415 - as above
    from batonpass.relay import signer_of  # noqa: PLC0415 - as above

    now = datetime.now(UTC)
    signer = signer_of(relay)
    with viewed(relay.store) as view:
        redactor = Redactor() if words else None
        writer = NoteWriter(view, repository, signer, at=now, opens_all=drafts, redactor=redactor)
        notes = [writer.of_commit(commit) for commit in commits]
        write_notes(repository, notes, at=now)
        if words:
            write_shared_words(view, repository, notes, signer, at=now)
    return notes


def _facts(notes: "CommitNotes") -> dict[str, object]:
    return {
        "commit": notes.commit,
        "files": notes.files,
        "lines": notes.claimed,
        "runs": list(notes.runs),
        "bytes": sum(len(line) + 1 for line in notes.lines.get(notes.commit, ())),
        "proof_bytes": sum(len(line) + 1 for lines in notes.proofs.values() for line in lines),
    }


def _shares_words() -> bool:
    path = hooks_directory() / commit_hook.POST_COMMIT
    try:
        return "--words" in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _tell_key() -> None:
    """Print the lines that let others trust the signatures of this relay."""
    if not _has_ledger():
        return
    with opened_relay() as relay:
        root = next(iter(relay.admin.keys()), None)
    if root is None or any(one.key == root.public_key for one in find_trusted(repository_here()).relays):
        return
    owner = git("config", "--default", "you", "--get", "user.name").strip().split(" ")[0].lower() or "you"
    tell(f"others trust these notes once {KEYS_FILE} on the default branch has:")
    for line in ("[[relay]]", f'owner = "user:{owner}"', f'key = "{root.public_key}"'):
        say(line)


def _fetched(remote: str) -> list[str]:
    try:
        return git("config", "--local", "--get-all", _FETCH.format(remote=remote)).splitlines()
    except GitError:
        return []


def repository_here() -> NoteRepository:
    """Return the repository of the current directory. Raises `GitError`."""
    return NoteRepository(Path(git("rev-parse", "--show-toplevel").removesuffix("\n")), os.environ)


@contextmanager
def said_by_git() -> Iterator[None]:
    """Turn git's complaints into errors of the command."""
    try:
        yield
    except GitSilentError as error:
        raise GitError(str(error)) from None


def _each(name: str) -> str:
    when = "from now on" if _has_ledger() else "once something is recorded here"
    return f"every {'commit' if name == commit_hook.POST_COMMIT else 'push'} {when}"


def _has_ledger() -> bool:
    url = settings().ledger
    return url != MEMORY and not (url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).expanduser().exists())
