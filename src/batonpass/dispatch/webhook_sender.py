"""Delivers receipts to webhooks: in order, at least once, from the ledger itself.

The receipts are the outbox. A file for each webhook remembers the last one that was taken. While a webhook does not
take one, it is tried again, later each time, and those after it wait: nothing is lost and nothing overtakes. A webhook
that takes nothing for days is given up, which is a receipt; after it is resumed, it gets everything since.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct

from batonpass.dispatch.delivery_pace import OUTBOX_FOLDER, pause_after
from batonpass.dispatch.egress import Egress, EgressAnswer
from batonpass.dispatch.side_work import side_work
from batonpass.dispatch.webhook_message import WebhookMessage, receipt_message
from batonpass.dispatch.webhooks import Webhooks, place_of
from batonpass.errors import BatonpassError, InvalidValueError, StoreError
from batonpass.ledger.progress_file import ProgressFile
from batonpass.model.base.ids import WebhookId
from batonpass.records.recipients.webhook import WebhookRecord
from batonpass.records.text import read_receipt
from batonpass.relay import Relay, desk_of, home_of
from batonpass.store.port import ReceiptQuery

POLL: Final = timedelta(seconds=1)
GIVEN_UP_AFTER: Final = timedelta(days=3)
LEAST_TRIES: Final = 10  # a machine that was off for days has not tried
LAST_PAUSE: Final = timedelta(hours=1)
_AT_ONCE: Final = 100
_SIDE_BY_SIDE: Final = 8
_GONE: Final = 410
_LONGEST_WAIT: Final = 6  # digits
_LOG: Final = logging.getLogger("batonpass.webhooks")


class WebhookProgress(Struct, kw_only=True):
    """How far a webhook was told, and since when it takes nothing."""

    position: int = 0
    tries: int = 0
    failing_since: datetime | None = None
    again_at: datetime | None = None
    problem: str | None = None


_PROGRESS: Final = msgspec.json.Decoder(WebhookProgress)


class WebhookSender:
    """Delivers to all webhooks of a relay. A slow or dead one keeps no other waiting."""

    def __init__(self, relay: Relay, webhooks: Webhooks) -> None:
        home = home_of(relay)
        if home is None:
            raise InvalidValueError("ledger", "one in memory cannot remember which deliveries were made")
        self._relay = relay
        self._home = home
        self._webhooks = webhooks
        self._clock = desk_of(relay).clock

    def send_all(self) -> tuple[int, int]:
        """Deliver everything that is due. Return how many were delivered, and how many webhooks did not take theirs."""
        self._relay.store.sequence()
        own = self._webhooks.own()
        if not own:
            return 0, 0
        with ThreadPoolExecutor(_SIDE_BY_SIDE, "batonpass-webhook") as pool:
            done = list(pool.map(self._send_everything, own))
        return sum(one for one, _ in done), sum(failed for _, failed in done)

    def run_until(self, stop: threading.Event, *, told: Callable[[int, int], None] | None = None) -> None:
        """Deliver until `stop` is set. A store that cannot be reached is tried again."""
        busy: dict[WebhookId, Future[tuple[int, bool]]] = {}
        with ThreadPoolExecutor(_SIDE_BY_SIDE, "batonpass-webhook") as pool:
            while not stop.is_set():
                for id_ in [id_ for id_, one in busy.items() if one.done()]:
                    _tell(busy.pop(id_), told)
                try:
                    self._relay.store.sequence()
                    for webhook in self._webhooks.own():
                        if webhook.id not in busy:
                            busy[webhook.id] = pool.submit(self.send_some, webhook)
                except StoreError:
                    pass  # the receipts wait where they are
                stop.wait(POLL.total_seconds())

    def progress(self, webhook: WebhookId) -> WebhookProgress:
        """Return how far a webhook of this relay was told."""
        return self._file(webhook).read()

    def send_some(self, webhook: WebhookRecord) -> tuple[int, bool]:
        """Deliver the next receipts to a webhook. Return how many it took, and whether it failed to take one."""
        file = self._file(webhook.id)
        with file.turn() as ours:
            if not ours:
                return 0, False
            progress = file.read()
            waits = progress.again_at is not None and self._clock.now() < progress.again_at
            if waits or webhook.position is None:
                return 0, False
            progress.position = max(progress.position, webhook.position)
            taken = 0
            for position, message in self._next(webhook, progress.position):
                if message is not None:
                    failure = self._try(webhook, message)
                    if failure is not None:
                        self._count_failure(webhook, progress, failure)
                        file.write(progress)
                        return taken, True
                    taken += 1
                progress = WebhookProgress(position=position)
                if message is not None:
                    file.write(progress)
            file.write(progress)
            return taken, False

    def _send_everything(self, webhook: WebhookRecord) -> tuple[int, bool]:
        taken = 0
        while True:
            before = self.progress(webhook.id).position
            some, failed = self.send_some(webhook)
            taken += some
            if failed or self.progress(webhook.id).position == before:
                return taken, failed

    def _next(self, webhook: WebhookRecord, after: int) -> list[tuple[int, WebhookMessage | None]]:
        # The view is closed before anything is sent: whoever answers slowly would keep the database from tidying up.
        with self._relay.store.view() as view:
            ledger, last = view.info().id, view.last_position()
            found = islice(view.find_receipts(ReceiptQuery(first=after + 1, last=last)), _AT_ONCE)
            return [
                (
                    stored.position or 0,
                    receipt_message(ledger, stored, read_receipt(stored)) if webhook.wants(stored.kind) else None,
                )
                for stored in found
            ]

    def _try(self, webhook: WebhookRecord, message: WebhookMessage) -> "_Failure | None":
        try:
            answer = self._webhooks.send(webhook, message)
        except BatonpassError as error:
            return _Failure(str(error))
        if answer.is_good:
            return None
        said = f"{place_of(webhook.url)} answered {answer.status}"
        return _Failure(said, wait=_asked_to_wait(answer), is_final=answer.status == _GONE)

    def _count_failure(self, webhook: WebhookRecord, progress: WebhookProgress, failure: "_Failure") -> None:
        now = self._clock.now()
        progress.tries += 1
        progress.failing_since = progress.failing_since or now
        progress.problem = failure.problem
        progress.again_at = now + max(pause_after(progress.tries, LAST_PAUSE), failure.wait)
        is_over = progress.tries >= LEAST_TRIES and now - progress.failing_since >= GIVEN_UP_AFTER
        if is_over or failure.is_final:
            self._webhooks.give_up(webhook, failure.problem)
            _LOG.warning("webhook %s is given up: %s", webhook.id, failure.problem)
            progress.tries, progress.failing_since, progress.again_at = 0, None, None

    def _file(self, webhook: WebhookId) -> ProgressFile[WebhookProgress]:
        return ProgressFile(self._home / OUTBOX_FOLDER, webhook, _PROGRESS)


@contextmanager
def told_beside(relay: Relay, egress: Egress) -> Iterator[None]:
    """Deliver to webhooks in a thread until the end of the block. A ledger in memory has none."""
    if home_of(relay) is None:
        yield
        return
    with side_work(WebhookSender(relay, Webhooks(relay, egress)).run_until, "webhooks"):
        yield


class _Failure(Struct, frozen=True):
    problem: str
    wait: timedelta = timedelta(0)  # how long the other side asks us to wait
    is_final: bool = False  # it says that nobody is there any more


def _asked_to_wait(answer: EgressAnswer) -> timedelta:
    given = answer.headers.get("retry-after", "")
    is_number = given.isascii() and given.isdecimal() and len(given) <= _LONGEST_WAIT
    return min(timedelta(seconds=int(given)), LAST_PAUSE) if is_number else timedelta(0)


def _tell(done: Future[tuple[int, bool]], told: Callable[[int, int], None] | None) -> None:
    try:
        taken, failed = done.result()
    except Exception:  # noqa: BLE001 - the others are still looked after
        _LOG.exception("a webhook could not be served")
        return
    if told is not None and (taken or failed):
        told(taken, int(failed))
