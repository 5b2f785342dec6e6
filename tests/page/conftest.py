"""A real browser at a real server: Debian's chromium, headless, and a task with everything in it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from batonpass.relay import Relay
from tests.page.scene import POLICY, play

CHROMIUM: Final = Path("/usr/bin/chromium")
# As root, in a container, without anything that a browser does for itself.
FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PROGRAM: Final = str(Path(sys.executable).with_name("batonpass"))
PATIENCE: Final = 30.0
TWO: Final = """
[[rules]]
name = "two-for-mail"
on = "call"
gate = "approve"
tool = "send_mail"
approvals = 2
"""


class ServedPage:
    """A server over a task that was just played, and who may come in."""

    options: tuple[str, ...] = ()  # of the command

    def __init__(self, directory: Path, policy: str = POLICY) -> None:
        self.directory = directory
        play(directory, stores=8, policy=policy)
        self.relay = self._relay()
        self.tokens = {
            role: self.relay.admin.add_token(f"user:{role}", role, by="user:ana", lasts=timedelta(hours=1)).text
            for role in ("operator", "auditor", "admin")
        }
        with self.relay.store.view() as view:
            self.root = next(iter(view.find_runs(roots=True))).id
            self.handoffs = {str(one.to): one.id for one in view.find_handoffs(root=self.root)}
        self.process = self._start()

    def _relay(self) -> Relay:
        home, policy = self.directory / ".batonpass", self.directory / "batonpass.toml"
        return Relay.open(home / "ledger.db", home=home, policy=policy, work_tree=self.directory, keys_in_files=True)

    def _start(self) -> "subprocess.Popen[bytes]":
        file = self.directory / "address"
        process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "--address-file", "address", *self.options],
            cwd=self.directory,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "USER": "ana"},
        )
        until = time.monotonic() + PATIENCE
        while not (file.exists() and file.read_text()):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        self.address = file.read_text().strip()
        return process

    def end(self) -> None:
        """Stop it."""
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.relay.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start the browser once."""
    if "BATONPASS_PAGE" not in os.environ:
        pytest.skip("a browser takes minutes; `make test-page` installs one and runs these")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*FLAGS])
        yield browser
        browser.close()


@pytest.fixture
def served(tmp_path: Path, chromium: Browser) -> Iterator[ServedPage]:
    """Return a server of its own for a test that changes something."""
    del chromium  # without a browser nothing has to be played
    server = ServedPage(tmp_path)
    yield server
    server.end()


@pytest.fixture
def four_eyes(tmp_path: Path, chromium: Browser) -> Iterator[ServedPage]:
    """Return a server of its own where mail takes two people."""
    del chromium
    server = ServedPage(tmp_path, POLICY + TWO)
    yield server
    server.end()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[ServedPage]:
    """Return a server for tests that only look."""
    del chromium
    server = ServedPage(tmp_path_factory.mktemp("page"))
    yield server
    server.end()


Opener = Callable[..., Page]


@pytest.fixture
def somebody(chromium: Browser) -> Iterator[Opener]:
    """Return a way for somebody to come in with a browser of their own; at the end nothing was said in its console."""
    opened: list[BrowserContext] = []
    said: list[str] = []

    def come_in(server: ServedPage, role: str = "operator", **options: object) -> Page:
        sized = {"viewport": {"width": 1280, "height": 800}, "base_url": server.address, **options}
        context = chromium.new_context(**sized)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE * 1000)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto("/enter")
        page.fill("#token", server.tokens[role])
        page.click("#enter button")
        page.wait_for_url(f"{sized['base_url']}/")
        return page

    come_in.said = said  # type: ignore[attr-defined]
    yield come_in
    for context in opened:
        context.close()
