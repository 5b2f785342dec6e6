"""Where a text may lead as a path, however it is spelled, and whichever directory it begins in.

It is a net, not a wall: what a tool makes of a text only the tool knows. What a program commonly reads in one is tried:
the text as it is, what an option or a list gives, addresses, the home of a user, and the ways round by `/proc`.
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

LONGEST_PATH: Final = 4096  # bytes; no system takes a longer one
LONGEST_NAME: Final = 255  # characters; no file system gives a file a longer one
MOST_TEXTS: Final = 10_000
_NO_TEXTS: Final = frozenset({NoneType, bool, int, float})

# Most texts have nothing in them that could be read in two ways.
_PLAIN: Final = re.compile(r"(?![\s-])[\w./+ -]*(?<!\s)", re.ASCII)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_GLUED: Final = re.compile(r"-[A-Za-z]+?([./~].*)", re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DOUBLED: Final = re.compile(r"/(?:\.?/)+")
_BY_PROCESS: Final = re.compile(r"/proc/[^/]+(?:/task/[^/]+)?/(cwd|root)(?:/(.*))?", re.DOTALL)
_LONGEST_DETOUR: Final = 1024 * 1024
_OFTEN: Final = 256  # characters of a text whose readings are kept
_SHORT: Final = 2  # `-C`: a letter and what comes before it
_SURELY_SHORT: Final = LONGEST_PATH // 4  # characters: no letter takes more than four bytes
_FEW: Final = 100  # arguments

# Where a path leads, and what lies there; None if nothing does.
Look: TypeAlias = tuple[str, os.stat_result | None]
# What one call found, by directory and path: looked at once, and the same for everybody who judges it.
Looks: TypeAlias = dict[tuple[str, str], Look]


def texts_in(arguments: Mapping[str, Any], leave_out: Callable[[str], bool]) -> tuple[list[str], bool]:
    """Return the texts among arguments that could be paths, at any depth, and whether these are all of them.

    Names in a mapping are texts too: some tools take one from paths to what is to be written there. What stands under a
    name that is to be left out is not looked at. Texts are taken as they are, not as they are recorded: bytes and
    what is no Unicode name files as well.
    """
    found: dict[str, None] = {}
    pending: list[object] = [value for name, value in arguments.items() if not leave_out(name)]
    around: set[int] = set()
    while pending:
        value = pending.pop()
        kind = type(value)
        if kind in _NO_TEXTS:
            continue
        # What JSON is made of says by its type what it is; anything else is asked for its kind first.
        text = value if kind is str else None if kind is dict or kind is list else _text(value)
        if text is not None:
            if (path := as_path(text)) is not None:  # type: ignore[arg-type]
                found[path] = None
                if len(found) > MOST_TEXTS:
                    return list(found), False
        elif id(value) not in around:
            inner = _inside(value, leave_out) if kind is dict or kind is list else list(_parts(value, leave_out))
            if inner:
                around.add(id(value))
                pending += inner
    return list(found), True


def texts_among(
    arguments: Mapping[str, Any], left_out: Collection[str], like: re.Pattern[str] | None = None
) -> tuple[list[str], bool]:
    """Return what `texts_in` does, the short way if it can; what to leave out is named, or has a name like `like`."""
    texts = flat_texts(arguments, left_out, like)
    if texts is not None:
        return texts, True
    return texts_in(arguments, lambda name: name in left_out or (like is not None and like.fullmatch(name) is not None))


def flat_texts(
    arguments: Mapping[str, Any], left_out: Collection[str], like: re.Pattern[str] | None = None
) -> list[str] | None:
    """Return what `texts_in` does where all arguments are texts, numbers or nothing; None where one is something else.

    What is to be left out is named, or has a name `like` this. Most calls are such, and this is asked for each of them.
    """
    if len(arguments) > _FEW:
        return None
    found: dict[str, None] = {}
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
    """Return what `_parts` yields, of what JSON is made of: most arguments that have parts are such."""
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
    """Return a text if it may be a path; one that is too long only because of detours is one without them."""
    if not text or "\0" in text:
        return None
    if len(text) <= _SURELY_SHORT:
        return text
    if len(text) > LONGEST_PATH and len(text) <= _LONGEST_DETOUR and ("/." in text or "//" in text):
        text = os.path.normpath(text)
    too_long = len(text) > LONGEST_PATH or len(text.encode("utf-8", "surrogatepass")) > LONGEST_PATH
    return None if too_long else text


def spellings(text: str) -> Iterable[str]:
    """Return the paths that a program may read in a text: the text itself first."""
    if _PLAIN.fullmatch(text):
        return (text,)
    # A call is asked several times what its texts may mean, and agents say the same again and again. Where somebody's
    # home is may change.
    return _known_spellings(text) if len(text) <= _OFTEN and "~" not in text else _spellings(text)


@lru_cache(maxsize=1024)
def _known_spellings(text: str) -> tuple[str, ...]:
    return tuple(_spellings(text))


def _spellings(text: str) -> Iterator[str]:
    # As it is written: a name may end in a newline. And without blanks around it, as many a tool takes it.
    whole = dict.fromkeys((text, text.strip(), text.partition("=")[2], text.rpartition("=")[2]))
    # `type=bind,src=x`, `x:y:ro`; in prose a comma is a comma.
    signs = "[=:]" if re.search(r"\s", text) else "[=:,]"
    inner = [*re.split(signs, text), *(part for one in whole for part in one.split(":"))]
    # A piece that is only the root, or a way up, is a sign more often than a path: `https://a.example/`, `host:/`.
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
        yield part[1:]  # what curl and others read from a file
    if part == "~+" or part.startswith("~+/"):
        yield f".{part[2:]}"  # where the shell is
    elif part.startswith("~"):
        yield os.path.expanduser(part)  # noqa: PTH111 - a text is wanted
    elif part.startswith("-"):
        yield part[_SHORT:]
        if glued := _GLUED.fullmatch(part):
            yield glued[1]
    if "%" in part:
        yield _decoded(part)
    if _SURROGATE.search(part):
        # As bytes that are no UTF-8, and as a program that knows no such letters reads them.
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
    """Yield where a path leads from each directory in which it may begin, itself without links, every link followed.

    `a/..` after a link is not where it seems: the kernel follows the link first. Some tools take it out of the text
    before, so both are told.
    """
    starts = tuple(bases)
    for base in starts:
        look = look_below(base, path)
        if look is None:
            break  # it is the same from all of them
        yield look[0]
    else:
        return
    for base in ("/",) if path.startswith("/") else starts:
        joined = os.path.join(base, path)  # noqa: PTH118 - pathlib would drop what we look for
        yield from _followed(joined)
        # In the process that is started then, `self` is another one than here, and its directory is the base.
        if found := _BY_PROCESS.fullmatch(_DOUBLED.sub("/", joined)):
            rest = found[2] or "."
            yield from leads_to(f"/{rest}" if found[1] == "root" else rest, starts)


def look_below(base: str, path: str) -> Look | None:
    """Return where a path below a directory leads, whose own links are followed, and what is there.

    None of one that does not only go down: `leads_to` follows it. For most calls, this is the cheapest way: what lies
    on it says by itself whether it is a link, and the last of it which file it is. Where nothing is there, nothing that
    lies further on can be; and nothing is where a name is too long for one, as sentences are.
    """
    if path.startswith(("/", "..")) or "/.." in path:
        return None
    reached, found = base, None
    for part in path.split("/"):
        if not part or part == ".":
            continue
        if len(part) > LONGEST_NAME:
            return os.path.normpath(f"{base}/{path}"), None
        reached = f"{reached}/{part}" if reached[-1:] != "/" else f"{reached.rstrip('/')}/{part}"
        try:
            found = os.lstat(reached)
        except (OSError, ValueError):
            # Nothing is there, or nothing can be: what comes after it is what is written.
            return os.path.normpath(f"{base}/{path}"), None
        if stat.S_ISLNK(found.st_mode):
            real = real_path(f"{base}/{path}")
            return real, status_of(real)
    return reached, status_of(base) if found is None else found


def status_of(path: str) -> os.stat_result | None:
    """Return what lies at a path, every link followed; None if nothing does, or nobody may know."""
    try:
        return os.stat(path)  # noqa: PTH116 - a text is given
    except (OSError, ValueError):
        return None


def _followed(path: str) -> Iterator[str]:
    yield real_path(path)
    if ".." in path:
        yield real_path(os.path.normpath(path))


def real_path(path: str) -> str:
    """Return where a path leads, every link followed; as it is written if no system can say."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


class File(Struct, frozen=True):
    """A file or a directory, as `find` comes to it."""

    path: str  # as it prints it
    depth: int
    directory: bool = False
    empty: bool | None = None  # None: nobody looked

    @property
    def name(self) -> str:
        """Return its last part."""
        return self.path.rpartition("/")[2]
