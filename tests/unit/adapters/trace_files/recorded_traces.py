"""What the real frameworks wrote of one small job.

A person asks for a change. `lead` asks `checker`, an agent that is used as a tool, and hands to `editor`, which writes
a file. One tool fails. Long settings and counts of tokens were taken out; nothing else was changed.
"""

import json
import sqlite3
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from batonpass.adapters.session_readers import NAMED_READERS
from batonpass.adapters.trace_files.trace_reader import NamedSource

RECORDED: Final = Path(__file__).parent / "recorded"
PROMPT: Final = "Make the invoice round half-even"
CHECK: Final = "Check src/invoice.py"


@dataclass(frozen=True, kw_only=True)
class RecordedTrace:
    """One file, what wrote it, and what it tells."""

    program: str
    file: str
    prompts: tuple[str, ...] = (PROMPT,)
    editor: str | None = PROMPT  # its task
    editor_says: str | None = "edited"
    failed: tuple[str, ...] = ("broken",)
    calls: tuple[tuple[str, str], ...] = (("editor", "write_file"), ("editor", "broken"))
    is_database: bool = False

    def __str__(self) -> str:
        return self.file

    def reader(self, folder: Path) -> NamedSource:
        """Return a reader of the file; a database is made anew in a folder."""
        path = RECORDED / self.file
        if self.is_database:
            path = folder / "checkpoints.db"
            if not path.exists():
                with closing(sqlite3.connect(path)) as database, database:
                    for statement, values in table_rows(self.file, "?"):
                        database.execute(statement, values)
        return NAMED_READERS[self.program]([str(path)])


def table_rows(file: str, mark: str) -> Iterator[tuple[str, list[object]]]:
    """Yield the statements that make the tables of a recorded database again, with their values."""
    with (RECORDED / file).open(encoding="utf-8") as lines:
        tables: dict[str, dict[str, str]] = json.loads(next(lines))
        for table, columns in tables.items():
            yield f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})", []
        for line in lines:
            table, *values = json.loads(line)
            marks = ", ".join(mark for _ in values)
            kinds = tables[table].values()
            yield f"INSERT INTO {table} VALUES ({marks})", list(map(_restored, values, kinds))


def _restored(value: object, kind: str) -> object:
    if isinstance(value, dict) and "b64" in value:
        return b64decode(value["b64"])
    return json.dumps(value) if kind == "jsonb" else value


TRACES: Final = (
    RecordedTrace(
        program="openai-agents", file="openai_agents.jsonl", prompts=(), editor=None, editor_says=None
    ),  # the SDK tells no words of models that speak the Responses API
    RecordedTrace(program="openai-agents", file="openai_agents_chat.jsonl"),
    RecordedTrace(
        program="opentelemetry",
        file="opentelemetry.jsonl",
        editor="Write src/invoice.py",
        calls=(("editor", "write_file"), ("lead", "broken")),
    ),  # PydanticAI 2.66, by the Collector's format
    RecordedTrace(
        program="langgraph",
        file="langgraph_sqlite.jsonl",
        calls=(("checker", "write_file"), ("editor", "write_file")),
        failed=(),
        is_database=True,
    ),  # LangGraph 1.2.22, its SQLite saver 3.1.2, a swarm
)
