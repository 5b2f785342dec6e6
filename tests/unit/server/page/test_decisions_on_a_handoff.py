"""What others did to a handoff stands beside it on the page: who, why, how sure that is, and the receipt."""

import re
from contextlib import suppress
from datetime import timedelta
from html import unescape

import pytest

from batonpass import Relay, tool
from batonpass.accounts.handoff.account import read_account
from batonpass.errors import BatonpassError, HandoffAskedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.kinds import Settlement
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.bodies.body import Kind
from batonpass.server.page.act_words import tell_acts
from tests.unit.handoff.places import begin_only
from tests.unit.server.conftest import a_house
from tests.unit.server.page.browser import a_browser

ANA, BEN = "user:ana", "user:ben"
ship = tool("ship", target="place")(lambda place: place)


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a root run."""
    return relay.start("Ship the order", by=ANA, agent="lead")


def shown(relay: Relay, handoff: LiveHandoff, part: str = "baton") -> str:
    """Return a handoff on the page, as words."""
    page = a_browser(a_house(relay), "auditor").get(f"/handoffs/{handoff.id}?part={part}").body.decode()
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", unescape(page))).replace(" ,", ",")


def told(relay: Relay, handoff: LiveHandoff) -> list[str]:
    """Return the acts on a handoff, each with who and why."""
    with relay.store.view() as view:
        acts = [*tell_acts(read_account(view, view.get_handoff(handoff.id)))]
    return [
        " · ".join(filter(None, (one.words, one.by, one.note, None if one.reason is None else one.reason.words)))
        for one in acts
    ]


def test_who_let_it_begin_and_who_refuted_it_stand_beside_it(relay: Relay, lead: LiveRun) -> None:
    """With their reasons, and that no key signed; a result that was refuted has no tick."""
    handoff = lead.hand_off("shipper", "Ship it", hold=True)
    handoff.approve(by=ANA, reason="it is paid")
    with handoff as run:
        run.report("shipped")
    handoff.refute("it never arrived", by=BEN)
    page = shown(relay, handoff)

    assert "approved by ana, " in page
    assert "unproven: no approver’s key signed · was shown nothing “it is paid”" in page
    assert re.search("What came back shipped refuted by ben ", page)
    assert "refuted by ben, " in page
    assert "“it never arrived”" in page


def test_everything_between_the_attempts_is_told(relay: Relay, lead: LiveRun) -> None:
    """A lease that ran out, a call that was settled, another agent, a question and its answer, the end."""
    handoff = lead.hand_off("shipper", "Ship it", carrier=Carrier.WORKER)
    begin_only(handoff.accept(lease=relay.claim(holder="gone", lease_for=timedelta(0))), ship, "Ghent")
    relay.sweep()
    with relay.store.view() as view:
        (call,) = (one.record for one in read_account(view, view.get_handoff(handoff.id)).doubts)
    handoff.settle(call.id, Settlement.SKIP, by=ANA, reason="it stands in Ghent")
    run = handoff.accept(lease=relay.claim(holder="next", lease_for=timedelta(minutes=5)))
    run.fail(RuntimeError("no truck"))
    handoff.retry(by=BEN, reason="a truck is back")
    handoff.decline("no driver", by="agent:shipper")
    handoff.replace("courier", by=ANA, reason="they drive at night")
    with suppress(HandoffAskedError):
        handoff.ask("By night?")
    handoff.answer("yes", by=ANA)
    handoff.cancel(by=BEN, reason="it was collected")

    assert [
        "attempt 1 lapsed · its worker was gone",
        f"ship {call.id[-4:]} counts as done · {ANA} · it stands in Ghent",
        f"tried again · {BEN} · a truck is back",
        "declined · agent:shipper · declined · no driver",
        f"given to courier · {ANA} · they drive at night",
        "asked · agent:courier · data-gap: asked · By night?",
        f"answered · {ANA} · revision 1 · yes",
        f"cancelled · {BEN} · it was collected",
    ] == told(relay, handoff)


def test_a_denied_handoff_says_who_denied_it_and_why(relay: Relay, lead: LiveRun) -> None:
    """As `handoff show` does."""
    handoff = lead.hand_off("shipper", "Ship it", hold=True)
    handoff.deny(by=ANA, reason="not before Monday")

    assert re.search("denied by ana, .*“not before Monday”", shown(relay, handoff))


def test_a_verdict_says_how_it_was_reached(relay: Relay, lead: LiveRun) -> None:
    """By whom, by which method, and about which attempt; taken without a check is no verification."""
    first, second = (lead.hand_off("shipper", task) for task in ("Ship it", "Ship the rest"))
    for handoff in (first, second):
        with handoff as run:
            run.report("shipped")
    first.verify(by=BEN, verdict="I saw it")
    second.accept_unverified("it is late", by=ANA)

    assert [f"verified · {BEN} · attempt 1 · verdict · I saw it"] == told(relay, first)
    assert [f"accepted unverified · {ANA} · attempt 1 · it is late"] == told(relay, second)


def test_no_grant_of_the_sender_is_said(relay: Relay, lead: LiveRun) -> None:
    """A sender without a grant has no permit within which another one could be."""
    handoff = lead.hand_off("shipper", "Ship it", may=["call:ship"])
    with suppress(BatonpassError), handoff as run:
        run.report("shipped")

    assert "call:ship no grant never" in shown(relay, handoff)


def test_a_result_from_outside_is_marked(relay: Relay, lead: LiveRun) -> None:
    """On top, and where it came back, with the way to follow it."""
    read = tool("read_page", reads=True, external=True)(lambda url: f"the page {url}")
    handoff = lead.hand_off("scout", "Read it")
    with handoff as run:
        run.call(read, "https://press.example")
        run.report("it rains")
    page = shown(relay, handoff)

    assert "its result comes from outside" in page
    assert f"it is based on what came from outside, batonpass taint {handoff.id[-4:]} shows the way" in page


def test_every_act_on_a_handoff_has_words(relay: Relay) -> None:
    """Of each kind in a handoff's own stream; what a newer version writes is told by its name."""
    from batonpass.model.bodies import handoff_acts  # noqa: PLC0415 - its classes are counted
    from batonpass.server.page.act_words import _WORDS  # noqa: PLC0415 - as above

    del relay
    acts = {
        one
        for one in vars(handoff_acts).values()
        if isinstance(one, type)
        and isinstance(getattr(one, "kind", None), Kind)
        and one.__module__ == handoff_acts.__name__
    }

    assert set() == acts - set(_WORDS)
