"""One check of the doctor, and how bad its finding is."""

from enum import StrEnum

from msgspec import Struct


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class DoctorCheck(Struct, frozen=True):
    """One check: its name, its finding, and the remedy."""

    level: Level
    name: str
    found: str
    advice: str | None = None
