"""Spans and metrics of a ledger on a server are those of one in memory."""

import json

import pytest

from batonpass.store.postgres.store import PostgresStore
from batonpass.telemetry.metric_board import MetricBoard
from tests.unit.telemetry.told_trees import ToldTree, made

pytestmark = pytest.mark.postgres


def test_a_ledger_on_a_server_tells_the_same_spans(store: PostgresStore) -> None:
    """What is read while receipts are still coming from the server disturbs nothing."""
    tree = ToldTree(store)
    board = MetricBoard(tree.relay.store)
    board.refresh()

    names = [span.name for span in made(ToldTree())]
    assert names == [span.name for span in made(tree)]
    assert f"batonpass_metrics_position {len(list(tree.receipts()))}\n" in board.text()
    lines = [json.loads(line) for line in tree.relay.admin.export(tree.lead.id, form="otlp")]
    assert names == [span["name"] for line in lines for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]]
