"""Pictures of the page for the documents: demonstrations are played, served, and looked at in chromium."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

from batonpass.demo import poisoned_page, pull_request, story
from batonpass.demo.examples import load_example
from tests.page.conftest import CHROMIUM, FLAGS, PROGRAM

TARGET: Final = Path(__file__).parents[1] / "docs" / "pictures"
WIDE: Final = {"width": 1280, "height": 800}
CODE: Final = {"width": 1280, "height": 640}
PHONE: Final = {"width": 390, "height": 844}


@contextmanager
def _served(directory: Path) -> Iterator[tuple[str, str]]:
    """Serve a directory, and return its address and the link that lets in."""
    log = directory / "serve.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "--repository", "."],
            cwd=directory,
            stderr=file,
            env={**os.environ, "USER": "ana"},
        )
    try:
        while (found := re.search(r"(http://\S+)/enter#\S+", log.read_text(encoding="utf-8"))) is None:
            if process.poll() is not None:
                sys.exit(log.read_text(encoding="utf-8"))
            time.sleep(0.1)
        yield found[1], found[0]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _looking(browser: Browser, directory: Path) -> Iterator[Page]:
    """Come in where a directory is served."""
    with _served(directory) as (address, link):
        context = browser.new_context(viewport=WIDE, base_url=address)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(link)
        page.wait_for_url(f"{address}/")
        yield page
        context.close()


class Album:
    """Where the pictures go, and the browser that takes them."""

    def __init__(self, browser: Browser, target: Path) -> None:
        self.browser, self.target = browser, target

    def take(self, page: Page, name: str, address: str, size: dict[str, int] = WIDE) -> None:
        """Take a picture of an address."""
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.goto(address)
        page.wait_for_timeout(400)
        page.screenshot(path=self.target / f"page-{name}.png")


def _address(page: Page, shown_at: str, link: str) -> str:
    """Return where a link of a page leads."""
    page.goto(shown_at)
    return page.get_attribute(link, "href") or ""


def _shoot_analysis(album: Album, directory: Path) -> None:
    """Show a task whose drafter was killed, and the attempt that went on."""
    list(story.play(directory))
    with _looking(album.browser, directory) as page:
        task = _address(page, "/tasks", ".words-cell a:has-text('third quarter')")
        drafter = _address(page, f"{task}?as=list", "tr:has-text('drafter') a")
        album.take(page, "task", f"{task}?at={drafter.rpartition('/')[2]}")
        album.take(page, "handoff", drafter)


def _shoot_poisoned(album: Album, directory: Path) -> None:
    """Show what a person is asked while a payment waits, which is before the demonstration goes on."""
    example = load_example(poisoned_page.NAME)

    def tell(line: str) -> None:
        if " was held: " not in line:
            return
        with _looking(album.browser, directory) as page:
            album.take(page, "now", "/")
            album.take(page, "decide", _address(page, "/", ".needed .button"), PHONE)

    example.main(directory, tell, example.POISONED)[0].close()


def _shoot_pull_request(album: Album, directory: Path) -> None:
    """Show who wrote the wrong line."""
    list(pull_request.play(directory))
    lines = (directory / pull_request.NAME).read_text(encoding="utf-8").splitlines()
    with _looking(album.browser, directory) as page:
        wrong = lines.index(pull_request.WRONG) + 1
        album.take(page, "blame", f"/blame?path={pull_request.NAME}&line={wrong}", CODE)


def take_all(browser: Browser, target: Path) -> None:
    """Make all pictures anew, in a directory."""
    album = Album(browser, target)
    with TemporaryDirectory(prefix="batonpass-page-") as directory:
        for name, shoot in (("quarter", _shoot_analysis), ("office", _shoot_poisoned), ("shop", _shoot_pull_request)):
            place = Path(directory) / name
            place.mkdir()
            shoot(album, place)


def main() -> None:
    """Make all pictures of the documents anew."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*FLAGS])
        take_all(browser, TARGET)
        browser.close()


if __name__ == "__main__":
    main()
