"""What the doctor says: one thing that was looked at, and how bad it is."""

from enum import StrEnum

from msgspec import Struct


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class DoctorCheck(Struct, frozen=True):
    """One thing that was looked at."""

    level: Level
    name: str
    found: str
    advice: str | None = None
