"""Makes text of people, models and repositories harmless before a terminal, a page or a chart shows it."""

import re
from typing import Final

_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Controls, and the marks that are invisible or change the direction of text. The joiners U+200C and U+200D stay between
# two letters that are not ASCII, and a variation selector behind one: Persian words, Chinese names and many emoji need
# them. Elsewhere nobody does: there they make two names look the same, or carry words that only a model reads.
HOSTILE: Final = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
    "|(?<![^\\x00-\\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\\x00-\\x7f\u200c\u200d])"
    f"|(?<![^\\x00-\\x7f{_SELECTORS}])[{_SELECTORS}](?!\u20e3)",
)


def visible(text: str) -> str:
    """Return text with each control and each invisible character replaced by its escape sequence."""
    return HOSTILE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
