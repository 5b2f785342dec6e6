"""Makes text of people, models and repositories harmless before a terminal, a page or a chart shows it."""

import re
from typing import Final

# Controls, and the marks that are invisible or change the direction of text. The joiners U+200C and U+200D stay:
# Persian words and many emoji need them, and they can hide nothing.
HOSTILE: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]",
)


def visible(text: str) -> str:
    """Return text with each control and each invisible character replaced by its escape sequence."""
    return HOSTILE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
