"""Traces as real frameworks wrote them: who worked for whom, with which words, and what is found of it afterwards."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.accounts.blame.other_blame import blame_text
from batonpass.adapters.importer.session_import import count_sessions, import_sessions
from batonpass.adapters.session_files.conversation import Conversation, read_conversation
from batonpass.audit.grep import SearchPattern, find_matches
from batonpass.model.base.content_names import SOURCE
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.adapters.trace_files.recorded_traces import CHECK, TRACES, RecordedTrace


@pytest.fixture(params=TRACES, ids=str)
def trace(request: pytest.FixtureRequest) -> RecordedTrace:
    """Return each file, one after the other."""
    told = request.param
    assert isinstance(told, RecordedTrace)
    return told


@pytest.fixture
def imported(trace: RecordedTrace, tmp_path: Path) -> Iterator[Relay]:
    """Return a relay with the session in it."""
    with Relay.open("memory:") as relay:
        import_sessions(relay, tmp_path, trace.reader(tmp_path), by="user:ana")
        yield relay


def conversation_of(trace: RecordedTrace, tmp_path: Path) -> Conversation:
    """Return the only session of a file."""
    reader = trace.reader(tmp_path)
    (files,) = reader.find(Path("/"))
    assert "chat-7" == files.session
    return read_conversation(reader, files, Path("/"))


def test_who_worked_for_whom(trace: RecordedTrace, tmp_path: Path) -> None:
    """Both agents hang below the one that asked them, with the exact task, and the words of the person are known."""
    told = conversation_of(trace, tmp_path)
    names = {run.agent: run.agent_type or told.info.agent for run in told.runs}
    checker, editor = (next(run for run in told.runs if names[run.agent] == name) for name in ("checker", "editor"))

    assert "lead" == told.info.agent
    assert trace.prompts == tuple(prompt.text for prompt in told.prompts)
    assert (told.main, told.main) == tuple(
        next(run for run in told.runs if run.agent == child.parent.use.agent)
        for child in (checker, editor)
        if child.parent is not None
    )
    assert (CHECK, trace.editor) == (checker.task, editor.task)
    assert ("checked", trace.editor_says) == tuple(run.report and run.report.text for run in (checker, editor))
    assert () == told.strays
    assert [] == list(told.problems)


def test_calls_and_their_outcomes(trace: RecordedTrace, tmp_path: Path) -> None:
    """Each call belongs to the agent that made it, and one that failed says so."""
    told = conversation_of(trace, tmp_path)
    calls = [(run.agent_type or "lead", call) for run in told.runs for call in run.calls if not call.children]

    assert sorted(trace.calls) == sorted((agent, call.use.tool) for agent, call in calls)
    assert ("editor", "src/invoice.py", "half-even") in [
        (agent, call.use.input.get("path"), call.use.input.get("text")) for agent, call in calls
    ]
    assert trace.failed == tuple(call.use.tool for _, call in calls if call.result is not None and not call.result.ok)


def test_twice_is_once(trace: RecordedTrace, imported: Relay, tmp_path: Path) -> None:
    """Importing again adds nothing, and a dry run says so."""
    with imported.store.view() as view:
        before = [one.id for one in view.find_receipts(ReceiptQuery())]

    counted = count_sessions(imported.store, tmp_path, trace.reader(tmp_path))
    again = import_sessions(imported, tmp_path, trace.reader(tmp_path), by="user:ana")

    with imported.store.view() as view:
        assert before == [one.id for one in view.find_receipts(ReceiptQuery())]
    assert (0, 0) == (counted.counts.sessions, again.counts.receipts)


def test_every_receipt_says_that_nobody_signed_it(trace: RecordedTrace, imported: Relay) -> None:
    """It is marked as imported and unsigned, with the program and the session, and the ledger verifies."""
    with imported.store.view() as view:
        receipts = [decode_receipt(one.payload) for one in view.find_receipts(ReceiptQuery())]
        sources = [view.get_content(one.content[SOURCE].id).body for one in receipts if SOURCE in one.content]
    told = [json.loads(one or b"{}") for one in sources]

    assert len(told) >= len(receipts) - 1  # all but the one that founds the ledger
    assert {(trace.program, "chat-7", True, True)} == {
        (one["source"], one["session"], one["imported"], one["unsigned"]) for one in told
    }
    imported.verify()


def test_words_are_found(imported: Relay) -> None:
    """Whoever searches for words, or asks who wrote them, finds the call."""
    with imported.store.view() as view:
        found = {(match.agent, match.kind) for match in find_matches(view, SearchPattern("half-even"), ReceiptQuery())}
        blamed = {(place.agent.partition(" ")[0], place.what) for place in blame_text(view, "half-even").places}

    assert ("editor", "tool.requested") in found
    assert ("editor", "call") in blamed
