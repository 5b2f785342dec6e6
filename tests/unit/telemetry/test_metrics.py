"""Metrics: what receipts add up to, for Prometheus, with few names and without reading the ledger again."""

import re
import threading
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.telemetry import metric_board
from batonpass.telemetry.metric_board import LOOK_EVERY, MetricBoard
from batonpass.telemetry.metric_rollup import MOST_AGENTS, OTHER, MetricRollup
from batonpass.telemetry.metric_text import metric_text, open_metrics_text
from tests.unit.telemetry.told_trees import SECRET_WORDS, ToldTree

SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? -?[0-9.]+(e[+-][0-9]+)?')


def samples(text: str) -> dict[str, float]:
    """Return the samples of a text, after a look at its form."""
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    assert [] == [line for line in lines if not SAMPLE.fullmatch(line)]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_metrics_are_what_the_receipts_add_up_to() -> None:
    """Receipts by kind, operations by outcome, tokens, and how long it took."""
    tree = ToldTree()
    board = MetricBoard(tree.relay.store)
    board.refresh()
    told = samples(board.text())

    recorded = [receipt.kind for _, receipt in tree.receipts()]
    assert recorded.count("tool.requested") == told['batonpass_receipts_total{kind="tool.requested"}']
    labels = 'gen_ai_operation_name="{}",gen_ai_agent_name="{}",gen_ai_tool_name="{}",outcome="{}"'
    assert [1, 1, 1, 1] == [
        told[f"batonpass_operations_total{{{labels.format(*one)}}}"]
        for one in (
            ("invoke_agent", "editor", "", "failed"),
            ("invoke_agent", "editor", "", "completed"),
            ("execute_tool", "editor", "broken", "failed"),
            ("execute_tool", "lead", "transfer_to_editor", "completed"),
        )
    ]
    assert 1200 == told['batonpass_tokens_total{gen_ai_agent_name="editor"}']
    of_editor = 'gen_ai_operation_name="invoke_agent",gen_ai_agent_name="editor"'
    seconds = "gen_ai_client_operation_duration_seconds"
    assert (2, 5.0) == (told[f"{seconds}_count{{{of_editor}}}"], told[f"{seconds}_sum{{{of_editor}}}"])
    assert (1, 2) == (
        told[f'{seconds}_bucket{{{of_editor},le="2.56"}}'],
        told[f'{seconds}_bucket{{{of_editor},le="+Inf"}}'],
    )
    assert told["batonpass_ledger_position"] == told["batonpass_metrics_position"] == len(recorded)


ODD = 'a"} 1\nevil 2\\'


def told_metrics() -> str:
    """Return the metrics of a tree in which everything happened."""
    board = MetricBoard(ToldTree().relay.store)
    board.refresh()
    return board.text()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(told_metrics(), id="a whole tree"),
        pytest.param(metric_text(MetricRollup(receipts={ODD: 1}), waiting={}, last=0), id="a kind with odd characters"),
    ],
)
def test_the_parsers_of_prometheus_read_the_same_in_both_formats(text: str) -> None:
    """In its text format and in OpenMetrics, which is strict: families, types, buckets, values and odd labels."""
    one = list(read_text(text))
    other = list(read_open_metrics(open_metrics_text(text)))  # type: ignore[no-untyped-call]
    lines = [line for line in text.splitlines() if not line.startswith("# ")]

    assert [(each.name, each.type, each.documentation) for each in one] == [
        (each.name, each.type, each.documentation) for each in other
    ]
    assert [each.samples for each in one] == [each.samples for each in other]
    assert ("batonpass_receipts", "counter") == (one[0].name, one[0].type)
    assert len(lines) == sum(len(each.samples) for each in one)
    assert (ODD in {each.labels["kind"] for each in one[0].samples}) == ("evil" in text)


def test_a_restart_goes_on_with_the_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board of another process reads only what is new, and has the same numbers as one that read everything."""
    tree = ToldTree()
    MetricBoard(tree.relay.store, tmp_path).refresh()
    with tree.relay.start("More", by="user:ana"):
        pass
    read: list[int | None] = []
    add = MetricRollup.add

    def note(rollup: MetricRollup, stored: StoredReceipt, *rest: object) -> None:
        read.append(stored.position)
        add(rollup, stored, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(MetricRollup, "add", note)
        again = MetricBoard(tree.relay.store, tmp_path)
        again.refresh()
    whole = MetricBoard(tree.relay.store)
    whole.refresh()

    assert whole.text() == again.text()
    assert 2 == len(read)


def test_looking_at_metrics_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape costs what is shown, and never a look at the ledger."""
    tree = ToldTree()
    board = MetricBoard(tree.relay.store)
    board.refresh()
    shown = board.text()
    monkeypatch.setattr(MemoryStore, "view", None)

    assert shown == board.text()


def test_names_are_few() -> None:
    """However many agents there are, only so many have a name; the others are counted together."""
    relay = Relay(MemoryStore())
    for number in range(MOST_AGENTS + 5):
        with relay.start("Work", by="user:ana", agent=f"agent-{number}"):
            pass
    board = MetricBoard(relay.store)
    board.refresh()
    told = samples(board.text())

    agents = {found[1] for name in told if (found := re.search(r'gen_ai_agent_name="([^"]*)"', name))}
    assert MOST_AGENTS + 1 == len(agents)
    label = f'gen_ai_operation_name="invoke_agent",gen_ai_agent_name="{OTHER}",gen_ai_tool_name="",outcome="completed"'
    assert 5 == told[f"batonpass_operations_total{{{label}}}"]


def test_there_are_no_words_in_metrics() -> None:
    """Kinds, names of agents and tools, outcomes: nothing that anybody wrote."""
    board = MetricBoard(ToldTree().relay.store)
    board.refresh()

    assert [] == [word for word in SECRET_WORDS if word in board.text()]


def test_a_label_is_escaped() -> None:
    """A name that came from elsewhere adds no line and no label."""
    rollup = MetricRollup(receipts={'a"} 1\nevil 2\\': 1})

    assert 'batonpass_receipts_total{kind="a\\"} 1\\nevil 2\\\\"} 1\n' in metric_text(rollup, waiting={}, last=0)


def test_a_ledger_that_nobody_founded_has_no_metrics_yet() -> None:
    """Nothing is counted, and nothing fails; it looks again until it is stopped."""
    board, stop = MetricBoard(MemoryStore()), threading.Event()
    board.refresh()
    stop.set()
    board.run_until(stop)

    assert 0 == samples(board.text())["batonpass_metrics_position"]


class Rests(threading.Event):
    """Notes how long it was waited for, and is set when somebody would wait for what is new."""

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Return at once."""
        self.rests.append(timeout or 0)
        if timeout == LOOK_EVERY.total_seconds():
            self.set()
        return self.is_set()


def test_a_first_look_at_a_large_ledger_rests_as_long_as_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests have a turn meanwhile; in the end the sums are the same as of one look."""
    monkeypatch.setattr(metric_board, "_AT_ONCE", 3)
    store = ToldTree().relay.store
    at_once, board, stop = MetricBoard(store), MetricBoard(store), Rests()
    board.run_until(stop)
    at_once.refresh()
    with store.view() as view:
        steps = view.last_position() // 3

    assert (steps, at_once.text()) == (len(stop.rests) - 1, board.text())
    assert all(0 < rest < LOOK_EVERY.total_seconds() for rest in stop.rests[:-1])
