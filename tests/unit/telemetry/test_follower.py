"""The way from receipts to a collector: at least once, by one process at a time, from where it stopped."""

import threading
from pathlib import Path

from batonpass.errors.egress import CollectorError
from batonpass.store.memory import MemoryStore
from batonpass.telemetry.follower import TelemetryFollower
from batonpass.telemetry.metric_rollup import MetricRollup
from batonpass.telemetry.span_record import SpanRecord
from tests.unit.telemetry.told_trees import ToldTree, made


class DeafCollector:
    """Takes what it gets, and says when."""

    def __init__(self, *, taking: threading.Event | None = None) -> None:
        self.spans: list[SpanRecord] = []
        self.taking = taking
        self.go_on = threading.Event()

    def send_spans(self, spans: list[SpanRecord]) -> None:
        """Take spans, and wait if somebody wants that."""
        self.spans += spans
        if self.taking is not None:
            self.taking.set()
            self.go_on.wait(30)

    def send_metrics(self, rollup: MetricRollup) -> None:
        """Take metrics."""


def test_one_process_at_a_time_sends(tmp_path: Path) -> None:
    """While one is sending, another one leaves it to the first."""
    tree = ToldTree()
    slow, other = DeafCollector(taking=threading.Event()), DeafCollector()
    thread = threading.Thread(target=TelemetryFollower(tree.relay.store, tmp_path, slow).send_all)
    thread.start()
    assert slow.taking is not None
    assert slow.taking.wait(30)

    assert 0 == TelemetryFollower(tree.relay.store, tmp_path, other).send_all()
    slow.go_on.set()
    thread.join()
    assert ([], True) == (other.spans, bool(slow.spans))


def test_another_ledger_beside_the_same_keys_is_sent_from_its_beginning(tmp_path: Path) -> None:
    """A position belongs to its ledger: one that was put in its place is not skipped."""
    for _ in range(2):
        tree, collector = ToldTree(MemoryStore()), DeafCollector()
        TelemetryFollower(tree.relay.store, tmp_path, collector).send_all()
        assert len(made(tree)) == len(collector.spans)


def test_a_broken_note_of_how_far_it_came_repeats_everything(tmp_path: Path) -> None:
    """Once too often is better than never."""
    tree, collector = ToldTree(), DeafCollector()
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "otlp.json").write_text('{"rollup": {"posit', encoding="utf-8")

    assert len(made(tree)) == TelemetryFollower(tree.relay.store, tmp_path, collector).send_all()


def test_it_goes_on_until_it_is_stopped_and_tells_what_failed(tmp_path: Path) -> None:
    """A collector that was away is asked again."""
    tree, stop, told = ToldTree(), threading.Event(), list[str]()

    class Away(DeafCollector):
        def send_spans(self, spans: list[SpanRecord]) -> None:
            if not told:
                raise CollectorError("the collector")
            super().send_spans(spans)

    def note(sent: int, error: CollectorError | None) -> None:
        told.append("failed" if error else f"sent {sent}")
        if sent:
            stop.set()

    TelemetryFollower(tree.relay.store, tmp_path, Away()).run_until(stop, told=note)

    assert ["failed", f"sent {len(made(tree))}"] == told
