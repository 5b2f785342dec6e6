"""The authorship logs of git-ai, `authorship/3.0.0`: one note for each commit under `refs/notes/ai`.

Above a line with `---` stand paths, and below each of them a key and ranges of lines; below it JSON says who the keys
are. A log that is not of this form is refused as a whole: half of a record is nobody's claim.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct, field

from batonpass.errors import InvalidValueError
from batonpass.notes.foreign.hearsay import Hearsay, HearsayReach, HearsaySource, SaidOf, settle, shown
from batonpass.notes.line_ranges import MOST_LINES, LineRanges

REF: Final = "refs/notes/ai"
VERSION: Final = "authorship/3.0.0"

_DIVIDER: Final = "---"
_ID: Final = 14
_RANGE: Final = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8}))?", re.ASCII)


class AgentIdentity(Struct, frozen=True, kw_only=True):
    """An agent's session, as git-ai names it."""

    tool: str
    id: str
    model: str


class AuthorshipSession(Struct, frozen=True, kw_only=True):
    """Who worked in a session, and for whom; other fields of a record are not read."""

    agent_id: AgentIdentity
    human_author: str | None = None


class AuthorshipHuman(Struct, frozen=True, kw_only=True):
    """A human whose typing an editor saw."""

    author: str


class _Metadata(Struct, frozen=True, kw_only=True):
    schema_version: str
    base_commit_sha: str
    prompts: dict[str, AuthorshipSession]
    sessions: dict[str, AuthorshipSession] = field(default_factory=dict)
    humans: dict[str, AuthorshipHuman] = field(default_factory=dict)


_METADATA: Final = msgspec.json.Decoder(_Metadata)


class AttestedLines(Struct, frozen=True, kw_only=True):
    """The lines of one call of one session."""

    session: AuthorshipSession
    call: str
    lines: LineRanges


class AuthorshipLog(Struct, frozen=True, kw_only=True):
    """The claims of a log about the files of its commit."""

    commit: str  # that the log names as its own
    files: Mapping[str, Sequence[SaidOf]]

    def of(self, path: str, lines: Iterable[int]) -> dict[int, Hearsay]:
        """Return the claims about lines of a file."""
        return settle(self.files.get(path, ()), lines)


def read_authorship(data: bytes, commit: str) -> AuthorshipLog:
    """Return the log of a commit. Raises `InvalidValueError` if it is not one."""
    try:
        head, found, tail = f"\n{data.decode()}".partition(f"\n{_DIVIDER}\n")
        known = _METADATA.decode(tail)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        raise InvalidValueError("authorship log", "is not of the form that git-ai writes") from None
    if not found or known.schema_version != VERSION:
        raise InvalidValueError("authorship log", f"is not {VERSION}")
    # Copied from another commit, its numbers are those of a file that may have been another.
    reach = HearsayReach.LINE if known.base_commit_sha == commit else HearsayReach.NEARBY
    files: dict[str, list[SaidOf]] = {}
    current: list[SaidOf] | None = None
    for line in head.split("\n"):
        if not line.strip():
            continue
        if not line.startswith("  "):
            current = files.setdefault(_unquoted(line), [])
            continue
        key, _, ranges = line.strip().partition(" ")
        if current is None or not ranges:
            raise InvalidValueError("authorship log", "has lines without a file, or a key without lines")
        if (hearsay := _hearsay(key, known, reach)) is not None:
            current += (SaidOf(first=first, last=last, hearsay=hearsay) for first, last in _ranges(ranges))
    return AuthorshipLog(commit=known.base_commit_sha, files=files)


def write_authorship(commit: str, files: Mapping[str, Sequence[AttestedLines]]) -> bytes | None:
    """Return the log of a commit; None if there is nothing to say, or no path that the format can hold."""
    rows: list[str] = []
    sessions: dict[str, AuthorshipSession] = {}
    for path, attested in sorted(files.items()):
        told = [one for one in attested if one.lines]
        if not told or any(letter in path for letter in '"\n\r'):
            continue  # a line feed in a path would be read as another path
        rows.append(f'"{path}"' if any(letter.isspace() for letter in path) else path)
        for one in told:
            key = session_key(one.session.agent_id)
            sessions[key] = one.session
            rows.append(f"  {key}::t_{_hex(one.call)} {one.lines}")
    if not rows:
        return None
    metadata = _Metadata(schema_version=VERSION, base_commit_sha=commit, prompts={}, sessions=sessions)
    document = {name: value for name, value in msgspec.to_builtins(metadata).items() if value or name == "prompts"}
    printed = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return b"\n".join(("\n".join(rows).encode("utf-8", "replace"), _DIVIDER.encode(), printed))


def session_key(agent: AgentIdentity) -> str:
    """Return the key of a session, which is the same in every log."""
    return f"s_{_hex(f'{agent.tool}:{agent.id}')}"


def _hex(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_ID]


def _ranges(text: str) -> Iterable[tuple[int, int]]:
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= MOST_LINES:
            raise InvalidValueError("authorship log", f"has wrong lines: {shown(part)}")
        yield first, last


def _hearsay(key: str, known: _Metadata, reach: HearsayReach) -> Hearsay | None:
    """Return the author behind a key; None if the log does not say, as git-ai allows."""
    if key.startswith("h_"):
        human = known.humans.get(key)
        name = None if human is None else shown(human.author)
        return None if name is None else Hearsay(source=HearsaySource.GIT_AI, reach=reach, by=name, is_human=True)
    table = known.sessions if key.startswith("s_") else known.prompts
    session = table.get(key.partition("::")[0])
    if session is None:
        return None
    agent = session.agent_id
    return Hearsay(
        source=HearsaySource.GIT_AI,
        reach=reach,
        by=shown(agent.tool) or "an agent",
        model=shown(agent.model),
        human=shown(session.human_author),
        session=shown(agent.id),
    )


def _unquoted(line: str) -> str:
    path = line.rstrip()
    return path[1:-1] if len(path) > 1 and path.startswith('"') and path.endswith('"') else path
