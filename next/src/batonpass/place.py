"""Where the record is: in the user's state directory, and never in the tree that agents work in.

A ledger is known by the identity of the repository (its common git directory) or of the folder, not by how the
way there is spelled; linked work trees share it. What cannot be reached by `find .`, `git clean -fdx` or a hostile
checkout need not be guarded by reading commands.
"""

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct

from batonpass.errors import InvalidValueError, StoreError

_HASH_LENGTH: Final = 12
_POSTGRES: Final = ("postgresql://", "postgres://")
MEMORY: Final = "memory:"


class Identity(Struct, frozen=True, kw_only=True):
    """What a place belongs to, written down beside the ledger and compared each time it is opened."""

    of: str  # the repository's common directory, the folder, the file or the server
    device: int | None = None
    inode: int | None = None


class Place(Struct, frozen=True, kw_only=True):
    """A directory that keeps keys and, with SQLite, the ledger; and the work tree that it records."""

    directory: Path
    url: str
    work_tree: Path

    @property
    def sqlite_path(self) -> Path | None:
        """The file of the ledger; None if it is on a server."""
        return Path(self.url.removeprefix("sqlite:///")) if self.url.startswith("sqlite:///") else None


def state_directory() -> Path:
    """Return where this user's records are: `BATONPASS_STATE_DIR`, or a folder in the system's state directory."""
    own = os.environ.get("BATONPASS_STATE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "batonpass"


def find_place(ledger: str | Path | None = None, *, work_tree: Path | None = None, create: bool = True) -> Place:
    """Return the place of a ledger: a file, a server's URL, or the one of this repository or folder.

    Raises `StoreError` if there is none and none is to be made, if the folder is not the one that the ledger was begun
    for, or if others may write there.
    """
    tree = Path(os.path.realpath(work_tree or Path.cwd()))
    named = str(ledger or os.environ.get("BATONPASS_LEDGER") or "")
    if named.startswith(_POSTGRES):
        return _place_of_server(named, tree, create=create)
    if "://" in named and not named.startswith("sqlite:///"):
        scheme = named.partition("://")[0]  # and not all of it: a URL may hold a password
        detail = f"{scheme}:// is no ledger: give a file, sqlite:///FILE, postgresql://SERVER/DATABASE or memory:"
        raise InvalidValueError(detail)
    root, identity = find_repository(tree)
    if named:
        file = Path(os.path.realpath(named.removeprefix("sqlite:///")))
        if file.is_dir():
            raise StoreError(f"{file} is a folder, not a ledger: give a file", code="store.not_a_ledger")
        if not create and not file.exists():
            raise StoreError(f"there is no ledger at {file}", code="store.place")
        file.parent.mkdir(parents=True, exist_ok=True)
        directory = _directory_for(file.stem, str(file))
        if create or directory.exists():  # a copy that is only read has no place, and needs none
            _claim(directory, Identity(of=str(file)), create=create)
        return Place(directory=directory, url=f"sqlite:///{file}", work_tree=root)
    common = Path(identity.of)  # and not the root, which in a linked work tree has another name
    directory = _directory_for(common.parent.name if common.name == ".git" else common.name, identity.of)
    _claim(directory, identity, create=create, is_folder=identity.of == str(root))
    return Place(directory=directory, url=f"sqlite:///{directory / 'ledger.db'}", work_tree=root)


def find_repository(start: Path) -> tuple[Path, Identity]:
    """Return the root of the work tree around a folder, and what it is known by; without git the folder itself."""
    for folder in (start, *start.parents):
        git = folder / ".git"
        if git.is_dir():
            return folder, _identity_of(git)
        if git.is_file():
            return folder, _identity_of(_common_directory(git) or folder)
    return start, _identity_of(start)


def _common_directory(git: Path) -> Path | None:
    """Return the directory that linked work trees share; None where it does not know this one.

    Files name it, no git is run and no settings are read. Anybody can write a file that names another's repository: it
    counts only if that repository names this work tree as well.
    """
    text = git.read_text(encoding="utf-8", errors="surrogateescape")
    directory = git.parent / text.removeprefix("gitdir:").strip()
    try:
        back = (directory / "gitdir").read_text(encoding="utf-8", errors="surrogateescape").strip()
        shared = (directory / "commondir").read_text(encoding="utf-8", errors="surrogateescape").strip()
        if not text.startswith("gitdir:") or not (directory / back).samefile(git):
            return None
        return Path(os.path.realpath(directory / shared))
    except (OSError, ValueError):
        return None


def _identity_of(folder: Path) -> Identity:
    status = folder.stat()
    return Identity(of=str(folder), device=status.st_dev, inode=status.st_ino)


def _place_of_server(url: str, tree: Path, *, create: bool) -> Place:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    # Without user, password and other options: the same database is the same ledger, whichever user connects to it.
    host = options.get("host") or parts.hostname or "localhost"
    database = f"{host}:{options.get('port') or parts.port or 5432}{parts.path}"
    directory = _directory_for(parts.path.strip("/") or "postgres", database)
    _claim(directory, Identity(of=database), create=create)
    return Place(directory=directory, url=url, work_tree=find_repository(tree)[0])


def _directory_for(name: str, identity: str) -> Path:
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)[:40] or "root"
    digest = sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()
    return state_directory() / "ledgers" / f"{readable}-{digest[:_HASH_LENGTH]}"


def _claim(directory: Path, identity: Identity, *, create: bool, is_folder: bool = False) -> None:
    """Make the directory, or see that it is ours and belongs to what it was made for."""
    marker = directory / "place.json"
    if not directory.exists():
        if not create:
            detail = f"nothing is recorded of {identity.of} yet: run a program that uses Batonpass, or `batonpass demo`"
            if is_folder:
                detail += "; outside of a git repository each folder has a record of its own"
            raise StoreError(detail, code="store.place")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        detail = f"{directory} is not a directory that only you can open: `chmod 700` it, if you trust what is in it"
        raise StoreError(detail, code="store.place")
    try:
        known = msgspec.json.decode(marker.read_bytes(), type=Identity)
    except FileNotFoundError:
        draft = directory / f".place.{os.getpid()}"
        draft.write_bytes(msgspec.json.encode(identity))
        draft.replace(marker)
        return
    except msgspec.DecodeError as error:
        raise StoreError(f"{marker} cannot be read: {error}", code="store.place") from None
    if known != identity:
        detail = (
            f"{identity.of} is another folder now than the one that {directory} was begun for; "
            f"if it is the same project, restored or copied, delete {marker} to go on with its ledger"
        )
        raise StoreError(detail, code="store.place")
