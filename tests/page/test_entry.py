"""`batonpass ui`: the link that it prints lets one browser in, once, on this machine alone."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from batonpass.demo import pull_request
from tests.page.conftest import PATIENCE, PROGRAM

expect.set_options(timeout=PATIENCE * 1000)


@pytest.fixture
def link(tmp_path: Path, chromium: Browser) -> Iterator[str]:
    """Play a story, open the page on it as its last line says, and return the link."""
    del chromium  # without a browser nothing has to be played
    list(pull_request.play(tmp_path))
    log = tmp_path / "ui.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [PROGRAM, "ui", "--no-open"], cwd=tmp_path, stderr=said, env={**os.environ, "USER": "ana"}
        )
    until = time.monotonic() + PATIENCE
    while (found := re.search(r"http://\S+/enter#\S+", log.read_text(encoding="utf-8"))) is None:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    yield found[0]
    process.terminate()
    process.wait(PATIENCE)


@pytest.mark.slow
def test_the_link_opens_the_story_of_this_directory_once(link: str, chromium: Browser) -> None:
    """On the loopback address, with its task, its repository and nothing in the address; then it is used up."""
    first, second = (chromium.new_context() for _ in range(2))
    page, thief = first.new_page(), second.new_page()
    page.goto(link)
    expect(page.locator("#who")).to_contain_text("ana")
    address = page.url
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator(".words-cell").first).to_contain_text("Fix ticket 118")
    page.goto(f"{address}blame?path=src/invoice.py&line=8")
    expect(page.locator("aside.side")).to_contain_text("Fix ticket 118")
    thief.goto(link)
    expect(thief.locator("[role=alert]")).to_contain_text("This link was used already")

    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
    for context in (first, second):
        context.close()
