"""Pictures of the page for the documents: two stories are played, served, and looked at in chromium."""

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

from batonpass.demo import pull_request
from tests.page.conftest import CHROMIUM, FLAGS, PROGRAM
from tests.page.scene import play

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


def _take(page: Page, name: str, address: str, size: dict[str, int] = WIDE) -> None:
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_timeout(400)
    page.screenshot(path=TARGET / f"page-{name}.png")


def _shoot_task(page: Page) -> None:
    page.goto("/tasks")
    task = page.get_attribute(".words-cell a", "href") or ""
    page.goto(f"{task}?as=list")
    row = page.locator("tbody tr", has_text="mailer").first
    held = (row.locator("a").first.get_attribute("href") or "").replace("/handoffs/", "/approvals/")
    _take(page, "task", task)
    _take(page, "decide", held, PHONE)


def _shoot_code(page: Page) -> None:
    _take(page, "blame", "/blame?path=src/invoice.py&line=8", CODE)


def main() -> None:
    """Make all pictures anew."""
    with TemporaryDirectory(prefix="batonpass-page-") as directory, sync_playwright() as playwright:
        task, code = Path(directory) / "task", Path(directory) / "shop"
        task.mkdir()
        code.mkdir()
        play(task)
        list(pull_request.play(code))
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*FLAGS])
        with _looking(browser, task) as page:
            _shoot_task(page)
        with _looking(browser, code) as page:
            _shoot_code(page)
        browser.close()


if __name__ == "__main__":
    main()
