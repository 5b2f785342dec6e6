"""Checkpoints in a PostgreSQL database, as the real saver wrote them, and a saver's tables that somebody damaged."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.adapters.trace_files.langgraph_checkpoints import LangGraphCheckpoints
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from tests.postgres_server import Server
from tests.unit.adapters.trace_files.recorded_traces import CHECK, PROMPT, table_rows


@pytest.fixture
def address(postgres: Server) -> Iterator[str]:
    """Return the address of a database with what LangGraph 1.2.22 and its PostgreSQL saver 3.2.0 kept of the job."""
    with postgres.database() as name:
        url = postgres.admin_url(name)
        with psycopg.connect(url) as connection:
            for statement, values in table_rows("langgraph_postgres.jsonl", "%s"):
                connection.execute(statement.encode(), values)
        yield url


def test_a_conversation_in_postgresql_is_told(address: str, tmp_path: Path) -> None:
    """Who worked for whom, with which words; importing again adds nothing, and no password is shown."""
    reader = LangGraphCheckpoints([address.replace("postgres@", "postgres:secret@")])
    (files,) = reader.find(tmp_path)
    told = read_conversation(reader, files, tmp_path)

    with Relay.open("memory:") as relay:
        first = import_sessions(relay, tmp_path, LangGraphCheckpoints([address]), by="user:ana")
        again = import_sessions(relay, tmp_path, LangGraphCheckpoints([address]), by="user:ana")
        with relay.store.view() as view:
            count = len(list(view.find_receipts(ReceiptQuery())))

    checker, editor = told.main.children
    assert ("lead", [PROMPT]) == (told.info.agent, [prompt.text for prompt in told.prompts])
    assert ("checker", CHECK, "editor", PROMPT) == (checker.agent_type, checker.task, editor.agent_type, editor.task)
    assert ((), ()) == (told.strays, told.problems)
    assert "secret" not in str(reader.place)
    assert (2, 2, 0) == (first.counts.subagents, first.counts.calls, again.counts.receipts)
    assert count == first.counts.receipts + 1


def test_a_database_that_is_none_is_named(postgres: Server, tmp_path: Path) -> None:
    """An empty database has no conversations, and says why."""
    with postgres.database() as name:
        reader = LangGraphCheckpoints([postgres.admin_url(name)])

        assert [] == list(reader.find(tmp_path))
        assert ["does not exist" in one.what for one in reader.problems()] == [True]


def test_what_is_damaged_is_counted_and_named(address: str, tmp_path: Path) -> None:
    """A value that is pickled, cut or nested without end is left out; the rest is told."""
    with psycopg.connect(address) as connection:
        connection.execute(
            "UPDATE checkpoint_blobs SET type = 'pickle' WHERE channel = 'messages' AND checkpoint_ns = ''"
        )
        connection.execute(
            "UPDATE checkpoint_blobs SET blob = %s WHERE checkpoint_ns LIKE 'editor%%'", [b"\x91" * 9999]
        )

    with Relay.open("memory:") as relay:
        imported = import_sessions(relay, tmp_path, LangGraphCheckpoints([address]), by="user:ana")

    told = json.dumps([one.what for one in imported.problems])
    assert "is stored as 'pickle', which is not read" in told
    assert "is nested too deep" in told
    assert imported.counts.unread == len(imported.problems)
    assert 1 == imported.counts.prompts
