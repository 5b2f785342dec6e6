"""Starts git: the only place that does, and never with a program that the repository names.

A repository may be hostile: file names can be anything, and its configuration may name programs. So there is no shell,
paths are never patterns, and everything that git could start by itself (pager, file monitor, hooks, external diff, text
conversion, signature checks, fetching missing objects) is disabled or not requested. Filters are disabled where a
question could run them (`Repository.without_filters`); `blame` and `diff` are asked with `--no-textconv` and
`--no-ext-diff`. A repository that git refuses to read because it belongs to somebody else stays unread. The caller
supplies the environment; of the variables for git, only those about configuration are passed on.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

_ANSWER_WITHIN: Final = timedelta(seconds=20)
_NO_HOOKS: Final = "core.hooksPath=/dev/null"
_NO_NETWORK: Final = "protocol.allow=never"  # old versions fetch missing objects of a partial clone by a given program
_SAFE: Final = (
    "core.quotepath=off",
    "core.fsmonitor=false",
    "core.commitGraph=true",
    "log.showSignature=false",
    "blame.ignoreRevsFile=",
    "diff.external=",
    "diff.algorithm=default",  # the same lines are new on every machine
    "diff.indentHeuristic=true",
    "safe.bareRepository=explicit",  # files in a work tree that look like a repository are not one
)
_QUIET: Final = ("--no-pager", "--literal-pathspecs", "--no-optional-locks")
_SETTINGS: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")
# A hook is told by these which repository and which index it is about.
_OF_HOOKS: Final = (
    *("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_QUARANTINE_PATH"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR"),
)
_FOR_REMOTES: Final = ("GIT_SSH", "GIT_ASKPASS", "GIT_SSL", "GIT_PROXY", "GIT_HTTP", "SSH_", "GIT_ALLOW_PROTOCOL")
EMPTY_VARIABLE: Final = "EMPTY_FOR_GIT"  # has an empty value, for settings that are given by a variable
_FIXED: Final = MappingProxyType(
    {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"}
    | {EMPTY_VARIABLE: ""}
)


class GitSilentError(Exception):
    """Git gave no answer; the message says why. Answers note that git is missing; commands say so and end."""


class GitProcess(Struct, frozen=True, kw_only=True):
    """How git is started: in which directory, with which environment, and with which rights besides reading."""

    root: Path | None  # None: the current directory
    environment: Mapping[str, str]
    answer_within: timedelta = _ANSWER_WITHIN
    in_hook: bool = False  # a hook's variables say which repository and which index are meant
    online: bool = False  # it may speak to a remote, with the helpers that the user has configured
    sees_hooks: bool = False  # the question is about hooks; nothing that is asked so may run one

    def text(self, *arguments: str, given: bytes = b"") -> str:
        """Return the output of git as text. Raises `GitSilentError`."""
        return self.run(arguments, given).decode("utf-8", "surrogateescape")

    def run(self, arguments: Sequence[str], given: bytes = b"") -> bytes:
        """Return the output of git. Raises `GitSilentError` with its error message."""
        where = () if self.root is None else ("-C", str(self.root))
        try:
            done = subprocess.run(  # noqa: S603 - a list of our own arguments, no shell
                ["git", *where, *_QUIET, *self._settings(), *arguments],  # noqa: S607 - whichever git the person uses
                input=given,
                capture_output=True,
                check=False,
                env={**self._passed(), **_FIXED},
                timeout=self.answer_within.total_seconds(),
            )
        except FileNotFoundError:
            raise GitSilentError("git is not installed here") from None
        except (OSError, ValueError) as error:  # an argument is too long or contains a zero byte
            raise GitSilentError(f"git could not be started: {error}") from None
        except subprocess.TimeoutExpired:
            raise GitSilentError(f"git gave no answer within {self.answer_within.total_seconds():g} s") from None
        if done.returncode != 0:
            raise GitSilentError(_complaint(done.stderr))
        return done.stdout

    def _settings(self) -> Iterator[str]:
        limits = (*([] if self.online else [_NO_NETWORK]), *([] if self.sees_hooks else [_NO_HOOKS]))
        for setting in (*_SAFE, *limits):
            yield from ("-c", setting)

    def _passed(self) -> dict[str, str]:
        kept = (*_SETTINGS, *(_OF_HOOKS if self.in_hook else ()))
        starts = _FOR_REMOTES if self.online else ()
        return {
            name: value
            for name, value in self.environment.items()
            if not name.startswith(("GIT_", "LC_", "LANG")) or name in kept or name.startswith(starts)
        }


def _complaint(said: bytes) -> str:
    words = said.decode("utf-8", "replace").strip().removeprefix("fatal: ")
    if "dubious ownership" in words:
        return "the repository belongs to another user; add it to git's safe.directory setting to have it read"
    return words.partition("\n")[0] or "git failed without a message"
