"""The places that no call may touch: the record, its keys, the rules about calls, and Batonpass itself.

Every door uses this one implementation. `call_reach` finds out which paths a call reaches: from texts with
`path_spellings`, from shell commands with `command_reach`. This module only decides which of them are refused.
"""

import os
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from batonpass.handoff.files.path_spellings import File, status_of
from batonpass.signing.approver_key import find_approvers_home
from batonpass.store.home import HOME_NAME, home_of

RECORD: Final = "the ledger or its keys"
RULES: Final = "the settings that decide about calls"
PROGRAM: Final = "Batonpass itself"
RUNS: Final = "running Batonpass"
PROGRAMS: Final = ("batonpass", "batonpass-hook")

_SQLITE: Final = "sqlite:///"
_POLICY: Final = "batonpass.toml"
_KEYS_OF_OTHERS: Final = "batonpass-keys.toml"  # whose notes count: reviewed like code, and written by people
_CLAUDE: Final = ".claude"
_SETTINGS: Final = ("settings.json", "settings.local.json")
# Written by `init mcp`. A change to one of these could start a server without the proxy in front of it.
_OF_CLIENTS: Final = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
# Where other coding agents find our hooks, in a project and in a home: without them, calls would go unseen.
_OF_AGENTS: Final = (
    ".codex/config.toml",
    ".codex/hooks.json",
    ".cursor/hooks.json",
    ".factory/settings.json",
    ".gemini/settings.json",
    ".gemini/trustedFolders.json",
    ".github/hooks/batonpass.json",
    ".opencode/plugin/batonpass.js",
    ".config/opencode/plugin/batonpass.js",
    ".qwen/settings.json",
    ".qwen/trustedFolders.json",
)
_AGENT_SCRIPTS: Final = ".cline/hooks"
_OF_GIT: Final = ("config", "config.worktree")
_HOOKS: Final = "hooks"
# The settings of a user and of a machine: a hook or a filter named there runs in every repository.
USER_GIT: Final = ("~/.gitconfig", "~/.config/git/config", "/etc/gitconfig")
_KEY: Final = ".key"
_KEYS: Final = ("relay.key", "relay.next.key", "root.key")
_KEPT_SECRET: Final = ("runs", "mcp")  # in a home: keys of runs, and original settings with secrets
# The old Apple file system ignores these characters in names: `.baton\u200cpass` is `.batonpass` there.
_UNSEEN: Final = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
_MOST_MEMBERS: Final = 500
_MOST_FOLDERS: Final = 1024  # for which the places around them are cached
LEAVE_OUT: Final = (
    "leave it out (`find . -not -path '*/.batonpass/*' …`, `--exclude=.batonpass`), or name what you mean more exactly"
)
_LEAVE: Final = "leave it as it is and go on without it; if the task cannot be done so, say that to the user"


class Access(IntEnum):
    """The kind of access to a path, ordered by how much harm it can do."""

    LISTS = 0  # names and sizes, not contents
    READS = 1
    CHANGES = 2
    REPLACES = 3  # moved or removed, with everything in it


class Reach(Struct, frozen=True):
    """A path that a call would use: absolute, every link followed. Or a pattern that a shell would expand."""

    path: str
    access: Access
    pattern: bool = False


class Tree(Protocol):
    """A directory that a command uses as a whole."""

    @property
    def start(self) -> str:
        """Return the directory as the command names it."""

    def meets(self, file: File, above: Sequence[File]) -> bool:
        """Return whether the command may reach a file there, below these directories."""


class RecorderProcess(Struct, frozen=True):
    """The recorder process, for recognising attempts to end it."""

    pid: int
    words: tuple[str, ...]


class ProtectedFinding(Struct, frozen=True):
    """Why a call must not be made: its effect, and the way to do it instead. A model reads this."""

    does: str
    instead: str = _LEAVE
    what: str = RECORD


@dataclass(frozen=True, slots=True)
class ProtectedPlace:
    """A protected file, or a directory with everything in it."""

    path: str
    what: str
    folder: bool = False
    keys: bool = False  # everything in it is secret
    kept: bool = False  # calls may work in this directory, but not replace it
    folded: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", fold(self.path))

    @property
    def found(self) -> ProtectedFinding:
        """Return the reason why no call may reach it."""
        return ProtectedFinding(f"touch {self.what} ({self.path})", what=self.what)

    def refuses(self, path: str, access: Access, *, enforced: bool) -> bool:
        """Return whether an access is refused. `path` is folded, and is this place or lies in it."""
        if self.what != RECORD:
            return enforced and access >= Access.CHANGES and (not self.kept or path == self.folded)
        if enforced or access >= Access.CHANGES:
            return True
        return access is Access.READS and self._gives_keys(path)

    def _gives_keys(self, path: str) -> bool:
        # Reading a whole directory of ours reads the keys in it.
        return self.keys or _KEY in path.rpartition("/")[2] or (self.folder and path == self.folded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """The protected places of one relay, and the recorder process if a call could end it."""

    work_tree: str = "/"
    root: str = "/"  # the work tree with links followed
    places: tuple[ProtectedPlace, ...] = ()
    process: RecorderProcess | None = None
    _at: Mapping[str, tuple[ProtectedPlace, ...]] = field(init=False, repr=False, compare=False)
    _around: dict[str, tuple[ProtectedPlace, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[ProtectedPlace, ...]] = {}
        for place in self.places:
            found[place.folded] = (*found.get(place.folded, ()), place)
        object.__setattr__(self, "_at", found)

    @classmethod
    def around(
        cls,
        home: Path | None,
        ledger: str,
        work_tree: Path,
        *,
        environment: Mapping[str, str] | None = None,
        program: Iterable[Path] = (),
        process: RecorderProcess | None = None,
    ) -> "Protected":
        """Return the protected places of a relay with its keys in `home` and its ledger at a URL."""
        environment = os.environ if environment is None else environment
        tree = work_tree.absolute()
        wanted = [
            *_of_record(home, ledger, tree, environment),
            *_of_rules(home, tree, environment),
            *(ProtectedPlace(str(path.absolute()), PROGRAM, folder=path.is_dir()) for path in program),
        ]
        # Both as it is named and where it leads: removing the directory of a link removes the link.
        both = [
            ProtectedPlace(path, one.what, one.folder, one.keys, one.kept)
            for one in wanted
            for path in {os.path.normpath(one.path), os.path.realpath(one.path)}
        ]
        return cls(work_tree=str(tree), root=os.path.realpath(tree), places=tuple(dict.fromkeys(both)), process=process)

    def find(self, reaches: Iterable[Reach], *, enforced: bool) -> ProtectedFinding | None:
        """Return the first of these paths that must not be reached; None if all may.

        An observed run may not change the record, nor read its keys. An enforced run may not reach the record at all,
        and may not change the rules about calls. A directory around a protected place counts only if it is moved or
        removed: searching a work tree does not touch the places in it.
        """
        for reach in reaches:
            if reach.pattern:
                place = next(self._by_pattern(reach, enforced), None)
                found = None if place is None else place.found
            else:
                found = self.find_at(reach.path, status_of(reach.path), reach.access, enforced=enforced)
            if found is not None:
                return found
        return None

    def find_at(
        self, path: str, status: os.stat_result | None, access: Access, *, enforced: bool
    ) -> ProtectedFinding | None:
        """Return why one path must not be reached; None if it may. `status` is that of the file there."""
        folded = path.lower() if path.isascii() else fold(path)
        for place in self._at.get(folded, ()):
            if place.refuses(folded, access, enforced=enforced):
                return place.found
        for place in self._places_around(folded[: max(0, folded.rfind("/"))]):
            if place.refuses(folded, access, enforced=enforced):
                return place.found
        # Moving or removing a directory does the same to everything in it, so places further down count too.
        if access is Access.REPLACES:
            below = f"{folded.rstrip('/')}/"
            for place in self.places:
                if place.folded.startswith(below) and place.refuses(place.folded, access, enforced=enforced):
                    return place.found
        # A file with only one name cannot be a protected file under another name. Comparing all files would be slow.
        if status is None or status.st_nlink == 1:
            return None
        return self._by_other_name(status, access, enforced=enforced)

    def _places_around(self, folder: str) -> tuple[ProtectedPlace, ...]:
        """Return the places that are a folder or contain it, the innermost first.

        The places never change, so the answers for folders are cached.
        """
        known = self._around.get(folder)
        if known is None:
            found: list[ProtectedPlace] = []
            end = len(folder)
            while end > 0:
                found += self._at.get(folder[:end], ())
                end = folder.rfind("/", 0, end)
            if len(self._around) >= _MOST_FOLDERS:
                self._around.clear()
            known = self._around[folder] = tuple(found)
        return known

    def find_around(self, use: Tree, root: str, access: Access, *, enforced: bool) -> ProtectedFinding | None:
        """Return the record, if it lies below a directory that a command uses and the command may reach it."""
        below = f"{root.rstrip('/')}/"
        for place in self.places:
            if place.what != RECORD or not place.path.startswith(below):
                continue
            for path, directory in _members(place):
                if not place.refuses(fold(path), access, enforced=enforced):
                    continue
                parts = path.removeprefix(below).split("/")
                files = [
                    File(f"{use.start.rstrip('/')}/{'/'.join(parts[:depth])}", depth, directory=depth < len(parts))
                    for depth in range(1, len(parts) + 1)
                ]
                if use.meets(replace(files[-1], directory=directory, empty=_is_empty(path)), files[:-1]):
                    return ProtectedFinding(f"use a directory with {place.what} in it ({place.path})", LEAVE_OUT)
        return None

    def _by_other_name(self, status: os.stat_result, access: Access, *, enforced: bool) -> ProtectedFinding | None:
        """Return why a hard link to a protected file must not be reached.

        Nothing in a hard link leads to the other name, so device and inode are compared.
        """
        linked = _identity(status)
        if linked is None:
            return None
        for place in self.places:
            for path in _files(place):
                if _identity(status_of(path)) == linked and place.refuses(fold(path), access, enforced=enforced):
                    return place.found
        return None

    def _by_pattern(self, reach: Reach, enforced: bool) -> Iterator[ProtectedPlace]:  # noqa: FBT001 - passed on
        pattern = fold(reach.path).split("/")
        whole = reach.access is Access.REPLACES
        for place in self.places:
            if _finds(pattern, place, whole=whole) and place.refuses(
                _found_by(pattern, place), reach.access, enforced=enforced
            ):
                yield place


def fold(path: str) -> str:
    """Return a path as the most tolerant file system compares it: ignoring case and Unicode form."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).translate(_UNSEEN).casefold())


def program_files() -> tuple[Path, ...]:
    """Return where Batonpass itself is installed: its package and its commands."""
    package = Path(__file__).resolve().parents[2]
    return (package, *(Path(sys.executable).with_name(name) for name in PROGRAMS))


def _of_record(home: Path | None, ledger: str, tree: Path, environment: Mapping[str, str]) -> Iterator[ProtectedPlace]:
    homes = {str(tree / HOME_NAME)} | (set() if home is None else {str(home.absolute())})
    file = ledger.removeprefix(_SQLITE) if ledger.startswith(_SQLITE) else None
    if file is not None:
        path = Path(file).absolute()
        homes.add(str(home_of(path)))
        yield from (ProtectedPlace(f"{path}{ending}", RECORD) for ending in ("", "-wal", "-shm", "-journal"))
    for each in sorted(homes):
        yield ProtectedPlace(each, RECORD, folder=True)
        yield from (ProtectedPlace(f"{each}/{name}", RECORD, folder=True, keys=True) for name in _KEPT_SECRET)
    yield ProtectedPlace(str(find_approvers_home(environment)), RECORD, folder=True, keys=True)


def _of_rules(home: Path | None, tree: Path, environment: Mapping[str, str]) -> Iterator[ProtectedPlace]:
    around = {tree} if home is None else {tree, home.absolute().parent}
    # The nearest policy counts, so a new file further down would replace the present one. All these paths are
    # protected.
    policies = {str(place / _POLICY) for start in around for place in (start, *start.parents)}
    given = environment.get("CLAUDE_CONFIG_DIR")
    user = os.path.expanduser(f"~/{_CLAUDE}")  # noqa: PTH111 - without an error, where nobody has a home
    configured = {Path(user), *([Path(given).absolute()] if given else [])}
    settings = [str(folder / name) for folder in (tree / _CLAUDE, *sorted(configured)) for name in _SETTINGS]
    own = Path(os.path.expanduser("~"))  # noqa: PTH111 - as above
    clients = [str(tree / name) for name in (*_OF_CLIENTS, _KEYS_OF_OTHERS)]
    clients += [str(folder / name) for folder in (tree, own) for name in _OF_AGENTS]
    clients.append(str(find_approvers_home(environment).parent / "keys.toml"))
    git = {os.path.expanduser(path) for path in USER_GIT}  # noqa: PTH111 - as above
    git |= {str(Path(given) / "git/config") for given in [environment.get("XDG_CONFIG_HOME")] if given}
    git |= {given for given in [environment.get("GIT_CONFIG_GLOBAL")] if given and given.startswith("/")}
    yield from (ProtectedPlace(path, RULES) for path in (*sorted(policies), *settings, *clients, *sorted(git)))
    # Only settings are in this directory. Others, such as `.git`, occur in many honest calls, and count only if
    # removed.
    yield ProtectedPlace(str(tree / _CLAUDE), RULES, folder=True, kept=True)
    yield ProtectedPlace(str(tree / _AGENT_SCRIPTS), RULES, folder=True)
    for folder in _git_folders(tree):
        yield from (ProtectedPlace(str(folder / name), RULES) for name in _OF_GIT)
        yield ProtectedPlace(str(folder / _HOOKS), RULES, folder=True)


def _git_folders(tree: Path) -> Iterator[Path]:
    """Yield the directories with git's settings for a work tree. Hooks and filters named there run as programs."""
    root = next((place for place in (tree, *tree.parents) if os.path.lexists(place / ".git")), tree)
    yield root / ".git"
    try:
        # In a linked work tree, `.git` is a file that names the real directory.
        own = root / (root / ".git").read_text("utf-8").removeprefix("gitdir:").strip()
        yield own
        yield own / (own / "commondir").read_text("utf-8").strip()
    except (OSError, ValueError):
        return


def _files(place: ProtectedPlace) -> Iterator[str]:
    if not place.folder:
        yield place.path
    elif not place.kept:
        for folder, _, names in os.walk(place.path):
            yield from (os.path.join(folder, name) for name in names)  # noqa: PTH118 - texts are wanted


def _members(place: ProtectedPlace) -> Iterator[tuple[str, bool]]:
    """Yield the files of a place, and whether each is a directory: the place itself, its keys even before they exist.

    A place that does not exist contains nothing.
    """
    if not os.path.lexists(place.path):
        return
    yield place.path, place.folder
    if place.folder:
        yield from ((f"{place.path}/{name}", False) for name in (*_KEYS, f"{_KEPT_SECRET[0]}/run{_KEY}"))
        yield from ((path, False) for path in islice(_files(place), _MOST_MEMBERS))


def _is_empty(path: str) -> bool | None:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except NotADirectoryError:
        return os.path.getsize(path) == 0  # noqa: PTH202 - a text is given
    except OSError:
        return None


def _identity(found: os.stat_result | None) -> tuple[int, int] | None:
    """Return device and inode of a file, if it has more than one name."""
    if found is None or found.st_nlink <= 1 or not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino


def _finds(pattern: list[str], place: ProtectedPlace, *, whole: bool) -> bool:
    """Return whether a pattern, part by part, matches a place or something in it; with `whole`, also a parent.

    As in a shell, only a dot matches a leading dot, and `**` enters no hidden directory.
    """
    end, reached = len(pattern), _through(pattern, {0})
    for part in place.folded.split("/"):
        if whole and end in reached:
            return True
        met = {at for at in reached if at < end and pattern[at] == "**" and not part.startswith(".")}
        met |= {at + 1 for at in reached if at < end and pattern[at] != "**" and _fits(part, pattern[at])}
        reached = _through(pattern, met)
        if not reached:
            return False
    return place.folder or end in reached


def _found_by(pattern: list[str], place: ProtectedPlace) -> str:
    """Return the matches of a pattern in a place: some of its files, or the whole place if keys are among them."""
    name = pattern[-1]
    if not place.folder or any(_fits(key, name) for key in _KEYS) or name == "**":
        return place.folded
    return f"{place.folded}/{name}"


def _through(pattern: list[str], reached: set[int]) -> set[int]:
    found = set(reached)
    for at, part in enumerate(pattern):
        if at in found and part == "**":
            found.add(at + 1)
    return found


def _fits(part: str, pattern: str) -> bool:
    return (part.startswith(".") <= pattern.startswith(".")) and fnmatchcase(part, pattern)
