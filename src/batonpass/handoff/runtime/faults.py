"""Exceptions as receipts record them: a code for programs, and words for people."""

import re
import traceback
from typing import Final

from msgspec import Struct

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CODE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_LONGEST: Final = 60
_MOST_CHARACTERS: Final = 100_000


class Fault(Struct, frozen=True):
    """A failure as it is recorded: a code for programs, and words for people."""

    code: str
    words: str

    @classmethod
    def of(cls, error: BaseException) -> "Fault":
        """Return the fault of an exception."""
        return cls(code_of(error), words_of(error))


def code_of(error: BaseException) -> str:
    """Return the code of an exception: that of its type if it has one, else one made from the name of the type."""
    # The code of the type, not of the instance: `sys.exit("words")` has its words as code, and signed bytes must not
    # contain words, because they can never be erased.
    own = getattr(type(error), "code", None)
    if isinstance(own, str) and _CODE.fullmatch(own):
        return own
    name = _CAPITAL.sub("-", type(error).__name__).lower().removesuffix("-error").removesuffix("-exception")
    cleaned = re.sub(r"[^a-z0-9_.-]", "-", name).strip("-._0123456789")
    return cleaned[:_LONGEST] or "error"


def words_of(error: BaseException) -> str:
    """Return the message of an exception with the end of its traceback."""
    lines = traceback.format_exception(type(error), error, error.__traceback__, limit=-20)
    text = "".join(lines)[-_MOST_CHARACTERS:]
    return text.encode("utf-8", "backslashreplace").decode()
