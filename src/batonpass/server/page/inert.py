"""Text of others on the page: it shows exactly its characters, and nothing in it is a link, a picture or markup.

Every value that a template writes goes through `finalized`, whether its author remembered to or not. `boxed` is for
whole texts of others: a character that cannot be seen is shown as a box with its number.
"""

import re
from typing import Final

from markupsafe import Markup, escape

from batonpass.model.base.visible import HOSTILE

_BREAKS: Final = re.compile("\r\n?|\n")


def plain(text: str) -> str:
    """Return text in which everything that cannot be seen stands as its number, such as ⟨U+200B⟩."""
    return HOSTILE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def boxed(text: object) -> Markup:
    """Return a text of somebody else: escaped, with a box for each character that cannot be seen.

    Line breaks and tabs stay, since it is shown as it was written.
    """
    escaped = str(escape(_BREAKS.sub("\n", str(text))))
    return Markup(HOSTILE.sub(_box, escaped))  # noqa: S704 - it was escaped just now, and a box holds only a number


def finalized(value: object) -> object:
    """Return a value as a template writes it: markup as it is, anything else as plain text."""
    if value is None:
        return ""
    return value if hasattr(value, "__html__") else plain(str(value))


def _box(found: re.Match[str]) -> str:
    return found[0] if found[0] in "\n\t" else f'<span class="odd">U+{ord(found[0]):04X}</span>'
