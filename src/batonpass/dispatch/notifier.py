"""The notifier: runs a command of yours for every notice, with the notice as JSON on its standard input."""

import os
import subprocess
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from batonpass.dispatch.outbox import Notice, Outbox
from batonpass.errors import StoreError
from batonpass.model.policy.notify_settings import NotifySettings
from batonpass.relay import Relay, desk_of

OUTBOX: Final = "notify"
POLL: Final = timedelta(seconds=1)


class Notifier:
    """Delivers notices to a command, at least once each. A command that fails or hangs loses nothing."""

    def __init__(self, relay: Relay, settings: NotifySettings, home: Path) -> None:
        self._settings = settings
        self._outbox = Outbox(relay.store, home, OUTBOX, self._run, desk_of(relay).clock)

    def notify_all(self) -> tuple[int, int]:
        """Deliver all notices that were not delivered yet. Return how many were delivered, and how many failed."""
        return self._outbox.deliver_all()

    def run_until(self, stop: threading.Event, *, told: Callable[[int, int], None] | None = None) -> None:
        """Deliver until `stop` is set. A store that cannot be reached is tried again."""
        while not stop.is_set():
            try:
                delivered, failed = self.notify_all()
                if told is not None and (delivered or failed):
                    told(delivered, failed)
            except StoreError:
                pass  # the receipts wait where they are
            stop.wait(POLL.total_seconds())

    def _run(self, notice: Notice) -> None:
        # In a group of its own: what the command has started ends with it when it takes too long.
        process = subprocess.Popen(  # noqa: S603 - the command that the policy file names
            self._settings.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "BATONPASS_NOTICE": notice.id},
        )
        try:
            process.communicate(msgspec.json.encode(notice) + b"\n", timeout=self._settings.timeout.total_seconds())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            raise
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, self._settings.command)
