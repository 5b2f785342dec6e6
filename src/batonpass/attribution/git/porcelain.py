"""Asking git about the whole work tree: what is not as committed, what is ignored, what a commit has at a path.

Beyond what `git.py` switches off, `status` would start filters: programs that turn a file into what is committed. They
are named in the configuration, which whoever runs in the work tree may have changed a moment ago, so they are looked up
and emptied for each question that could start one. A file that needs a filter then counts as changed; that is safe.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from batonpass.attribution.git.file_git import GitSilentError, Repository

EMPTY_VARIABLE: Final = "EMPTY_FOR_GIT"  # the environment of a `Porcelain` has it, with an empty value

_NO_TREE: Final = {  # git knows the tree without files by name, whether or not it is stored
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_STATUS: Final = (
    # Settings that make git trust a file whose time was set back.
    *("-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.preloadIndex=true"),
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--no-renames"),
    *("--untracked-files=all", "--ignored=matching", "--ignore-submodules=all"),
)
_FILTER: Final = re.compile(r"filter\.(.*)\.(?:clean|smudge|process|required)", re.DOTALL)
_FIELDS_BEFORE_PATH: Final = {"1": 8, "u": 10}
_MOST_AT_ONCE: Final = 500
_LINK: Final = "120000"
_LONG_NAME: Final = 64  # digits of a sha256


class Status(Struct, frozen=True):
    """Which paths are not as the commit has them; the rest, but for what is ignored, is."""

    commit: str | None
    changed: tuple[str, ...]
    ignored: frozenset[str]  # directories without their slash
    foreign: tuple[str, ...]  # untracked repositories inside this one


class Blob(NamedTuple):
    """A file in a commit."""

    name: str
    size: int
    link: bool


class Porcelain(Repository, frozen=True):
    """A repository that is asked about all of its work tree. Raises `GitSilentError` throughout."""

    def status(self, paths: Sequence[str] = ()) -> Status:
        """Return what is not as committed, below some paths or everywhere."""
        printed = self._text(*self._without_filters(), *_STATUS, "--", *paths)
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
        """Return which paths are tracked, or there and not ignored."""
        return self._names("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths)

    def forced(self) -> set[str]:
        """Return what is tracked although a rule ignores it."""
        return self._names("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")

    def rule_files(self) -> list[str]:
        """Return where the index is, and this clone's own list of what is ignored; from the root."""
        return self._text("rev-parse", "--git-path", "index", "--git-path", "info/exclude").splitlines()

    def submodules(self) -> set[str]:
        """Return what `.gitmodules` names as paths of submodules: any text at all."""
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
        sides = [side or _NO_TREE[len(old or new or "")] for side in (old, new)]
        return self._names("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", *sides)

    def blobs_at(self, commit: str | None, paths: Sequence[str]) -> dict[str, Blob]:
        """Return what a commit has at paths, where that is a file or a link."""
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
        """Yield for objects at paths the bytes that a checkout would write there, but for filters."""
        # With --filters, git announces the size before the conversion: only a word that nobody can foresee separates.
        word = secrets.token_hex(16).encode()
        asked = b"".join(f"{name} {path}\0".encode("utf-8", "surrogateescape") for path, name in files)
        command = [*self._without_filters(), "cat-file", "-z", "--filters", f"--batch={word.decode()}"]
        printed = self._run(command, asked)
        for part in printed.split(word + b"\n")[1:]:
            yield part.removesuffix(b"\n")

    def filtered(self, paths: Sequence[str]) -> set[str]:
        """Return which files a filter of the configuration would change when they are checked out."""
        if not (names := self._filters()):
            return set()
        asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        printed = self._run(["check-attr", "-z", "--stdin", "filter"], asked).decode("utf-8", "surrogateescape")
        fields = printed.split("\0")
        return {path for path, value in zip(fields[::3], fields[2::3], strict=False) if value in names}

    def stored(self, contents: Sequence[bytes], commit: str | None) -> list[bool]:
        """Return of each content whether git keeps an object with these bytes; a commit tells how it names them."""
        sha = hashlib.sha256 if commit is not None and len(commit) == _LONG_NAME else hashlib.sha1  # as git does
        names = [sha(b"blob %d\0%b" % (len(one), one)).hexdigest() for one in contents]
        printed = self._batch("--batch-check", names).decode("ascii", "replace").splitlines()
        return [line.split(" ")[1:2] == ["blob"] for line in printed]

    def _filters(self) -> set[str]:
        try:
            printed = self._text("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
        except GitSilentError:  # none
            return set()
        return {match[1] for name in printed.split("\0") if (match := _FILTER.fullmatch(name))}

    def _without_filters(self) -> Iterator[str]:
        for name in sorted(self._filters()):
            for setting in ("clean", "smudge", "process", "required"):
                # Not -c: that would end a name at the first equals sign in it.
                yield f"--config-env=filter.{name}.{setting}={EMPTY_VARIABLE}"

    def _names(self, *arguments: str) -> set[str]:
        return set(filter(None, self._text(*arguments).split("\0")))
