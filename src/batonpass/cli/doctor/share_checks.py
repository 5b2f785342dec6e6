"""The doctor's checks of notes: whether they are written and sent, and whether others can trust them."""

from collections.abc import Iterator

from batonpass.attribution.git.git_process import GitSilentError
from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.git import commit_hook
from batonpass.cli.git.repository import GitError, hooks_directory
from batonpass.cli.git.share import repository_here
from batonpass.config import Settings
from batonpass.errors import BatonpassError
from batonpass.notes.note_store import NoteKind
from batonpass.notes.trusted_keys import KEYS_FILE, find_trusted
from batonpass.store.factory import open_store

_INSTALL = "batonpass git install --share"


def look_at_share(found: Settings) -> Iterator[DoctorCheck]:
    """Yield the problems with sharing notes; nothing where nobody shares any."""
    try:
        hooks = hooks_directory()
        there = [
            name for name in (commit_hook.POST_COMMIT, commit_hook.PRE_PUSH) if commit_hook.is_installed(hooks, name)
        ]
        if there:
            yield _hooks(there)
            yield _key(found)
            yield from _unsent()
    except (GitError, GitSilentError):
        return


def _hooks(there: list[str]) -> DoctorCheck:
    if len(there) == len((commit_hook.POST_COMMIT, commit_hook.PRE_PUSH)):
        return DoctorCheck(Level.OK, "share", "notes are written at every commit and sent with every push")
    return DoctorCheck(Level.WARN, "share", f"of our hooks only {there[0]} is there", f"run {_INSTALL}")


def _key(found: Settings) -> DoctorCheck:
    trusted = find_trusted(repository_here())
    if trusted.problems:
        return DoctorCheck(Level.BAD, "trust", trusted.problems[0], "fix it: until then nobody's notes are trusted")
    try:
        store = open_store(found.ledger, create=False)
        with store.view() as view:
            root = view.info().root_key
        store.close()
    except BatonpassError:
        return DoctorCheck(Level.OK, "trust", "there is no ledger here to be trusted")
    if any(one.key == root and one.revoked is None for one in trusted.relays):
        return DoctorCheck(Level.OK, "trust", f"{KEYS_FILE} names the key of this ledger")
    advice = f"add it to {KEYS_FILE} on the default branch; {_INSTALL} prints the lines"
    return DoctorCheck(Level.WARN, "trust", "others cannot trust these notes: no file names the key", advice)


def _unsent() -> Iterator[DoctorCheck]:
    repository = repository_here()
    refs = repository.note_refs(NoteKind.LINES)
    ours = refs.pop(NoteKind.LINES.ref, None)
    if ours is not None and refs and ours not in refs.values():
        yield DoctorCheck(Level.OK, "notes", "some are not sent yet", "the next push sends them, or batonpass git sync")
