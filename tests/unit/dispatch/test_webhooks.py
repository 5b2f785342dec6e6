"""Webhooks: signed CloudEvents, in order and at least once, whatever becomes of the other side or of this process."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat
from standardwebhooks import Webhook, WebhookVerificationError

from batonpass.dispatch.webhook_secret import read_secrets, secret_file
from batonpass.dispatch.webhook_sender import GIVEN_UP_AFTER, LAST_PAUSE, LEAST_TRIES, WebhookSender, told_beside
from batonpass.dispatch.webhooks import Webhooks, place_of
from batonpass.errors import (
    EgressFailedError,
    EgressRefusedError,
    InvalidValueError,
    KeyMissingError,
    KeyRefusedError,
    NotFoundError,
)
from batonpass.ledger.progress_file import ProgressFile
from batonpass.model.base.kinds import WebhookChange
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.testing import FrozenClock
from tests.unit.dispatch.receiver import PLACE, URL, Receiver, Taken

ANA = "user:ana"


class Place:
    """A relay over a ledger in a file, and somebody who is told what it records."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # The library that checks signatures looks at the clock of this machine.
        self.clock = FrozenClock(datetime.now(UTC).replace(microsecond=0))
        self.relay = Relay.open(home / "ledger.db", home=home, clock=self.clock)
        self.receiver = Receiver()
        self.webhooks = Webhooks(self.relay, self.receiver.egress())

    def send(self) -> tuple[int, int]:
        """Deliver by a new sender, as a process that was started again would."""
        return WebhookSender(self.relay, self.webhooks).send_all()

    def work(self, count: int = 1) -> None:
        """Record something."""
        for _ in range(count):
            self.relay.start("Very secret words", by=ANA).close()

    def state(self) -> WebhookChange:
        """Return what became of the only webhook."""
        (one,) = self.relay.admin.webhooks()
        return one.state

    def recorded(self, after: int) -> list[str]:
        """Return the ids of everything that was recorded after a position."""
        with self.relay.store.view() as view:
            return [
                stored.id for stored in view.find_receipts(ReceiptQuery(first=after + 1, last=view.last_position()))
            ]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Return a place with nothing in it."""
    found = Place(tmp_path / ".batonpass")
    yield found
    found.relay.close()


def ids(taken: list[Taken]) -> list[str]:
    """Return the ids of messages."""
    return [one.headers["webhook-id"] for one in taken]


def test_others_libraries_read_what_is_sent(place: Place) -> None:
    """`standardwebhooks` verifies, `cloudevents` reads, and no word that anybody wrote is in it."""
    issued = place.webhooks.add(URL, by=ANA)
    place.work()
    delivered, failed = place.send()
    checker = Webhook(issued.secret.reveal())
    for one in place.receiver.taken:
        checker.verify(one.body, one.headers)
        event = from_http_event(HTTPMessage(one.headers, one.body), JSONFormat())
        assert (one.headers["webhook-id"], "1.0") == (event.get_id(), event.get_specversion())

    (added,) = place.relay.admin.webhooks()
    assert (place.recorded(added.position or 0), 0) == (ids(place.receiver.taken), failed)
    assert delivered == len(place.receiver.taken) > 1
    assert "application/cloudevents+json; charset=utf-8" == place.receiver.taken[0].headers["content-type"]
    assert ["batonpass.receipt.run.started", "batonpass.receipt.run.closed"] == [
        one.event["type"] for one in place.receiver.taken
    ]
    assert b"secret words" not in b"".join(one.body for one in place.receiver.taken)


def test_a_changed_message_or_another_secret_is_noticed(place: Place) -> None:
    """The signature covers id, time and body."""
    issued = place.webhooks.add(URL, by=ANA)
    other = place.webhooks.add(URL, by=ANA)
    place.work()
    place.send()
    sent = place.receiver.taken[0]
    own = issued if _verifies(issued.secret.reveal(), sent) else other
    wrong = [
        (own.secret.reveal(), Taken(sent.headers, sent.body + b" ")),
        (own.secret.reveal(), Taken({**sent.headers, "webhook-id": "receipt_x"}, sent.body)),
        (own.secret.reveal(), Taken({**sent.headers, "webhook-timestamp": "1700000000"}, sent.body)),
        ((other if own is issued else issued).secret.reveal(), sent),
    ]

    assert (True, [False] * 4) == (_verifies(own.secret.reveal(), sent), [_verifies(*one) for one in wrong])


def _verifies(secret: str, taken: Taken) -> bool:
    try:
        Webhook(secret).verify(taken.body, taken.headers)
    except WebhookVerificationError:
        return False
    return True


def test_what_was_recorded_before_is_not_told_and_kinds_are_chosen(place: Place) -> None:
    """From the receipt that added it on; a family is all of its kinds."""
    place.work(3)
    place.webhooks.add(URL, by=ANA, kinds=("handoff", "run.closed"))
    place.work(2)
    lead = place.relay.start("Ship", by=ANA)
    lead.hand_off("editor", "Edit")
    place.send()

    assert ["run.closed", "run.closed", "handoff.initiated"] == [
        one.event["type"].removeprefix("batonpass.receipt.") for one in place.receiver.taken
    ]


def test_nothing_is_told_twice_and_nothing_is_lost(place: Place) -> None:
    """More than one batch, and again after it: only what is new."""
    place.webhooks.add(URL, by=ANA)
    place.work(130)
    place.send()
    place.work()
    place.send()
    (added,) = place.relay.admin.webhooks()

    assert place.recorded(added.position or 0) == ids(place.receiver.taken)
    assert (0, 0) == place.send()


def test_one_that_does_not_take_it_is_tried_again_in_order(place: Place) -> None:
    """Later each time; what comes after waits, so nothing overtakes; the same message has the same id."""
    place.webhooks.add(URL, by=ANA)
    place.work(2)
    place.receiver.statuses = [204, 500, 503, 204]
    first = place.send()
    too_soon = place.send()
    place.clock.tick(timedelta(seconds=6))
    second = place.send()
    place.clock.tick(timedelta(seconds=11))
    third = place.send()

    assert [(1, 1), (0, 0), (0, 1), (3, 0)] == [first, too_soon, second, third]
    asked = ids(place.receiver.asked)
    assert (asked[1], asked[1]) == (asked[2], asked[3])
    assert sorted(ids(place.receiver.taken)) == sorted(set(ids(place.receiver.taken)))


def test_the_other_side_may_ask_us_to_wait(place: Place) -> None:
    """`Retry-After` is kept to, up to the longest pause; what is no number is not believed."""
    (webhook,) = (place.webhooks.add(URL, by=ANA),)
    place.work()
    sender = WebhookSender(place.relay, place.webhooks)
    waits = []
    for said in ("100", "99999", "9" * 40, "soon"):
        place.receiver.statuses, place.receiver.headers = [429], f"Retry-After: {said}\r\n"
        sender.send_all()
        again_at = sender.progress(webhook.id).again_at or place.clock.now()
        waits.append((again_at - place.clock.now()).total_seconds())
        place.clock.tick(LAST_PAUSE)

    assert [100.0, 3600.0] == waits[:2]
    assert all(seconds <= 40 for seconds in waits[2:])


def test_a_dead_endpoint_is_given_up_with_a_receipt_and_resumed_without_loss(place: Place) -> None:
    """After days and enough tries; the reason has no secret; whoever resumes it gets everything since."""
    webhook = place.webhooks.add(URL, by=ANA)
    place.work()
    place.receiver.is_there = False
    rounds = 0
    while place.state() is WebhookChange.ADDED:
        place.send()
        place.clock.tick(LAST_PAUSE)
        rounds += 1
    (failed,) = place.relay.admin.webhooks()
    place.receiver.is_there = True
    place.work()
    silent = place.send()
    place.webhooks.resume(webhook.id[-8:], by="user:ben")
    place.send()

    assert rounds >= max(LEAST_TRIES, GIVEN_UP_AFTER / LAST_PAUSE)
    assert (WebhookChange.FAILED, "service:batonpass", False) == (failed.state, failed.changed_by, failed.is_active)
    assert ("Connection refused" in (failed.reason or ""), "hunter2" in (failed.reason or "")) == (True, False)
    assert ((0, 0), WebhookChange.RESUMED) == (silent, place.state())
    assert place.recorded(failed.position or 0) == ids(place.receiver.taken)
    assert place.relay.verify().receipts


def test_a_machine_that_was_off_for_days_does_not_give_up_at_once(place: Place) -> None:
    """Time alone is not enough: it has to have been tried."""
    place.webhooks.add(URL, by=ANA)
    place.work()
    place.receiver.is_there = False
    place.send()
    place.clock.tick(GIVEN_UP_AFTER * 2)
    place.send()

    assert WebhookChange.ADDED is place.state()


def test_one_that_is_gone_says_so(place: Place) -> None:
    """410 means for good: nobody is tried for days."""
    place.webhooks.add(URL, by=ANA)
    place.work()
    place.receiver.statuses = [410]
    place.send()

    assert WebhookChange.FAILED is place.state()


def test_a_redirect_is_a_failure(place: Place) -> None:
    """It could lead anywhere."""
    place.webhooks.add(URL, by=ANA)
    place.work()
    place.receiver.statuses = [307]
    place.receiver.headers = "Location: http://169.254.169.254/\r\n"

    assert (0, 1) == place.send()


def test_a_crash_after_a_delivery_repeats_one_message(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id says that it is the same."""
    place.webhooks.add(URL, by=ANA)
    place.work()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(ProgressFile, "write", die)
        with pytest.raises(KeyboardInterrupt):
            place.send()
    place.send()
    asked = ids(place.receiver.asked)

    assert (asked[0], len(set(asked)) + 1) == (asked[1], len(asked))


def test_after_a_rotation_both_secrets_sign_for_a_day(place: Place) -> None:
    """So that both sides need not change in the same moment."""
    before = place.webhooks.add(URL, by=ANA)
    after = place.webhooks.rotate(before.id, by=ANA)
    place.work()
    place.send()
    both = place.receiver.taken[-1]
    secrets = read_secrets(secret_file(place.home, before.id))
    later = secrets.in_use(place.clock.now() + timedelta(hours=25))

    assert (True, True) == (_verifies(before.secret.reveal(), both), _verifies(after.secret.reveal(), both))
    assert [after.secret.reveal()] == [secret.reveal() for secret in later]
    assert WebhookChange.ROTATED is place.state()


def test_a_secret_is_kept_as_keys_are_and_is_nowhere_else(place: Place) -> None:
    """In a file of its owner's; not in the ledger, nor in what is shown of it."""
    issued = place.webhooks.add(URL, by=ANA)
    file = secret_file(place.home, issued.id)
    elsewhere = [path for path in place.home.rglob("*") if path.is_file() and path != file]

    assert 0o600 == file.stat().st_mode & 0o777
    assert [] == [path for path in elsewhere if issued.secret.reveal().encode() in path.read_bytes()]
    assert issued.secret.reveal() not in repr(issued)
    file.chmod(0o644)
    with pytest.raises(KeyRefusedError, match="can be read by others"):
        place.webhooks.secrets(issued.id)
    file.chmod(0o600)
    file.write_text("something else\n")
    with pytest.raises(KeyRefusedError, match="not the secret of a webhook"):
        place.webhooks.secrets(issued.id)


def test_a_removed_one_is_told_nothing_more(place: Place) -> None:
    """And its secret is gone; every act is on record, and the ledger verifies."""
    issued = place.webhooks.add(URL, by=ANA)
    place.webhooks.remove(issued.id, by="user:ben", reason="moved")
    place.work()
    (one,) = place.relay.admin.webhooks()

    assert ((0, 0), []) == (place.send(), place.receiver.asked)
    assert ("moved", "user:ben", WebhookChange.REMOVED) == (one.reason, one.changed_by, one.state)
    assert place.relay.verify().receipts
    for act in (place.webhooks.rotate, place.webhooks.resume):
        with pytest.raises(NotFoundError):
            act(issued.id, by=ANA)
    with pytest.raises(KeyMissingError):
        place.webhooks.secrets(issued.id)


def test_a_webhook_of_another_relay_is_left_to_it(place: Place, tmp_path: Path) -> None:
    """Only who has its secret can sign for it."""
    place.webhooks.add(URL, by=ANA)
    place.work()
    home = tmp_path / "other"
    home.mkdir()
    for name in ("root.key",):
        if (place.home / name).exists():
            (home / name).write_bytes((place.home / name).read_bytes())
            (home / name).chmod(0o600)
    with Relay.open(place.home / "ledger.db", home=home) as other:
        assert () == Webhooks(other, place.receiver.egress()).own()


def test_an_erased_url_is_told_nothing(place: Place) -> None:
    """Whoever erases it has removed it."""
    place.webhooks.add(URL, by=ANA)
    (one,) = place.relay.admin.webhooks()
    with place.relay.store.view() as view:
        contents = [ref.id for ref in read_receipt(view.get_receipt(one.receipt)).content.values()]
    place.relay.admin.erase(contents, by=ANA, reason="a secret was in it")
    (erased,) = place.relay.admin.webhooks()

    assert (None, False, None) == (erased.url, erased.is_active, place_of(erased.url))


def test_what_may_not_be_asked_or_is_no_kind_is_not_added(place: Place) -> None:
    """Nothing is recorded then, and no secret is left behind."""
    with pytest.raises(EgressRefusedError):
        place.webhooks.add("https://127.0.0.1/hook", by=ANA)
    with pytest.raises(InvalidValueError, match="no kind of receipt"):
        place.webhooks.add(URL, by=ANA, kinds=("nonsense",))

    assert ((), False) == (place.relay.admin.webhooks(), (place.home / "webhooks").exists())


def test_a_trial_says_nothing_and_tells_the_answer(place: Place) -> None:
    """It is signed like the others."""
    issued = place.webhooks.add(URL, by=ANA)
    answer = place.webhooks.test(issued.id)
    sent = place.receiver.taken[0]
    place.receiver.is_there = False

    assert (True, "batonpass.webhook.test") == (answer.is_good, sent.event["type"])
    assert _verifies(issued.secret.reveal(), sent)
    with pytest.raises(EgressFailedError):
        place.webhooks.test(issued.id)


def test_a_server_delivers_beside_its_work(place: Place) -> None:
    """Until it ends; a dead webhook does not keep a living one waiting."""
    place.webhooks.add(URL, by=ANA, kinds=("run.closed",))
    told = threading.Event()
    place.receiver.taken = _Telling(told)
    with told_beside(place.relay, place.receiver.egress()):
        place.work()
        assert told.wait(60)


class _Telling(list[Taken]):
    """Sets an event when the first message is taken."""

    def __init__(self, told: threading.Event) -> None:
        super().__init__()
        self._told = told

    def append(self, taken: Taken) -> None:
        """Remember it."""
        super().append(taken)
        self._told.set()


def test_a_ledger_in_memory_has_no_webhooks() -> None:
    """There is no place for their secrets."""
    relay = Relay(MemoryStore())
    webhooks = Webhooks(relay, Receiver().egress())

    with pytest.raises(InvalidValueError, match="in memory"):
        webhooks.add(URL, by=ANA)
    with pytest.raises(InvalidValueError, match="in memory"):
        WebhookSender(relay, webhooks)
    with told_beside(relay, Receiver().egress()):
        pass


def test_what_is_shown_of_a_url_is_no_secret() -> None:
    """Scheme, host and port."""
    assert (PLACE, "https://b.c") == (place_of(URL), place_of("https://a@b.c/d"))
