"""Patterns for names and paths: `*` stays within one part, `**` goes across parts."""

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def glob(pattern: str, *, across: bool = False, blind: bool = False) -> re.Pattern[str]:
    """Return a pattern as a regular expression. `**` goes across parts of a path, and `*` does so with `across`.

    `blind` ignores case.
    """
    pieces = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern):
        match piece:
            case "**/":
                pieces.append("(?:.*/)?")
            case "**":
                pieces.append(".*")
            case "*":
                pieces.append(".*" if across else "[^/]*")
            case "?":
                pieces.append("." if across else "[^/]")
            case _:
                pieces.append(re.escape(piece))
    return re.compile("".join(pieces), re.DOTALL | (re.IGNORECASE if blind else 0))


def fits(pattern: str | None, text: str | None, *, across: bool = False) -> bool:
    """Return whether the whole text matches a pattern. No pattern matches everything; a pattern never matches None."""
    if pattern is None:
        return True
    return text is not None and glob(pattern, across=across).fullmatch(text) is not None
