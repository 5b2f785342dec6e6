"""Warnings that point at a line of the program that uses this package, not at a line of ours."""

import warnings
from inspect import currentframe
from typing import Final

_PACKAGE: Final = __name__.partition(".")[0]


def warn_caller(warning: Warning) -> None:
    """Warn, and point at the innermost line outside of this package that led here."""
    # The same act is reached through faces, native agents and doors, so no fixed number of frames is right for all.
    level, frame = 1, currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
