"""Check that the built site needs nothing from elsewhere: no script, style, picture or font of another host.

    python website/check.py FOLDER

Links that a reader may follow are fine. What would be fetched without asking is listed, and the exit code is 1.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

_FETCHED: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "image": "href"}
_IN_STYLES: Final = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)")


class _Fetches(HTMLParser):
    """What a browser fetches by itself when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = "href" if tag == "link" and given.get("rel") not in {"canonical", "prev", "next"} else _FETCHED.get(tag)
        if name and (address := given.get(name)):
            self.found.append(address)


def fetched(page: str) -> list[str]:
    """Return the addresses of other hosts that a browser fetches for a page or a style sheet."""
    reader = _Fetches()
    reader.feed(page)
    return [*(one for one in reader.found if re.match(r"(?:https?:)?//", one)), *_IN_STYLES.findall(page)]


def foreign(folder: Path) -> Iterator[str]:
    """Yield each file of a site with what it fetches from elsewhere."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".html", ".css", ".svg"}:
            for address in fetched(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(folder)}: {address}"


def main(folder: Path) -> int:
    """Say what is fetched from elsewhere."""
    if not (folder / "index.html").is_file():
        sys.stderr.write(f"there is no site in {folder}\n")
        return 1
    found = list(foreign(folder))
    sys.stderr.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
