"""One record of a note: whose lines a commit brought into one file, signed by the relay that recorded the work.

A record is one line of text: a signature, a space, and a JSON document. It is complete by itself, so the order of
records and repeated ones mean nothing, and git's `cat_sort_uniq` merges notes. docs/spec/notes.md describes it.
"""

import itertools
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import CALL, HANDOFF, RUN, PublicKey, require_agent, require_id, require_principal
from batonpass.model.ledger.key import Signer
from batonpass.notes.line_prints import read_prints
from batonpass.notes.line_ranges import LineRanges
from batonpass.signing.ed25519 import is_signed
from batonpass.wire.canonical import encode_typed

VERSION: Final = 0
PAYLOAD_TYPE: Final = "application/vnd.batonpass.note+json"
LONGEST_RECORD: Final = 64 * 1024

_PAE_HEAD: Final = b"DSSEv1 %d %s " % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode())
_OBJECT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_WORD: Final = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_EDIT: Final = re.compile(r"([0-9]{1,8})-([0-9]{1,8})\+([0-9]{1,8})", re.ASCII)
_MOST_EDITS: Final = 20_000
_MOST_OVERRIDDEN: Final = 20_000
MOST_CANDIDATES: Final = 64  # calls that may have written a line; more say nothing
_LONGEST_PATH: Final = 4096
_SIGNATURE_BYTES: Final = 64
_KEY_BYTES: Final = 32
_LATEST: Final = 253_402_300_799


class LineEdits(Struct, frozen=True):
    """Lines that a commit replaced: how many lines stand before them, how many went, how many came."""

    before: int
    removed: int
    added: int


class NotedCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call, and the lines of the file that it wrote."""

    call: str
    tool: str
    at: int  # seconds since 1970
    lines: str = ""  # certain; lines that it only may have written are in `perhaps`
    matched: bool = False  # the recorder knew these lines by text and place, not by a chain of digests
    approval: str | None = None  # None: none was needed
    approved_by: tuple[str, ...] = ()

    @property
    def moment(self) -> datetime:
        """Return when it was made."""
        return datetime.fromtimestamp(self.at, UTC)


class NotedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run whose calls wrote lines of the file, and for whom it worked."""

    run: str
    agent: str
    human: str
    calls: tuple[NotedCall, ...]
    handoff: str | None = None  # None for a root run
    via: tuple[str, ...] = ()  # the agents that handed the task on, the nearest first
    above: tuple[str, ...] = ()  # their runs
    subagent: str | None = None  # its name in the program that ran it
    program: str | None = None  # the coding agent
    model: str | None = None
    task: str | None = None  # the digest that its receipt has for the task, or for the human's words
    standing: str | None = None  # None: nobody verified it
    imported: bool = False  # from files that nobody signed when it happened


class Perhaps(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lines that one of several calls wrote, or somebody who is not recorded."""

    lines: str
    calls: tuple[str, ...]
    nobody: bool = False


class _Document(Struct, kw_only=True, omit_defaults=True):
    v: int
    path: str
    blob: str
    at: int
    key: str
    by: tuple[NotedRun, ...] = ()
    perhaps: tuple[Perhaps, ...] = ()
    was: str | None = None
    renamed: str | None = None
    edits: str = ""
    prints: str = ""
    commit: str = ""
    unclaimed: str = ""


_DOCUMENTS: Final = msgspec.json.Decoder(_Document)


class NoteRecord(Struct, frozen=True, kw_only=True, dict=True):
    """The statement of one relay about one file of one commit."""

    path: str
    blob: str  # the file in the commit
    key: PublicKey  # of the relay that says so
    at: datetime
    by: tuple[NotedRun, ...] = ()
    perhaps: tuple[Perhaps, ...] = ()
    was: str | None = None  # the file in the first parent; None if it is new
    renamed: str | None = None  # its name there, if it is another
    edits: tuple[LineEdits, ...] = ()  # from the parent's file to this one
    prints: str = ""  # of all lines in `by` and `perhaps`
    commit_print: str = ""  # of author, author time and subject, which a rebase and a pick keep
    unclaimed: str = ""  # lines that git takes for older ones, and whose author is not known

    @cached_property
    def claimed(self) -> LineRanges:
        """Return all lines that the record says something about."""
        return claimed_lines(self.by, self.perhaps)

    @cached_property
    def line_prints(self) -> dict[int, tuple[bytes, bytes]]:
        """Return the prints of the claimed lines; nothing if they do not fit."""
        try:
            return read_prints(self.prints, self.claimed)
        except InvalidValueError:
            return {}

    def claims(self, line: int) -> Iterator[tuple[NotedRun, NotedCall]]:
        """Yield the calls that wrote a line for certain."""
        for run, call, lines in self._ranges:
            if line in lines:
                yield run, call

    def doubts(self, line: int) -> Iterator[tuple[Perhaps, tuple[tuple[NotedRun, NotedCall], ...]]]:
        """Yield the calls that may have written a line."""
        for perhaps, lines in self._perhaps_ranges:
            if line in lines:
                yield perhaps, tuple(self._calls[call] for call in perhaps.calls if call in self._calls)

    @cached_property
    def _ranges(self) -> list[tuple[NotedRun, NotedCall, LineRanges]]:
        return [(run, call, LineRanges.parse(call.lines)) for run in self.by for call in run.calls]

    @cached_property
    def _perhaps_ranges(self) -> list[tuple[Perhaps, LineRanges]]:
        return [(perhaps, LineRanges.parse(perhaps.lines)) for perhaps in self.perhaps]

    @cached_property
    def _calls(self) -> dict[str, tuple[NotedRun, NotedCall]]:
        return {call.call: (run, call) for run in self.by for call in run.calls}

    @cached_property
    def overridden(self) -> list[int]:
        """Return the lines that were there before, by git, and about which the recorder knows better."""
        ranges = (*self.claimed.ranges, *LineRanges.parse(self.unclaimed).ranges)
        told = (line for first, last in ranges for line in range(first, last + 1))
        # A hostile record may name ten million lines.
        return [line for line in islice(told, _MOST_OVERRIDDEN) if self.old_line(line) is not None]

    def is_unclaimed(self, line: int) -> bool:
        """Return whether the record says that nobody is known to have written a line."""
        return line in LineRanges.parse(self.unclaimed)

    def old_line(self, line: int) -> int | None:
        """Return the number that a line had in the parent's file; None if this commit brought it."""
        starts, shifts = self._shifts
        index = bisect_left(starts, line) - 1  # the last edit that begins above it
        if index < 0:
            return line
        return None if line <= starts[index] + self.edits[index].added else line - shifts[index]

    @cached_property
    def _shifts(self) -> tuple[list[int], list[int]]:
        """Return for each edit how many lines of the new file stand before it, and how far it moves those below."""
        starts: list[int] = []
        shifts: list[int] = []
        shift = 0
        for edit in self.edits:
            starts.append(edit.before + shift)
            shift += edit.added - edit.removed
            shifts.append(shift)
        return starts, shifts


def claimed_lines(by: tuple[NotedRun, ...], perhaps: tuple[Perhaps, ...]) -> LineRanges:
    """Return all lines that these claims are about, joined. Ranges of different calls may touch."""
    texts = [call.lines for run in by for call in run.calls] + [one.lines for one in perhaps]
    ranges = sorted(one for text in texts for one in LineRanges.parse(text).ranges)
    joined: list[tuple[int, int]] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return LineRanges(joined)


def write_record(record: NoteRecord, signer: Signer) -> str:
    """Return a record as one line, signed."""
    document = encode_typed(
        _Document(
            v=VERSION,
            path=record.path,
            blob=record.blob,
            at=int(record.at.timestamp()),
            key=_write(bytes.fromhex(signer.public_key)),
            by=record.by,
            perhaps=record.perhaps,
            was=record.was,
            renamed=record.renamed,
            edits=",".join(f"{one.before}-{one.removed}+{one.added}" for one in record.edits),
            prints=record.prints,
            commit=record.commit_print,
            unclaimed=record.unclaimed,
        )
    )
    return f"{_write(signer.sign(signing_bytes(document)))} {document.decode()}"


def read_record(line: str) -> NoteRecord:
    """Return the record in a line, with its signature checked. Raises `InvalidValueError`.

    The signature says that the holder of `key` wrote it. Whether that key means anything, the reader's trust decides.
    """
    signature, _, text = line.partition(" ")
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > LONGEST_RECORD:
        raise InvalidValueError("record", f"has {len(data):,} bytes; at most {LONGEST_RECORD:,} are read")
    try:
        document = _DOCUMENTS.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidValueError("record", str(error)) from None
    if document.v != VERSION:
        raise InvalidValueError("v", f"is not version {VERSION}; was it written by a newer version?")
    key = _read("key", document.key, _KEY_BYTES)
    # Before anything else is read: an author who cannot sign does not choose the bytes that we parse.
    if not is_signed(key, signing_bytes(data), _read("signature", signature, _SIGNATURE_BYTES)):
        raise InvalidValueError("signature", "does not match the record")
    _require(document)
    return NoteRecord(
        path=document.path,
        blob=document.blob,
        key=PublicKey(key.hex()),
        at=datetime.fromtimestamp(document.at, UTC),
        by=document.by,
        perhaps=document.perhaps,
        was=document.was,
        renamed=document.renamed,
        edits=_edits(document.edits),
        prints=document.prints,
        commit_print=document.commit,
        unclaimed=document.unclaimed,
    )


def signing_bytes(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding of a record: its type differs from that of a receipt."""
    return b"%s%d %s" % (_PAE_HEAD, len(payload), payload)


def _require(document: _Document) -> None:
    for name, value in (("blob", document.blob), ("was", document.was)):
        if value is not None and not _OBJECT.fullmatch(value):
            raise InvalidValueError(name, "is not the name of a git object")
    for path in (document.path, document.renamed or "."):
        if not path or len(path) > _LONGEST_PATH or "\0" in path or path.startswith("/"):
            raise InvalidValueError("path", "is not a path in a repository")
    if not 0 <= document.at <= _LATEST:
        raise InvalidValueError("at", "is not a time")
    for run in document.by:
        _require_run(run)
    LineRanges.parse(document.unclaimed)
    _require_once(document)


def _require_once(document: _Document) -> None:
    """Refuse overlapping ranges: a range that is repeated a thousand times makes each line cost a thousand claims."""
    if any(len(one.calls) > MOST_CANDIDATES for one in document.perhaps):
        raise InvalidValueError("perhaps", f"names more than {MOST_CANDIDATES} calls for a line")
    texts = [call.lines for run in document.by for call in run.calls] + [one.lines for one in document.perhaps]
    if sum(LineRanges.parse(text).size for text in texts) != claimed_lines(document.by, document.perhaps).size:
        raise InvalidValueError("lines", "are claimed twice by one record")


def _require_run(run: NotedRun) -> None:
    require_id("run", run.run, RUN)
    for above in run.above:
        require_id("above", above, RUN)
    if len(run.above) != len(run.via):
        raise InvalidValueError("above", "does not name a run for each agent")
    if run.handoff is not None:
        require_id("handoff", run.handoff, HANDOFF)
    for agent in (run.agent, *run.via):
        require_agent("agent", agent)
    require_principal("human", run.human)
    for name, word in (
        ("subagent", run.subagent),
        ("program", run.program),
        ("model", run.model),
        ("task", run.task),
        ("standing", run.standing),
    ):
        _require_word(name, word)
    for call in run.calls:
        require_id("call", call.call, CALL)
        _require_word("tool", call.tool)
        _require_word("approval", call.approval)
        for person in call.approved_by:
            require_principal("approved_by", person)
        if not 0 <= call.at <= _LATEST:
            raise InvalidValueError("at", "is not a time")
        LineRanges.parse(call.lines)


def short_word(word: str | None) -> str | None:
    """Return a word as a record may hold it: on one line and short; None if it cannot be."""
    return word if word is not None and _WORD.fullmatch(word) else None


def _require_word(name: str, word: str | None) -> None:
    if word is not None and not _WORD.fullmatch(word):
        raise InvalidValueError(name, "is not a short text on one line")


def _edits(text: str) -> tuple[LineEdits, ...]:
    parts = text.split(",") if text else []
    if len(parts) > _MOST_EDITS:
        raise InvalidValueError("edits", f"are more than {_MOST_EDITS:,}")
    found: list[LineEdits] = []
    for part in parts:
        if (one := _EDIT.fullmatch(part)) is None:
            raise InvalidValueError("edits", "are not places with counts")
        found.append(LineEdits(*map(int, one.groups())))
    if any(one.before + one.removed > other.before for one, other in itertools.pairwise(found)):
        raise InvalidValueError("edits", "do not rise")
    return tuple(found)


def _write(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _read(name: str, text: str, size: int) -> bytes:
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        raise InvalidValueError(name, "is not base64") from None
    if len(data) != size or _write(data) != text:
        raise InvalidValueError(name, f"is not {size} bytes in base64")
    return data
