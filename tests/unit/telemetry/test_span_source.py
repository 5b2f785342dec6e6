"""Spans of what receipts tell: who worked below whom, what failed, what was tried again, and no words."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from batonpass.errors import BatonpassError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.trace import TraceParent, make_traceparent, span_id, span_of, trace_id, trace_of
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.memory_view import MemoryView
from batonpass.store.port import ReceiptQuery
from batonpass.telemetry import traced, work_memory
from batonpass.telemetry.span_record import SpanRecord
from batonpass.telemetry.span_source import SpanSource
from batonpass.telemetry.trace_place import traceparent_of
from batonpass.telemetry.work_memory import MOST_EVENTS, WorkMemory
from batonpass.testing import FrozenClock
from tests.unit.telemetry.told_trees import ANA, SECRET_WORDS, ToldTree

CALLER = TraceParent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")


def spans_of(relay: Relay, *, after: int = 0, words: bool = False) -> list[SpanRecord]:
    """Return the spans that end after a position, made by a source that remembers nothing of what was before."""
    relay.store.sequence()
    with relay.store.view() as view:
        source = SpanSource(view, words=words)
        return [span for one in view.find_receipts(ReceiptQuery(first=after + 1)) for span in source.spans(one)]


def named(spans: list[SpanRecord], name: str) -> list[SpanRecord]:
    return [span for span in spans if span.name == name]


@pytest.fixture
def tree() -> ToldTree:
    """Return a tree that nobody changes any more."""
    return ToldTree()


def test_a_tree_is_one_trace_in_which_everybody_stands_below_whoever_asked(tree: ToldTree) -> None:
    """Lead over transfer over attempt over call; a second try is a transfer of its own."""
    spans = spans_of(tree.relay)
    (lead,) = named(spans, "invoke_agent lead")
    first, second = named(spans, "execute_tool transfer_to_editor")
    failed, again = named(spans, "invoke_agent editor")
    (broken,), (write,) = named(spans, "execute_tool broken"), named(spans, "execute_tool write_file")

    assert {lead.place.trace} == {span.place.trace for span in spans}
    assert None is lead.parent
    expected = [lead, lead, first, second, failed, again]
    assert [one.place.span for one in expected] == [one.parent for one in (first, second, failed, again, broken, write)]


def test_a_retry_is_linked_and_not_a_child(tree: ToldTree) -> None:
    """The second attempt links to the first, and the second transfer to the first one."""
    spans = spans_of(tree.relay)
    first, second = named(spans, "execute_tool transfer_to_editor")
    failed, again = named(spans, "invoke_agent editor")

    assert ([], [first.place]) == ([one.place for one in first.links], [one.place for one in second.links])
    assert ([], [failed.place]) == ([one.place for one in failed.links], [one.place for one in again.links])


def test_ids_follow_from_receipts(tree: ToldTree) -> None:
    """The span of a call has the id that its request gives it, and so a repeat is recognised."""
    requests = [receipt for _, receipt in tree.receipts() if receipt.kind == "tool.requested"]
    root = next(receipt for _, receipt in tree.receipts() if receipt.kind == "run.started")
    spans = [span for span in spans_of(tree.relay) if "batonpass.call" in span.facts]

    assert [span_id(one.id) for one in requests] == [span.place.span for span in spans]
    assert {trace_id(root.id)} == {span.place.trace for span in spans}


def test_whoever_begins_again_anywhere_repeats_exactly(tree: ToldTree) -> None:
    """From each position on, the spans are the last ones of all: no memory of what came before is needed."""
    spans = spans_of(tree.relay)
    last = max(stored.position or 0 for stored, _ in tree.receipts())

    for after in range(last + 1):
        rest = spans_of(tree.relay, after=after)
        assert rest == spans[len(spans) - len(rest) :]


def test_a_span_made_before_more_was_recorded_is_the_same_later() -> None:
    """What is recorded after its end changes no span: looked at after every receipt, each span comes out once."""
    tree = ToldTree()
    last = max(stored.position or 0 for stored, _ in tree.receipts())
    with tree.relay.store.view() as view:
        one_by_one = [
            span
            for position in range(1, last + 1)
            for stored in view.find_receipts(ReceiptQuery(first=position, last=position))
            for span in SpanSource(view).spans(stored)
        ]

    assert spans_of(tree.relay) == one_by_one


def test_outcomes_errors_and_sums(tree: ToldTree) -> None:
    """A span says how it ended, which error it was, and what was used."""
    spans = spans_of(tree.relay)
    failed, again = named(spans, "invoke_agent editor")
    (broken,) = named(spans, "execute_tool broken")

    assert ("failed", "oserror") == (failed.facts["batonpass.outcome"], failed.error)
    assert ("completed", None, 1200, 1) == (
        again.facts["batonpass.outcome"],
        again.error,
        again.facts["batonpass.tokens"],
        again.facts["batonpass.calls"],
    )
    assert ("oserror", "oserror") == (broken.error, broken.facts["error.type"])
    assert timedelta(seconds=3) == again.ended - again.began


def test_a_verdict_is_a_span_without_length_below_its_transfer(tree: ToldTree) -> None:
    """What is said of a transfer that was sent already is sent beside it."""
    spans = spans_of(tree.relay)
    (verdict,) = named(spans, "verification.passed")

    assert named(spans, "execute_tool transfer_to_editor")[1].place.span == verdict.parent
    assert verdict.began == verdict.ended


def test_conventions_name_the_agents_of_a_transfer(tree: ToldTree) -> None:
    """A transfer names who hands off and to whom, by the conventions for generative AI."""
    first, _ = named(spans_of(tree.relay), "execute_tool transfer_to_editor")

    told = {name: said for name, said in first.facts.items() if name.startswith("gen_ai.")}
    assert {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "transfer_to_editor",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": tree.first.id,
        "gen_ai.agent.id": "lead",
        "gen_ai.agent.name": "lead",
        "gen_ai.transfer.mode": "return_to_caller",
        "gen_ai.transfer.target.name": "editor",
        "gen_ai.transfer.target.type": "agent",
        "gen_ai.conversation.id": tree.lead.id,
    } == told


def test_there_are_no_words_unless_asked(tree: ToldTree) -> None:
    """Without asking nothing is in a span that anybody wrote; with asking, tasks, arguments and results are."""
    silent, telling = repr(spans_of(tree.relay)), repr(spans_of(tree.relay, words=True))

    assert [] == [word for word in SECRET_WORDS if word in silent]
    assert {"zebrafish", "tangerine", "walnut"} <= {word for word in SECRET_WORDS if word in telling}


def test_secrets_of_a_tree_are_never_words(tree: ToldTree) -> None:
    """The secret that keys a tree's digests is a content as well, and no span has it."""
    with tree.relay.store.view() as view:
        begun = next(receipt for _, receipt in tree.receipts() if receipt.kind == "run.started")
        secret = view.get_content(begun.content["secret"].id).body or b""

    assert secret
    telling = repr(spans_of(tree.relay, words=True))
    assert secret.hex() not in telling
    assert secret.decode(errors="replace") not in telling


def a_relay(*, enforce: bool = False) -> Relay:
    return Relay(MemoryStore(), clock=FrozenClock(), policy=Policy(enforce=enforce))


def test_a_tree_belongs_to_its_callers_trace() -> None:
    """A root that is started within a trace is below the caller's span, and everything below it is in that trace."""
    relay = a_relay()
    with traced(CALLER):
        lead = relay.start("Do it", by=ANA)
    with lead.hand_off("editor", "Edit it", criteria=["done"]).accept():
        pass
    lead.close()
    spans = spans_of(relay)

    assert {trace_of(CALLER)} == {span.place.trace for span in spans}
    assert span_of(CALLER) == named(spans, "invoke_agent lead")[0].parent


@pytest.mark.parametrize(
    ("same", "links"), [pytest.param(True, 0, id="in the same trace"), pytest.param(False, 1, id="in another trace")]
)
def test_an_offer_from_within_a_span_is_below_it_or_linked(*, same: bool, links: int) -> None:
    """A caller's span in the tree's own trace is above the offer. One in another trace is only linked to."""
    relay = a_relay()
    lead = relay.start("Do it", by=ANA)
    with relay.store.view() as view:
        own = traceparent_of(view, lead.id)
    caller = make_traceparent(trace_of(own), span_of(CALLER)) if same else CALLER
    with traced(caller), lead.hand_off("editor", "Edit it", criteria=["done"]).accept():
        pass
    lead.close()
    spans = spans_of(relay)
    (transfer,) = named(spans, "execute_tool transfer_to_editor")

    assert links == len(transfer.links)
    assert (span_of(CALLER) if same else span_of(own)) == transfer.parent


def test_a_call_that_never_returned_is_told_when_its_run_is_over() -> None:
    """A call without an outcome ends in doubt, and the run below which it stands is cancelled."""
    relay = a_relay()
    lead = relay.start("Do it", by=ANA)
    offer = lead.hand_off("editor", "Edit it", criteria=["done"])
    child = offer.accept()

    @tool("stuck", target="path")
    def stuck(path: str) -> None:
        offer.cancel(by=ANA, reason=path)

    with pytest.raises(BatonpassError):
        child.call(stuck, "a")
    (call,) = named(spans_of(relay), "execute_tool stuck")
    (run,) = named(spans_of(relay), "invoke_agent editor")
    (transfer,) = named(spans_of(relay), "execute_tool transfer_to_editor")

    assert ("batonpass.in_doubt", "in-doubt") == (call.error, call.facts["batonpass.outcome"])
    assert ("cancelled", "cancelled") == (run.error, transfer.error)


def test_what_was_refused_is_a_span_without_length() -> None:
    """A denied call and a refused offer were never made, and are told with the rule that stopped them."""
    relay = a_relay(enforce=True)
    lead = relay.start("Do it", by=ANA, may=["read:**"])
    write = tool("write_file", target="path", reversible=True)(lambda path: path)

    with pytest.raises(BatonpassError):
        lead.call(write, "a")
    with pytest.raises(BatonpassError):
        lead.hand_off("editor", "Edit it")
    spans = spans_of(relay)
    (denied,) = named(spans, "execute_tool write_file")

    assert "denied.grant" == denied.error
    assert "denied" == denied.facts["batonpass.outcome"]
    assert "refused" in {span.facts["batonpass.outcome"] for span in named(spans, "execute_tool transfer_to_editor")}


def test_what_came_by_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads a ledger from its first receipt on asks for no stream and no handoff when one ends."""
    relay = ToldTree().relay
    asked: list[ReceiptQuery] = []
    find = MemoryView.find_receipts

    def note(view: MemoryView, query: ReceiptQuery) -> Iterator[StoredReceipt]:
        asked.append(query)
        return find(view, query)

    monkeypatch.setattr(MemoryView, "find_receipts", note)
    spans_of(relay)

    assert [ReceiptQuery(first=1)] == asked


def test_a_short_memory_changes_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten is read from the ledger."""
    relay = ToldTree().relay
    spans = spans_of(relay)
    monkeypatch.setattr(work_memory, "_REMEMBERED", 1)

    assert spans == spans_of(relay)


def test_a_memory_keeps_no_more_of_a_run_than_its_span_tells() -> None:
    """A server runs for months: of a run that goes on it keeps some receipts, and none of its work after its end."""
    with Relay.open("memory:") as relay:
        run = relay.start("Count", by=ANA)
        for _ in range(MOST_EVENTS + 1):
            run.spend(tokens=1)
        relay.store.sequence()
        memory = WorkMemory()
        with relay.store.view() as view:
            source = SpanSource(view, memory=memory)
            for stored in view.find_receipts(ReceiptQuery(first=1)):
                assert [] == [*source.spans(stored)]
            last = view.last_position()
        kept = memory.work[run.id]
        run.close()
        relay.store.sequence()
        with relay.store.view() as view:
            source = SpanSource(view, memory=memory)
            (span,) = [
                one for stored in view.find_receipts(ReceiptQuery(first=last + 1)) for one in source.spans(stored)
            ]

        assert (MOST_EVENTS, 1) == (len(kept.said), kept.unsaid) == (len(span.events), span.dropped_events)
        assert {} == memory.work
        assert [span] == spans_of(relay, after=last)


def test_a_receipt_that_was_left_out_is_read_from_the_ledger() -> None:
    """A run of which something is missing in the memory has the same span."""
    relay = ToldTree().relay
    spans = spans_of(relay)
    with relay.store.view() as view:
        source = SpanSource(view)
        rest: list[SpanRecord] = []
        for stored in view.find_receipts(ReceiptQuery(first=1)):
            if stored.kind != "tool.requested":
                rest += source.spans(stored)

    assert spans == rest
