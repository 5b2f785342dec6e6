"""Notes travel between clones: fetched beside the local ones, merged, and sent; again if somebody was first."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.git_process import GitProcess, GitSilentError
from batonpass.notes.note_store import TRACKED, NoteKind, NoteRepository, ReadNotes
from batonpass.notes.shared_words import without_erased

REFSPEC: Final = "+refs/notes/batonpass*:" + TRACKED + "/{remote}/batonpass*"
_JOINED: Final = (NoteKind.PROOFS, NoteKind.LINES)
_TRIES: Final = 5
_ANSWER_WITHIN: Final = timedelta(seconds=60)


class Exchanged(Struct, frozen=True, kw_only=True):
    """The outcome of an exchange with a remote."""

    remote: str
    received: int  # notes that were new or had new lines
    sent: bool
    tries: int


class NoteExchange:
    """Fetches, merges and sends the notes of one repository."""

    def __init__(self, repository: NoteRepository, remote: str) -> None:
        if remote.startswith("-"):
            raise GitSilentError(f"{remote} is not a remote")
        self._repository = repository
        self._remote = remote
        self._online = GitProcess(
            root=repository.root,
            environment=repository.environment,
            answer_within=_ANSWER_WITHIN,
            online=True,
        )

    def fetch(self) -> None:
        """Fetch the remote's notes beside the local ones, which stay as they are."""
        # Without the repository's own refspecs: a name of theirs must not decide which ref is written.
        quiet = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--prune")
        self._online.text(*quiet, "--refmap=", "--", self._remote, REFSPEC.format(remote=self._remote))

    def merge(self, *, at: datetime) -> int:
        """Add the fetched notes to the local ones; return how many were new or had new lines."""
        received = 0
        for kind in _JOINED:
            theirs = self._repository.note_refs(kind).get(kind.tracked(self._remote))
            if theirs is not None:
                received += self._repository.merge_notes(kind, theirs, at=at)
        return received + self._merge_words(at=at)

    def push(self) -> bool:
        """Send the local notes; return whether there was anything to send. Raises if somebody else was first."""
        specs: list[str] = []
        leases: list[str] = []
        refs: dict[str, str] = {}
        for kind in NoteKind:
            known = self._repository.note_refs(kind)
            ours, theirs = known.get(kind.ref), known.get(kind.tracked(self._remote))
            if ours is None or ours == theirs:
                continue
            refs[kind.tracked(self._remote)] = ours
            if kind is NoteKind.WORDS:
                # It has no history to compare, so the remote compares the old value of the ref.
                leases.append(f"--force-with-lease={kind.ref}:{theirs or ''}")
            specs.append(f"{kind.ref}:{kind.ref}")
        if not specs:
            return False
        self._online.text("push", "--quiet", "--no-verify", "--no-follow-tags", *leases, "--", self._remote, *specs)
        for ref, commit in refs.items():
            self._repository.point(ref, commit)
        return True

    def run(self, *, at: datetime, sends: bool = True) -> Exchanged:
        """Fetch, merge and send, and do it again if somebody was first. Raises `GitSilentError`."""
        received = 0
        for tries in range(1, _TRIES + 1):
            self.fetch()
            received += self.merge(at=at)
            try:
                sent = self.push() if sends else False
            except GitSilentError:
                if tries == _TRIES:
                    raise
                continue
            return Exchanged(remote=self._remote, received=received, sent=sent, tries=tries)
        raise AssertionError("unreachable")

    def _merge_words(self, *, at: datetime) -> int:
        kind = NoteKind.WORDS
        known = self._repository.note_refs(kind)
        ours, theirs = known.get(kind.ref), known.get(kind.tracked(self._remote))
        if theirs is None or ours == theirs:
            return 0
        there = self._repository.all_notes(kind, theirs).lines
        here = ReadNotes({}).lines if ours is None else self._repository.all_notes(kind, ours).lines
        joined = {
            key: without_erased((*here.get(key, ()), *there.get(key, ()))) for key in dict.fromkeys((*here, *there))
        }
        new = [key for key, lines in joined.items() if lines and set(lines) != set(here.get(key, ()))]
        if new:
            kept = {key: lines for key, lines in joined.items() if lines}
            self._repository.replace_notes(kind, kept, expected=ours, at=at)
        return len(new)
