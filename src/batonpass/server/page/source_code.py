"""Source code with colours: each line as markup in which every character of the file is only text.

Pygments reads files of strangers, so only common languages are coloured, by the name of the file, and only files and
lines of an ordinary size. Everything else is shown without colours.
"""

import time
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from markupsafe import Markup
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, _TokenType

from batonpass.server.page.inert import boxed

_LONGEST: Final = 200_000  # characters of a file
_LONGEST_LINE: Final = 2_000
_SLOWEST: Final = 0.1  # seconds
SHOWN_OF_LINE: Final = 500
_LANGUAGES: Final = {
    "bash": ("bash", "sh"),
    "c": ("c", "h"),
    "cpp": ("cc", "cpp", "cxx", "hpp"),
    "csharp": ("cs",),
    "css": ("css",),
    "go": ("go",),
    "html": ("htm", "html"),
    "ini": ("cfg", "ini"),
    "java": ("java",),
    "javascript": ("cjs", "js", "jsx", "mjs"),
    "json": ("json",),
    "kotlin": ("kt",),
    "make": ("mk",),
    "php": ("php",),
    "python": ("py", "pyi"),
    "ruby": ("rb",),
    "rust": ("rs",),
    "sql": ("sql",),
    "swift": ("swift",),
    "toml": ("toml",),
    "typescript": ("ts", "tsx"),
    "xml": ("svg", "xml"),
    "yaml": ("yaml", "yml"),
}
_BY_ENDING: Final = {ending: language for language, endings in _LANGUAGES.items() for ending in endings}
# Pygments has seventy classes; the style sheet has these, each for a family of tokens.
_FAMILIES: Final = (
    ("k", "k"),
    ("ow", "k"),
    ("s", "s"),
    ("c", "c1"),
    ("m", "mi"),
    ("nf", "nf"),
    ("nc", "nf"),
    ("nd", "nf"),
)


def coloured(path: str, lines: Sequence[str], first: int, last: int) -> list[Markup]:
    """Return these lines of a file, from 1, both included, for the page."""
    lexer = _lexer(path, lines)
    told = [] if lexer is None else _told(lexer, lines, last)
    return [
        _line(line, told[number] if number < len(told) else ())
        for number, line in enumerate(lines[first - 1 : last], first - 1)
    ]


def _line(line: str, pieces: Sequence[tuple[str, str]]) -> Markup:
    # Colours are only colours: should a lexer ever leave a character out, the line is shown without them.
    if len(line) > SHOWN_OF_LINE or line != "".join(text for _, text in pieces):
        return boxed(_cut(line))
    return Markup("").join(_span(kind, text) for kind, text in pieces)


def _cut(line: str) -> str:
    return line if len(line) <= SHOWN_OF_LINE else f"{line[:SHOWN_OF_LINE]}… ({len(line):,} characters)"


def _lexer(path: str, lines: Sequence[str]) -> Lexer | None:
    language = _BY_ENDING.get(PurePosixPath(path).suffix[1:].lower())
    if language is None or sum(map(len, lines)) > _LONGEST or any(len(line) > _LONGEST_LINE for line in lines):
        return None
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def _told(lexer: Lexer, lines: Sequence[str], last: int) -> list[list[tuple[str, str]]]:
    """Return the pieces of all lines up to the last that is wanted; of none if that takes too long."""
    until = time.monotonic() + _SLOWEST
    found: list[list[tuple[str, str]]] = [[]]
    for _, token, piece in lexer.get_tokens_unprocessed("\n".join(lines)):
        for number, part in enumerate(piece.split("\n")):
            if number:
                found.append([])
            if part:
                found[-1].append((_family(token), part))
        if time.monotonic() > until:
            return []
        if len(found) > last:
            break
    return found


def _family(token: _TokenType) -> str:
    name = STANDARD_TYPES.get(token, "")
    return next((family for start, family in _FAMILIES if name.startswith(start)), "")


def _span(kind: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(kind, boxed(text)) if kind else boxed(text)
