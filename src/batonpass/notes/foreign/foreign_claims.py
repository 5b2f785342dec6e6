"""Finds the claims of other tools about lines: git-ai's notes, Agent Trace records, trailers of commits.

All of it is hearsay: nobody signed it, anybody with access to the repository could have written it, and each source is
read within bounds. A claim about one line goes before a claim about a commit.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.git.git_history import CommittedLine
from batonpass.errors import InvalidValueError
from batonpass.notes.foreign.agent_trace import Traces, read_traces
from batonpass.notes.foreign.authorship_log import REF, AuthorshipLog, read_authorship
from batonpass.notes.foreign.commit_trailers import NAMES, read_trailers
from batonpass.notes.foreign.hearsay import Hearsay, HearsayReach, HearsaySource, settle, shown
from batonpass.notes.note_store import LARGEST_NOTE, NoteRepository

_FORMAT: Final = "%H%x00%P%x00%(trailers:only,unfold)"
_FIELDS: Final = 3
_LARGEST_CHECKPOINT: Final = 1024 * 1024
_BRANCH: Final = "entire/checkpoints/v1"
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)


class HeardLines(Struct, frozen=True, kw_only=True):
    """The claims about lines, by number, and the sources that could not be read."""

    lines: Mapping[int, tuple[Hearsay, ...]]
    remarks: tuple[str, ...] = ()


class _Facts(Struct, frozen=True, kw_only=True):
    parents: tuple[str, ...]
    said: tuple[Hearsay, ...]


class _Checkpoint(Struct, frozen=True, kw_only=True):
    """The facts about a checkpoint in Entire's metadata; the rest is not read."""

    agent: str | None = None
    files_touched: list[str] | None = None


_CHECKPOINTS: Final = msgspec.json.Decoder(_Checkpoint)


class ForeignClaims:
    """The claims of other tools about the lines of one repository, for any number of files."""

    def __init__(self, repository: NoteRepository) -> None:
        self._repository = repository
        self._logs: dict[str, AuthorshipLog | None] = {}
        self._facts: dict[str, _Facts] = {}
        self._remarks: dict[str, None] = {}

    def read(self, origins: Mapping[int, CommittedLine]) -> HeardLines:
        """Return the claims about lines, given where git says they come from. Raises `GitSilentError`."""
        places: dict[tuple[str, str], dict[int, int]] = {}
        for number, one in origins.items():
            if _COMMIT.fullmatch(one.commit.id):
                places.setdefault((one.commit.id, one.path), {})[one.line] = number
        self._read_logs({commit for commit, _ in places})
        found: dict[int, list[Hearsay]] = {}
        for (commit, path), numbers in places.items():
            log = self._logs.get(commit)
            exact = [] if log is None else [log.of(path, numbers)]
            exact.append(settle(self._traces.said.get((commit, path), ()), numbers))
            for told in exact:
                for line, hearsay in told.items():
                    found.setdefault(numbers[line], []).append(hearsay)
        open_places = {
            place: left
            for place, numbers in places.items()
            if (left := {line: number for line, number in numbers.items() if number not in found})
        }
        for number, hearsay in self._of_commits(open_places):
            found.setdefault(number, []).append(hearsay)
        lines = {number: tuple(dict.fromkeys(said)) for number, said in found.items()}
        return HeardLines(lines=lines, remarks=(*self._remarks, *self._traces.remarks))

    def knows(self, commits: Iterable[str]) -> bool:
        """Return whether anything is there that could say something about these commits. Raises `GitSilentError`."""
        if self._tip is not None or self._traces.said:
            return True
        wanted = list(commits)
        self._read_facts(wanted)
        return any(self._facts[commit].said for commit in wanted if commit in self._facts)

    @cached_property
    def _tip(self) -> str | None:
        return self._repository.commit_of(REF)

    @cached_property
    def _traces(self) -> Traces:
        return read_traces(Path(self._repository.root))

    def _read_logs(self, commits: Iterable[str]) -> None:
        wanted = [commit for commit in commits if commit not in self._logs]
        if self._tip is None or not wanted:
            return
        notes, too_large = self._repository.note_bodies(self._tip, wanted)
        if too_large:
            self._remarks[f"{too_large} notes of git-ai were not read: larger than {LARGEST_NOTE >> 20} MiB"] = None
        for commit in wanted:
            self._logs[commit] = None
        for commit, data in notes:
            try:
                self._logs[commit] = read_authorship(data, commit)
            except InvalidValueError as error:
                self._remarks[f"git-ai's note on {commit[:8]} was not read: {error}"] = None

    def _of_commits(self, places: Mapping[tuple[str, str], Mapping[int, int]]) -> Iterator[tuple[int, Hearsay]]:
        """Yield the claims about the commits of lines, or about lines before the commit."""
        self._read_facts({commit for commit, _ in places})
        for (commit, path), numbers in places.items():
            facts = self._facts.get(commit)
            if facts is None:
                continue
            # The reference program of Agent Trace names the commit that an edit was made on, not the one it went into.
            earlier = [one for parent in facts.parents for one in self._traces.said.get((parent, path), ())]
            for line, hearsay in settle(earlier, numbers).items():
                yield numbers[line], replace(hearsay, reach=HearsayReach.NEARBY)
            for hearsay in facts.said:
                told = self._checkpoint(hearsay, path)
                if told is not None:
                    yield from ((number, told) for number in numbers.values())

    def _read_facts(self, commits: Iterable[str]) -> None:
        wanted = [commit for commit in dict.fromkeys(commits) if commit not in self._facts]
        if not wanted:
            return
        rows = self._repository.describe(wanted, _FORMAT, _FIELDS)
        read = {name: (tuple(parents.split()), read_trailers(_trailers(said))) for name, parents, said in rows}
        # A shallow clone blames its oldest commits for all that is older.
        oldest = self._repository.shallow() if any(said for _, said in read.values()) else frozenset()
        for name, (parents, said) in read.items():
            self._facts[name] = _Facts(parents=parents, said=() if name in oldest else said)

    def _checkpoint(self, hearsay: Hearsay, path: str) -> Hearsay | None:
        """Return the facts that Entire's checkpoint adds to its trailer; None if the file was not touched."""
        if hearsay.source is not HearsaySource.ENTIRE:
            return hearsay
        known = self._checkpoints.get(hearsay.session or "")
        if known is None:
            known = self._checkpoints[hearsay.session or ""] = self._read_checkpoint(hearsay.session or "")
        if known.files_touched and path not in known.files_touched:
            return None
        return replace(hearsay, by=shown(known.agent) or hearsay.by)

    @cached_property
    def _checkpoints(self) -> dict[str, _Checkpoint]:
        return {}

    def _read_checkpoint(self, name: str) -> _Checkpoint:
        branches = [f"refs/heads/{_BRANCH}", *(f"refs/remotes/{one}/{_BRANCH}" for one in self._repository.remotes())]
        below = [f"{name[:2]}/{name[2:]}/{session}metadata.json" for session in ("0/", "1/", "")]
        places = [(f"refs/entire/checkpoints/{name[-2:]}/{name}", "metadata.json")]
        places += [(branch, path) for branch in branches for path in below]
        blobs = self._repository.blobs(places)
        order = [blobs[place] for place in places if place in blobs]
        bodies = dict(self._repository.contents(order))
        joined = _Checkpoint()
        for blob in order:
            body = bodies.get(blob, b"")
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                if len(body) <= _LARGEST_CHECKPOINT:
                    read = _CHECKPOINTS.decode(body)
                    joined = _Checkpoint(
                        agent=joined.agent or read.agent, files_touched=joined.files_touched or read.files_touched
                    )
        return joined


def _trailers(text: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n"):
        key, _, value = line.partition(":")
        if key.strip().lower() in NAMES:
            yield key.strip(), value.strip()
