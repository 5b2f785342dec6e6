"""The files that common programs write by name: the words that name them, and the content that they get.

This is the counterpart of `program_words`. That module assumes the worst about a word, and this one the least: a file
that is only likely to be written, or is written without being named, is missing here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from batonpass.attribution.worktree.write_intent import FileAct
from batonpass.handoff.shell.command_text import SimpleCommand
from batonpass.handoff.shell.program_words import WRAPPERS, git_command

_MOST_WRAPPERS: Final = 8  # around one program
_COMPUTED: Final = re.compile(r"[$`\\]")  # a shell or the program itself changes such a text
_SED_IN_PLACE: Final = re.compile(r"-[nErsuz]*i(.*)|--in-place(?:=(.*))?")
_PERL_IN_PLACE: Final = re.compile(r"-(?![mMI])[A-Za-z0-9]*?i.*")
_PERL_CODE: Final = re.compile(r"-(?![mMI])[A-Za-z0-9]*[eE]")
_ESCAPES: Final = {r"\n": "\n", r"\t": "\t", r"\\": "\\"}
_ESCAPE: Final = re.compile(r"\\.")
_DEEP: Final = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--recursive|--archive|-[A-Za-z]*a[A-Za-z]*")
_STRIP: Final = re.compile(r"-p(\d+)|--strip=(\d+)")
_PATCHED: Final = re.compile(r"^(?:\+\+\+|---) (?:\"?)([^\t\n\"]+)|^rename to (.+)$", re.MULTILINE)
_NOTHING: Final = "/dev/null"
_WEB: Final = frozenset({"JS", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "astro"})
_STYLES: Final = frozenset({"css", "scss", "less", "sass"})
_TEXTS: Final = frozenset({"md", "mdx", "json", "jsonc", "json5", "yaml", "yml", "html", "graphql", "gql", "hbs"})
_PYTHON: Final = frozenset({"py", "pyi", "pyx", "ipynb"})


class Named(NamedTuple):
    """A word that names a file to be written."""

    word: str
    act: FileAct = FileAct.EDITS
    below: bool = False  # if it is a directory, the files in it are meant
    text: bytes | None = None
    source: str | None = None  # another word of the command
    into: bool | None = None  # whether it is created below `word`, named as its source; None: if that is a directory
    endings: frozenset[str] = frozenset()


_Reader: TypeAlias = Callable[[list[str], SimpleCommand], Iterator[Named]]


def unwrapped(command: SimpleCommand) -> list[str]:
    """Return the words of a command without programs that only run another: `sudo`, `uv run`, `python -m`."""
    words = [command.program, *command.words[1:]] if command.words else []
    for _ in range(_MOST_WRAPPERS if words else 0):
        program = words[0]
        if program in WRAPPERS or program in _RUNNERS:
            at = next((at for at, word in enumerate(words[1:], 1) if _name(word) in _KNOWN), None)
        elif re.fullmatch(r"python[0-9.]*", program) and "-m" in words[:-1]:
            at = words.index("-m") + 1
        else:
            return words
        if at is None:
            return []
        words = [_name(words[at]), *words[at + 1 :]]
    return []


def written_by(command: SimpleCommand) -> Iterator[Named]:
    """Yield the files that a command writes by name."""
    words = unwrapped(command)
    if is_shown_by_git(words):
        return
    printed = _printed(words, command)
    for word, sign in command.redirected:
        literal = printed if sign in {">", ">>", "1>", "1>>", ">|"} else None
        act = FileAct.EDITS if literal is None else FileAct.APPENDS if ">>" in sign else FileAct.BECOMES
        yield Named(word, act, text=literal)
    reader = _READERS.get(words[0]) if words else None
    if reader is not None:
        yield from reader(words[1:], command)
    elif words and (formatter := _formatter(words)) is not None:
        yield from formatter.written(words[1:])


def brings_from_git(command: SimpleCommand) -> bool:
    """Return whether a command lets git write kept files into the work tree: from commits or the stash."""
    words = unwrapped(command)
    if is_shown_by_git(words):
        return bool(command.redirected)
    if words[:1] != ["git"]:
        return words[:3] in (["gh", "pr", "checkout"], ["gh", "repo", "sync"])
    name, rest = git_command(words[1:])
    if name in {"checkout", "switch"}:
        return not _only_makes_branch(rest)
    if name == "reset":
        return not {"--hard", "--merge", "--keep"}.isdisjoint(rest)
    if name == "stash":
        return rest[:1] not in (["list"], ["show"], ["drop"], ["clear"], ["create"], ["store"])
    return name in _BRINGERS


def _only_makes_branch(words: Sequence[str]) -> bool:
    """Return whether a new branch starts at the current commit: then no file changes."""
    options = [word for word in words if word.startswith("-")]
    makes = any(re.fullmatch(r"-[bBcC]|--create|--force-create|--orphan", word) for word in options)
    return makes and len(words) - len(options) <= 1


def is_shown_by_git(words: Sequence[str]) -> bool:
    """Return whether a command prints a file that git keeps. Redirected into a file, that restores the file."""
    return words[:1] == ["git"] and git_command(list(words[1:]))[0] in {"show", "cat-file"}


def is_patch(words: Sequence[str]) -> bool:
    """Return whether a command writes the files that a patch names."""
    return words[:1] == ["patch"] or (words[:1] == ["git"] and git_command(list(words[1:]))[0] == "apply")


def patch_files(words: Sequence[str], command: SimpleCommand) -> tuple[list[str], int]:
    """Return the patch files of a command, and how many leading parts of their paths it strips."""
    is_git = words[0] == "git"
    rest = git_command(list(words[1:]))[1] if is_git else list(words[1:])
    strips = [int(found[1] or found[2]) for word in rest if (found := _STRIP.fullmatch(word))]
    strips += [int(word) for option, word in pairwise(rest) if option == "-p" and word.isdigit()]
    named = _operands(rest, "-C", "-d", "-o", "-p", "-r") if is_git else list(_after(rest, "-i", "--input"))
    return [*named, *command.read_from], strips[-1] if strips else 1


def patched_paths(patch: str, strip: int) -> Iterator[str]:
    """Yield the files that a patch writes."""
    for found in _PATCHED.finditer(patch):
        path = (found[1] or found[2]).strip()
        if path != _NOTHING:
            yield path if found[1] is None else "/".join(path.split("/")[strip:])


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _printed(words: Sequence[str], command: SimpleCommand) -> bytes | None:
    """Return the output of a command, if its text says all of it."""
    if words == ["cat"] and len(command.fed) == 1 and not command.read_from:
        return _document(command.fed[0])
    if words[:1] == ["echo"]:
        said = list(words[1:])
        ends = b"\n"
        if said[:1] == ["-n"]:
            said, ends = said[1:], b""
        is_plain = not (said and said[0].startswith("-")) and not any(map(_COMPUTED.search, said))
        return " ".join(said).encode("utf-8", "surrogateescape") + ends if is_plain and not _globs(said) else None
    if words[:1] == ["printf"] and len(words) == len(("printf", "text")):
        return _formatted(words[1])
    return None


def _globs(words: Iterable[str]) -> bool:
    return any(re.search(r"[*?\[~{]", word) for word in words)


def _document(text: str) -> bytes | None:
    # Quotes around the end word would stop the shell from computing, and a dash would drop tabs. Neither is known here.
    if _COMPUTED.search(text) or re.search(r"^\t", text, re.MULTILINE):
        return None
    return f"{text}\n".encode("utf-8", "surrogateescape") if text else b""


def _formatted(text: str) -> bytes | None:
    if "%" in text or "$" in text or any(found not in _ESCAPES for found in _ESCAPE.findall(text)):
        return None
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0]], text).encode("utf-8", "surrogateescape")


def _operands(words: Sequence[str], *takes: str) -> list[str]:
    """Return the words that are neither options nor values of options. After `--`, all words count."""
    found: list[str] = []
    skips = False
    for at, word in enumerate(words):
        if word == "--" and not skips:
            return [*found, *words[at + 1 :]]
        if skips or (word.startswith("-") and word != "-"):
            skips = not skips and word in takes
            continue
        found.append(word)
    return found


def _after(words: Sequence[str], *options: str) -> Iterator[str]:
    """Yield the values of options: the next word, attached to a single letter, or after an equals sign."""
    for option, word in pairwise(words):
        if option in options:
            yield word
    for word in words:
        for option in options:
            if word.startswith(f"{option}=") and option.startswith("--"):
                yield word.partition("=")[2]
            elif word.startswith(option) and len(option) == len("-o") and len(word) > len(option):
                yield word[len(option) :]


def _sed(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    found = [match for word in words if (match := _SED_IN_PLACE.fullmatch(word))]
    if not found:
        return
    names = [word for word in _operands(words, "-e", "-f", "-l", "--expression", "--file") if word]
    has_script = any(re.fullmatch(r"-[nErsuz]*[ef].*|--(?:expression|file)(?:=.*)?", word) for word in words)
    backup = found[0][1] or found[0][2] or ""
    for name in names if has_script else names[1:]:
        yield Named(name)
        if backup and "*" not in backup:
            yield Named(f"{name}{backup}", FileAct.COPIES, source=name)


def _perl(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    if not any(map(_PERL_IN_PLACE.fullmatch, words)):
        return
    code = [at + 1 for at, word in enumerate(words) if _PERL_CODE.fullmatch(word)]
    if code:
        yield from map(Named, _operands(words[code[-1] + 1 :]))


def _awk(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    if "inplace" in _after(words, "-i", "--include"):
        names = _operands(words, "-i", "-v", "-f", "-F", "--include")
        has_script = any(word.startswith("-f") for word in words)
        yield from map(Named, names if has_script else names[1:])


def _yq(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    if any(re.fullmatch(r"-[A-Za-z]*i[A-Za-z]*|--in-?place", word) for word in words):
        names = _operands(words, "-o", "-p", "--output-format", "--input-format")
        yield from map(Named, names[1:] if len(names) > 1 else names)


def _tee(words: list[str], command: SimpleCommand) -> Iterator[Named]:
    text = _document(command.fed[0]) if len(command.fed) == 1 else None
    appends = any(re.fullmatch(r"-[a-z]*a[a-z]*|--append", word) for word in words)
    act = FileAct.EDITS if text is None else FileAct.APPENDS if appends else FileAct.BECOMES
    yield from (Named(word, act, text=text) for word in _operands(words))


def _told_output(*options: str) -> _Reader:
    def read(words: list[str], _: SimpleCommand) -> Iterator[Named]:
        yield from map(Named, _after(words, *options))

    return read


def _curl(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    folders = list(_after(words, "--output-dir"))
    if not folders:
        yield from map(Named, _after(words, "-o", "--output"))
    if any(re.fullmatch(r"-[A-Za-z]*O|--remote-name", word) for word in words) and not folders:
        for word in words:
            if "://" in word and (name := _name(word.partition("?")[0])):
                yield Named(name)


def _edits(*takes: str, act: FileAct = FileAct.EDITS) -> _Reader:
    def read(words: list[str], _: SimpleCommand) -> Iterator[Named]:
        yield from (Named(word, act) for word in _operands(words, *takes))

    return read


def _dd(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    yield from (Named(word.removeprefix("of=")) for word in words if word.startswith("of="))


def _removes(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    deep = any(map(_DEEP.fullmatch, words))
    yield from (Named(word, FileAct.REMOVES, below=deep) for word in _operands(words))


def _copies(act: FileAct, *takes: str) -> _Reader:
    def read(words: list[str], _: SimpleCommand) -> Iterator[Named]:
        told = list(_after(words, "-t", "--target-directory"))
        names = _operands(words, "-t", "--target-directory", *takes)
        if not told and len(names) > 1:
            *names, last = names
            into = len(names) > 1 or last.endswith("/") or _name(last) in {".", ".."} or _globs(names) or None
        elif told:
            last, into = told[-1], True
        else:
            return
        for name in names:
            yield Named(last, act, below=True, source=name, into=into)

    return read


def _rsync(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    *sources, last = _operands(words, "-e", "--rsh", "--exclude", "--include") or [""]
    if last and not any(":" in word for word in (*sources, last)):
        for name in sources:
            yield Named(last, FileAct.COPIES, below=True, source=name, into=not name.endswith("/"))


def _git(words: list[str], command: SimpleCommand) -> Iterator[Named]:
    name, rest = git_command(words)
    if name == "mv":
        yield from _copies(FileAct.MOVES)(rest, command)
    elif name == "rm" and "--cached" not in rest:
        yield from (Named(word, FileAct.REMOVES, below=True) for word in _operands(rest))
    elif name in {"diff", "log", "format-patch"}:
        yield from map(Named, _after(rest, "--output"))


def _patch(words: list[str], _: SimpleCommand) -> Iterator[Named]:
    names = _operands(words, "-p", "-i", "-d", "-o", "-r", "-D", "-F", "--input", "--directory")
    yield from map(Named, (*names[:1], *_after(words, "-o", "--output")))


class _Formatter(Struct, frozen=True, kw_only=True):
    """A program that formats the files and directories that it is given."""

    act: FileAct = FileAct.FORMATS
    needs: tuple[str, ...] = ()  # without one of these it only prints
    checks: tuple[str, ...] = ("--check", "--diff", "-check", "--list-different", "--dry-run")
    command: tuple[str, ...] = ()  # its first word must be one of these
    endings: frozenset[str] = frozenset()

    def written(self, words: Sequence[str]) -> Iterator[Named]:
        """Yield the files that it is told to format."""
        options = {word.partition("=")[0] for word in words if word.startswith("-")}
        if (self.needs and options.isdisjoint(self.needs)) or not options.isdisjoint(self.checks):
            return
        names = _operands(words)
        if self.command:
            if names[:1] == [] or names[0] not in self.command:
                return
            names = names[1:]
        endings = frozenset(f".{ending}" for ending in self.endings)
        yield from (Named(word, self.act, below=True, endings=endings) for word in names)


def _formatter(words: Sequence[str]) -> _Formatter | None:
    known = _FORMATTERS.get(words[0], ())
    names = _operands(words[1:])
    return next((one for one in known if not one.command or not set(names[:1]).isdisjoint(one.command)), None)


_FIXES: Final = FileAct.FIXES
_FORMATTERS: Final[Mapping[str, tuple[_Formatter, ...]]] = {
    "autoflake": (_Formatter(act=_FIXES, needs=("-i", "--in-place"), endings=_PYTHON),),
    "autopep8": (_Formatter(needs=("-i", "--in-place"), endings=_PYTHON),),
    "biome": (_Formatter(act=_FIXES, needs=("--write", "--fix", "--apply"), command=("format", "check", "lint")),),
    "black": (_Formatter(endings=_PYTHON),),
    "clang-format": (_Formatter(needs=("-i",)),),
    "dart": (_Formatter(command=("format",), endings=frozenset({"dart"})),),
    "docformatter": (_Formatter(needs=("-i", "--in-place"), endings=_PYTHON),),
    "eslint": (_Formatter(act=_FIXES, needs=("--fix",), endings=_WEB | _TEXTS),),
    "gofmt": (_Formatter(needs=("-w",), endings=frozenset({"go"})),),
    "gofumpt": (_Formatter(needs=("-w",), endings=frozenset({"go"})),),
    "goimports": (_Formatter(act=_FIXES, needs=("-w",), endings=frozenset({"go"})),),
    "isort": (_Formatter(act=_FIXES, endings=_PYTHON, checks=("--check", "--check-only", "-c", "--diff")),),
    "mdformat": (_Formatter(endings=frozenset({"md"})),),
    "prettier": (_Formatter(needs=("--write", "-w"), endings=_WEB | _STYLES | _TEXTS),),
    "pyupgrade": (_Formatter(act=_FIXES, endings=_PYTHON),),
    "rubocop": (_Formatter(act=_FIXES, needs=("-a", "-A", "--autocorrect", "--autocorrect-all", "-x")),),
    "ruff": (
        _Formatter(command=("format",), endings=_PYTHON),
        _Formatter(act=_FIXES, needs=("--fix", "--fix-only", "--unsafe-fixes"), command=("check",), endings=_PYTHON),
    ),
    "rustfmt": (_Formatter(endings=frozenset({"rs"})),),
    "shfmt": (_Formatter(needs=("-w", "--write")),),
    "stylelint": (_Formatter(act=_FIXES, needs=("--fix",), endings=_STYLES),),
    "terraform": (_Formatter(command=("fmt",), endings=frozenset({"tf", "tfvars"})),),
    "yapf": (_Formatter(needs=("-i", "--in-place"), endings=_PYTHON),),
}
_READERS: Final[Mapping[str, _Reader]] = {
    **dict.fromkeys(("awk", "gawk"), _awk),
    "cp": _copies(FileAct.COPIES, "-S", "--suffix"),
    "curl": _curl,
    "dd": _dd,
    "git": _git,
    "gsed": _sed,
    "install": _copies(FileAct.COPIES, "-m", "-o", "-g", "-S", "--mode", "--owner", "--group"),
    "ln": _copies(FileAct.EDITS, "-S"),
    "mv": _copies(FileAct.MOVES, "-S", "--suffix"),
    "patch": _patch,
    **dict.fromkeys(("perl", "ruby"), _perl),
    **dict.fromkeys(("rm", "shred", "unlink"), _removes),
    "rsync": _rsync,
    "sed": _sed,
    "sort": _told_output("-o", "--output"),
    "sponge": _edits(),
    "tee": _tee,
    "touch": _edits("-d", "-t", "-r", "--date", "--reference", act=FileAct.TOUCHES),
    "truncate": _edits("-s", "-r", "-o", "--size", "--reference"),
    "wget": _told_output("-O", "--output-document"),
    "yq": _yq,
}
_RUNNERS: Final = frozenset({"bundle", "bun", "bunx", "npm", "pipenv", "pnpm", "yarn"})  # they run other programs
_KNOWN: Final = frozenset({*_READERS, *_FORMATTERS, *WRAPPERS, *_RUNNERS, "echo", "printf", "cat", "gh"})
_BRINGERS: Final = frozenset(
    [
        "am",
        "bisect",
        "checkout-index",
        "cherry-pick",
        "clone",
        "filter-branch",
        "lfs",
        "merge",
        "pull",
        "read-tree",
        "rebase",
        "restore",
        "sparse-checkout",
        "submodule",
        "subtree",
        "worktree",
    ]
)
