"""What no agent may touch in an enforced session, by whatever path it is spelled."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from batonpass.adapters.claude_code.hooks.client import HOME_NAME
from batonpass.adapters.claude_code.hooks.shell import spellings
from batonpass.policy.document import FILE_NAME

SETTINGS: Final = ("settings.json", "settings.local.json")
PROGRAMS: Final = ("batonpass", "batonpass-hook")
_GLOB: Final = re.compile(r"[*?\[]")

# Names that betray a place wherever they stand, also inside a program that is given as one word.
_NAMED: Final = re.compile(
    rf"(?<![\w-])(?:{re.escape(HOME_NAME)}(?![\w-])|\.claude/+settings(?:\.local)?\.json|{re.escape(FILE_NAME)})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file or a directory with all that is in it."""

    path: str
    what: str
    secret: bool = False  # not even to be read: keys lie there

    def holds(self, path: str) -> bool:
        """Return whether a path is this place or lies in it. Case never counts: on some disks it does not."""
        ours, given = self.path.casefold(), path.casefold()
        return given == ours or given.startswith(f"{ours.rstrip('/')}/")

    def lies_in(self, path: str) -> bool:
        """Return whether this place lies below a path, and would go away with it."""
        return self.path.casefold().startswith(f"{path.casefold().rstrip('/')}/")


class Places:
    """The protected places of one project: the ledger, the hook settings, the rules, and our own program."""

    def __init__(
        self,
        project: Path,
        *,
        home: Path,
        ledger: Path | None = None,
        environment: Mapping[str, str] | None = None,
        program: Iterable[Path] = (),
    ) -> None:
        environment = os.environ if environment is None else environment
        config = Path(environment.get("CLAUDE_CONFIG_DIR") or Path("~/.claude").expanduser())
        wanted = [(path, "the ledger", True) for path in (project / HOME_NAME, home)]
        if ledger is not None:
            wanted += [(Path(f"{ledger}{ending}"), "the ledger", True) for ending in ("", "-wal", "-shm", HOME_NAME)]
        folders = (project / ".claude", config)
        wanted += [(folder / name, "the hook settings", False) for folder in folders for name in SETTINGS]
        wanted.append((project / FILE_NAME, "the rules for agents", False))
        wanted += [(path, "Batonpass itself", False) for path in program]
        self.project = project
        self._places = [
            Place(path, what, secret) for given, what, secret in wanted for path in {*_both(str(given.absolute()))}
        ]

    def find(self, path: str, base: str, *, reads: bool = False) -> Place | None:
        """Return the protected place that a path leads into, as it is written or after every link."""
        for spelled in resolved(path, base):
            for place in self._places:
                if place.holds(spelled) and not (reads and not place.secret):
                    return place
        return None

    def find_word(self, word: str, bases: Iterable[str], *, destroys: bool) -> Place | None:
        """Return the protected place that a word in a shell means; with `destroys`, also one that lies below."""
        for base in bases:
            for one in _candidates(word):
                for spelled in _globbed(one, base) if _GLOB.search(one) else resolved(one, base):
                    for place in self._places:
                        if _fits(place, spelled) or (destroys and place.lies_in(spelled)):
                            return place
        return None

    @staticmethod
    def find_name(text: str) -> str | None:
        """Return the name of a protected place that stands in a text, quotes and escapes taken out."""
        for spelled in (text, re.sub(r"[\"'\\]", "", text)):
            if found := _NAMED.search(spelled):
                return found[0]
        return None


def resolved(path: str, base: str) -> Iterator[str]:
    """Yield where a path leads: as it is written, without `.` and `..`, and after every symbolic link."""
    if "\0" in path:
        return
    whole = os.path.join(base, os.path.expanduser(path))  # noqa: PTH111, PTH118 - pathlib would drop what we look for
    yield from _both(whole)


def _both(path: str) -> Iterator[str]:
    yield os.path.normpath(path)
    # `a/..` after a link is not where it seems: the kernel follows the link first, and so does this.
    yield os.path.realpath(path)


def _candidates(word: str) -> Iterator[str]:
    """Yield what in a word may be a path: all of it, and what an option or an assignment gives."""
    for one in spellings(word):
        yield one.removeprefix("file://")
        if "=" in one:
            yield one.partition("=")[2]
        if ":" in one:
            yield from one.split(":")
        if re.match(r"-[A-Za-z][./~]", one):
            yield one[2:]


def _globbed(word: str, base: str) -> Iterator[str]:
    yield os.path.normpath(os.path.join(base, os.path.expanduser(word)))  # noqa: PTH111, PTH118 - as above


def _fits(place: Place, spelled: str) -> bool:
    if place.holds(spelled):
        return True
    if not _GLOB.search(spelled):
        return False
    ours, theirs = place.path.casefold().split("/"), spelled.casefold().split("/")
    if len(theirs) < len(ours):
        return False
    # As in a shell, a pattern finds what begins with a dot only if it begins with one.
    return all(
        (one.startswith(".") <= pattern.startswith(".")) and fnmatchcase(one, pattern)
        for one, pattern in zip(ours, theirs, strict=False)
    )
