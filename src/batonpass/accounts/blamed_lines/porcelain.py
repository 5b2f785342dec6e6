"""Blame as `git blame --porcelain` prints it, so that every program that reads git's output reads ours.

A line that only git knows has git's own commit and headers; claims in trailers about the whole commit are one more
header. A line of an agent has the agent as its author, the human as its committer and the task as its summary. Readers
remember the headers of a commit by its name, and one commit may hold lines of two agents, so such a line has a made
name; its commit is in a header of ours. Headers of ours begin with `batonpass-`; readers of git's format skip headers
that they do not know.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, Maker
from batonpass.accounts.blame.blame_words import called, hearsay_words
from batonpass.accounts.blamed_lines.line_author import AuthorKind, LineAuthor, authors_of
from batonpass.attribution.git.file_history import FileOrigins
from batonpass.model.base.visible import visible
from batonpass.notes.foreign.hearsay import Hearsay, HearsayReach
from batonpass.records.text import Text

_SHA1: Final = 40
_LONGEST: Final = 200
_FILE_HEADERS: Final = ("previous", "filename")
_BARE_HEADER: Final = "boundary"
_NOWHERE: Final = "batonpass.invalid"  # a domain that nobody can have
_SAID: Final = {
    AuthorKind.AGENT: "{}",
    AuthorKind.HEARSAY: "{} (hearsay)",
    AuthorKind.PERHAPS: "perhaps {}",
    AuthorKind.BROKEN: "{} (not to be trusted)",
}


class _Entry(Struct, frozen=True, kw_only=True):
    name: str
    line: int  # its number in the commit
    number: int  # its number now
    headers: Mapping[str, str]

    def follows(self, before: "_Entry") -> bool:
        """Return whether it continues the group of the line above, as git groups lines."""
        here, there = ((one.name, one.headers.get("filename")) for one in (self, before))
        return here == there and self.line == before.line + 1 and self.number == before.number + 1


def porcelain(
    blame: Blame, origins: FileOrigins, data: bytes, *, now: datetime, every: bool = False
) -> Iterator[bytes]:
    """Yield the lines of git's format; with `every`, all headers for each line."""
    contents = data.split(b"\n")
    entries = list(_entries(blame, origins, now))
    sizes = _group_sizes(entries)
    paths: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        paths[entry.name].add(entry.headers["filename"])
    told: set[str] = set()
    for entry, size in zip(entries, sizes, strict=True):
        yield f"{entry.name} {entry.line} {entry.number}{f' {size}' if size else ''}".encode()
        if every or entry.name not in told:
            yield from _lines(entry.headers.items())
        elif size and len(paths[entry.name]) > 1:
            yield from _lines((key, entry.headers[key]) for key in _FILE_HEADERS if key in entry.headers)
        told.add(entry.name)
        yield b"\t" + contents[entry.number - 1]


def _lines(headers: Iterable[tuple[str, str]]) -> Iterator[bytes]:
    for key, value in headers:
        # Git's headers come from git's own lines; ours were made safe. Neither holds a line feed.
        yield key.encode() if key == _BARE_HEADER else f"{key} {value}".encode("utf-8", "surrogateescape")


def _group_sizes(entries: Sequence[_Entry]) -> list[int]:
    """Return the number of lines of each group at its first line, and 0 for its other lines."""
    sizes = [0] * len(entries)
    start = 0
    for index, entry in enumerate(entries):
        if index and not entry.follows(entries[index - 1]):
            start = index
        sizes[start] += 1
    return sizes


def _entries(blame: Blame, origins: FileOrigins, now: datetime) -> Iterator[_Entry]:
    path = blame.path or ""
    length = _SHA1 if origins.head is None else len(origins.head)
    fresh = _uncommitted(origins, path, now)
    made: dict[tuple[object, ...], tuple[str, dict[str, str]]] = {}
    for line, author in authors_of(blame):
        origin = origins.lines[line.number - 1] if line.number <= len(origins.lines) else None
        kind = {"batonpass-author": author.kind.value}
        if author.makers:
            key = line.verdict
            if key not in made:
                made[key] = _made_name(blame, line, author, length), _agent_headers(blame, line, author, path)
            name, headers = made[key]
            yield _Entry(name=name, line=line.number, number=line.number, headers=headers)
        elif origin is not None and any(one.reach is not HearsayReach.COMMIT for one in author.said):
            headers = {**origin.headers, **kind, **_heard_headers(line, author)}
            yield _Entry(name=_heard_name(line, length), line=line.number, number=line.number, headers=headers)
        elif origin is not None:
            headers = {**origin.headers, **kind, **_said_headers(author.said)}
            yield _Entry(name=origin.commit, line=origin.line, number=line.number, headers=headers)
        else:
            yield _Entry(name="0" * length, line=line.number, number=line.number, headers={**fresh, **kind})


def _uncommitted(origins: FileOrigins, path: str, now: datetime) -> dict[str, str]:
    """Return the facts that git prints for a line that is in no commit."""
    local = now.astimezone()
    when = {"time": str(int(local.timestamp())), "tz": local.strftime("%z")}
    headers: dict[str, str] = {}
    for role in ("author", "committer"):
        headers |= {role: "Not Committed Yet", f"{role}-mail": "<not.committed.yet>"}
        headers |= {f"{role}-{key}": value for key, value in when.items()}
    headers["summary"] = f"Version of {_safe(path)} from {_safe(path)}"
    if origins.head is not None and origins.is_tracked:
        headers["previous"] = f"{origins.head} {_safe(path)}"
    return {**headers, "filename": _safe(path)}


def _agent_headers(blame: Blame, line: BlamedLine, author: LineAuthor, path: str) -> dict[str, str]:
    maker = author.makers[-1]
    agents = " or ".join(dict.fromkeys(one.run.agent for one in author.makers))
    human = maker.principal.removeprefix("user:")
    at = str(int(maker.at.timestamp()))
    headers = {
        "author": _safe(_SAID[author.kind].format(agents)),
        "author-mail": f"<{_safe(maker.run.id)}@{_NOWHERE}>",
        "author-time": at,
        "author-tz": "+0000",
        "committer": _safe(human),
        "committer-mail": f"<{_safe(human).replace(' ', '.')}@{_NOWHERE}>",
        "committer-time": at,
        "committer-tz": "+0000",
        "summary": _first_line(maker.task),
        "filename": _safe(path),
        "batonpass-author": author.kind.value,
        "batonpass-known": line.known.value,
        "batonpass-from": "transcripts" if blame.is_heard else "ledger",
        "batonpass-for": _safe(maker.principal),
    }
    if line.run is not None and not blame.is_heard:
        headers["batonpass-run"] = line.run
    if not blame.is_heard and line.known in {"recorded", "matched"}:
        headers |= {"batonpass-call": maker.call or "", "batonpass-receipt": maker.receipt}
    headers["batonpass-standing"] = maker.standing.value
    if maker.leave is not None and not maker.is_hearsay:
        headers["batonpass-approval"] = maker.leave.leave.value
    if line.commit is not None:
        headers["batonpass-commit"] = line.commit.id
    if maker.proof.problem is not None:
        headers["batonpass-problem"] = _safe(maker.proof.problem)
    return headers


def _heard_headers(line: BlamedLine, author: LineAuthor) -> dict[str, str]:
    """Return whom another tool names as the author of a line, in the place of git's, who stays the committer."""
    names = _safe(_SAID[author.kind].format(" or ".join(author.names)))
    headers = {"author": names, "author-mail": f"<hearsay@{_NOWHERE}>", **_said_headers(author.said)}
    if line.commit is not None:
        headers["batonpass-commit"] = line.commit.id
    return headers


def _said_headers(said: Sequence[Hearsay]) -> dict[str, str]:
    words = " | ".join(f"{one.by} · {hearsay_words(one)[1]}" for one in said)
    return {"batonpass-hearsay": _safe(words)} if words else {}


def _heard_name(line: BlamedLine, length: int) -> str:
    parts = [line.commit.id if line.commit else "", *(f"{one}" for one in line.said)]
    return sha256("\0".join(("batonpass hearsay", *parts)).encode("utf-8", "replace")).hexdigest()[:length]


def _made_name(blame: Blame, line: BlamedLine, author: LineAuthor, length: int) -> str:
    parts = [*(_call_key(blame, maker) for maker in author.makers), line.commit.id if line.commit else "", line.known]
    return sha256("\0".join(("batonpass", *parts, line.reformatted_by or "")).encode()).hexdigest()[:length]


def _call_key(blame: Blame, maker: Maker) -> str:
    # The ids of a temporary ledger are new each time; those of the transcript stay.
    return called(maker, transcripts=True, full=True) if blame.is_heard else maker.call or maker.receipt


def _first_line(text: Text | None) -> str:
    words = "" if text is None else (text.words or "").strip()
    return _safe(words.partition("\n")[0][:_LONGEST]) or "no task is recorded"


def _safe(words: str) -> str:
    """Return words without line feeds, controls and bytes that are not UTF-8: a header is one line."""
    return visible(words)
