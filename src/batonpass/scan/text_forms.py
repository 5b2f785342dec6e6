"""The forms of a text that are scanned: normalised, decoded, reversed.

In the end an injection is plain words; its spelling is chosen so that no pattern sees them.
"""

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

PLAIN: Final = "plain"

# Tag characters are an invisible copy of ASCII. Unseen: zero-width, soft hyphen, direction marks, variation selectors.
_TAGS: Final = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0100-\U000e01ef]",
)
_TAGGED: Final = re.compile("[\U000e0000-\U000e007f]")
# Letters that look like Latin ones. They are replaced only in words that mix scripts: Russian stays Russian.
_LOOKALIKES: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u03bf\u03b1\u03b9\u03bd\u0261\u04bb\u043a",
    "aeopcyxijsdoaivghk",
)
_WORD: Final = re.compile(r"\w+")
_LATIN: Final = re.compile("[a-z]")
_COMMENT: Final = re.compile(r"<!--.*?-->|/\*.*?\*/", re.DOTALL)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX: Final = re.compile(r"(?:[0-9A-Fa-f]{2}[ :]?){16,}")
_MOST_DECODED: Final = 20  # pieces of one text


def count_unseen(text: str) -> int:
    """Return the number of invisible characters; a variation selector after an emoji is normal and does not count."""
    if text.isascii():
        return 0
    unseen = sum(1 for found in _UNSEEN.finditer(text) if not "\ufe00" <= found[0] <= "\ufe0f" and found[0] != "\u200d")
    return unseen + len(_TAGGED.findall(text))


def find_forms(text: str) -> Iterator[tuple[str, str]]:
    """Yield the forms of a text by name; the first is the text itself in lower case."""
    text = text.encode("utf-8", "replace").decode()  # RE2 cannot read a lone surrogate
    plain = to_plain(text)
    yield PLAIN, plain
    if (joined := _COMMENT.sub("", plain)) != plain:
        yield "uncommented", joined
    if (seen := to_plain(_TAGGED.sub("", text))) != plain:
        yield "untagged", seen
    yield "rot13", codecs.encode(plain, "rot13")
    yield "reversed", plain[::-1]
    for number, (name, piece) in enumerate(_decoded(unicodedata.normalize("NFKC", text))):
        if number == _MOST_DECODED:
            return
        yield name, to_plain(piece)


def to_plain(text: str) -> str:
    """Return a text as it looks: compatibility forms folded, invisible characters removed, lookalikes replaced."""
    if text.isascii():  # no invisible characters, no lookalikes
        return text.lower()
    folded = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).translate(_TAGS).casefold()
    return _WORD.sub(_as_latin, folded)


def _as_latin(word: "re.Match[str]") -> str:
    return word[0].translate(_LOOKALIKES) if _LATIN.search(word[0]) else word[0]


def _decoded(text: str) -> Iterator[tuple[str, str]]:
    for found in _BASE64.finditer(text):
        piece = found[0].rstrip("=").translate(str.maketrans("-_", "+/"))
        try:
            data = base64.b64decode(piece + "=" * (-len(piece) % 4), validate=True)
        except (binascii.Error, ValueError):
            continue
        yield from _readable("base64", data)
    for found in _HEX.finditer(text):
        yield from _readable("hex", bytes.fromhex(re.sub("[ :]", "", found[0])))


def _readable(name: str, data: bytes) -> Iterator[tuple[str, str]]:
    try:
        decoded = data.decode()
    except UnicodeDecodeError:
        return
    if sum(character.isprintable() or character.isspace() for character in decoded) == len(decoded):
        yield name, decoded
