"""What git knows about a file: values, whoever reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from batonpass.model.ids import Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit, as far as an answer names it."""

    id: str
    author: str
    at: datetime  # when it was made or rewritten


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A file as one commit has it."""

    commit: str
    at: datetime
    path: str
    digest: Digest
    parents: tuple[str, ...] = ()  # the next commits before it that changed the file
    runs: tuple[str, ...] = ()  # whom its trailers name


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The revisions of a file, parents first, with their lines; and what could not be read."""

    revisions: Sequence[Revision] = ()
    lines: Mapping[Digest, Sequence[str]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()  # what the file was called, the present name first
    head: str | None = None  # the commit of the work tree's revision
    blamed: Sequence[Commit | None] = ()  # for each present line, the commit that brought it; None: not committed
    notes: tuple[str, ...] = ()
