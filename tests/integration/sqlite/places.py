"""Places for ledgers that are not as one would wish: a disk without room, a directory that belongs to somebody else."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def a_small_disk(*, kilobytes: int) -> Iterator[Path]:
    """Give a disk with this much room. Needs root, which tests have here and in CI."""
    place = Path(tempfile.mkdtemp(prefix="batonpass-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Leave no room on a disk, for a while."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 1024)
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def a_public_place() -> Iterator[Path]:
    """Give a directory that everybody can read and only its owner can write."""
    place = Path(tempfile.mkdtemp(prefix="batonpass-public-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def publish(place: Path) -> None:
    """Let everybody read what lies in a place, and nobody else write it."""
    for path in place.iterdir():
        path.chmod(0o755 if path.is_dir() else 0o644)


def as_nobody(act: Callable[[], object]) -> str:
    """Do something as a user who owns nothing here; return its value, or its error's class and sentence."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, _answer(act).encode())
        finally:
            os._exit(0)  # a forked child must never return into the test runner
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer


def _answer(act: Callable[[], object]) -> str:
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return str(act())
    except BaseException as error:  # noqa: BLE001 - compared by the test
        return f"{type(error).__name__}: {error}"
