"""Checks of the files around a ledger: its directory, its keys, the lock of the writer, free space, and the policy."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.output.units import size
from batonpass.config import Settings
from batonpass.errors import KeyFailedError, PolicyFileError
from batonpass.policy.file_place import find_file
from batonpass.policy.policy_table import read_policy
from batonpass.signing.keyfile import read_key
from batonpass.store.factory import SQLITE
from batonpass.store.home import find_intruders

_LITTLE: Final = 1 << 30
_NO_ROOM: Final = 64 << 20
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def look_at_home(found: Settings) -> Iterator[DoctorCheck]:
    """Check the directory beside the ledger: files, keys, the lock of the writer, and free space."""
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


def look_at_policy(found: Settings) -> Iterator[DoctorCheck]:
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
