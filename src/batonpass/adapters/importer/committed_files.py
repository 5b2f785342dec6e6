"""Which files a repository had at a time, where a session does not say whether a file was new."""

import os
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from batonpass.adapters.session_files.conversation import Conversation, TranscriptCall
from batonpass.adapters.session_files.session_values import FilePatch
from batonpass.attribution.changes.sides import find_repository
from batonpass.attribution.git.git_process import GitProcess, GitSilentError

_ANSWER_WITHIN = timedelta(seconds=60)
_LOG = ("log", "--format=%x00%ct", "--name-only", "--diff-filter=A", "--no-renames", "--no-show-signature", "-z")


class CommittedFiles:
    """The files of a project and when each was first committed. Git is asked once, and only if it matters."""

    def __init__(self, project: Path) -> None:
        self._project = project

    def settle(self, conversation: Conversation) -> None:
        """Take back that a call created a file, where the file was committed before."""
        for run in conversation.runs:
            for call in run.calls:
                if any(patch.perhaps_created for patch in call.changes):
                    call.changes = tuple(self._settled(call, patch) for patch in call.changes)

    def _settled(self, call: TranscriptCall, patch: FilePatch) -> FilePatch:
        at = call.use.at if call.result is None else call.result.at
        first = self._first.get(str(self._project / patch.path))
        if not patch.perhaps_created or first is None or first > at:
            return patch
        # All of it was written anew. Which of its lines were there before is not told, so nobody gets them for certain.
        return replace(patch, created=False, perhaps_created=False, hunks=())

    @cached_property
    def _first(self) -> dict[str, datetime]:
        root = find_repository(self._project.resolve())
        if root is None:
            return {}
        git = GitProcess(root=root, environment=os.environ, answer_within=_ANSWER_WITHIN)
        try:
            told = git.text(*_LOG, "HEAD")
        except GitSilentError:
            return {}
        found: dict[str, datetime] = {}
        at: datetime | None = None
        # A time stands alone behind an empty part, and then come names until the next one.
        was_empty = False
        for part in told.split("\0"):
            name = part.lstrip("\n")
            if was_empty and name.isdigit():
                at = datetime.fromtimestamp(int(name), UTC)
            elif name and at is not None:
                spelled = str(self._project / os.path.relpath(root / name, self._project.resolve()))
                found[spelled] = min(at, found.get(spelled, at))
            was_empty = not name
        return found
