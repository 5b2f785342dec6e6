"""Checkpoints of another shape than a chat: graphs without messages, crashes, damaged and forged databases."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.session_files.conversation import Conversation, read_conversation
from batonpass.adapters.trace_files.langgraph_checkpoints import LangGraphCheckpoints
from batonpass.adapters.trace_files.stored_values import decode_stored
from batonpass.relay import Relay
from tests.unit.adapters.trace_files.recorded_traces import table_rows

ENCODE = msgspec.msgpack.encode


def a_message(kind: str, **fields: object) -> msgspec.msgpack.Ext:
    """Return a message as the serialiser stores it."""
    return msgspec.msgpack.Ext(5, ENCODE(["langchain_core.messages", kind, fields, "model_validate_json"]))


class Saver:
    """A database with a saver's tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._count = 0
        for statement, values in table_rows("langgraph_sqlite.jsonl", "?"):
            if not values:
                self.execute(statement)

    def execute(self, statement: str, *values: object) -> None:
        """Change it."""
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(statement, values)

    def save(self, place: str = "", thread: str = "t", metadata: bytes = b"{}", **channels: object) -> str:
        """Save a checkpoint, and return its name."""
        self._count += 1
        name = f"1f1e2da2-2738-6625-bfff-{self._count:012d}"
        told = {"v": 4, "ts": f"2026-11-17T12:00:{self._count:02}+00:00", "id": name, "channel_values": channels}
        row = (thread, place, name, None, "msgpack", ENCODE(told), metadata)
        self.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
        return name

    def write(self, checkpoint: str, channel: str, value: object, task: str = "x") -> None:
        """Keep what a task wrote after a checkpoint."""
        row = ("t", "", checkpoint, task, "", 0, channel, "msgpack", ENCODE(value))
        self.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def conversation(self) -> Conversation:
        """Return the only conversation."""
        reader = LangGraphCheckpoints([str(self.path)])
        (files,) = reader.find(self.path.parent)
        return read_conversation(reader, files, self.path.parent)


@pytest.fixture
def saver(tmp_path: Path) -> Saver:
    """Return an empty saver."""
    return Saver(tmp_path / "checkpoints.db")


def test_a_graph_without_messages_is_told_by_its_state(saver: Saver) -> None:
    """What it was given is the prompt, and what it held in the end is its report."""
    saver.save(__start__={"order": "invoice 7"})
    saver.save(order="invoice 7", __pregel_tasks=[])
    saver.save(order="invoice 7", verdict="half-even")

    told = saver.conversation()

    assert ['{"order":"invoice 7"}'] == [prompt.text for prompt in told.prompts]
    assert '{"order":"invoice 7","verdict":"half-even"}' == (told.main.report and told.main.report.text)


def test_what_a_crash_left_behind_is_told(saver: Saver) -> None:
    """A message that a task wrote and no checkpoint has yet counts, and so does the error that ended it."""
    human = a_message("HumanMessage", id="h", content="Do it")
    last = saver.save(messages=[human])
    saver.write(last, "messages", [a_message("AIMessage", id="a", content="I was about to")])
    saver.write(last, "__error__", "ZeroDivisionError()", task="y")

    told = saver.conversation()

    assert ("I was about to", "failed") == (told.main.report and told.main.report.text, told.main.status)


def test_a_trimmed_conversation_is_told_whole(saver: Saver) -> None:
    """A message that later checkpoints do not have any more was said all the same, and once."""
    first, second = (a_message("HumanMessage", id=name, content=name) for name in ("one", "two"))
    saver.save(messages=[first])
    saver.save(messages=[first, second])
    saver.save(messages=[second])

    assert ["one", "two"] == [prompt.text for prompt in saver.conversation().prompts]


def test_a_graph_that_claims_to_be_in_itself_is_told_once(saver: Saver) -> None:
    """Places are names that anybody can forge."""
    place = "tools:x|tools:x|tools:x"
    call = {"name": "ask", "args": {"task": "t"}, "id": "c"}
    saver.save(messages=[a_message("AIMessage", id="a", content="", tool_calls=[call])])
    checkpoint = saver.save(place, messages=[a_message("AIMessage", id="b", content="hm", tool_calls=[call])])
    saver.write(checkpoint, "messages", [a_message("ToolMessage", id="r", tool_call_id="c", content="r")])

    assert 1 <= len(saver.conversation().runs) <= 3


@pytest.mark.parametrize(
    "kind", ["pickle", "msgpack+aes", "\x1b[2J"], ids=["pickled", "encrypted", "with an escape for a terminal"]
)
def test_what_is_not_read_is_named(saver: Saver, kind: str, tmp_path: Path) -> None:
    """It is never loaded: the checkpoint is counted, and the others are told."""
    saver.save(messages=[a_message("HumanMessage", id="h", content="Do it")])
    second = saver.save(messages=[])
    saver.execute("UPDATE checkpoints SET type = ? WHERE checkpoint_id = ?", kind, second)

    with Relay.open("memory:") as relay:
        imported = import_sessions(relay, tmp_path, LangGraphCheckpoints([str(saver.path)]), by="user:ana")

    assert (1, 1) == (imported.counts.prompts, imported.counts.unread)
    assert repr(kind) in imported.problems[0].what
    assert "\x1b" not in imported.problems[0].what


@pytest.mark.parametrize(
    ("made", "why"),
    [
        pytest.param(b"", "no such table", id="an empty file"),
        pytest.param(b"this is no database" * 100, "not a database", id="something else"),
        pytest.param(None, "", id="no file"),
    ],
)
def test_a_file_that_is_no_saver_is_named(made: bytes | None, why: str, tmp_path: Path) -> None:
    """Nobody fails because of it, and nothing is made in its place."""
    path = tmp_path / "x.db"
    if made is not None:
        path.write_bytes(made)
    reader = LangGraphCheckpoints([str(path)])

    assert [] == list(reader.find(tmp_path))
    assert [why in one.what for one in reader.problems()] == [True]
    assert (made is not None) == path.exists()


def test_older_values_are_read_too() -> None:
    """Objects that were written as JSON are a name and fields as well."""
    told = decode_stored(
        "json", b'[{"lc":2,"type":"constructor","id":["langchain","schema","HumanMessage"],"kwargs":{"content":"x"}}]'
    )

    assert [("HumanMessage", {"content": "x"})] == [(one.name, one.fields) for one in told]
