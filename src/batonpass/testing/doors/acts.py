"""What is done at every door: four acts, which each door translates into tools of its own."""

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Write:
    """Change a file; that can be undone."""

    path: str
    text: str = "new"


@dataclass(frozen=True, slots=True)
class WriteAll:
    """Change several files at once: their paths are the names in a mapping, and nothing says that they are paths."""

    files: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Read a file."""

    path: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read something from outside: whoever does so knows a stranger's words from then on."""

    url: str = "https://example.org/page"


@dataclass(frozen=True, slots=True)
class Pay:
    """Send money: it changes what is not ours, and names whom it goes to."""

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

# How much depends on each, as its tool declares it; a door whose tools cannot say that says what they do.
TIERS: Final[dict[type, tuple[str, ...]]] = {
    Write: ("reversible",),
    WriteAll: ("reversible",),
    Read: (),
    Fetch: (),
    Pay: ("external-write",),
}

READING: Final = (Read, Fetch)


def target_of(act: Act) -> str | None:
    """Return what an act changes; nothing of one that only reads."""
    match act:
        case Write(path=path):
            return path
        case Pay(to=to):
            return to
        case _:
            return None
