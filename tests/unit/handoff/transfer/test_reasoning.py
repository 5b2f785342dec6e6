"""The pointer to what a sender thought: set by default from what is there, and never made up."""

import json
from hashlib import sha256
from typing import Any

import pytest

from batonpass import Brief
from batonpass.accounts.handoff.reasoning import Reasoning, read_reasoning
from batonpass.aio import AsyncRelay
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import Digest, ReceiptId
from batonpass.model.bodies.body import HandoffInitiated
from batonpass.model.bodies.reasoning import ReasoningPlace, ReasoningPointer
from batonpass.model.ledger.receipt import Receipt
from batonpass.relay import Relay
from batonpass.wire.receipt_codec import encode_receipt
from tests.unit.agents.house import run_async
from tests.unit.handoff.places import Places, fail, receipts, words

MESSAGE = {"role": "assistant", "content": "The editor knows the tax rules best."}
PLACE = ReasoningPlace(
    sha256=Digest(sha256(b"a line").hexdigest()), line=41, offset=9000, path="/home/ana/t.jsonl", uuid="m-7"
)


def offers(relay: Relay) -> list[Receipt]:
    """Return all offers, in order."""
    return receipts(relay, "handoff.initiated")


def pointers(relay: Relay) -> list[ReasoningPointer | None]:
    """Return what each offer points to."""
    return [receipt.body.reasoning for receipt in offers(relay) if isinstance(receipt.body, HandoffInitiated)]


def read(relay: Relay, number: int = 0) -> Reasoning | None:
    """Return what one offer points to, as commands read it."""
    with relay.store.view() as view:
        return read_reasoning(view, offers(relay)[number])


def checkpoints(relay: Relay) -> list[ReceiptId]:
    """Return all checkpoints, in order."""
    return [receipt.id for receipt in receipts(relay, "checkpoint.saved")]


def test_a_run_that_said_nothing_points_to_nothing(relay: Relay, lead: LiveRun) -> None:
    """Neither a checkpoint nor a message: nothing is filled in, neither in signed bytes nor beside them."""
    lead.hand_off("editor", "Fix it")

    assert ([None], None) == (pointers(relay), read(relay))
    assert "reasoning" not in offers(relay)[0].content


def test_an_offer_points_to_the_last_checkpoint(relay: Relay, lead: LiveRun) -> None:
    """Each offer names the one that was the last when it was made."""
    lead.checkpoint(["first"])
    lead.hand_off("editor", "Fix it")
    lead.checkpoint(["first", "second"])
    lead.hand_off("editor", "Test it")

    assert [ReasoningPointer(checkpoint=one) for one in checkpoints(relay)] == pointers(relay)


def test_another_process_that_goes_on_with_a_run_points_to_its_checkpoint(places: Places) -> None:
    """What the run kept is in the ledger, whoever holds it now."""
    first = places.relay()
    root = first.start("Fix it", by="user:ana")
    root.checkpoint(["first"])
    relay = places.relay()
    relay.resume(root.id).hand_off("editor", "Fix it")

    assert [ReasoningPointer(checkpoint=checkpoints(relay)[0])] == pointers(relay)


def test_a_new_attempt_points_to_what_it_goes_on_from(relay: Relay, lead: LiveRun) -> None:
    """The checkpoint of the attempt before is what it was given to start with; the read value says whose it is."""
    handoff = lead.hand_off("editor", "Fix it")
    before = handoff.accept()
    before.checkpoint(["thought"])
    fail(before)
    handoff.retry()
    handoff.accept().hand_off("tester", "Test it")
    reasoning = read(relay, 1)

    assert reasoning is not None
    assert reasoning.checkpoint is not None
    assert (ReasoningPointer(checkpoint=checkpoints(relay)[0]), before.id) == (
        reasoning.pointer,
        reasoning.checkpoint.run,
    )


def test_a_message_is_kept_with_the_offer(relay: Relay, lead: LiveRun) -> None:
    """Where nobody else keeps it, its words are content, and its number and keyed digest are signed."""
    lead.note_message(MESSAGE, number=2)
    lead.hand_off("editor", "Fix it")
    reasoning = read(relay)

    assert reasoning is not None
    assert reasoning.place is not None
    assert reasoning.message is not None
    assert (2, MESSAGE, sha256(json.dumps(MESSAGE).encode()).hexdigest()) == (
        reasoning.pointer.message,
        json.loads(reasoning.message.words or ""),
        reasoning.place.sha256,
    )
    assert "message 2 kept with the offer" == reasoning.sentence


def test_signed_bytes_hold_no_words_of_it(relay: Relay, lead: LiveRun) -> None:
    """No path, no name, no message; and no plain digest, which would confirm a guess after all was erased."""
    lead.hand_off("editor", "Fix it", brief=Brief(reasoning=PLACE))
    signed = encode_receipt(offers(relay)[0]).decode()

    assert [] == [word for word in (PLACE.path, PLACE.uuid, PLACE.sha256) if word is None or word in signed]
    (pointer,) = pointers(relay)
    assert pointer is not None
    assert (41, 9000) == (pointer.line, pointer.offset)
    assert lead._desk.secrets.digest(lead.root, b"reasoning", PLACE.sha256.encode()) == pointer.digest


def test_a_given_place_counts_more_than_what_the_run_knows(relay: Relay, lead: LiveRun) -> None:
    """A caller that says where its message stands is believed; the checkpoint stands beside it."""
    lead.note_message(MESSAGE)
    lead.checkpoint([MESSAGE])
    lead.hand_off("editor", "Fix it", brief=Brief(reasoning=PLACE))
    reasoning = read(relay)

    assert reasoning is not None
    assert (PLACE, None, checkpoints(relay)[0]) == (reasoning.place, reasoning.message, reasoning.pointer.checkpoint)
    assert f"line 41 byte 9000 of /home/ana/t.jsonl (m-7) · checkpoint {checkpoints(relay)[0][-6:]}" == (
        reasoning.sentence
    )


def test_what_a_run_thinks_later_makes_no_other_handoff(relay: Relay, lead: LiveRun) -> None:
    """The same task with the same terms is the same handoff, whatever was thought since: the pointer is no term."""
    lead.note_message(MESSAGE, number=2)
    first = lead.hand_off("editor", "Fix it")
    lead.note_message({"content": "Once more."}, number=4)
    lead.checkpoint(["more"])

    assert first.id == lead.hand_off("editor", "Fix it").id
    assert [2] == [pointer.message for pointer in pointers(relay) if pointer is not None]


def test_an_artifact_that_is_given_stays_what_it_was(relay: Relay, lead: LiveRun) -> None:
    """An artifact as reasoning goes into the brief; the pointer says where the run stood besides."""
    lead.checkpoint(["thought"])
    item = lead.attach("thoughts.md", "because")
    handoff = lead.hand_off("editor", "Fix it", brief=Brief(reasoning=item))

    assert item.id == handoff.baton().brief.reasoning
    assert [ReasoningPointer(checkpoint=checkpoints(relay)[0])] == pointers(relay)


def test_a_secret_in_a_message_is_taken_out(relay: Relay, lead: LiveRun) -> None:
    """A message repeats the arguments of calls; what is taken out there is taken out here."""
    lead.note_message({"tool": "login", "arguments": {"password": "hunter2-hunter2"}})
    lead.hand_off("editor", "Fix it")

    assert "hunter2" not in words(relay, offers(relay)[0], "reasoning.message")


def test_a_message_like_a_library_is_only_pointed_to(relay: Relay, lead: LiveRun) -> None:
    """No offer fails because a store cannot keep what was thought with it."""
    lead.note_message("x" * 2**20, number=9)
    lead.hand_off("editor", "Fix it")
    reasoning = read(relay)

    assert reasoning is not None
    assert (9, None, True) == (reasoning.pointer.message, reasoning.message, reasoning.place is not None)


def test_an_erased_place_is_said_to_be_erased(relay: Relay, lead: LiveRun) -> None:
    """The pointer stays, the ledger verifies, and nobody learns the path any more."""
    lead.hand_off("editor", "Fix it", brief=Brief(reasoning=PLACE))
    relay.admin.erase([offers(relay)[0].content["reasoning"].id], by="user:ana", reason="asked for")
    reasoning = read(relay)

    assert reasoning is not None
    assert (None, True) == (reasoning.place, reasoning.erased)
    assert "line 41 byte 9000 (its place was erased)" == reasoning.sentence
    relay.verify()


@pytest.mark.parametrize("message", [object(), b"not json", {"a": {1, 2}}], ids=["an object", "bytes", "a set"])
def test_what_is_not_json_is_no_message(lead: LiveRun, message: Any) -> None:  # noqa: ANN401 - what must be refused
    """It is refused when it is noted, and not when somebody hands off."""
    with pytest.raises(InvalidValueError, match="is not JSON"):
        lead.note_message(message)


def test_an_async_run_points_as_well() -> None:
    """It is the same run from another side."""

    async def main() -> list[ReasoningPointer | None]:
        async with AsyncRelay.open("memory:") as relay:
            async with relay.start("Fix it", by="user:ana") as lead:
                await lead.checkpoint(["thought"])
                lead.note_message(MESSAGE, number=2)
                await lead.hand_off("editor", "Fix it")
            return pointers(Relay(relay.store))

    (pointer,) = run_async(main())
    assert pointer is not None
    assert (2, True, True) == (pointer.message, pointer.digest is not None, pointer.checkpoint is not None)
