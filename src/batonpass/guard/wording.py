"""Words from outside, made short enough to stand in a sentence of ours."""

from hashlib import sha256
from typing import Final

_LONGEST: Final = 60
_MARK: Final = 6


def quote(text: str, *, words: int = 5) -> str:
    """Return text in quotation marks, as at most one word more than asked for, on one line.

    What does not stand there as it was written ends in a piece of its digest, so that two long texts that begin alike
    are never taken for one: answers are remembered by the words of their question.
    """
    # A character that cannot be seen, or that turns the direction of reading, would change how the sentence reads.
    readable = text[: 4 * _LONGEST]
    if not readable.isprintable():
        readable = "".join([letter if letter.isprintable() else " " for letter in readable])
    shown = " ".join(readable.replace('"', "'").split()[:words])[:_LONGEST].rstrip()
    if shown == text:
        return f'"{shown}"'
    return f'"{shown}… #{sha256(text.encode(errors="surrogatepass")).hexdigest()[:_MARK]}"'
