"""How an exception is written down: a code for machines, words for people."""

import re
import traceback
from typing import Final

from msgspec import Struct

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CODE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_LONGEST: Final = 60
_MOST_CHARACTERS: Final = 100_000


class Fault(Struct, frozen=True):
    """How something went wrong, as it is written down: a code for machines, words for people."""

    code: str
    words: str

    @classmethod
    def of(cls, error: BaseException) -> "Fault":
        """Return an exception as it is written down."""
        return cls(code_of(error), words_of(error))


def code_of(error: BaseException) -> str:
    """Return a code for an exception: its type's own if it has one, else the name of its type."""
    # Of its type, not its own: `sys.exit("words")` has them as its code, and signed bytes hold nobody's words.
    own = getattr(type(error), "code", None)
    if isinstance(own, str) and _CODE.fullmatch(own):
        return own
    name = _CAPITAL.sub("-", type(error).__name__).lower().removesuffix("-error").removesuffix("-exception")
    cleaned = re.sub(r"[^a-z0-9_.-]", "-", name).strip("-._0123456789")
    return cleaned[:_LONGEST] or "error"


def words_of(error: BaseException) -> str:
    """Return what an exception says, and where it came from."""
    lines = traceback.format_exception(type(error), error, error.__traceback__, limit=-20)
    text = "".join(lines)[-_MOST_CHARACTERS:]
    return text.encode("utf-8", "backslashreplace").decode()
