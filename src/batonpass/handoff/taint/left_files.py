"""Files that tainted runs wrote: whether a file is one of them, and whether a person has answered for it since.

A file is recognised by its bytes, whatever its name is, and by its path, whatever its bytes are now. Its taint ends
once a person endorses those bytes or commits them. A commit that no recorded call made counts as the commit of a person
who had the file before them. Endorsing the source itself ends the taint as well.
"""

import os
from collections.abc import Collection, Iterator
from datetime import datetime
from hashlib import new
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.changes.sides import printable
from batonpass.attribution.git.file_git import GitSilentError, Repository
from batonpass.errors import NotFoundError, NotPersonError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.files.background_commits import find_heads_before, is_older
from batonpass.handoff.runtime.desk import Desk
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import PATH, REASON
from batonpass.model.base.ids import CallId, ContentId, Digest, PrincipalId, ReceiptId, RunId
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import FileEndorsed
from batonpass.model.ledger.remark import RemarkKind
from batonpass.records.call import Ended, outcome_in
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt

_LARGEST_FILE: Final = 16 * 1024 * 1024  # a larger file is recognised only by its path
_MOST_WRITERS: Final = 16  # of the same bytes; each may have had other sources
_MOST_VERSIONS: Final = 50
_LATEST: Final = 128  # how many of the latest tainted outcomes are searched for files in a directory


class LeftFile(Struct, frozen=True, kw_only=True):
    """A file as one call of a tainted run wrote it, for which nobody has answered."""

    path: str  # relative to the root of the repository, or absolute
    call: CallId
    run: RunId
    at: datetime
    sources: tuple[Source, ...]  # the taint of its run, without sources endorsed since
    holds: Digest  # digest of the bytes that the call wrote
    is_as_left: bool  # whether the file still has these bytes


def is_any_left(view: LedgerView) -> bool:
    """Return whether any tainted run ever wrote a file. Mostly none did, and then no file has to be looked at."""
    return next(view.find_remarks(RemarkKind.TAINTED), None) is not None


def find_left(
    desk: Desk, view: LedgerView, path: Path, known: Collection[Source] = frozenset()
) -> tuple[LeftFile, ...]:
    """Return the writes of tainted runs to a file that nobody has endorsed. `path` must contain no link.

    Writes whose sources are all `known` are left out, because they would add nothing and git would be asked in vain.
    """
    body = _read(path)
    if body == b"":
        return ()
    digest = None if body is None else digest_of(body)
    if digest is not None and _is_endorsed(view, digest):
        return ()
    found = {left.call: left for left in _by_path(desk, view, path, digest)}
    if digest is not None:
        found |= {left.call: left for left in _by_bytes(desk, view, path, digest)}
    news = (left for left in found.values() if not set(left.sources) <= set(known))
    standing = [replace(left, sources=rest) for left in news if (rest := _unendorsed(view, left))]
    if not standing or (desk.gates.commit_endorses and _is_committed(desk, view, standing, path, body)):
        return ()
    return tuple(standing)


def find_below(
    desk: Desk, view: LedgerView, directory: Path, known: Collection[Source] = frozenset()
) -> Iterator[Path]:
    """Yield the files in a directory that tainted runs wrote lately, unless all their sources are `known`.

    Somebody may have answered for them since: `find_left` tells.
    """
    receipts = dict.fromkeys(remark.receipt for remark in islice(view.find_remarks(RemarkKind.TAINTED), _LATEST))
    contents: list[ContentId] = []
    for receipt in receipts:
        _, body = _outcome(view, receipt)
        if not set(body.taint or ()) <= set(known):
            contents += [changed.change for changed in body.changes]
    for path in dict.fromkeys(touched.path for touched in view.find_touches_of(contents)):
        whole = desk.files.root / path
        if whole.is_relative_to(directory) and whole.is_file():
            yield whole


def endorse_file(desk: Desk, path: str | os.PathLike[str], *, by: str, reason: str) -> tuple[LeftFile, ...]:
    """Record that a person answers for a file as it is now; return the writes of tainted runs to it.

    Raises `NotPersonError` if `by` is not a person, and `NotFoundError` if the file has no taint to endorse.
    """
    require_text("reason", reason)
    place = Path(os.path.realpath(path))
    if not may_endorse(by):
        raise NotPersonError(str(path), by)
    with desk.store.view() as view:
        left = find_left(desk, view, place) if place.is_file() else ()
    if not left:
        raise NotFoundError("file that a tainted run left", str(path))
    body = _read(place)
    # The bytes that the runs wrote are endorsed too, so that a person who edits the file further is not asked again.
    holds = dict.fromkeys((*(() if body is None else (digest_of(body),)), *(each.holds for each in left)))
    said = FileEndorsed(holds=tuple(holds), by=PrincipalId(by))
    desk.recording.note(said, (desk.text(REASON, reason), desk.text(PATH, inside(desk, place))))
    return left


def inside(desk: Desk, path: Path) -> str:
    """Return a path as recorded changes name it: relative to the root of the repository if it lies there."""
    root = desk.files.root
    return printable(path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path))


def _by_bytes(desk: Desk, view: LedgerView, path: Path, digest: Digest) -> Iterator[LeftFile]:
    for remark in islice(view.find_remarks(RemarkKind.TAINTED, digest), _MOST_WRITERS):
        yield _left(inside(desk, path), view, remark.receipt, digest, as_left=True)


def _by_path(desk: Desk, view: LedgerView, path: Path, digest: Digest | None) -> Iterator[LeftFile]:
    """Yield the last recorded write to a path, if its run was tainted."""
    touched = next(view.find_touches(inside(desk, path)), None)
    if touched is None:
        return
    _, body = _outcome(view, touched.receipt)
    after = next((changed.after for changed in body.changes if changed.change == touched.content), None)
    if body.taint and after is not None and not _is_endorsed(view, after):
        yield _left(touched.path, view, touched.receipt, after, as_left=after == digest)


def _left(path: str, view: LedgerView, receipt: ReceiptId, holds: Digest, *, as_left: bool) -> LeftFile:
    at, body = _outcome(view, receipt)
    return LeftFile(
        path=path,
        call=body.call,
        run=body.run,
        at=at,
        sources=body.taint or (),
        holds=holds,
        is_as_left=as_left,
    )


def _outcome(view: LedgerView, receipt: ReceiptId) -> tuple[datetime, Ended]:
    found = decode_receipt(view.get_receipt(receipt).payload)
    ended = outcome_in(found)
    if ended is None:
        raise NotFoundError("outcome of a call", receipt)
    return found.at, ended


def _unendorsed(view: LedgerView, left: LeftFile) -> tuple[Source, ...]:
    return tuple(source for source in left.sources if not _is_endorsed(view, source))


def _is_endorsed(view: LedgerView, name: str) -> bool:
    return next(view.find_remarks(RemarkKind.ENDORSED, name), None) is not None


def _is_committed(desk: Desk, view: LedgerView, standing: list[LeftFile], path: Path, body: bytes | None) -> bool:
    """Return whether a person committed these bytes, or if the file was changed since the write, any later version."""
    root = desk.files.root
    if not desk.files.is_repository or not path.is_relative_to(root):
        return False
    since = None if any(left.is_as_left for left in standing) else max(left.at for left in standing)
    repository = Repository(root, os.environ)
    heads = find_heads_before(view, {left.run for left in standing})
    for name in dict.fromkeys((path.relative_to(root).as_posix(), *_other_names(view, standing))):
        try:
            versions = repository.versions(name, most=_MOST_VERSIONS)
        except GitSilentError:
            return False
        for version in versions:
            same = body is not None and version.blob in _blobs(body, len(version.blob))
            later = since is not None and version.at > since
            if not (same or later) or next(view.find_remarks(RemarkKind.COMMITTED, version.commit), None) is not None:
                continue
            # While a command of those runs goes on, the commit may be its own. So only commits that are older count.
            if all(is_older(repository, version.commit, head) for head in heads):
                return True
    return False


def _other_names(view: LedgerView, standing: list[LeftFile]) -> Iterator[str]:
    """Yield other paths at which these bytes were written: if a person committed one copy, they answer for all."""
    for left in standing:
        if not left.is_as_left:
            continue
        for remark in islice(view.find_remarks(RemarkKind.TAINTED, left.holds), 1):
            changes = [each.change for each in _outcome(view, remark.receipt)[1].changes if each.after == left.holds]
            yield from (touched.path for touched in view.find_touches_of(changes))


def _blobs(body: bytes, letters: int) -> set[str]:
    """Return the names of these bytes as git blobs, also with plain line ends, because a checkout may convert them."""
    name = "sha1" if letters == 40 else "sha256"  # noqa: PLR2004 - how long a sha1 is
    return {new(name, b"blob %d\0%b" % (len(one), one)).hexdigest() for one in (body, body.replace(b"\r\n", b"\n"))}


def _read(path: Path) -> bytes | None:
    """Return the bytes of a file; None if it is too large or cannot be read."""
    try:
        return None if path.stat().st_size > _LARGEST_FILE else path.read_bytes()
    except OSError:
        return None
