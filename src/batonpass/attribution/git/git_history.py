"""What git knows about a file: values, whoever reads them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field

from batonpass.model.base.ids import Digest


class Commit(Struct, frozen=True, kw_only=True):
    """A commit, as far as an answer names it."""

    id: str
    author: str
    at: datetime  # when it was made or rewritten


class Revision(Struct, frozen=True, kw_only=True):
    """A file as one commit has it."""

    commit: str
    at: datetime
    path: str
    digest: Digest
    parents: tuple[str, ...] = ()  # the next commits before it that changed the file
    runs: tuple[str, ...] = ()  # whom its trailers name
    author: str = ""
    authored_at: datetime | None = None  # stays the same when a commit is rebased, picked or amended
    subject: str = ""  # the first line of its message
    made_from: tuple[str, ...] = ()  # commits that its message says it repeats
    reverts: tuple[str, ...] = ()  # and those that it takes back
    aside: bool = False  # of another branch, or left behind: it does not lead to the present file


class Checkout(Struct, frozen=True, kw_only=True):
    """From some time on, the work tree had the file as a commit has it, but for what was not committed."""

    at: datetime
    commit: str
    digest: Digest
    is_back: bool  # to what was there before; else with the commit something new came about


class History(Struct, frozen=True, kw_only=True):
    """The revisions of a file, parents first, with their lines; and what could not be read.

    Those that lie aside are there to tell where others come from that were rebased, picked or squashed.
    """

    revisions: Sequence[Revision] = ()
    lines: Mapping[Digest, Sequence[str]] = field(default_factory=dict)
    checkouts: Sequence[Checkout] = ()  # as far as git has kept them, the earliest first
    paths: tuple[str, ...] = ()  # what the file was called, the present name first
    head: str | None = None  # the commit of the work tree's revision
    checked_out: str | None = None  # the commit of the work tree, whether or not it changed the file
    # For each present line, the commit that brought it; None: it is not committed, or nobody asked.
    blamed: Sequence[Commit | None] = ()
    notes: tuple[str, ...] = ()
