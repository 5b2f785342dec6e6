"""Files that somebody wrote to do harm: each reader of files gets them, and they are refused or stay data."""

import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.importer.session_import import Imported, import_sessions
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.adapters.trace_files.event_lines import EventLines
from batonpass.adapters.trace_files.openai_traces import OpenAITraces
from batonpass.adapters.trace_files.otel_spans import OpenTelemetrySpans
from batonpass.adapters.trace_files.trace_reader import NamedSource
from batonpass.relay import Relay
from tests.unit.cli.desk import record_in

ESCAPE = "\x1b[2J\x1b]0;owned\x07\u202e"
AT = "2026-11-17T12:00:{:02}+00:00"
Teller = Callable[..., dict[str, Any]]


def a_span(name: str, parent: str | None, second: int, kind: str = "function", text: str = "x") -> dict[str, Any]:
    """Return a span of the OpenAI Agents SDK."""
    data = {"type": kind, "name": "n", "input": json.dumps({"text": text}), "output": text}
    times = {"started_at": AT.format(second), "ended_at": AT.format(second)}
    return {"object": "trace.span", "id": name, "trace_id": "t", "parent_id": parent, "span_data": data, **times}


def a_telemetry_span(
    name: str, parent: str | None, second: int, kind: str = "function", text: str = "x"
) -> dict[str, Any]:
    """Return a batch with one span of OpenTelemetry."""
    facts = {
        "gen_ai.operation.name": {"agent": "invoke_agent", "function": "execute_tool"}[kind],
        "gen_ai.agent.name": "n",
        "gen_ai.tool.name": "n",
        "gen_ai.tool.call.arguments": json.dumps({"text": text}),
        "gen_ai.tool.call.result": text,
    }
    at = str(1_795_000_000_000_000_000 + second * 1_000_000_000)
    span = {"traceId": "t", "spanId": name, "parentSpanId": parent, "startTimeUnixNano": at, "endTimeUnixNano": at}
    told = [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "name": text, "attributes": told}]}]}]}


def an_event(name: str, parent: str | None, second: int, kind: str = "function", text: str = "x") -> dict[str, Any]:
    """Return an event: a handoff for an agent, a call for a function."""
    event = {"session": "t", "id": name, "at": AT.format(second), "run": parent}
    if kind == "agent":
        return {**event, "type": "handoff", "to": name, "task": text}
    return {**event, "type": "call", "call": name, "tool": "n", "arguments": {"text": text}}


FORMATS = [
    pytest.param(OpenAITraces, a_span, id="openai-agents"),
    pytest.param(OpenTelemetrySpans, a_telemetry_span, id="opentelemetry"),
    pytest.param(EventLines, an_event, id="jsonl"),
]


def write(tmp_path: Path, told: Sequence[dict[str, Any] | bytes]) -> Path:
    """Write lines."""
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in told))
    return path


def bring(tmp_path: Path, reader: NamedSource) -> Imported:
    """Import a file into a ledger, which has to verify afterwards."""
    with Relay.open("memory:") as relay:
        imported = import_sessions(relay, tmp_path, reader, by="user:ana")
        relay.verify()
    return imported


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_nonsense_is_counted_and_named(reader: type[NamedSource], span: Teller, tmp_path: Path) -> None:
    """What cannot be read is said with its line; what is beside it is imported."""
    bad = [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\x00\xff\xfe",
        b'"text"',
        b"7",
        b"{}",
        b'{"resourceSpans": 7}',
        b"null",
    ]

    imported = bring(tmp_path, reader([str(write(tmp_path, [*bad, span("a", None, 1), *bad]))]))

    assert 1 == imported.counts.calls
    assert {*range(1, 6), *range(10, 15)} <= {one.line for one in imported.problems}
    assert 16 == imported.counts.unread


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_parents_in_a_circle_are_cut(reader: type[NamedSource], span: Teller, tmp_path: Path) -> None:
    """Agents that are above each other, and one above itself, are recorded once each."""
    told = [span("a", "b", 1, "agent"), span("b", "a", 2, "agent"), span("c", "c", 3, "agent"), span("d", "a", 4)]
    files = reader([str(write(tmp_path, told))])

    conversation = read_conversation(files, next(files.find(tmp_path)), tmp_path)
    imported = bring(tmp_path, files)

    runs = [run.agent for run in conversation.runs]
    assert len(runs) == len(set(runs))
    assert 1 == sum(call.use.tool == "n" for run in conversation.runs for call in run.calls)
    assert imported.counts.calls >= 1


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_a_chain_without_end_is_cut(reader: type[NamedSource], span: Teller, tmp_path: Path) -> None:
    """Agents that are nested two hundred deep are recorded, side by side from some depth on."""
    told = [span(f"a{number}", f"a{number - 1}" if number else None, number % 60, "agent") for number in range(200)]

    imported = bring(tmp_path, reader([str(write(tmp_path, told))]))

    assert imported.counts.subagents >= 199


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_a_name_that_is_used_twice_counts_once(reader: type[NamedSource], span: Teller, tmp_path: Path) -> None:
    """The first counts; the other is named. What is only told again is no problem."""
    told = [span("a", None, 1, text="one"), span("a", None, 1, text="one"), span("a", None, 1, text="two")]

    imported = bring(tmp_path, reader([str(write(tmp_path, told))]))

    assert (1, [3]) == (imported.counts.calls, [one.line for one in imported.problems])


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_a_long_text_is_data(reader: type[NamedSource], span: Teller, tmp_path: Path) -> None:
    """Ten million characters in one string are kept as they are, up to the size of a content."""
    told = [span("a", None, 1, text="y" * 10_000_000), span("b", None, 2)]

    assert 2 == bring(tmp_path, reader([str(write(tmp_path, told))])).counts.calls


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_escapes_do_not_reach_a_terminal(
    reader: type[NamedSource], span: Teller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in what is shown of the session nor in what is said of lines that could not be read."""
    monkeypatch.chdir(tmp_path)
    desk = record_in(tmp_path)
    told = [
        span(f"a{ESCAPE}", None, 1, "agent", text=ESCAPE),
        span("b", f"a{ESCAPE}", 2, text=f"half-even {ESCAPE}"),
        span("b", None, 2, text=ESCAPE),
        {"type": ESCAPE, "object": ESCAPE, "id": ESCAPE, ESCAPE: ESCAPE},
    ]
    path = write(tmp_path, told)

    told_of = (("import", reader.program, str(path)), ("trail", "last"), ("blame", "--text", "half-even"))
    shown = [desk.run(*command).output for command in told_of]

    assert [] == [text for text in shown if "\x1b" in text or "\u202e" in text or "\x07" in text]
    assert "half-even" in "".join(shown)


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_a_long_file_is_streamed(reader: type[NamedSource], span: Teller, tmp_path: Path) -> None:
    """Finding and reading its sessions takes the memory of one of them, however many there are."""
    path = tmp_path / "file.jsonl"
    with path.open("w") as file:
        for number in range(150):
            told = json.dumps(span("a", None, 1, text="x" * 50_000))
            file.write(told.replace('"t"', f'"t{number}"') + "\n")
    tracemalloc.start()
    try:
        files = reader([str(path)])
        sessions = list(files.find(tmp_path))
        for one in sessions:
            for _ in files.read(one, tmp_path):
                pass
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 150 == len(sessions)
    assert most < 5 * 1024 * 1024  # of eight or sixteen million characters


@pytest.mark.parametrize(("reader", "span"), FORMATS)
def test_long_texts_of_one_session_are_not_kept_in_memory(
    reader: type[NamedSource], span: Teller, tmp_path: Path
) -> None:
    """The tree of a session has its shape; long arguments and results are on disk until they are recorded, whole."""
    told = [span(f"a{number}", None, number % 60, text=f"{number} " * 20_000) for number in range(150)]
    path = write(tmp_path, told)
    del told
    files = reader([str(path)])
    (session,) = files.find(tmp_path)
    tracemalloc.start()
    try:
        conversation = read_conversation(files, session, tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    texts = {call.use.tool_use_id: call.use.input["text"] for call in conversation.main.calls}
    assert {f"a{number}": f"{number} " * 20_000 for number in range(150)} == texts
    assert most < 5 * 1024 * 1024  # of eleven or more million characters
