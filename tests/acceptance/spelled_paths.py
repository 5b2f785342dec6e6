"""One file, spelled in every way that leads to it; and names beside it that only look alike."""

import os
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Spelling = Callable[[Path, str], Any]


@dataclass(frozen=True)
class Letter:
    """An argument that is a value with a path in it."""

    to: object


def _link(tree: Path, name: str, aim: str) -> str:
    """Return a path through a link of this name to the directory of what is aimed at."""
    for other in (tree / "src").iterdir():
        if other.is_symlink():
            other.unlink()  # what one test made is no way in for the next
    link = tree / "src" / name
    link.symlink_to((tree / aim).parent)
    return f"src/{name}/{Path(aim).name}"


def _hard_link(tree: Path, aim: str) -> str:
    link = tree / "src" / "same.txt"
    link.unlink(missing_ok=True)
    os.link(tree / aim, link)
    return "src/same.txt"


def _descriptor(tree: Path, aim: str) -> str:
    # It is never closed: the path is about an open file.
    return f"/dev/fd/{os.open(tree / aim, os.O_RDONLY)}"


def _half(tree: Path, aim: str) -> str:
    """Return half a character, which many a program reads as the sign for what it does not know."""
    return _link(tree, "\ufffd", aim).replace("\ufffd", "\ud800")


def _percent(text: str) -> str:
    return text.replace(".", "%2E").replace("e", "%65")


# Where they lead from the work tree, in which a call is made while this process stands elsewhere.
TEXTS: Final[Mapping[str, Spelling]] = {
    "as it is called": lambda _, aim: aim,
    "from the root": lambda tree, aim: f"{tree}/{aim}",
    "from here": lambda _, aim: f"./{aim}",
    "by a detour": lambda _, aim: f"src/../{aim}",
    "by a detour through nothing": lambda _, aim: f"nothing/../{aim}",
    "with more slashes": lambda tree, aim: f"{tree}//{aim.replace('/', '//')}",
    "with dots between": lambda _, aim: f"./{aim.replace('/', '/./')}",
    "with a slash at its end": lambda _, aim: f"{aim}/",
    "with a dot at its end": lambda _, aim: f"{aim}/.",
    "in other letters": lambda _, aim: aim.upper(),
    "in another form of its letters": lambda tree, aim: unicodedata.normalize("NFD", f"{tree}/{aim}"),
    "with a letter that nobody sees": lambda _, aim: f"{aim[:3]}\u200c{aim[3:]}",
    "by a link": lambda tree, aim: _link(tree, "link", aim),
    "by a link with a newline in its name": lambda tree, aim: _link(tree, "two\nlines", aim),
    "by a link that is no text": lambda tree, aim: _link(tree, "\udcff", aim),
    "by half a character": _half,
    "by a link, and up again": lambda tree, aim: f"{_link(tree, 'link', aim)}/../{Path(aim).name}",
    "by a hard link": _hard_link,
    "with blanks around it": lambda _, aim: f" {aim}\n",
    "as an address": lambda tree, aim: f"file://{tree}/{aim}",
    "as an address of this machine": lambda tree, aim: f"FILE://localhost{tree}/{aim}",
    "as a short address": lambda tree, aim: f"file:{tree}/{aim}",
    "as a relative address": lambda _, aim: f"file:{aim}",
    "as an address in other signs": lambda tree, aim: f"file://{tree}/{_percent(aim)}",
    "as an address with a question": lambda tree, aim: f"file://{tree}/{aim}?raw=1#top",
    "as the address of a database": lambda tree, aim: f"sqlite:///{tree}/{aim}?mode=rw",
    "behind an option": lambda _, aim: f"--file={aim}",
    "behind an option with two signs": lambda _, aim: f"--set=file={aim}",
    "glued to an option": lambda _, aim: f"-C{aim}",
    "glued to options": lambda _, aim: f"-xzf./{aim}",
    "glued to an option, by a detour": lambda _, aim: f"-Csrc/../{aim}",
    "as an operand": lambda _, aim: f"if={aim}",
    "in a list of paths": lambda _, aim: f"/usr/bin:{aim}:/bin",
    "as a source with its target": lambda _, aim: f"{aim}:/mnt:ro",
    "in a list of options": lambda _, aim: f"type=bind,src={aim},dst=/mnt",
    "as a file to be read": lambda _, aim: f"@{aim}",
    "as a file to be sent": lambda _, aim: f"form=@{aim}",
    "from a home": lambda _, aim: f"~/{aim}",
    "by way of the process": lambda _, aim: f"/proc/self/cwd/{aim}",
    "by way of a thread": lambda _, aim: f"/proc//self/task/1/./cwd/src/../{aim}",
    "by way of another process": lambda _, aim: f"/proc/1/cwd/{aim}",
    "by way of a root": lambda tree, aim: f"/proc/1/root{tree}/{aim}",
    "by way of a root and a process": lambda _, aim: f"/proc/self/root/proc/self/cwd/{aim}",
    "by an open file": _descriptor,
    "by more detours than a path is long": lambda _, aim: f"{'./' * 3000}{aim}",
}
VALUES: Final[Mapping[str, Spelling]] = {
    "in bytes": lambda _, aim: aim.encode(),
    "in bytes that are no text": lambda tree, aim: os.fsencode(_link(tree, "\udcff", aim)),
    "as a path": lambda _, aim: Path(aim),
    "in a list": lambda _, aim: ["a", ["b", aim]],
    "in a set": lambda _, aim: {aim},
    "in bytes in a mapping in a list": lambda _, aim: [{"a": {"b": aim.encode()}}],
    "as a name in a mapping": lambda _, aim: {"files": {aim: "x"}},
    "in a value with fields": lambda _, aim: Letter(to=[aim]),
}
# Each is beside something protected, and may be read and changed by everybody.
NEIGHBOURS: Final = (
    ".batonpass2",
    ".batonpass.md",
    "my.batonpass.md",
    "src/.batonpass-notes",
    "src/.batonpass/x",
    "relay.key",
    "ledger.db",
    ".git/config.bak",
    ".git/HEAD",
    ".git/hooksx/pre-commit",
    "docs/hooks/x",
    "docs/batonpass.toml",
    "batonpass.toml.bak",
    ".claude/commands/x.md",
    ".claude/settings.json.md",
    ".mcp.json5",
    ".vscode/settings.json",
    "file:.batonpass2/x",
    "--file=.batonpass2",
    "a:.batonpass2:b",
    "/proc/self/cwd/.batonpass2",
    ".batonpass\0/relay.key",
    "see .batonpass/relay.key",
    "Note: .batonpass is ours",
    "one\n.batonpass\nthree",
    "a" * 5000,
)
