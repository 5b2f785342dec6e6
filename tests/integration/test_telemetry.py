"""Spans and metrics on their way to a collector on loopback: at least once, in order, with the same ids."""

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from batonpass.errors.egress import CollectorError
from batonpass.ledger.progress_file import ProgressFile
from batonpass.relay import Relay
from batonpass.telemetry.collector import OtlpCollector
from batonpass.telemetry.follower import TelemetryFollower
from tests.integration.collectors import LoopbackCollector, listening
from tests.unit.cli.handoffs import a_desk
from tests.unit.telemetry.told_trees import SECRET_WORDS, ToldTree, made


@pytest.fixture
def collector(caplog: pytest.LogCaptureFixture) -> Iterator[LoopbackCollector]:
    """Return a collector on loopback."""
    caplog.set_level(logging.CRITICAL, "opentelemetry")
    with listening() as opened:
        yield opened


def send(relay: Relay, home: Path, collector: LoopbackCollector, *, words: bool = False) -> int:
    """Send as a process that was started just now."""
    with relay.store.view() as view:
        ledger = view.info().id
    with closing(OtlpCollector(ledger, collector.address)) as sender:
        return TelemetryFollower(relay.store, home, sender, words=words).send_all()


def test_a_collector_gets_every_span_once(tmp_path: Path, collector: LoopbackCollector) -> None:
    """The protocol's own messages decode to the spans that were made; a second process sends none of them again."""
    tree = ToldTree()
    expected = made(tree)

    assert (len(expected), 0) == (send(tree.relay, tmp_path, collector), send(tree.relay, tmp_path, collector))
    assert [(one.place.trace, one.place.span, one.parent or "", one.name) for one in expected] == [
        (one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex(), one.name) for one in collector.spans
    ]
    assert [[link.place.span for link in one.links] for one in expected] == [
        [link.span_id.hex() for link in one.links] for one in collector.spans
    ]
    with tree.relay.store.view() as view:
        assert [{"service.name": "batonpass", "batonpass.ledger": view.info().id}] == collector.resources


def test_what_is_sent_has_no_words_unless_asked(tmp_path: Path, collector: LoopbackCollector) -> None:
    """What is on the wire has digests; with words it has what people and tools said."""
    tree = ToldTree()
    send(tree.relay, tmp_path / "silent", collector)
    silent = repr(collector.spans)
    send(tree.relay, tmp_path / "telling", collector, words=True)

    assert [] == [word for word in SECRET_WORDS if word in silent]
    assert "tangerine" in repr(collector.spans)


def test_a_collector_that_refuses_gets_everything_later(tmp_path: Path, collector: LoopbackCollector) -> None:
    """Nothing counts as sent until the collector took it."""
    tree = ToldTree()
    collector.refuses = True
    with pytest.raises(CollectorError, match=r"the collector at http://127\.0\.0\.1:\d+ did not take"):
        send(tree.relay, tmp_path, collector)
    collector.refuses = False

    assert len(made(tree)) == send(tree.relay, tmp_path, collector)


def test_a_crash_after_sending_repeats_the_same_bytes(
    tmp_path: Path, collector: LoopbackCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies between the collector's answer and its own note of it sends the same spans again."""
    tree = ToldTree()
    with monkeypatch.context() as patched:
        patched.setattr(ProgressFile, "write", _die)
        with pytest.raises(KeyboardInterrupt):
            send(tree.relay, tmp_path, collector)
    first = [one.SerializeToString(deterministic=True) for one in collector.spans]
    collector.spans.clear()
    send(tree.relay, tmp_path, collector)

    assert first == [one.SerializeToString(deterministic=True) for one in collector.spans]
    assert len(first) > 5


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_is_recorded_later_goes_out_later(tmp_path: Path, collector: LoopbackCollector) -> None:
    """From where it stopped, and with sums that go on."""
    tree = ToldTree()
    send(tree.relay, tmp_path, collector)
    before = len(collector.spans)
    with tree.relay.start("More", by="user:ana"):
        pass

    assert (1, before + 1) == (send(tree.relay, tmp_path, collector), len(collector.spans))
    receipts = collector.metrics["batonpass.receipts"].sum
    counts = {fact.value.string_value: point.as_int for point in receipts.data_points for fact in point.attributes}
    assert (2, True) == (counts["run.started"], receipts.is_monotonic)
    durations = collector.metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert 4 == sum(point.count for point in durations if "invoke_agent" in repr(point.attributes))


def test_the_command_sends_what_is_new(tmp_path: Path, collector: LoopbackCollector) -> None:
    """`batonpass telemetry send --once` sends, tells how much, and has nothing to send the next time."""
    desk = a_desk(tmp_path)
    with desk.relay() as relay, relay.start("Work", by="user:ana"):
        pass
    words = ("telemetry", "send", "--once", "--to", collector.address)

    first, second = desk.run(*words, "--json"), desk.run(*words)

    assert ({"sent": 1, "error": None}, 0) == (json.loads(first.stdout), first.exit_code)
    assert ("sent 0 spans\n", 1) == (second.stderr, len(collector.spans))
    collector.refuses = True
    with desk.relay() as relay, relay.start("More", by="user:ana"):
        pass
    refused = desk.run(*words, "--json")
    assert ("telemetry.untaken", 1) == (json.loads(refused.stdout)["error"]["code"], refused.exit_code)
