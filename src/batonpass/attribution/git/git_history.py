"""The history of a file as values."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from batonpass.model.base.ids import Digest


class Commit(Struct, frozen=True, kw_only=True):
    """A commit as it is shown in an answer."""

    id: str
    author: str
    at: datetime  # commit time, which a rewrite renews


class CommittedLine(Struct, frozen=True, kw_only=True):
    """Where a line came from: the commit that introduced it, and its place there."""

    commit: Commit
    path: str
    line: int


class Logged(Struct, frozen=True, kw_only=True):
    """A commit that changed the file."""

    commit: str
    at: datetime
    parents: tuple[str, ...] = ()  # the nearest earlier commits that changed the file
    runs: tuple[str, ...] = ()  # runs named in its trailers
    author: str = ""
    authored_at: datetime | None = None  # survives a rebase, a pick or an amendment
    subject: str = ""  # the first line of its message
    made_from: tuple[str, ...] = ()  # commits that it repeats, according to its message
    reverts: tuple[str, ...] = ()  # commits that it reverts


class Revision(Logged, frozen=True, kw_only=True):
    """The file at one commit."""

    path: str
    digest: Digest
    aside: bool = False  # on another branch or abandoned: it does not lead to the present file


class Checkout(Struct, frozen=True, kw_only=True):
    """From this time on the work tree had the file as in this commit, except for uncommitted changes."""

    at: datetime
    commit: str
    digest: Digest
    is_back: bool  # back to an existing commit; otherwise the commit was new


class History(Struct, frozen=True, kw_only=True):
    """The revisions of a file, parents first, with their lines; and notes on unreadable ones.

    Revisions aside help to explain commits that were rebased, picked or squashed.
    """

    revisions: Sequence[Revision] = ()
    lines: Mapping[Digest, Sequence[str]] = field(default_factory=dict)
    checkouts: Sequence[Checkout] = ()  # those that git still has a log of, earliest first
    paths: tuple[str, ...] = ()  # names of the file, the present one first
    head: str | None = None  # the commit of the revision in the work tree
    checked_out: str | None = None  # the checked out commit, whether or not it changed the file
    # For each present line the commit that introduced it; None: not committed, or not asked for.
    blamed: Sequence[Commit | None] = ()
    origins: Mapping[int, CommittedLine] = field(default_factory=dict)  # the same by line number, with the place there
    notes: tuple[str, ...] = ()
