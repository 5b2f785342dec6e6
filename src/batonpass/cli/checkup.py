"""What the doctor says: one thing that was looked at, and how bad it is."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    level: Level
    name: str
    found: str
    advice: str | None = None
