"""Commands that use whole directories: they copy them, pass every file to another program, or print the names.

The record is in the work tree, and such a command can reach it without naming it. Commands that only search (`grep -r`,
`rg`) or list are not checked: they are half of all work, and they print only matches.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from batonpass.handoff.files.path_spellings import File
from batonpass.handoff.files.protected_paths import Access
from batonpass.handoff.shell.command_text import SimpleCommand
from batonpass.handoff.shell.find_expression import FindExpression
from batonpass.handoff.shell.nested_programs import base_name, program_run_by, programs_of
from batonpass.handoff.shell.program_words import done_by

_EXCLUDES: Final = re.compile(r"--(?:exclude|ignore|skip|prune|iglob|glob)[a-z-]*|-[xEIg]")
_TAKERS: Final = frozenset({"cpio", "mapfile", "parallel", "read", "readarray", "xargs"})
_TAKES: Final = re.compile(r"--(?:files0-from|files-from|pathspec-from-file|from-file)(?:=.*)?|--stdin(?:-paths)?")
_RECURSIVE: Final = re.compile(r"-[A-Za-z]*[raR][A-Za-z]*|--(?:recursive|archive)")
_COPIERS: Final = frozenset({"cp", "ditto", "rsync", "scp", "zip", "7z", "7za"})
_ALWAYS_RECURSIVE: Final = frozenset({"ditto", "7z", "7za"})
_TAR: Final = frozenset({"bsdtar", "gtar", "tar"})
_TAR_CREATES: Final = re.compile(r"-?[A-Za-z]*[cru][A-Za-z]*")
_CREATES: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*|--(?:create|append|update)")
_INTO_LAST: Final = frozenset({"cp", "ditto", "rsync", "scp"})
# Programs that list trees, with the options that make them show hidden files.
_SHOWS_HIDDEN: Final = {
    "fd": re.compile(r"-[A-Za-z]*[Hu][A-Za-z]*|--(?:hidden|unrestricted)"),
    "fdfind": re.compile(r"-[A-Za-z]*[Hu][A-Za-z]*|--(?:hidden|unrestricted)"),
    "rg": re.compile(r"-[A-Za-z]*(?:uu|\.)[A-Za-z]*|--hidden"),
    "ls": re.compile(r"-[A-Za-z]*R[A-Za-z]*|--recursive"),
    "tree": re.compile(r"-[A-Za-z]*a[A-Za-z]*"),
    "du": re.compile(r"-[A-Za-z]*a[A-Za-z]*|--all"),
}
_GIT_UNTRACKED: Final = re.compile(r"-[a-z]*[oi][a-z]*|--(?:others|ignored)")


class TreeUse(Struct, frozen=True, kw_only=True):
    """A directory that a command uses as a whole, and the kind of access to the files in it."""

    start: str  # a word of the command
    access: Access | None  # None: unknown
    finder: FindExpression | None = None
    acts: frozenset[str] = frozenset()  # the actions of `find` that count
    excluded: tuple[str, ...] = ()  # names that are left out

    def meets(self, file: File, above: Sequence[File]) -> bool:
        """Return whether the command may reach a file there, below these directories."""
        if self.finder is not None:
            return not self.acts.isdisjoint(self.finder.acts_on(file, above))
        parts = [one.name for one in (*above, file)]
        return not any(fnmatchcase(part, pattern) for part in parts for pattern in self.excluded)


def takes_names_from_input(words: Sequence[str]) -> bool:
    """Return whether a program takes file names from its input or from a file."""
    return base_name(words[0]) in _TAKERS or any(map(_TAKES.fullmatch, words[1:])) or _is_fed_tar(words)


def _is_fed_tar(words: Sequence[str]) -> bool:
    return base_name(words[0]) in _TAR and any(word == "-T" or word.startswith("-T") for word in words[1:])


def find_taken(commands: Sequence[SimpleCommand]) -> tuple[bool, Access | None]:
    """Return whether a command takes file names from another's output, and the kind of access to those files."""
    takers = [words for one in commands for words in programs_of(one.words) if takes_names_from_input(words)]
    done = [None if (run := program_run_by(words)) is None or not run else done_by(run) for words in takers]
    known = [one for one in done if one is not None]
    return bool(takers), max(known) if known and len(known) == len(done) else None


def tree_uses(command: SimpleCommand, *, taken: bool, access: Access | None) -> Iterator[TreeUse]:
    """Yield the directories that a command uses as a whole.

    If names are `taken` from the output of a command, `access` is the use of those files.
    """
    for words in programs_of(command.words):
        program, rest = base_name(words[0]), words[1:]
        if program == "find":
            yield from _by_find(FindExpression(rest), taken=taken or command.substituted, access=access)
        elif _copies_trees(program, rest):
            yield from _starting(_sources(program, rest), Access.READS)
        elif (taken or command.substituted) and _lists_hidden(program, rest):
            yield from _starting([*rest, "."], access)


def _by_find(finder: FindExpression, *, taken: bool, access: Access | None) -> Iterator[TreeUse]:
    used = [one for one in map(done_by, finder.programs) if one is not Access.LISTS]
    if finder.deletes or used:
        known = [one for one in used if one is not None]
        most = Access.REPLACES if finder.deletes else max(known) if len(known) == len(used) else None
        acts = frozenset({"-exec"} if used else ()) | frozenset({"-delete"} if finder.deletes else ())
        yield from (TreeUse(start=start, access=most, finder=finder, acts=acts) for start in finder.starts)
    if taken:
        printed = frozenset({"-print"})
        yield from (TreeUse(start=start, access=access, finder=finder, acts=printed) for start in finder.starts)


def _copies_trees(program: str, words: Sequence[str]) -> bool:
    if program in _TAR:
        return any(map(_TAR_CREATES.fullmatch, words[:1])) or any(map(_CREATES.fullmatch, words))
    return program in _COPIERS and (program in _ALWAYS_RECURSIVE or any(map(_RECURSIVE.fullmatch, words)))


def _sources(program: str, words: Sequence[str]) -> list[str]:
    """Return the words of a copier without its destination: nothing is read from there."""
    told = any(word == "-t" or word.startswith("--target-directory") for word in words)
    last = max((at for at, word in enumerate(words) if not word.startswith("-")), default=-1)
    return [word for at, word in enumerate(words) if at != last or told or program not in _INTO_LAST]


def _lists_hidden(program: str, words: Sequence[str]) -> bool:
    if program == "git":
        return "ls-files" in words and any(map(_GIT_UNTRACKED.fullmatch, words)) and "--exclude-standard" not in words
    shows = _SHOWS_HIDDEN.get(program)
    return shows is not None and any(map(shows.fullmatch, words)) and (program != "rg" or "--files" in words)


def _starting(words: Sequence[str], access: Access | None) -> Iterator[TreeUse]:
    """Yield each word that may name a directory. A word that names none is harmless: nothing is below it."""
    excluded: list[str] = []
    starts: list[str] = []
    skipping = False
    for word in words:
        name, given, value = word.partition("=")
        if skipping:
            excluded.append(_pattern(word))
        elif _EXCLUDES.fullmatch(name) and given:
            excluded.append(_pattern(value))
        elif not word.startswith("-"):
            starts.append(word)
        skipping = not skipping and _EXCLUDES.fullmatch(word) is not None
    yield from (TreeUse(start=start, access=access, excluded=tuple(excluded)) for start in starts)


def _pattern(text: str) -> str:
    """Return an exclusion as a pattern for one part of a path."""
    bare = text.removeprefix("!").removeprefix("./").removeprefix("**/")
    return re.sub(r"(?:/\*{0,2})+$", "", bare).rpartition("/")[2]
