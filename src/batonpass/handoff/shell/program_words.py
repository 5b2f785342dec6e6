"""How common programs use their words: which of them name files, and whether these are read, changed or removed."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from batonpass.handoff.files.protected_paths import USER_GIT, Access
from batonpass.handoff.shell.command_text import SimpleCommand

Use: TypeAlias = tuple[str, Access | None]  # a word, and what is done to the file that it names; None: unknown

# These run, fetch or remove the thing that another of their words names.
WRAPPERS: Final = frozenset(
    [
        "alias",
        "builtin",
        "busybox",
        "chroot",
        "command",
        "conda",
        "doas",
        "env",
        "exec",
        "flock",
        "hatch",
        "ionice",
        "nice",
        "nohup",
        "npx",
        "parallel",
        "pdm",
        "pip",
        "pip3",
        "pipx",
        "pixi",
        "poetry",
        "rye",
        "script",
        "setsid",
        "stdbuf",
        "strace",
        "su",
        "sudo",
        "taskset",
        "time",
        "timeout",
        "toybox",
        "unbuffer",
        "uv",
        "uvx",
        "watch",
        "xargs",
    ]
)
_SPEAKERS: Final = frozenset({":", "echo", "false", "printf", "true"})  # their words are only printed
_LISTERS: Final = frozenset(
    [
        "[",
        "[[",
        "basename",
        "cd",
        "dir",
        "dirname",
        "du",
        "file",
        "find",
        "ls",
        "popd",
        "pushd",
        "pwd",
        "readlink",
        "realpath",
        "stat",
        "test",
        "tree",
        "type",
        "which",
    ]
)
_READERS: Final = frozenset(
    [
        "ack",
        "ag",
        "base64",
        "bat",
        "cat",
        "cksum",
        "cmp",
        "column",
        "comm",
        "cut",
        "diff",
        "egrep",
        "fgrep",
        "fold",
        "grep",
        "head",
        "hexdump",
        "jq",
        "less",
        "md5sum",
        "more",
        "nl",
        "od",
        "rev",
        "rg",
        "sed",
        "sha1sum",
        "sha256sum",
        "sha512sum",
        "sort",
        "strings",
        "tac",
        "tail",
        "tr",
        "uniq",
        "wc",
        "xxd",
        "yq",
        "zcat",
        "zgrep",
    ]
)
_COPIERS: Final = frozenset({"cp", "ditto", "install", "ln", "rsync", "scp"})  # the last word is the destination
_CHANGERS: Final = frozenset(
    [
        "chattr",
        "chgrp",
        "chmod",
        "chown",
        "mkdir",
        "mkfifo",
        "patch",
        "rmdir",
        "setfacl",
        "split",
        "tee",
        "touch",
        "truncate",
        "xattr",
    ]
)
_DEEP: Final = re.compile(r"-[A-Za-z]*R[A-Za-z]*|--recursive")
_DESTROYERS: Final = frozenset({"mv", "rm", "shred", "unlink"})
_KNOWN: Final = _SPEAKERS | _LISTERS | _READERS | _COPIERS | _CHANGERS | _DESTROYERS | {"dd", "git"}
_IN_PLACE: Final = re.compile(r"-[A-Za-z]*[io].*|--(?:in-?place|output)(?:[=-].*)?")
_EXCLUDES: Final = re.compile(r"--(?:exclude|ignore|skip|prune)[a-z-]*")
_TARGET: Final = re.compile(r"--target-directory=(.*)|-t(.+)", re.DOTALL)
_FILTERS: Final = re.compile(r"-(?:i?name|i?path|i?regex|i?wholename|newer\w*|mmin|mtime|empty|size)")
_PATTERNS: Final = re.compile(r"-i?(?:name|path|regex|wholename|lname)")
RUNS_NEXT: Final = re.compile(r"-(?:exec|ok)(?:dir)?")
_PRINTS: Final = re.compile(r"-f(?:print0?|printf|ls)")
_GIT_READERS: Final = frozenset(
    [
        "add",
        "blame",
        "branch",
        "cat-file",
        "commit",
        "describe",
        "diff",
        "fetch",
        "grep",
        "log",
        "ls-files",
        "ls-tree",
        "push",
        "remote",
        "rev-list",
        "rev-parse",
        "shortlog",
        "show",
        "status",
        "tag",
    ]
)
GIT_TAKES: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_GIT_SETS: Final = re.compile(r"--(?:add|edit|remove-section|rename-section|replace-all|unset(?:-all)?)|-e|set|unset")
_OF_USER: Final = "--global"
_ELSEWHERE: Final = re.compile(rf"{_OF_USER}|--system|--file(?:=.*)?|-f.*", re.DOTALL)
# Settings of a user that run no program, whatever they are set to. Any other may name one: a hook, a filter, a pager.
_HARMLESS: Final = re.compile(
    r"user\.(?:name|email|signingkey)|(?:color|advice)\.\w+|init\.defaultbranch|pull\.(?:rebase|ff)|fetch\.prune"
    r"|push\.(?:default|autosetupremote)|core\.(?:autocrlf|eol|quotepath|filemode|ignorecase)|commit\.gpgsign"
    r"|merge\.conflictstyle|rebase\.autostash|safe\.directory",
    re.IGNORECASE,
)
_PLAINLY: Final = frozenset({"set", "--add", "--replace-all", "unset", "--unset"})


def uses_of(command: SimpleCommand, *, listened: bool) -> Iterator[Use]:
    """Yield the words of a command that may be paths, and the kind of access to those files."""
    yield from ((word, Access.CHANGES) for word in command.written_to)
    yield from ((word, Access.READS) for word in command.read_from)
    yield from ((word, None) for word in command.assigned)
    yield from ((word, Access.READS) for word in command.words[:1])
    yield from _of_program(command.program, _without_excluded(command.words[1:]), listened=listened)


def _without_excluded(words: list[str]) -> list[str]:
    """Return the words without exclusions."""
    kept, skipping = [], False
    for word in words:
        name, given, _ = word.partition("=")
        excludes = _EXCLUDES.fullmatch(name) is not None
        if not skipping and not excludes:
            kept.append(word)
        skipping = excludes and not given
    return kept


def _of_program(program: str, words: list[str], *, listened: bool) -> Iterator[Use]:
    if program in WRAPPERS:
        yield from _of_wrapper(words, listened=listened)
    elif program in _SPEAKERS:
        yield from ((word, None) for word in words if listened)
    elif program == "find":
        yield from _of_find(words)
    elif program == "git":
        yield from _of_git(words)
    elif program == "dd":
        yield from ((word.partition("=")[2], _done_by_dd(word)) for word in words)
    elif program in _COPIERS or program == "mv":
        yield from _of_copier(program, words)
    else:
        access = _done_by(program, words)
        yield from ((word, access) for word in words)


def done_by(words: Sequence[str]) -> Access | None:
    """Return the kind of access of a program to the files that it is given; None if unknown."""
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    return Access.LISTS if program in _SPEAKERS else _done_by(program, list(words[1:]))


def is_known(program: str) -> bool:
    """Return whether we know the meaning of a program's arguments."""
    return program in WRAPPERS or program in _KNOWN


def _done_by(program: str, words: list[str]) -> Access | None:
    if program in _DESTROYERS:
        return Access.REPLACES
    if program in _CHANGERS:
        return Access.REPLACES if any(map(_DEEP.fullmatch, words)) else Access.CHANGES
    if program in _READERS:
        return None if any(map(_IN_PLACE.fullmatch, words)) and program in {"sed", "sort", "yq"} else Access.READS
    return Access.LISTS if program in _LISTERS else None


def _done_by_dd(word: str) -> Access | None:
    return {"if": Access.READS, "of": Access.CHANGES}.get(word.partition("=")[0])


def _of_wrapper(words: list[str], *, listened: bool) -> Iterator[Use]:
    names = [word.rpartition("/")[2] for word in words]
    at = next((at for at, name in enumerate(names) if is_known(name)), len(words))
    yield from ((word, None) for word in words[:at])
    if at < len(words):
        yield from _of_program(names[at], words[at + 1 :], listened=listened)


def _of_copier(program: str, words: list[str]) -> Iterator[Use]:
    """Yield the sources and the destination of a copy or a move."""
    source = Access.REPLACES if program == "mv" else Access.READS
    # The destination directory stays, unless `--delete` removes what is not copied.
    into = Access.REPLACES if any(word.startswith("--delete") for word in words) else Access.CHANGES
    told = {word for option, word in pairwise(words) if option in {"-t", "--target-directory"}}
    told |= {found[1] or found[2] for word in words if (found := _TARGET.fullmatch(word))}
    yield from ((word, into) for word in told)
    names = [word for word in words if not word.startswith("-")]
    last = names[-1] if names and not told else None
    if last is not None:
        yield last, into
        names = names[:-1]
    yield from ((word, source) for word in names if word not in told)
    # The value attached to an option may be anything.
    yield from ((word, None) for word in words if word.startswith("-"))


def _of_find(words: list[str]) -> Iterator[Use]:
    runs = [word.rpartition("/")[2] for option, word in pairwise(words) if RUNS_NEXT.fullmatch(option)]
    deletes = "-delete" in words
    found = [Access.REPLACES] if deletes else [_done_by(program, []) for program in runs]
    access = Access.LISTS if not found else None if None in found else max(filter(None, found), default=Access.LISTS)
    if access is Access.REPLACES and any(map(_FILTERS.fullmatch, words)):
        access = Access.CHANGES  # only some of the files, not the directory itself
    for before, option, word in zip(["", "", *words], ["", *words], words, strict=False):
        if _PRINTS.fullmatch(option):
            yield word, Access.CHANGES
        elif _PATTERNS.fullmatch(option):
            # A pattern is no path, unless the files that it finds are passed to a program. Excluded patterns are not
            # passed.
            if found and before not in {"!", "-not"} and "-prune" not in words:
                yield word, Access.REPLACES if deletes else access
        else:
            yield word, access


def _of_git(words: list[str]) -> Iterator[Use]:
    command, rest = git_command(words)
    if command == "config" and _sets(rest):
        if not any(map(_ELSEWHERE.fullmatch, rest)):
            yield ".git/config", Access.CHANGES
        elif not _is_harmless(rest):
            yield from ((path, Access.CHANGES) for path in _named_files(rest))
    reads = command in _GIT_READERS and not any(word.startswith("--output") for word in words)
    yield from ((word, Access.READS if reads else None) for word in words)


def git_command(words: list[str]) -> tuple[str, list[str]]:
    """Return the subcommand of git, and the words after it."""
    skipping = False
    for at, word in enumerate(words):
        if not skipping and not word.startswith("-"):
            return word, words[at + 1 :]
        skipping = not skipping and word in GIT_TAKES
    return "", []


def _is_harmless(words: list[str]) -> bool:
    """Return whether only a setting of the user that runs nothing is changed. Unknown options may do more."""
    given = [word for word in words if word not in _PLAINLY]
    options = [word for word in given if word.startswith("-")]
    names = [word for word in given if not word.startswith("-")]
    return options == [_OF_USER] and len(names) in {1, 2} and _HARMLESS.fullmatch(names[0]) is not None


def _named_files(words: list[str]) -> Iterator[str]:
    """Yield the files that `git config` is told to change: those of the user and of the machine, or by name."""
    if {_OF_USER, "--system"}.intersection(words):
        yield from USER_GIT
    yield from (word.removeprefix("--file=") for word in words if word.startswith("--file="))
    yield from (word for option, word in pairwise(words) if option in {"-f", "--file"})
    yield from (word.removeprefix("-f") for word in words if word.startswith("-f"))


def _sets(words: list[str]) -> bool:
    names = [word for word in words if not word.startswith("-")]
    gets = any(word.startswith(("--get", "--list", "-l")) or word in {"get", "list"} for word in words)
    return any(map(_GIT_SETS.fullmatch, words)) or (len(names) > 1 and not gets)


def takes_ignored_files(command: SimpleCommand) -> bool:
    """Return whether git is told to remove or stash ignored files."""
    if command.program != "git":
        return False
    name, words = git_command(command.words[1:])
    short = "".join(word[1:] for word in words if re.fullmatch(r"-[A-Za-z]+", word))
    if name == "stash":
        return "a" in short or "--all" in words
    return name == "clean" and "x" in short.lower() and "n" not in short and "--dry-run" not in words
