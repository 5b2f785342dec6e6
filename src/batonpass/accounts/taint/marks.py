"""Words of a text from outside, marked where they stand in another text."""

from collections.abc import Iterator
from typing import Final

from batonpass.accounts.taint.values import Quote

OPENS: Final = "»"
CLOSES: Final = "«"
# Whoever writes our marks into a text does not mark anything.
_NOT_OURS: Final = str.maketrans({OPENS: ">", CLOSES: "<", "\n": " ", "\r": " ", "\t": " "})


def marked_parts(quote: Quote) -> Iterator[tuple[str, bool]]:
    """Yield a text in parts, each with whether it stands between marks; the marks are in it."""
    text = quote.text.translate(_NOT_OURS)
    at = 0
    for span in quote.spans:
        yield text[at : span.start], False
        yield f"{OPENS}{text[span.start : span.end]}{CLOSES}", True
        at = span.end
    yield text[at:], False
    if quote.more:
        yield f" · and {quote.more} more", False
