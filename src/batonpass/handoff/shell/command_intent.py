"""The files that a shell command is told to write, by name, as far as its text says.

A word that only the shell can compute names nothing here. After a `cd` to a computed place, no relative word names
anything either. The readers of this want certainty: a file that is not named stays a candidate.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from batonpass.attribution.worktree.write_intent import FileAct, Intent, NamedWrite
from batonpass.handoff.files.path_spellings import real_path
from batonpass.handoff.shell.command_reach import scripts_of
from batonpass.handoff.shell.command_text import SimpleCommand, read_commands, unbraced
from batonpass.handoff.shell.program_writes import (
    Named,
    brings_from_git,
    is_patch,
    patch_files,
    patched_paths,
    unwrapped,
    written_by,
)

_DEEPEST: Final = 4
_MOST_WRITES: Final = 500
_MOST_COMMANDS: Final = 2000  # in all: a model may type anything, and somebody waits for the answer
_MOST_VALUES: Final = 200  # of one loop
_LARGEST_PATCH: Final = 1024 * 1024
_COMPUTED: Final = re.compile(r"[$`\0]")
_LOOP: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_PATTERN: Final = re.compile(r"[*?\[]")
_SUBSHELL: Final = re.compile(r"(?<![$<>])\(")


def shell_intent(text: str, place: str | os.PathLike[str], root: Path) -> Intent:
    """Return the writes into the work tree below a root that a shell in some directory is told to make."""
    reading = _Reading(str(root), is_grouped=_SUBSHELL.search(text) is not None)
    reading.read(text, (real_path(os.fspath(place)),))
    return Intent(writes=tuple(islice(reading.writes(), _MOST_WRITES)), brings=reading.brings)


class _Reading(Struct):
    root: str
    is_grouped: bool  # a `cd` may end with a group of commands, and nobody knows which
    brings: bool = False
    _count: int = 0
    _named: list[tuple[Named, tuple[str, ...]]] = field(default_factory=list)
    _loops: dict[str, list[str]] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)  # directories
    _texts: dict[str, bytes] = field(default_factory=dict)  # of files that the command itself writes

    def read(self, text: str, bases: tuple[str, ...], depth: int = 0) -> None:
        """Read the commands of a text, each in its directory. Empty `bases` mean that the directory is unknown."""
        known = {"HOME": os.path.expanduser("~"), **({"PWD": bases[0]} if len(bases) == 1 else {})}  # noqa: PTH111 - a text is wanted
        for command in read_commands(text, known):
            self._count += 1
            if self._count > _MOST_COMMANDS:
                return
            self._take(command, bases)
            bases = self._moved(command, bases)
            for inner in scripts_of(command) if depth < _DEEPEST else ():
                self.read(inner.text, bases, depth + 1)

    def writes(self) -> Iterator[NamedWrite]:
        """Yield the named writes as paths of the work tree. A command that was not read to its end names nothing."""
        if self._count > _MOST_COMMANDS:
            return
        for named, bases in self._named:
            for base in bases or ("",):
                yield from self._placed(named, base)

    def _take(self, command: SimpleCommand, bases: tuple[str, ...]) -> None:
        words = unwrapped(command)
        self.brings = self.brings or brings_from_git(command)
        if command.words[:1] == ["for"] and command.words[2:3] == ["in"]:
            self._loops[command.words[1]] = command.words[3 : 3 + _MOST_VALUES]
        if words[:1] == ["mkdir"]:
            self._made |= {path for word in words[1:] for base in bases for path in self._absolute(word, base)}
        inside = tuple(path for base in bases or ("",) for path in self._inside(command, base))
        found = list(written_by(command))
        if words and is_patch(words):
            found += self._patched(words, command, inside)
        self._named += ((one, inside) for one in found)
        for one in found:
            if one.act is FileAct.BECOMES and one.text is not None:
                self._texts |= {path: one.text for base in inside for path in self._absolute(one.word, base)}

    def _patched(self, words: Sequence[str], command: SimpleCommand, bases: Sequence[str]) -> Iterator[Named]:
        names, strip = patch_files(words, command)
        texts = list(command.fed)
        for path in (path for name in names for base in bases for path in self._absolute(name, base)):
            data = self._texts.get(path) or _read(path)
            texts += [] if data is None else [data.decode("utf-8", "replace")]
        yield from (Named(path) for text in texts for path in patched_paths(text, strip))

    def _moved(self, command: SimpleCommand, bases: tuple[str, ...]) -> tuple[str, ...]:
        if command.program not in {"cd", "pushd", "popd"}:
            return bases
        words = [word for word in command.words[1:] if word not in {"-L", "-P", "--"}]
        reached = tuple(path for base in bases for word in words[:1] for path in self._absolute(word, base))
        if command.program == "popd" or words[:1] in ([], ["-"]):
            reached = ()
        return tuple(dict.fromkeys((*bases, *reached))) if self.is_grouped else reached

    def _inside(self, command: SimpleCommand, base: str) -> Iterator[str]:
        """Yield the directory in which a command is told to work: `git -C x`."""
        told = [word for option, word in pairwise(unwrapped(command)) if option == "-C"]
        if unwrapped(command)[:1] == ["git"] and told:
            yield from (path for word in told[:1] for path in self._absolute(word, base))
        elif base:
            yield base

    def _spelled(self, word: str) -> Iterator[str]:
        """Yield the expansions of a word by a shell, if known. A loop variable becomes each of its values."""
        for one in unbraced(word):
            found = _LOOP.search(one)
            values = None if found is None else self._loops.get(found[1] or found[2])
            if found is None or values is None:
                yield one
            else:
                yield from (one[: found.start()] + value + one[found.end() :] for value in values)

    def _absolute(self, word: str, base: str) -> Iterator[str]:
        for one in self._spelled(word):
            if _COMPUTED.search(one) or not one:
                continue
            path = os.path.expanduser(one)  # noqa: PTH111 - of any text
            if base or os.path.isabs(path):  # noqa: PTH117 - likewise
                yield os.path.normpath(os.path.join(base, path))  # noqa: PTH118 - likewise

    def _placed(self, named: Named, base: str) -> Iterator[NamedWrite]:
        for path in self._absolute(named.word, base):
            sources: Iterable[str | None] = (None,) if named.source is None else self._absolute(named.source, base)
            for source in sources:
                yield from self._write(named, path, source)

    def _write(self, named: Named, path: str, source: str | None) -> Iterator[NamedWrite]:
        is_directory = named.into
        if is_directory is None and source is not None:
            is_directory = path in self._made or os.path.isdir(path)  # noqa: PTH112 - of any text
        if is_directory and source is not None:
            if _PATTERN.search(os.path.basename(source)):  # noqa: PTH119 - likewise
                source = os.path.dirname(source)  # noqa: PTH120 - likewise
            else:
                path = os.path.join(path, os.path.basename(source))  # noqa: PTH118, PTH119 - likewise
        for spelled in dict.fromkeys((path, real_path(path))):
            if (inner := self._relative(spelled)) is not None:
                yield NamedWrite(
                    path=inner,
                    act=named.act,
                    below=named.below,
                    text=named.text,
                    source=None if source is None else self._relative(source) or source,
                    endings=named.endings,
                )

    def _relative(self, path: str) -> str | None:
        if path == self.root:
            return ""
        prefix = f"{self.root.rstrip('/')}/"
        return path.removeprefix(prefix) if path.startswith(prefix) else None


def _read(path: str) -> bytes | None:
    """Return the bytes of a patch; None if it cannot be read."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST_PATCH:  # noqa: PTH113, PTH202 - of any text
            return None
        return Path(path).read_bytes()
    except (OSError, ValueError):
        return None
