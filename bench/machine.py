"""What the figures were measured on."""

import os
import platform
from pathlib import Path

import apsw


def describe_machine(scratch: Path) -> dict[str, object]:
    """Return what a reader has to know to compare two tables; the filesystem is that of `scratch`."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "filesystem": _filesystem(scratch),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _filesystem(path: Path) -> str:
    """Return the type and options of the file system that holds a path: the mount with the longest name above it."""
    place = path.resolve()
    mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    _, point, kind, options, *_ = max(
        (mount for mount in mounts if place.is_relative_to(mount[1])), key=lambda mount: len(mount[1])
    )
    return f"{kind} at {point} ({options})"
