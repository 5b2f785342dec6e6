"""Where a text may lead if it is read as a path, in any spelling and from any directory.

It is a net, not a wall: only a tool knows how it reads a text. Common readings are tried: the text as it is, the value
of an option or of a list, addresses, the home of a user, and detours through `/proc`.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from batonpass.model.base.value import parts_of

LONGEST_PATH: Final = 4096  # bytes; no system accepts a longer path
LONGEST_NAME: Final = 255  # characters; no file system allows a longer name
MOST_TEXTS: Final = 10_000
_NO_TEXTS: Final = frozenset({NoneType, bool, int, float})

# Most texts contain nothing that could be read in two ways.
_PLAIN: Final = re.compile(r"(?![\s-])[\w./+ -]*(?<!\s)", re.ASCII)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_GLUED: Final = re.compile(r"-[A-Za-z]+?([./~].*)", re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DOUBLED: Final = re.compile(r"/(?:\.?/)+")
_BY_PROCESS: Final = re.compile(r"/proc/[^/]+(?:/task/[^/]+)?/(cwd|root)(?:/(.*))?", re.DOTALL)
_LONGEST_DETOUR: Final = 1024 * 1024
_OFTEN: Final = 256  # longer texts are not cached
_SHORT: Final = 2  # `-C`: an option of one letter
_SURELY_SHORT: Final = LONGEST_PATH // 4  # characters; none takes more than four bytes
_FEW: Final = 100  # arguments

# Where a path leads, and the file that is there; None if there is nothing.
Look: TypeAlias = tuple[str, os.stat_result | None]
# The files of one call, by directory and path: looked up once, so that every check sees the same file.
Looks: TypeAlias = dict[tuple[str, str], Look]


def texts_in(arguments: Mapping[str, Any], leave_out: Callable[[str], bool]) -> tuple[list[str], bool]:
    """Return the texts in the arguments that could be paths, at any depth, and whether that is all of them.

    Keys of a mapping count too: some tools take a mapping from paths to the new contents. Values under a name that
    `leave_out` accepts are skipped. Texts are taken as the tool gets them, not as they are recorded, because bytes and
    invalid Unicode can also name files.
    """
    found: dict[str, None] = {}
    pending: list[object] = [value for name, value in arguments.items() if not leave_out(name)]
    around: set[int] = set()
    while pending:
        value = pending.pop()
        kind = type(value)
        if kind in _NO_TEXTS:
            continue
        # JSON types are known by their exact type. Any other object is asked what kind it is first.
        text = value if kind is str else None if kind is dict or kind is list else _text(value)
        if text is not None:
            if (path := as_path(text)) is not None:  # type: ignore[arg-type]
                found[path] = None
                if len(found) > MOST_TEXTS:
                    return list(found), False
        # A container may contain itself, so each is opened once.
        elif id(value) not in around:
            inner = _inside(value, leave_out) if kind is dict or kind is list else list(_parts(value, leave_out))
            if inner:
                around.add(id(value))
                pending += inner
    return list(found), True


def texts_among(
    arguments: Mapping[str, Any], left_out: Collection[str], like: re.Pattern[str] | None = None
) -> tuple[list[str], bool]:
    """Return the same as `texts_in`, the short way if possible. Names in `left_out` or matching `like` are skipped."""
    texts = flat_texts(arguments, left_out, like)
    if texts is not None:
        return texts, True
    return texts_in(arguments, lambda name: name in left_out or (like is not None and like.fullmatch(name) is not None))


def flat_texts(
    arguments: Mapping[str, Any], left_out: Collection[str], like: re.Pattern[str] | None = None
) -> list[str] | None:
    """Return the same as `texts_in` if all arguments are texts, numbers or None; else return None.

    Names in `left_out` or matching `like` are skipped. Most calls are like this, and this runs for each of them.
    """
    if len(arguments) > _FEW:
        return None
    found: dict[str, None] = {}
    # From the last to the first, as `texts_in` pops them: both ways must return the same order.
    for name in [*arguments][::-1]:
        value = arguments[name]
        kind = type(value)
        if kind in _NO_TEXTS or name in left_out or (like is not None and like.fullmatch(name)):
            continue
        if kind is not str:
            return None
        path = as_path(value)
        if path is not None:
            found[path] = None
    return [*found]


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return os.fsdecode(bytes(value))
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    return None


def _inside(value: Any, leave_out: Callable[[str], bool]) -> list[object]:  # noqa: ANN401 - a dict or a list
    """Return the same as `_parts`, for a dict or a list: most nested arguments are one of these."""
    if type(value) is list:
        return value
    inner: list[object] = []
    for name, item in value.items():
        inner.append(name)
        if not (isinstance(name, str) and leave_out(name)):
            inner.append(item)
    return inner


def _parts(value: object, leave_out: Callable[[str], bool]) -> Iterator[object]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            if not (isinstance(name, str) and leave_out(name)):
                yield inner
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, Enum):
        yield value.value
    elif (parts := parts_of(value)) is not None:
        yield from (part for name, part in parts.items() if not leave_out(name))


def as_path(text: str) -> str | None:
    """Return a text if it may be a path. If only its detours (`/./`, `//`) make it too long, return it without them."""
    if not text or "\0" in text:
        return None
    if len(text) <= _SURELY_SHORT:
        return text
    if len(text) > LONGEST_PATH and len(text) <= _LONGEST_DETOUR and ("/." in text or "//" in text):
        text = os.path.normpath(text)
    too_long = len(text) > LONGEST_PATH or len(text.encode("utf-8", "surrogatepass")) > LONGEST_PATH
    return None if too_long else text


def spellings(text: str) -> Iterable[str]:
    """Return the paths that a program may read in a text. The text itself comes first."""
    if _PLAIN.fullmatch(text):
        return (text,)
    # A call asks several times what its texts may mean, and agents repeat themselves, so short texts are cached. Texts
    # with `~` are not: the home of a user may change.
    return _known_spellings(text) if len(text) <= _OFTEN and "~" not in text else _spellings(text)


@lru_cache(maxsize=1024)
def _known_spellings(text: str) -> tuple[str, ...]:
    return tuple(_spellings(text))


def _spellings(text: str) -> Iterator[str]:
    # As written, because a name may end in a newline; and stripped, because many tools strip it.
    whole = dict.fromkeys((text, text.strip(), text.partition("=")[2], text.rpartition("=")[2]))
    # `type=bind,src=x`, `x:y:ro`. In prose, a comma is only a comma.
    signs = "[=:]" if re.search(r"\s", text) else "[=:,]"
    inner = [*re.split(signs, text), *(part for one in whole for part in one.split(":"))]
    # A piece that is only the root or a way up is rarely meant as a path: `https://a.example/`, `host:/`.
    parts = dict.fromkeys([*whole, *(part for part in inner if part.strip("./"))])
    for one in whole:
        parts.update(dict.fromkeys(_in_address(one)))
    seen: set[str] = set()
    for part in parts:
        for one in _in_part(part):
            if one and one not in seen and "\0" not in one:
                seen.add(one)
                yield one


def _in_part(part: str) -> Iterator[str]:
    yield part
    if part[:1] in {"@", "<"}:
        yield part[1:]  # curl and others read the file behind this sign
    if part == "~+" or part.startswith("~+/"):
        yield f".{part[2:]}"  # the current directory of the shell
    elif part.startswith("~"):
        yield os.path.expanduser(part)  # noqa: PTH111 - a text is wanted
    elif part.startswith("-"):
        yield part[_SHORT:]
        if glued := _GLUED.fullmatch(part):
            yield glued[1]
    if "%" in part:
        yield _decoded(part)
    if _SURROGATE.search(part):
        # As bytes that are not UTF-8, and as a program without such letters would read them.
        yield os.fsdecode(part.encode("utf-8", "surrogatepass"))
        yield part.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _in_address(text: str) -> Iterator[str]:
    """Yield the paths in an address: `file:x`, `file:///x`, `file://localhost/x`, `sqlite:///x?mode=ro`."""
    if (scheme := _SCHEME.match(text)) is None:
        return
    rest = text[scheme.end() :]
    for address in dict.fromkeys((rest, re.split("[?#]", rest)[0])):
        for one in dict.fromkeys((address, _decoded(address))):
            paths = [one, one[2:], one.lstrip("/"), f"/{one[2:].partition('/')[2]}"] if one.startswith("//") else [one]
            # Only the address of a file can mean the root itself.
            yield from (path for path in paths if path.strip("./") or scheme[0].casefold() == "file:")


def _decoded(text: str) -> str:
    return os.fsdecode(unquote_to_bytes(text.encode("utf-8", "surrogatepass")))


def leads_to(path: str, bases: Iterable[str]) -> Iterator[str]:
    """Yield where a path leads from each directory in which it may begin. Every link is followed.

    The directories themselves must be free of links. After a link, `a/..` is not where it seems to be: the kernel
    follows the link first. Some tools remove `a/..` from the text before that, so both results are yielded.
    """
    starts = tuple(bases)
    for base in starts:
        look = look_below(base, path)
        if look is None:
            break  # not a simple way down: handled below, for all directories at once
        yield look[0]
    else:
        return
    for base in ("/",) if path.startswith("/") else starts:
        joined = os.path.join(base, path)  # noqa: PTH118 - pathlib would drop the parts that matter here
        yield from _followed(joined)
        # In the process that the call starts, `self` is that process, and its directory is the base.
        if found := _BY_PROCESS.fullmatch(_DOUBLED.sub("/", joined)):
            rest = found[2] or "."
            yield from leads_to(f"/{rest}" if found[1] == "root" else rest, starts)


def look_below(base: str, path: str) -> Look | None:
    """Return where a path below a directory leads, and its status. The directory itself must be free of links.

    Return None if the path does not only go down: `leads_to` follows such paths. For most calls this is the cheapest
    way: one `lstat` for each part shows whether it is a link, and the last one shows which file it is. Where a part
    does not exist, nothing further down can exist, so the path leads where it is written. The same holds for a part
    that is too long for a name, as sentences are.
    """
    if path.startswith(("/", "..")) or "/.." in path:
        return None
    reached, found = base, None
    for part in path.split("/"):
        if not part or part == ".":
            continue
        if len(part) > LONGEST_NAME:
            break
        reached = f"{reached}/{part}" if reached[-1:] != "/" else f"{reached.rstrip('/')}/{part}"
        try:
            found = os.lstat(reached)
        except (OSError, ValueError):
            break
        if stat.S_ISLNK(found.st_mode):
            real = real_path(f"{base}/{path}")
            return real, status_of(real)
    else:
        return reached, status_of(base) if found is None else found
    # Nothing exists here, so no link can lead elsewhere: the rest is as written. Most paths have no detours, and this
    # runs for every argument of every call: to look for them is cheaper than to write the path anew.
    written = f"{base}/{path}"
    has_detours = "//" in written or "/." in written or written[-1] == "/"
    return os.path.normpath(written) if has_detours else written, None


def status_of(path: str) -> os.stat_result | None:
    """Return the status of a path, links followed; None if nothing is there, or it cannot be read."""
    try:
        return os.stat(path)  # noqa: PTH116 - a text is given
    except (OSError, ValueError):
        return None


def _followed(path: str) -> Iterator[str]:
    yield real_path(path)
    if ".." in path:
        yield real_path(os.path.normpath(path))


def real_path(path: str) -> str:
    """Return where a path leads, every link followed. If the system cannot say, return it as written."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


class File(Struct, frozen=True):
    """A file or directory, as `find` meets it."""

    path: str  # as `find` prints it
    depth: int
    directory: bool = False
    empty: bool | None = None  # None: nobody looked

    @property
    def name(self) -> str:
        """Return the last part of its path."""
        return self.path.rpartition("/")[2]
