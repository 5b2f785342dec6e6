"""The frame of a self-contained HTML page: nothing is loaded, nothing runs, and all text is escaped."""

import html
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Final

from batonpass.model.base.visible import visible

PAGE_STYLE: Final = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
CLOSING: Final = "</body>\n</html>\n"


def opening(title: str, style: str) -> str:
    """Return the beginning of a page, up to and with the opening of its body.

    The style is allowed by its digest. Anything added to the page has no effect.
    """
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{inert_text(title)} · Batonpass</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )


def inert_text(text: str) -> str:
    """Return text that shows exactly these characters on a page."""
    return html.escape(visible(text))
