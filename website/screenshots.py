"""Pictures of the page in dist/page: a task with everything in it is played, served, and looked at in chromium."""

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

from playwright.sync_api import Browser, sync_playwright

from tests.page.conftest import CHROMIUM, FLAGS, PROGRAM
from tests.page.scene import play

TARGET: Final = Path(__file__).parents[1] / "dist" / "page"
WIDE: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}


@contextmanager
def _served(directory: Path) -> Iterator[tuple[str, str]]:
    """Serve a directory, and return its address and the link that lets in."""
    log = directory / "serve.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0"], cwd=directory, stderr=file, env={**os.environ, "USER": "ana"}
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


def _shoot(browser: Browser, directory: Path) -> None:
    with _served(directory) as (address, link):
        context = browser.new_context(viewport=WIDE, base_url=address)  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(link)
        page.wait_for_url(f"{address}/")
        page.goto("/tasks")
        task = page.get_attribute(".words-cell a", "href") or ""
        handoffs = {}
        page.goto(f"{task}?as=list")
        for one in page.query_selector_all("tbody tr"):
            name = (one.query_selector("td:nth-child(2)") or one).inner_text().split()[0]
            handoffs[name] = (one.query_selector("a") or one).get_attribute("href") or ""
        held = handoffs["mailer"].replace("/handoffs/", "/approvals/")
        views = {
            "now": "/",
            "tree": task,
            "handoff": handoffs["writer"],
            "decide": held,
            "review": f"/review?root={task.rpartition('/')[2]}",
        }
        for name, view in views.items():
            page.goto(view)
            page.wait_for_load_state("networkidle") if name == "review" else page.wait_for_timeout(300)
            page.screenshot(path=TARGET / f"{name}.png")
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        page.goto(held)
        page.screenshot(path=TARGET / "decide-phone.png")
        context.close()


def main() -> None:
    """Make all pictures anew."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="batonpass-page-") as directory, sync_playwright() as playwright:
        play(Path(directory))
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*FLAGS])
        _shoot(browser, Path(directory))
        browser.close()


if __name__ == "__main__":
    main()
