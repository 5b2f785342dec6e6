"""Where Claude Code's model stood when it started a sub-agent: the line of its transcript, found at its end."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from batonpass.accounts.handoff.reasoning import Reasoning, read_reasoning
from batonpass.adapters.claude_code.transcripts.delegation_message import find_message
from batonpass.model.bodies.reasoning import ReasoningPlace
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.adapters.coders.sessions import Session


def said(uuid: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    """Return a line with what a model said."""
    return {"type": "assistant", "uuid": uuid, "message": {"role": "assistant", "content": list(blocks)}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def delegation(call: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Agent", "input": {"prompt": "Fix it"}}


def keep(session: Session, *lines: dict[str, Any], agent: str | None = None) -> None:
    """Let Claude Code write lines into the transcript of the session, or of a sub-agent."""
    for line in lines:
        session.keep(session.transcript.name if agent is None else f"agent-{agent}.jsonl", line, agent=agent)


def reasonings(relay: Relay) -> list[Reasoning | None]:
    """Return what each offer points to, in order."""
    with relay.store.view() as view:
        offers = view.find_receipts(ReceiptQuery(kind="handoff.initiated"))
        return [read_reasoning(view, decode_receipt(offer.payload)) for offer in offers]


def place(relay: Relay, number: int = 0) -> ReasoningPlace:
    """Return where one offer says that its message stands."""
    found = reasonings(relay)[number]
    assert found is not None
    assert found.place is not None
    return found.place


def line_at(found: ReasoningPlace) -> bytes:
    """Return the line that stands where a place says."""
    assert found.path is not None
    assert found.offset is not None
    return Path(found.path).read_bytes()[found.offset :].partition(b"\n")[0]


def test_the_offer_points_to_the_line_with_its_call(relay: Relay, session: Session) -> None:
    """The path, the message's name and the byte where its line begins; the digest is of exactly that line."""
    session.says("Fix the invoice")
    keep(session, said("m1", text("Let me see. ä")), said("m2", delegation("c1")), said("m3", delegation("c2")))
    session.delegates("c1", "Fix it")
    found = place(relay)

    assert (str(session.transcript), "m2") == (found.path, found.uuid)
    assert sha256(line_at(found)).hexdigest() == found.sha256
    assert "c1" in line_at(found).decode()


def test_a_call_that_is_not_written_yet_points_to_the_last_message(relay: Relay, session: Session) -> None:
    """Claude Code tells of a call before it writes it: then what it had said until then is what it thought."""
    session.says("Fix the invoice")
    keep(
        session, said("m1", text("I will ask the editor.")), {"type": "user", "uuid": "u2", "message": {"content": "x"}}
    )
    session.delegates("c1", "Fix it")

    assert "m1" == place(relay).uuid


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(None, id="no transcript at all"),
        pytest.param(b"", id="an empty one"),
        pytest.param(b'{"type":"user","uuid":"u","message":{"content":"x"}}\n', id="a model that said nothing yet"),
        pytest.param(b"\xff\xfe{{{\n[1,2]\n" + b'{"type":"assistant"' * 99, id="what cannot be read"),
        pytest.param(b'{"type":"assistant","uuid":7,"message":{"content":[]}}\n', id="a name that is no text"),
    ],
)
def test_what_is_not_there_is_not_filled_in(relay: Relay, session: Session, written: bytes | None) -> None:
    """The sub-agent is offered its task all the same, and nothing is said of what its sender thought."""
    if written is not None:
        session.transcript.parent.mkdir(parents=True, exist_ok=True)
        session.transcript.write_bytes(written)
    session.says("Fix the invoice")
    session.delegates("c1", "Fix it")

    assert [None] == reasonings(relay)


def test_an_offer_that_is_written_late_takes_no_later_message_for_its_own(relay: Relay, session: Session) -> None:
    """Its own call is looked for; what the model said since is not what it thought then."""
    session.says("Fix the invoice")
    keep(session, said("m1", text("long done")))
    session.delegated("c1", "a1", "done")
    keep(session, said("m2", delegation("c2")), said("m3", text("more")))
    session.delegated("c2", "a2", "done")

    assert (None, "m2") == (reasonings(relay)[0], place(relay, 1).uuid)


def test_a_sub_agent_s_message_is_found_in_its_own_transcript(relay: Relay, session: Session) -> None:
    """Who hands on within a sub-agent thought in that sub-agent's conversation."""
    session.says("Fix the invoice")
    keep(session, said("m1", delegation("c1")))
    session.delegates("c1", "Fix it")
    session.starts("a1", "c1")
    keep(session, said("s1", delegation("c2")), agent="a1")
    session.delegates("c2", "Test it", kind="tester", agent="a1")
    found = place(relay, 1)

    assert ("s1", True) == (found.uuid, str(found.path).endswith("subagents/agent-a1.jsonl"))


def test_a_name_as_long_as_a_book_is_left_out(tmp_path: Path) -> None:
    """Whoever writes a transcript does not fill the record with it; the line is found by its place."""
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(said("x" * 10_000, delegation("c1"))) + "\n", encoding="utf-8")
    found = find_message(path, "c1")

    assert found is not None
    assert (None, 0) == (found.uuid, found.offset)


def test_only_the_end_of_a_long_transcript_is_read(tmp_path: Path) -> None:
    """A line further back is not looked for, and one at the end is at its place all the same."""
    path = tmp_path / "t.jsonl"
    filler = json.dumps(said("m", text("x" * 1000))) + "\n"
    first, last = (json.dumps(said(call, delegation(call))) + "\n" for call in ("c1", "c2"))
    path.write_text(first + filler * 700 + last, encoding="utf-8")
    found = find_message(path, "c2")

    assert find_message(path, "c1") is None
    assert found is not None
    assert last.rstrip("\n").encode() == line_at(found)
