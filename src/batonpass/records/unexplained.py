"""Unexplained files: they changed while a run was open, and no recorded call changed them."""

import json
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import Digest

LISTED: Final = "unexplained"


class Unexplained(Struct, frozen=True, kw_only=True):
    """A file that changed while a run was open, without a recorded call that did it."""

    path: str  # from the root of the work tree
    before: Digest | None  # sha256 of its bytes; None if there was no file
    after: Digest | None


def read_unexplained(body: bytes) -> tuple[int, tuple[Unexplained, ...]]:
    """Return the number of files in a list, and the listed ones. Raises `InvalidValueError`."""
    try:
        document: Any = json.loads(body)
        return int(document["count"]), tuple(
            Unexplained(path=str(one["path"]), before=one.get("before"), after=one.get("after"))
            for one in document["changes"]
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidValueError(LISTED, "is not a list of changed files") from None
