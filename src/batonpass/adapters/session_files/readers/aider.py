"""Aider's chats: one text beside the files it works on. Its own commits tell its changes.

The text has the person's words and the hashes of the commits that Aider made. It could hold anything, so a commit
counts only if it exists and names Aider as an author. Of such a commit, those changes count whose lines are in the chat
before it: a person's own changes may be in the same commit.
"""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Final

from msgspec import Struct, field

from batonpass.adapters.session_files.json_lines import EPOCH, LONGEST
from batonpass.adapters.session_files.patches import apply_hunks, changed_file, read_git_diffs
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    FilePatch,
    Prompt,
    Record,
    SessionInfo,
    SkippedLine,
    ToolResult,
    ToolUse,
)
from batonpass.adapters.tool_kinds import Coder
from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.git_process import GitProcess, GitSilentError

_HISTORY: Final = ".aider.chat.history.md"
_STARTED: Final = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_SAID: Final = "#### "
_TOLD: Final = "> "
_COMMIT: Final = re.compile(r"> Commit ([0-9a-f]{7,40})\b")
_VERSION: Final = re.compile(r"> Aider v(\S{1,40})")
_MODEL: Final = re.compile(r"> (?:Main model|Model): (\S{1,200})")
_OWN: Final = re.compile(r"^Co-authored-by: aider\b", re.MULTILINE | re.IGNORECASE)
_TOOL: Final = "commit"
_MOST_REMEMBERED: Final = 200_000  # lines of a chat between two commits
_SHOW: Final = ("show", "--no-textconv", "--no-ext-diff", "--no-color", "--first-parent", "--no-renames", "--unified=0")
_FORMAT: Final = "--format=%H%x00%an%x00%ct%x00%B%x00"


class AiderSessions(SessionReader):
    """The chats of Aider in a repository: all of them are in one file, and count as one session."""

    program: ClassVar[str] = Coder.AIDER
    title: ClassVar[str] = "Aider"

    @property
    def place(self) -> Path:
        """Return the name of the file, which is in the directory where Aider works."""
        return Path(_HISTORY)

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the file of a project, and that of the repository around it."""
        root = find_repository(project.resolve())
        for folder in dict.fromkeys((project.resolve(), root or project.resolve())):
            main = folder / _HISTORY
            # A link may lead anywhere, and a commit may be anybody's: a repository can be hostile.
            if main.is_file() and not main.is_symlink() and not _is_committed(main):
                yield SessionFiles(session=f"chat-{sha256(bytes(main)).hexdigest()[:12]}", main=main)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield the prompts of the person, and the commits that Aider made."""
        del project  # the repository around the file counts
        reading = _Chat(git=GitProcess(root=files.main.parent, environment=os.environ))
        try:
            with files.main.open("rb") as file:
                number = 0
                while line := file.readline(LONGEST):
                    number += 1
                    yield from reading.take(line.decode("utf-8", "replace").rstrip("\n"), number)
                yield from reading.end()
        except OSError as error:
            yield SkippedLine(path=files.main, line=0, what=f"cannot be read: {error.strerror}")
        yield SessionInfo(id=files.session, version=reading.version, model=reading.model)


class _Chat(Struct):
    """The text under way."""

    git: GitProcess
    version: str | None = None
    model: str | None = None
    at: datetime = EPOCH
    saying: list[str] = field(default_factory=list)
    said_at: int = 0
    written: set[str] = field(default_factory=set)  # the lines of the chat since the last commit
    seen: set[str] = field(default_factory=set)

    def take(self, line: str, number: int) -> Iterator[Record]:
        if line.startswith(_SAID):
            self.said_at = self.said_at if self.saying else number
            self.saying.append(line.removeprefix(_SAID).rstrip())
            return
        yield from self.end()
        if found := _STARTED.fullmatch(line.rstrip()):
            self.at = datetime.fromisoformat(found[1]).astimezone(UTC)
        elif not line.startswith(_TOLD):
            if len(self.written) < _MOST_REMEMBERED:
                self.written.add(line.strip())
        elif found := _COMMIT.match(line):
            yield from self._commit(found[1])
        self.version = found[1] if (found := _VERSION.match(line)) else self.version
        self.model = found[1] if (found := _MODEL.match(line)) else self.model

    def end(self) -> Iterator[Record]:
        if self.saying:
            text, self.saying = "\n".join(self.saying), []
            yield Prompt(at=self.at, text=text, uuid=f"said-{self.said_at}")

    def _commit(self, name: str) -> Iterator[Record]:
        written, self.written = self.written, set()
        try:
            head, _, diff = self.git.text(*_SHOW, _FORMAT, "--end-of-options", name).rpartition("\0")
        except GitSilentError:
            return  # no commit of this repository
        whole, author, at, message = head.split("\0", 3)
        if whole in self.seen or not (author.endswith("(aider)") or _OWN.search(message)):
            return
        self.seen.add(whole)
        self.at = datetime.fromtimestamp(int(at), UTC)
        patches = tuple(_patches(self.git, whole, diff, written))
        given = {"commit": whole, "files": [patch.path for patch in patches]}
        yield ToolUse(
            agent=None, tool=_TOOL, input=given, tool_use_id=whole[:12], at=self.at, uuid=whole, model=self.model
        )
        yield ToolResult(
            agent=None, tool_use_id=whole[:12], ok=True, at=self.at, uuid=f"{whole}-made", text=message, patches=patches
        )


def _is_committed(path: Path) -> bool:
    git = GitProcess(root=path.parent, environment=os.environ)
    try:
        return bool(git.text("ls-files", "--", path.name).strip())
    except GitSilentError:
        return False  # no repository


def _patches(git: GitProcess, commit: str, diff: str, written: set[str]) -> Iterator[FilePatch]:
    repository = find_repository(git.root or Path()) or Path()
    for path, hunks in read_git_diffs(diff).items():
        own = [hunk for hunk in hunks if _is_own(hunk.lines, written)]
        try:
            before = git.text("cat-file", "blob", f"{commit}^:{path}")
        except GitSilentError:
            before = None  # a new file
        after = apply_hunks(before or "", own) if own else None
        if after is not None:
            yield changed_file(str(repository / path), before, after)


def _is_own(lines: Sequence[str], written: set[str]) -> bool:
    """Return whether all added lines of a hunk are in the chat."""
    added = [line[1:].strip() for line in lines if line.startswith("+")]
    return all(line in written for line in added if line)
