"""Links between our documents lead somewhere."""

import re
from pathlib import Path
from typing import Final

from tests.house.tree import DOCS, ROOT, files, shown

CODE: Final = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def links_in(text: str) -> list[str]:
    """Return the files that a document links to; addresses and code are not files."""
    return [link for link in LINK.findall(CODE.sub("", text)) if "://" not in link]


def is_dead(document: Path, link: str) -> bool:
    """Tell whether a link in a document leads to nothing."""
    return not (document.parent / link).exists()


def test_every_link_leads_to_a_file() -> None:
    """A reader who follows a link from one of our documents to another finds it."""
    documents = [*ROOT.glob("*.md"), *files(DOCS, ".md")]
    dead = [
        f"{shown(document)}: {link}"
        for document in documents
        for link in links_in(document.read_text(encoding="utf-8"))
        if is_dead(document, link)
    ]

    assert [] == dead


def test_links_are_read_from_prose() -> None:
    """A link counts with or without a part of the page, and not inside code or with an address."""
    text = "[a](b.md) [c](d/e.md#f) [g](https://h.example) [i](#j) `[k](l.md)`\n```text\n[m](n.md)\n```\n"

    assert ["b.md", "d/e.md"] == links_in(text)
