"""`batonpass doctor`: what is wrong with this ledger here, and what to do about it."""

import fcntl
import os
import platform
import shutil
import stat
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

import apsw
import click
from msgspec.structs import asdict

from batonpass import __version__
from batonpass.cli.checkup import Check, Level
from batonpass.cli.doctor_hooks import look_at_hooks
from batonpass.cli.doctor_mcp import look_at_servers
from batonpass.cli.exits import BROKEN, NO
from batonpass.cli.opening import settings
from batonpass.cli.options import json_option, ledger_option
from batonpass.cli.printing import paint, say, say_json, table
from batonpass.cli.words import counted, size
from batonpass.config import Settings
from batonpass.errors import (
    BatonpassError,
    KeyFailedError,
    NoLedgerError,
    NotFoundError,
    PolicyFileError,
    StoreError,
)
from batonpass.model.ids import ContentId
from batonpass.model.key import KeyStatus
from batonpass.policy.file_place import find_file
from batonpass.policy.reading import read_policy
from batonpass.relay import Relay
from batonpass.signing.keyfile import read_key
from batonpass.store.home import find_intruders
from batonpass.store.opening import SQLITE

_PACKAGES: Final = ("apsw", "click", "google-re2", "msgspec", "PyNaCl", "rich", "psycopg")
_LITTLE: Final = 1 << 30
_NO_ROOM: Final = 64 << 20
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# A file is written before the row that names it is committed: a young one may belong to a commit that is under way.
_SURELY_LOST: Final = 3600.0


@runtime_checkable
class KeepsFiles(Protocol):
    """A store that keeps large bodies as files."""

    home: Path

    def lost_files(self) -> set[ContentId]:
        """Return files of contents that no row names."""


@click.command()
@click.option("--fix", is_flag=True, help="Remove files that a crash left behind.")
@json_option
@ledger_option
def command(*, fix: bool, as_json: bool) -> None:
    """Look at the ledger and everything around it, and say what to do.

    Exits with 1 if something is bad, with 3 if the ledger cannot be opened.
    """
    found = settings()
    checks = [*_surroundings(found), *_policy(found)]
    broken = False
    try:
        with Relay.open(found.ledger, home=found.home, create=False) as relay:
            checks.insert(0, Check(Level.OK, "ledger", _shown(found)))
            checks += _inside(relay, found, fix=fix)
    except NoLedgerError as error:
        broken = True
        said, _, advice = str(error).partition("; ")
        checks.insert(0, Check(Level.BAD, "ledger", said, advice))
    except StoreError as error:
        broken = True
        checks.insert(0, Check(Level.BAD, "ledger", _shown(found)))
        checks.append(Check(Level.BAD, "open", str(error)))
    except BatonpassError as error:
        checks.append(Check(Level.BAD, "ledger", str(error)))
    checks += look_at_hooks(found)
    checks += look_at_servers(found)
    checks += _versions()
    if as_json:
        say_json([asdict(check) for check in checks])
    else:
        _say(checks)
    worst = any(check.level is Level.BAD for check in checks)
    click.get_current_context().exit(BROKEN if broken else NO if worst else 0)


def _say(checks: list[Check]) -> None:
    colours = {Level.OK: "green", Level.WARN: "yellow", Level.BAD: "red"}
    rows = []
    for check in checks:
        rows.append([paint(check.level, colours[check.level]), check.name, check.found])
        if check.advice is not None:
            rows.append(["", "", f"→ {check.advice}"])
    table(rows)
    wrong = [sum(check.level is level for check in checks) for level in (Level.BAD, Level.WARN)]
    say()
    say("all is well" if wrong == [0, 0] else f"{wrong[0]} bad, {counted(wrong[1], 'warning')}")


def _shown(found: Settings) -> str:
    if found.ledger.startswith(SQLITE):
        return found.ledger
    # A password belongs to nobody's screen.
    scheme, separator, rest = found.ledger.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _surroundings(found: Settings) -> Iterator[Check]:
    if found.home is None:
        yield Check(Level.OK, "keys", "in memory only")
        return
    yield from _files(found)
    yield from _key_files(found.home)
    yield from _lock(found.home / "writer.lock")
    place = next(parent for parent in (found.home, *found.home.parents) if parent.is_dir())
    free = shutil.disk_usage(place).free
    level = Level.BAD if free < _NO_ROOM else Level.WARN if free < _LITTLE else Level.OK
    yield Check(level, "disk", f"{size(free)} free at {place}", "free some disk" if level is not Level.OK else None)


def _policy(found: Settings) -> Iterator[Check]:
    """Read the policy that would hold here: one that is wrong lets no run begin, and nobody notices until then."""
    nearest = None if found.home is None else find_file(found.home.absolute().parent)
    path = found.policy or nearest
    if path is None:
        yield Check(Level.OK, "policy", "no batonpass.toml: the shipped one holds")
        return
    try:
        read_policy(path)
    except PolicyFileError as error:
        yield Check(Level.BAD, "policy", str(error), "mend it: until then no run begins here")
    else:
        yield Check(Level.OK, "policy", str(path))


def _files(found: Settings) -> Iterator[Check]:
    if not found.ledger.startswith(SQLITE):
        return
    path = Path(found.ledger.removeprefix(SQLITE)).expanduser().absolute()
    if path.is_file():
        places = [place for place in (path, path.parent, found.home) if place is not None and place.exists()]
        closed = [place for place in places if not os.access(place, os.W_OK)]
        if closed:
            yield Check(Level.BAD, "writable", f"{closed[0]} cannot be written", "make it writable, or only read here")
        else:
            yield Check(Level.OK, "writable", f"{path} and what is beside it")


def _key_files(home: Path) -> Iterator[Check]:
    if (problem := find_intruders(home)) is not None:
        yield Check(Level.BAD, "home", problem.partition("; ")[0], f"chown {os.geteuid()} {home}; chmod 700 {home}")
    elif home.is_dir() and home.stat().st_mode & _OTHERS:
        yield Check(Level.WARN, "home", f"{home} can be entered by others", f"chmod 700 {home}")
    for name, missing in (
        ("relay.key", "made by the first thing that is recorded here"),
        ("root.key", "kept elsewhere"),
    ):
        path = home / name
        if not path.exists():
            yield Check(Level.OK, name, f"none here: {missing}")
            continue
        try:
            read_key(path)
        except KeyFailedError as error:
            yield Check(Level.BAD, name, str(error))
        else:
            yield Check(Level.OK, name, f"{path}, only its owner can read it")


def _lock(path: Path) -> Iterator[Check]:
    if not path.exists():
        return
    holder = "unknown"
    try:
        with path.open("rb") as file:
            holder = file.read(64).decode("ascii", "replace").strip() or holder
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        yield Check(Level.WARN, "lock", f"process {holder} is writing now", f"if that lasts, look at process {holder}")
    except OSError as error:
        yield Check(Level.WARN, "lock", f"{path}: {error.strerror}")
    else:
        yield Check(Level.OK, "lock", "nobody is writing")


def _inside(relay: Relay, found: Settings, *, fix: bool) -> Iterator[Check]:
    steps = relay.store.migrations()
    waiting = [step.name for step in steps if step.applied_at is None]
    yield Check(
        Level.BAD if waiting else Level.OK,
        "schema",
        f"step {len(steps) - len(waiting)} of {len(steps)}",
        "batonpass ledger migrate" if waiting else None,
    )
    if not relay.store.founded():
        yield Check(Level.WARN, "receipts", "nothing has been recorded yet")
        return
    with relay.store.view() as view:
        counts = view.counts()
        sealed = max((seal.size for seal in view.find_seals()), default=0)
    yield Check(
        Level.OK, "receipts", f"{counts.receipts:,} in {counted(counts.streams, 'stream')}, {size(counts.bytes)}"
    )
    if sealed == counts.receipts:
        yield Check(Level.OK, "seal", "covers everything")
    else:
        unsealed = counted(counts.receipts - sealed, "receipt")
        yield Check(Level.WARN, "seal", f"{unsealed} under no seal", "batonpass ledger seal, and keep it elsewhere")
    yield _enrolment(relay, found)
    if isinstance(relay.store, KeepsFiles):
        yield _lost_files(relay.store, fix=fix)


def _enrolment(relay: Relay, found: Settings) -> Check:
    if found.home is None or not (found.home / "relay.key").exists():
        return Check(Level.OK, "enrolled", "this relay has recorded nothing here yet")
    try:
        own, public_key = relay.identity()
    except KeyFailedError:
        return Check(Level.WARN, "enrolled", "nobody knows, as long as relay.key cannot be used")
    keys = relay.keys()
    known = next((key for key in keys if key.public_key == public_key), None)
    if known is None:
        advice = f"where the root key is: batonpass key enroll {own} {public_key}"
        return Check(Level.BAD, "enrolled", f"{own} is not", advice)
    if known.status is not KeyStatus.ACTIVE:
        return Check(Level.BAD, "enrolled", f"{own}, {known.status}", "enrol another key where the root key is")
    return Check(Level.OK, "enrolled", f"{own}, {known.status}")


def _lost_files(store: KeepsFiles, *, fix: bool) -> Check:
    now = time.time()
    blobs = store.home / "blobs"
    lost = []
    for content in store.lost_files():
        try:
            path = _find_file(blobs, content)
            old = now - path.stat().st_mtime > _SURELY_LOST
        except (NotFoundError, OSError):
            continue
        if old:
            lost.append(path)
    if not lost:
        return Check(Level.OK, "files", "no lost ones")
    if not fix:
        return Check(Level.WARN, "files", f"{counted(len(lost), 'file')} left by a crash", "batonpass doctor --fix")
    for path in lost:
        path.unlink(missing_ok=True)
    return Check(Level.OK, "files", f"removed {counted(len(lost), 'file')} left by a crash")


def _find_file(blobs: Path, content: ContentId) -> Path:
    for path in blobs.glob(f"*/{content}"):
        return path
    raise NotFoundError("file of content", content)


def _versions() -> Iterator[Check]:
    parts = [f"batonpass {__version__}", f"Python {platform.python_version()}", f"SQLite {apsw.sqlite_lib_version()}"]
    for package in _PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    yield Check(Level.OK, "versions", ", ".join(parts))
