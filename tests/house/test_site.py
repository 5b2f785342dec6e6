"""The site of the documentation: every page has its place, and nothing is fetched from elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import DOCS, ROOT, files, module
from website.check import fetched
from website.stage import dressed, main, moved, navigation, pages, python_reference


def places(order: object) -> Iterator[str]:
    """Yield the pages of a navigation, at any depth."""
    match order:
        case str():
            yield order
        case dict():
            for part in order.values():
                yield from places(part)
        case list():
            for part in order:
                yield from places(part)


def test_every_page_has_its_place(tmp_path: Path) -> None:
    """A page that is laid out is in the navigation once, and the navigation names no other."""
    folder = tmp_path / "source"
    main(folder)
    laid_out = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))

    assert laid_out == sorted(places(navigation()))


def test_every_document_is_a_page() -> None:
    """Whatever stands in docs, and what a newcomer reads beside it, is on the site."""
    wanted = {*files(DOCS, ".md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))}

    assert set() == wanted - set(pages())


def test_the_python_reference_has_every_public_name() -> None:
    """What `from batonpass import …` gives is documented, in whichever group."""
    text = python_reference()

    assert [] == [name for name in module("batonpass").__all__ if f"::: batonpass.{name}\n" not in text]


def test_links_lead_to_pages_of_the_site() -> None:
    """A link out of docs leads to its page, one to a folder to its list, and one to anything else is only its words."""
    guide = DOCS / "guide" / "blame.md"
    text = "[a](../../README.md) [`b`](../adr/) [c](../../tests/) [d](https://e.example) `[f](g.md)` [h](mcp.md#grant)"

    assert "[a](../index.md) [`b`](../adr/index.md) c [d](https://e.example) `[f](g.md)` [h](mcp.md#grant)" == moved(
        text, guide, pages()
    )


def test_a_code_is_the_anchor_of_its_error() -> None:
    """What stands above a heading in the repository is the heading's own anchor on the site."""
    text = '<a id="call.in_doubt"></a>\n\n### `call.in_doubt`\n'

    assert "### `call.in_doubt` { #call.in_doubt }\n" == dressed(text, DOCS / "reference" / "errors.md")


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/a.css">',
        '<img src="http://cdn.example/a.png">',
        "<style>@import 'https://cdn.example/a.css';</style>",
        "body { background: url(https://cdn.example/a.png) }",
    ],
    ids=["a script", "a style sheet", "a picture", "an import", "a background"],
)
def test_what_comes_from_elsewhere_is_found(page: str) -> None:
    """Whatever a browser fetches by itself from another host is named."""
    assert 1 == len(fetched(page))


def test_links_for_readers_may_lead_elsewhere() -> None:
    """A link that somebody has to follow is no asset, and neither is a file beside the page."""
    assert [] == fetched('<a href="https://c2sp.org">c2sp</a><script src="../a.js"></script><img src="a.svg">')
