"""The versions of our formats. Every released version is read; only the newest is written."""

import re
from typing import Final

from batonpass.errors import InvalidValueError, NewerVersionError

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:batonpass:receipt:v0"
RULING_TYPE: Final = "urn:batonpass:ruling:v0"
BUNDLE_TYPE: Final = "urn:batonpass:bundle:v0"

_VERSIONED: Final = re.compile(r"urn:batonpass:receipt:v(0|[1-9][0-9]{0,8})")
_NEWEST: Final = 0


def require_known_version(statement_type: str, predicate_type: str) -> None:
    """Return if a statement is a receipt of a known version.

    Raises `InvalidValueError` if it is no receipt, and `NewerVersionError` if it is of a newer version.
    """
    if statement_type != STATEMENT_TYPE:
        raise InvalidValueError("_type", f"is not {STATEMENT_TYPE}")
    if predicate_type == PREDICATE_TYPE:
        return
    matched = _VERSIONED.fullmatch(predicate_type)
    if matched is None:
        raise InvalidValueError("predicateType", f"is not {PREDICATE_TYPE}")
    if int(matched[1]) > _NEWEST:
        raise NewerVersionError(
            f"is of version v{int(matched[1])} and this program reads up to v{_NEWEST}; upgrade batonpass",
            field="predicateType",
        )
