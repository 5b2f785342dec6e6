"""Five carriers and one window: what was asked for reaches the last of them, and what was missed has its handoff."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import pytest

from batonpass import Relay
from batonpass.audit.carriage import prove_carriage
from batonpass.demo import delivery
from batonpass.demo.delivery import Freight, play_delivery
from batonpass.demo.examples import load_example
from batonpass.errors import VerificationError
from batonpass.handoff.history.offers import read_offer
from batonpass.model.base.ids import AgentId, StreamId
from batonpass.model.bodies.body import HandoffAccepted, HandoffInitiated, Kind, Part, RunRecorded, ToolRequested
from batonpass.model.ledger.receipt import Receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.cli.shell import batonpass_in, run_example

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "freight.py"
CARRIERS: Final = ("ghent-haulage", "mosel-rail", "lyon-cold-chain", "adria-trucks", "ionian-ferries")
KEPT, BROKEN = (), ("would_deny.constraint",)
ASKED: Final = cast("Freight", load_example("freight.py"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the example left its ledger when it was run as a reader runs it, to look at and not to change."""
    place = tmp_path_factory.mktemp("freight")
    done = run_example(EXAMPLE, place)
    assert (0, "") == (done.returncode, done.stderr)
    (place / "told.txt").write_text(done.stdout, encoding="utf-8")
    return place


@pytest.fixture
def view(place: Path) -> Iterator[LedgerView]:
    """Return what was recorded."""
    with Relay.open(f"sqlite:///{place}/.batonpass/ledger.db", create=False) as relay, relay.store.view() as view:
        yield view


def receipts_of(view: LedgerView, agent: str, kind: str) -> list[Receipt]:
    """Return what was recorded in the runs of an agent."""
    query = ReceiptQuery(agent=AgentId(agent), kind=kind)
    return [decode_receipt(stored.payload) for stored in view.find_receipts(query)]


def offers(view: LedgerView) -> list[HandoffInitiated]:
    """Return the offers, from the first carrier's to the last one's."""
    found = [decode_receipt(stored.payload).body for stored in view.find_receipts(ReceiptQuery(kind="handoff"))]
    return [body for body in found if isinstance(body, HandoffInitiated)]


def answer(place: Path, *arguments: str) -> dict[str, object]:
    """Return what a command says to a program."""
    done = batonpass_in(place, *arguments, "--json")
    assert (0, "") == (done.returncode, done.stderr)
    return cast("dict[str, object]", json.loads(done.stdout))


def test_the_load_went_from_carrier_to_carrier(view: LedgerView) -> None:
    """Each run but the dispatcher's hangs from the one before: five hops, all delivered."""
    depth = {run.agent: len(list(ancestors(view, run.agent))) for run in view.find_runs()}

    assert {"dispatcher": 0} | {carrier: number for number, carrier in enumerate(CARRIERS, 1)} == depth
    assert {"completed"} == {str(handoff.state) for handoff in view.find_handoffs()}


def test_the_example_ends_with_the_leg_and_the_constraint(place: Path) -> None:
    """Who reads its last lines knows which constraint was missed, who kept it last, who broke it first, and why."""
    told = (place / "told.txt").read_text(encoding="utf-8").splitlines()[-5:]

    for line, words in zip(
        told,
        (
            "lyon-cold-chain",
            'constraint: "at the hospital\'s door (arrival <= 2026-11-19T06:00+02:00)" · set by user:ana',
            "kept last: by lyon-cold-chain",
            "broken first: by lyon-cold-chain",
            "waited 5 hours at the depot in Lyon for a driver",
        ),
        strict=True,
    ):
        assert words in line


def ancestors(view: LedgerView, agent: str) -> Iterator[str]:
    """Yield the runs above an agent's."""
    run = next(run for run in view.find_runs() if run.agent == agent)
    while run.parent is not None:
        run = view.get_run(run.parent)
        yield run.agent


def test_what_was_asked_for_is_the_same_at_the_fifth_carrier(view: LedgerView) -> None:
    """Same ids, same digests and same bytes at every hop, and the values are those that Ana gave."""
    carried = [[ref for ref in offer.carries if ref.part is Part.CONSTRAINT] for offer in offers(view)]
    fifth = view.get_handoff(offers(view)[4].handoff)
    baton = read_offer(view, fifth).baton

    assert [carried[0]] * 5 == carried
    assert ASKED.CONSTRAINTS == baton.constraints
    assert CARRIERS[4] == fifth.to
    assert offers(view)[4].handoff == accepted(view, CARRIERS[4]).handoff


def accepted(view: LedgerView, agent: str) -> HandoffAccepted:
    (receipt,) = receipts_of(view, agent, Kind.HANDOFF_ACCEPTED)
    assert isinstance(receipt.body, HandoffAccepted)
    return receipt.body


def test_a_new_statement_reaches_whoever_takes_over_later(view: LedgerView) -> None:
    """Ana's second statement is recorded as hers, in the third carrier's baton and those after it, and in no other."""
    batons = [read_offer(view, view.get_handoff(offer.handoff)).baton for offer in offers(view)]
    (*_, said) = receipts_of(view, "dispatcher", Kind.RUN_RECORDED)
    assert isinstance(said.body, RunRecorded)

    first, both = [ASKED.WORDS], [ASKED.WORDS, ASKED.CHANGE]
    assert [first, first, both, both, both] == [[said.text for said in baton.intent] for baton in batons]
    assert ("user:ana", [Part.INTENT]) == (said.body.by, [item.part for item in said.body.items])


def test_a_new_statement_leaves_running_carriers_as_they_are(view: LedgerView) -> None:
    """Whoever was on the road does not know of it; the proof says so, and that all the same nothing was lost."""
    proofs = [prove_carriage(view, view.get_handoff(offer.handoff)) for offer in offers(view)]

    assert [1, 1, 0, 0, 0] == [len(proof.later) for proof in proofs]
    assert [True] * 5 == [proof.whole for proof in proofs]


def test_limits_are_checked_when_something_is_recorded(view: LedgerView) -> None:
    """Every reading kept to the temperature; announcements kept to the window until the load waited in Lyon."""
    calls = [
        (body.tool, body.flags)
        for stored in view.find_receipts(ReceiptQuery(kind=Kind.TOOL_REQUESTED))
        if isinstance(body := decode_receipt(stored.payload).body, ToolRequested)
    ]

    assert [KEPT] * 5 == [flags for tool, flags in calls if tool == "log_temperature"]
    assert [KEPT, KEPT, KEPT, BROKEN, BROKEN, BROKEN] == [flags for tool, flags in calls if tool == "announce"]


def test_the_missed_window_is_on_record(view: LedgerView) -> None:
    """The close-out of the last carrier is flagged, and so is that of the dispatcher, who told Ana."""
    ends = [
        decode_receipt(view.get_receipt_at(StreamId(run.id), view.get_stream(StreamId(run.id)).seq).payload).body
        for run in view.find_runs()
        if run.agent in {CARRIERS[4], "dispatcher"}
    ]

    assert [BROKEN, BROKEN] == [getattr(body, "flags", None) for body in ends]


@pytest.mark.parametrize("asked", ["ionian-ferries", "dispatcher"])
def test_one_command_says_where_the_window_was_lost(place: Path, view: LedgerView, asked: str) -> None:
    """Asked about the last carrier or about all of it, the answer is the handoff to the carrier that waited."""
    why = answer(place, "why", asked)
    facts = {fact["label"]: fact for fact in cast("list[dict[str, str]]", why["facts"])}
    lost = accepted(view, CARRIERS[2])
    late = receipts_of(view, CARRIERS[2], Kind.TOOL_REQUESTED)[-1]

    assert "constraint" == why["rule"]
    assert f"lyon-cold-chain {lost.run[-4:]} broke it first, in announce" in str(why["answer"])
    assert f" · handoff {lost.handoff[-4:]} · " in facts["broken first"]["text"]
    assert late.id == facts["broken first"]["receipt"]
    assert "2026-11-19T04:00+01:00" in facts["kept last"]["text"]
    assert f'lyon-cold-chain {lost.run[-4:]} left open: "{ASKED.CAVEAT}"' == facts["question"]["text"]


def test_the_record_is_whole(place: Path) -> None:
    """`batonpass ledger verify` finds nothing wrong."""
    done = batonpass_in(place, "ledger", "verify")

    assert (0, True) == (done.returncode, done.stdout.startswith("whole: 43 receipts"))


@pytest.mark.slow
def test_the_demonstration_tells_it(tmp_path: Path) -> None:
    """Six steps, the answer among them; what it says to try can be tried."""
    done = batonpass_in(tmp_path, "demo", "freight", "--keep", str(tmp_path / "kept"))

    assert (0, "") == (done.returncode, done.stderr)
    assert 6 == len(re.findall(r"^\d  \w", done.stdout, re.MULTILINE))
    assert re.search(r"broken first  by lyon-cold-chain \w{4} · handoff \w{4} · announce", done.stdout)
    tries = re.findall(r"^  batonpass (?!ui$)(.+)$", done.stdout, re.MULTILINE)
    assert [0] * 4 == [batonpass_in(tmp_path / "kept", *command.split()).returncode for command in tries]


def test_an_answer_that_is_not_true_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the trace led elsewhere than to where the load waited, the demonstration would say so and fail."""
    monkeypatch.setattr(delivery, "LOSER", CARRIERS[3])

    with pytest.raises(VerificationError, match="differs from what happened"):
        list(play_delivery(tmp_path))
