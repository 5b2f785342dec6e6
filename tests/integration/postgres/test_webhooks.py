"""Webhooks of a ledger on a server: the receipts are the outbox, so nothing that was committed is lost."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from batonpass.dispatch.egress import Egress
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.dispatch.webhook_sender import WebhookSender
from batonpass.dispatch.webhooks import Webhooks
from batonpass.model.policy.listed_place import read_listed
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.testing import FrozenClock
from tests.integration.server_process import PATIENCE, Served
from tests.unit.dispatch.receiver import URL, Receiver

pytestmark = pytest.mark.postgres
ANA = "user:ana"


class Taker(http.server.ThreadingHTTPServer):
    """Takes messages on loopback. While it is told to hang, it reads one and does not answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.came: list[str] = []
        self.hangs_at = 0  # the number of the message that is not answered, from 1; 0 for none
        self.hangs = threading.Event()
        self.over = threading.Event()
        self.all_there = threading.Event()
        self.wanted: set[str] = set()

    def expect(self, ids: list[str]) -> None:
        """Say what has to come."""
        self.wanted = set(ids)
        if self.wanted <= set(self.came):
            self.all_there.set()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Taker

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        taker = self.server
        taker.came.append(self.headers["webhook-id"])
        if len(taker.came) == taker.hangs_at:
            taker.hangs.set()
            taker.over.wait(PATIENCE)  # whoever sent it does not learn that it came
            return
        self.send_response(204)
        self.end_headers()
        if taker.wanted and taker.wanted <= set(taker.came):
            taker.all_there.set()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def taker() -> Iterator[Taker]:
    """Listen on loopback."""
    with Taker() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


def position_of_webhook(relay: Relay) -> int:
    """Return from where on the only webhook is told."""
    relay.store.sequence()
    (added,) = relay.admin.webhooks()
    assert added.position is not None
    return added.position


def ids_after(relay: Relay, position: int) -> list[str]:
    """Return the ids of everything that was recorded after a position."""
    relay.store.sequence()
    with relay.store.view() as view:
        return [one.id for one in view.find_receipts(ReceiptQuery(first=position + 1, last=view.last_position()))]


@pytest.mark.slow
def test_a_server_that_is_killed_between_commit_and_answer_tells_everything(tmp_path: Path, postgres_url: str) -> None:
    """The message that was on its way comes twice, under one id; all others come once, in order, and none is lost."""
    home = tmp_path / ".batonpass"
    (tmp_path / "batonpass.toml").write_text('[egress]\nallow = ["127.0.0.1"]\n')
    with taker() as receiver, Relay.open(postgres_url, home=home, work_tree=tmp_path) as relay:
        hooks = Webhooks(relay, Egress(EgressRule([read_listed("127.0.0.1")])))
        hooks.add(f"http://127.0.0.1:{receiver.server_port}/", by=ANA)
        since = position_of_webhook(relay)
        receiver.hangs_at = 3
        server = Served(tmp_path, "--no-link", "--ledger", postgres_url)
        try:
            for _ in range(3):
                relay.start("Words", by=ANA).close()
            assert receiver.hangs.wait(PATIENCE)
            server.kill()
            relay.start("While nobody listens", by=ANA).close()
            receiver.expect(ids_after(relay, since))
            server.start()
            assert receiver.all_there.wait(PATIENCE)
        finally:
            server.kill()
        recorded = ids_after(relay, since)

    assert recorded == list(dict.fromkeys(receiver.came))
    assert {recorded[2]} >= {one for one in receiver.came if receiver.came.count(one) > 1}
    assert len(receiver.came) <= len(recorded) + 1


def test_one_that_fails_is_tried_again_in_order(tmp_path: Path, postgres_url: str) -> None:
    """Later each time, by a new process each time, as with a ledger in a file."""
    clock = FrozenClock(datetime.now(UTC).replace(microsecond=0))
    receiver = Receiver()
    with Relay.open(postgres_url, home=tmp_path, clock=clock) as relay:
        hooks = Webhooks(relay, receiver.egress())
        hooks.add(URL, by=ANA)
        since = position_of_webhook(relay)
        for _ in range(2):
            relay.start("Words", by=ANA).close()
        receiver.statuses = [204, 500, 503, 204]
        told = []
        for wait in (0, 0, 6, 11):
            clock.tick(timedelta(seconds=wait))
            told.append(WebhookSender(relay, hooks).send_all())

        assert [(1, 1), (0, 0), (0, 1), (3, 0)] == told
        assert ids_after(relay, since) == [one.headers["webhook-id"] for one in receiver.taken]
