"""Trace records of Agent Trace 0.1: who wrote ranges of lines at a revision.

Their specification leaves open where they lie; its reference program appends them to `.agent-trace/traces.jsonl` in the
repository.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import Struct, field

from batonpass.attribution.changes.sides import printable
from batonpass.attribution.worktree.plain_file import NotPlainFileError, open_plain
from batonpass.notes.foreign.hearsay import Hearsay, HearsayReach, HearsaySource, SaidOf, shown
from batonpass.notes.line_ranges import MOST_LINES, LineRanges

FOLDER: Final = ".agent-trace"
FILE: Final = "traces.jsonl"
VERSION: Final = "0.1.0"
LARGEST: Final = 16 * 1024 * 1024

_LONGEST_RECORD: Final = 1024 * 1024
_LONGEST_MODEL: Final = 250
_REVISION: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_NAMELESS: Final = {"ai": "an agent", "mixed": "an agent and a human", "human": "a human"}


class _Contributor(Struct, frozen=True, kw_only=True):
    type: str
    model_id: str | None = None


class _Range(Struct, frozen=True, kw_only=True):
    start_line: int
    end_line: int
    contributor: _Contributor | None = None


class _Conversation(Struct, frozen=True, kw_only=True):
    ranges: list[_Range]
    url: str | None = None
    contributor: _Contributor | None = None


class _TracedFile(Struct, frozen=True, kw_only=True):
    path: str
    conversations: list[_Conversation]


class _Vcs(Struct, frozen=True, kw_only=True):
    type: str
    revision: str


class _Tool(Struct, frozen=True, kw_only=True):
    name: str | None = None
    version: str | None = None


class _Record(Struct, frozen=True, kw_only=True):
    version: str
    files: list[_TracedFile]
    vcs: _Vcs | None = None
    tool: _Tool | None = None


_RECORDS: Final = msgspec.json.Decoder(_Record)


class Traces(Struct, frozen=True, kw_only=True):
    """All that the records of a repository say: by revision and path, in the order of the file."""

    said: Mapping[tuple[str, str], Sequence[SaidOf]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


class TracedLines(Struct, frozen=True, kw_only=True):
    """The lines of one call in one run, to be written as a trace."""

    path: str
    lines: LineRanges
    run: str
    call: str
    model: str | None
    facts: Mapping[str, str]  # about the run, which the format has no field for


def read_traces(root: Path) -> Traces:
    """Return the trace records of a repository; unreadable ones are reported and left out."""
    data, problem = _read(root)
    if problem is not None:
        return Traces(remarks=(problem,))
    said: dict[tuple[str, str], list[SaidOf]] = {}
    unread = 0
    for line in filter(None, map(bytes.strip, data.split(b"\n"))):
        record = None
        if len(line) <= _LONGEST_RECORD:
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                record = _RECORDS.decode(line)
        claims = None if record is None else _claims(record)
        if claims is None:
            unread += 1
            continue
        for key, claim in claims:
            said.setdefault(key, []).append(claim)
    remarks = (f"{unread} records of {FOLDER}/{FILE} were not read: they are not of the form of Agent Trace",)
    return Traces(said=said, remarks=remarks if unread else ())


def write_trace(commit: str, lines: Sequence[TracedLines], *, at: datetime, version: str) -> bytes:
    """Return one record about a commit, as one line of JSON. The same lines have the same id each time."""
    files: dict[str, dict[str, dict[str, object]]] = {}
    for one in lines:
        conversations = files.setdefault(one.path, {})
        url = f"urn:batonpass:{one.run}"
        contributor = {"type": "ai"}
        if one.model:
            contributor["model_id"] = one.model[:_LONGEST_MODEL]
        told = conversations.setdefault(
            f"{url} {one.model}", {"url": url, "contributor": contributor, "ranges": [], "related": []}
        )
        ranges, related = told["ranges"], told["related"]
        if isinstance(ranges, list) and isinstance(related, list):
            ranges += ({"start_line": first, "end_line": last} for first, last in one.lines.ranges)
            related.append({"type": "call", "url": f"urn:batonpass:{one.call}"})
    runs = {one.run: dict(one.facts) for one in lines}
    document = {
        "version": VERSION,
        "id": str(uuid5(NAMESPACE_URL, f"urn:batonpass:trace:{commit}:{' '.join(sorted(runs))}")),
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        "vcs": {"type": "git", "revision": commit},
        "tool": {"name": "batonpass", "version": version},
        "files": [{"path": printable(path), "conversations": [*told.values()]} for path, told in sorted(files.items())],
        "metadata": {"dev.batonpass": {"runs": runs}},
    }
    return msgspec.json.encode(document)


def _read(root: Path) -> tuple[bytes, str | None]:
    """Return the bytes of the file, and why it was not read. A link is not followed: it may lead anywhere."""
    try:
        folder = os.open(root / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return b"", None
    try:
        opened = open_plain(FILE, follows=False, within=folder)
    except FileNotFoundError:
        return b"", None
    except NotPlainFileError:
        return b"", f"{FOLDER}/{FILE} was not read: it is not a regular file"
    except OSError as error:
        return b"", f"{FOLDER}/{FILE} was not read: {error.strerror}"
    finally:
        os.close(folder)
    with opened:
        if os.fstat(opened.fileno()).st_size > LARGEST:
            return b"", f"{FOLDER}/{FILE} was not read: it is larger than {LARGEST >> 20} MiB"
        return opened.read(LARGEST), None


def _claims(record: _Record) -> list[tuple[tuple[str, str], SaidOf]] | None:
    """Return the claims of a record; None if it is wrong. A record about no commit claims nothing that can be found."""
    if record.vcs is None or record.vcs.type != "git":
        return []
    revision = record.vcs.revision.lower()
    if not _REVISION.fullmatch(revision):
        return None
    found = []
    for file in record.files:
        for said, first, last, contributor in _spans(file):
            if not 1 <= first <= last <= MOST_LINES:
                return None
            hearsay = _hearsay(record, said, contributor)
            if hearsay is not None:
                found.append(((revision, file.path), SaidOf(first=first, last=last, hearsay=hearsay)))
    return found


def _spans(file: _TracedFile) -> Iterator[tuple[_Conversation, int, int, _Contributor | None]]:
    for said in file.conversations:
        for one in said.ranges:
            yield said, one.start_line, one.end_line, one.contributor or said.contributor


def _hearsay(record: _Record, said: _Conversation, contributor: _Contributor | None) -> Hearsay | None:
    nameless = None if contributor is None else _NAMELESS.get(contributor.type)
    if contributor is None or nameless is None:
        return None  # "unknown" claims nothing
    is_human = contributor.type == "human"
    tool = None if record.tool is None or is_human else shown(record.tool.name)
    return Hearsay(
        source=HearsaySource.AGENT_TRACE,
        reach=HearsayReach.LINE,
        by=(tool if contributor.type == "ai" else None) or nameless,
        is_human=is_human,
        model=shown(contributor.model_id),
        session=shown(said.url),
    )
