"""Asks git about the whole work tree: which files differ from the commit, which are ignored.

`status` would run filters, programs that convert a file before a commit. They are named in the configuration, which a
process in the work tree may just have changed. So each question that could run one first looks up all filters and
disables them. A file that needs a filter then counts as changed, which is safe.
"""

import secrets
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from batonpass.attribution.git.file_git import EMPTY_TREE, GitSilentError, Repository, blob_name

_STATUS: Final = (
    # Do not trust a file whose modification time was set back.
    *("-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.preloadIndex=true"),
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--no-renames"),
    *("--untracked-files=all", "--ignored=matching", "--ignore-submodules=all"),
)
_FIELDS_BEFORE_PATH: Final = {"1": 8, "u": 10}
_MOST_AT_ONCE: Final = 500
_LINK: Final = "120000"


class Status(Struct, frozen=True):
    """The paths that differ from the commit; all others are as committed or ignored."""

    commit: str | None
    changed: tuple[str, ...]
    ignored: frozenset[str]  # directories, without the slash
    foreign: tuple[str, ...]  # untracked repositories inside this one


class Blob(NamedTuple):
    """A file in a commit."""

    name: str
    size: int
    link: bool


class Porcelain(Repository, frozen=True):
    """A repository that answers questions about its whole work tree. All methods raise `GitSilentError`."""

    def status(self, paths: Sequence[str] = ()) -> Status:
        """Return the files that differ from the commit, below some paths or everywhere."""
        printed = self._text(*self.without_filters(), *_STATUS, "--", *paths)
        commit: str | None = None
        changed: list[str] = []
        ignored: list[str] = []
        foreign: list[str] = []
        for line in printed.split("\0"):
            kind, _, rest = line.partition(" ")
            if kind in _FIELDS_BEFORE_PATH:
                changed.append(rest.split(" ", _FIELDS_BEFORE_PATH[kind] - 1)[-1])
            elif kind == "?":
                (foreign if rest.endswith("/") else changed).append(rest.removesuffix("/"))
            elif kind == "!" and rest.endswith("/"):
                ignored.append(rest.removesuffix("/"))
            elif rest.startswith("branch.oid ") and not rest.endswith("(initial)"):
                commit = rest.removeprefix("branch.oid ")
        return Status(commit, tuple(changed), frozenset(ignored), tuple(foreign))

    def members(self, paths: Sequence[str]) -> set[str]:
        """Return the paths that are tracked, or exist and are not ignored."""
        return self._names("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths)

    def forced(self) -> set[str]:
        """Return the paths that are tracked although a rule ignores them."""
        return self._names("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")

    def rule_files(self) -> list[str]:
        """Return the paths of the index and of this clone's own exclude file, from the root."""
        return self._text("rev-parse", "--git-path", "index", "--git-path", "info/exclude").splitlines()

    def submodules(self) -> set[str]:
        """Return the submodule paths in `.gitmodules`, unchecked."""
        try:
            wanted = ("config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
            printed = self._text(*wanted)
        except GitSilentError:
            return set()
        return {line.partition("\n")[2] for line in printed.split("\0") if line}

    def between(self, old: str | None, new: str | None) -> set[str]:
        """Return the paths at which two commits differ; None is before the first."""
        if old == new:
            return set()
        sides = [side or EMPTY_TREE[len(old or new or "")] for side in (old, new)]
        return self._names("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", *sides)

    def blobs_at(self, commit: str | None, paths: Sequence[str]) -> dict[str, Blob]:
        """Return the files and links of a commit at these paths."""
        found: dict[str, Blob] = {}
        if commit is None:
            return found
        for start in range(0, len(paths), _MOST_AT_ONCE):
            some = paths[start : start + _MOST_AT_ONCE]
            printed = self._text("ls-tree", "-z", "--long", "--full-tree", commit, "--", *some)
            for line in filter(None, printed.split("\0")):
                facts, _, path = line.partition("\t")
                mode, kind, name, size = facts.split()
                if kind == "blob":
                    found[path] = Blob(name, int(size), mode == _LINK)
        return found

    def checked_out(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Yield the bytes that a checkout would write for objects at paths, without filters."""
        # With --filters git prints the size before the conversion, so an unpredictable word has to separate the parts.
        word = secrets.token_hex(16).encode()
        asked = b"".join(f"{name} {path}\0".encode("utf-8", "surrogateescape") for path, name in files)
        command = [*self.without_filters(), "cat-file", "-z", "--filters", f"--batch={word.decode()}"]
        printed = self._run(command, asked)
        for part in printed.split(word + b"\n")[1:]:
            yield part.removesuffix(b"\n")

    def filtered(self, paths: Sequence[str]) -> set[str]:
        """Return the files that a configured filter would change at checkout."""
        if not (names := self.filters()):
            return set()
        asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        printed = self._run(["check-attr", "-z", "--stdin", "filter"], asked).decode("utf-8", "surrogateescape")
        fields = printed.split("\0")
        return {path for path, value in zip(fields[::3], fields[2::3], strict=False) if value in names}

    def stored(self, contents: Sequence[bytes], commit: str | None) -> list[bool]:
        """Return for each content whether git stores an object with these bytes."""
        names = [blob_name(one, like=commit or "0" * 40) for one in contents]
        printed = self._batch("--batch-check", names).decode("ascii", "replace").splitlines()
        return [line.split(" ")[1:2] == ["blob"] for line in printed]

    def _names(self, *arguments: str) -> set[str]:
        return set(filter(None, self._text(*arguments).split("\0")))
