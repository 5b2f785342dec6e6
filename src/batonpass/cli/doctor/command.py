"""`batonpass doctor`: find problems with this ledger, and say how to fix them."""

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
from batonpass.adapters.mcp.clients.client_settings import find_configs, find_wrapped
from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.doctor.hook_checks import look_at_hooks
from batonpass.cli.doctor.share_checks import look_at_share
from batonpass.cli.input.ledger_access import settings
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.exits import BROKEN, NO
from batonpass.cli.output.terminal import paint, say, say_json, table
from batonpass.cli.output.units import counted, size
from batonpass.config import Settings, require_own_ledger
from batonpass.errors import (
    BatonpassError,
    KeyFailedError,
    NoLedgerError,
    NotFoundError,
    PolicyFileError,
    StoreError,
)
from batonpass.model.base.ids import ContentId
from batonpass.model.ledger.key import KeyStatus
from batonpass.policy.file_place import find_file
from batonpass.policy.policy_table import read_policy
from batonpass.relay import Relay
from batonpass.signing.keyfile import read_key
from batonpass.store.factory import SQLITE
from batonpass.store.home import HOME_NAME, find_intruders


def look_at_servers(found: Settings) -> Iterator[DoctorCheck]:
    """Yield for each MCP client of the project how many of its servers are behind the proxy."""
    if found.home is None:
        return
    project = found.home.parent if found.home.name == HOME_NAME else Path.cwd()
    for config, behind, all_ in find_wrapped(list(find_configs(project, Path.home()))):
        what = f"{behind} of {counted(all_, 'MCP server')} in {config.path} recorded"
        advice = None if behind == all_ else "`batonpass init mcp` puts them behind the proxy where possible"
        yield DoctorCheck(Level.OK, "servers", what, advice)


_PACKAGES: Final = ("apsw", "click", "google-re2", "msgspec", "PyNaCl", "rich", "psycopg")
_LITTLE: Final = 1 << 30
_NO_ROOM: Final = 64 << 20
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# A file is written before the row that names it is committed, so a recent file may belong to a pending commit.
_SURELY_LOST: Final = 3600.0


@runtime_checkable
class KeepsFiles(Protocol):
    """A store that keeps large bodies as files."""

    home: Path

    def lost_files(self) -> set[ContentId]:
        """Return the contents whose files no row names."""


@click.command()
@click.option("--fix", is_flag=True, help="Remove files that a crash left behind.")
@ledger_and_json
def command(*, fix: bool, as_json: bool) -> None:
    """Check the ledger and everything around it, and say how to fix problems.

    Exits with 1 if something is bad, with 3 if the ledger cannot be opened.
    """
    found = settings()
    checks = [*_surroundings(found), *_policy(found)]
    broken = False
    try:
        require_own_ledger(found)
        with Relay.open(found.ledger, home=found.home, create=False) as relay:
            checks.insert(0, DoctorCheck(Level.OK, "ledger", _shown(found)))
            checks += _inside(relay, found, fix=fix)
    except NoLedgerError as error:
        broken = True
        said, _, advice = str(error).partition("; ")
        checks.insert(0, DoctorCheck(Level.BAD, "ledger", said, advice))
    except StoreError as error:
        broken = True
        checks.insert(0, DoctorCheck(Level.BAD, "ledger", _shown(found)))
        checks.append(DoctorCheck(Level.BAD, "open", str(error)))
    except BatonpassError as error:
        checks.append(DoctorCheck(Level.BAD, "ledger", str(error)))
    checks += look_at_hooks(found)
    checks += look_at_servers(found)
    checks += look_at_share(found)
    checks += _versions()
    if as_json:
        say_json([asdict(check) for check in checks])
    else:
        _say(checks)
    worst = any(check.level is Level.BAD for check in checks)
    click.get_current_context().exit(BROKEN if broken else NO if worst else 0)


def _say(checks: list[DoctorCheck]) -> None:
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
    # Never print a password.
    scheme, separator, rest = found.ledger.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _surroundings(found: Settings) -> Iterator[DoctorCheck]:
    if found.home is None:
        yield DoctorCheck(Level.OK, "keys", "in memory only")
        return
    yield from _files(found)
    yield from _key_files(found.home)
    yield from _lock(found.home / "writer.lock")
    place = next(parent for parent in (found.home, *found.home.parents) if parent.is_dir())
    free = shutil.disk_usage(place).free
    level = Level.BAD if free < _NO_ROOM else Level.WARN if free < _LITTLE else Level.OK
    advice = None if level is Level.OK else "free some disk space"
    yield DoctorCheck(level, "disk", f"{size(free)} free at {place}", advice)


def _policy(found: Settings) -> Iterator[DoctorCheck]:
    """Check the policy file: with an invalid one no run can start, and nobody notices until then."""
    nearest = None if found.home is None else find_file(found.home.absolute().parent)
    path = found.policy or nearest
    if path is None:
        yield DoctorCheck(Level.OK, "policy", "no batonpass.toml: the shipped policy is in force")
        return
    try:
        read_policy(path)
    except PolicyFileError as error:
        yield DoctorCheck(Level.BAD, "policy", str(error), "fix it: until then no run can start here")
    else:
        yield DoctorCheck(Level.OK, "policy", str(path))


def _files(found: Settings) -> Iterator[DoctorCheck]:
    if not found.ledger.startswith(SQLITE):
        return
    path = Path(found.ledger.removeprefix(SQLITE)).expanduser().absolute()
    if path.is_file():
        places = [place for place in (path, path.parent, found.home) if place is not None and place.exists()]
        closed = [place for place in places if not os.access(place, os.W_OK)]
        if closed:
            yield DoctorCheck(Level.BAD, "writable", f"{closed[0]} cannot be written", "make it writable to record")
        else:
            yield DoctorCheck(Level.OK, "writable", f"{path} and its directory")


def _key_files(home: Path) -> Iterator[DoctorCheck]:
    if (problem := find_intruders(home)) is not None:
        advice = f"chown {os.geteuid()} {home}; chmod 700 {home}"
        yield DoctorCheck(Level.BAD, "home", problem.partition("; ")[0], advice)
    elif home.is_dir() and home.stat().st_mode & _OTHERS:
        yield DoctorCheck(Level.WARN, "home", f"{home} can be entered by others", f"chmod 700 {home}")
    for name, missing in (("relay.key", "the first recording here creates it"), ("root.key", "kept elsewhere")):
        path = home / name
        if not path.exists():
            yield DoctorCheck(Level.OK, name, f"none here: {missing}")
            continue
        try:
            read_key(path)
        except KeyFailedError as error:
            yield DoctorCheck(Level.BAD, name, str(error))
        else:
            yield DoctorCheck(Level.OK, name, f"{path}, only its owner can read it")


def _lock(path: Path) -> Iterator[DoctorCheck]:
    if not path.exists():
        return
    holder = "unknown"
    try:
        with path.open("rb") as file:
            holder = file.read(64).decode("ascii", "replace").strip() or holder
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        advice = f"if that lasts, look at process {holder}"
        yield DoctorCheck(Level.WARN, "lock", f"process {holder} is writing now", advice)
    except OSError as error:
        yield DoctorCheck(Level.WARN, "lock", f"{path}: {error.strerror}")
    else:
        yield DoctorCheck(Level.OK, "lock", "nobody is writing")


def _inside(relay: Relay, found: Settings, *, fix: bool) -> Iterator[DoctorCheck]:
    steps = relay.store.migrations()
    waiting = [step.name for step in steps if step.applied_at is None]
    level, advice = (Level.BAD, "batonpass ledger migrate") if waiting else (Level.OK, None)
    yield DoctorCheck(level, "schema", f"step {len(steps) - len(waiting)} of {len(steps)}", advice)
    if not relay.store.founded():
        yield DoctorCheck(Level.WARN, "receipts", "nothing has been recorded yet")
        return
    with relay.store.view() as view:
        counts = view.counts()
        sealed = max((seal.size for seal in view.find_seals()), default=0)
    recorded = f"{counts.receipts:,} in {counted(counts.streams, 'stream')}, {size(counts.bytes)}"
    yield DoctorCheck(Level.OK, "receipts", recorded)
    if sealed == counts.receipts:
        yield DoctorCheck(Level.OK, "seal", "covers everything")
    else:
        unsealed = f"{counted(counts.receipts - sealed, 'receipt')} not covered by a seal"
        yield DoctorCheck(Level.WARN, "seal", unsealed, "run batonpass ledger seal, and keep the seal elsewhere")
    yield _enrolment(relay, found)
    if isinstance(relay.store, KeepsFiles):
        yield _lost_files(relay.store, fix=fix)


def _enrolment(relay: Relay, found: Settings) -> DoctorCheck:
    if found.home is None or not (found.home / "relay.key").exists():
        return DoctorCheck(Level.OK, "enrolled", "this relay has recorded nothing here yet")
    try:
        own, public_key = relay.admin.identity()
    except KeyFailedError:
        return DoctorCheck(Level.WARN, "enrolled", "unknown, because relay.key cannot be used")
    keys = relay.admin.keys()
    known = next((key for key in keys if key.public_key == public_key), None)
    if known is None:
        advice = f"where the root key is, run: batonpass key enroll {own} {public_key}"
        return DoctorCheck(Level.BAD, "enrolled", f"{own} is not enrolled", advice)
    if known.status is not KeyStatus.ACTIVE:
        return DoctorCheck(Level.BAD, "enrolled", f"{own}, {known.status}", "enrol another key where the root key is")
    return DoctorCheck(Level.OK, "enrolled", f"{own}, {known.status}")


def _lost_files(store: KeepsFiles, *, fix: bool) -> DoctorCheck:
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
        return DoctorCheck(Level.OK, "files", "none left by a crash")
    if not fix:
        left = f"{counted(len(lost), 'file')} left by a crash"
        return DoctorCheck(Level.WARN, "files", left, "run batonpass doctor --fix")
    for path in lost:
        path.unlink(missing_ok=True)
    return DoctorCheck(Level.OK, "files", f"removed {counted(len(lost), 'file')} left by a crash")


def _find_file(blobs: Path, content: ContentId) -> Path:
    for path in blobs.glob(f"*/{content}"):
        return path
    raise NotFoundError("file of content", content)


def _versions() -> Iterator[DoctorCheck]:
    parts = [f"batonpass {__version__}", f"Python {platform.python_version()}", f"SQLite {apsw.sqlite_lib_version()}"]
    for package in _PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    yield DoctorCheck(Level.OK, "versions", ", ".join(parts))
