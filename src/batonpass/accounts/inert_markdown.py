"""Words of others in Markdown, such as a comment on GitHub: shown as they were written, and nothing in them is live."""

import re
from typing import Final

from batonpass.model.base.visible import visible

# Every character that can begin a construct of Markdown or HTML.
_LIVE: Final = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]()<>+-.!|~:&"})
# GitHub looks for people, issues and formulas in what was rendered, where no backslash is left. It does not look into
# code. An issue is called by `#12` or by `GH-12`. In a formula, a percent sign hides everything behind it.
_CALLING: Final = re.compile(r"[@#$]+|\bgh(?=\\-[0-9])", re.IGNORECASE)


def inert(text: str) -> str:
    """Return text as one line of Markdown that shows exactly these characters."""
    return _CALLING.sub(r"`\g<0>`", visible(" ".join(text.split())).translate(_LIVE))
