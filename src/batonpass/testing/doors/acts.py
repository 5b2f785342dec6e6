"""The acts that are tried at every door. Each door translates them into its own tools."""

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Write:
    """Change a file. This is reversible."""

    path: str
    text: str = "new"


@dataclass(frozen=True, slots=True)
class WriteAll:
    """Change several files at once: the paths are keys of a mapping, and are not declared as paths."""

    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Read a file."""

    path: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read content from outside. This taints the run."""

    url: str = "https://example.org/page"


@dataclass(frozen=True, slots=True)
class Pay:
    """Send money: an external write with a named receiver."""

    to: str
    amount: int


@dataclass(frozen=True, slots=True)
class Delegate:
    """Hand a task to another agent."""

    to: str
    task: str = "Look into it"
    rationale: str | None = None
    may: tuple[str, ...] = ()


Act: TypeAlias = Write | WriteAll | Read | Fetch | Pay

# The tiers that each act's tool declares. A door whose tools declare other tiers overrides `Door.tiers`.
TIERS: Final[dict[type, tuple[str, ...]]] = {
    Write: ("reversible",),
    WriteAll: ("reversible",),
    Read: (),
    Fetch: (),
    Pay: ("external-write",),
}

READING: Final = (Read, Fetch)


def target_of(act: Act) -> str | None:
    """Return the target of an act; None if it only reads."""
    match act:
        case Write(path=path):
            return path
        case Pay(to=to):
            return to
        case _:
            return None
