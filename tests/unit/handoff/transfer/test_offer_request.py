"""What a caller writes of an offer: `Brief`, `Grant`, `Handling` and items."""

from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from typing import Any, Final

import pytest

from batonpass import (
    Assumption,
    Brief,
    Budget,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Grant,
    Handling,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.transfer.offer_request import GivenItem, OfferRequest, asked_for
from batonpass.model.base.kinds import Relation
from tests.unit.handoff.places import bodies

NOON: Final = datetime(2026, 11, 17, 12, tzinfo=UTC)
ITEMS: Final[list[GivenItem]] = [
    Constraint("no new files"),
    Constraint(key="lines", operator="<=", value="300", binds_to="result:lines"),
    Exclusion("payroll"),
    WorkItem("parsed", outputs=("data.csv",)),
    OpenQuestion("which currency?", blocking=True),
    RejectedPath("floats", "they drift"),
    Decision("half-even", why="tax office"),
    Assumption("one currency", confidence=700),
    Claim("12 rows", key="rows", value="12"),
]
SAID: Final = Brief(
    rationale="it is wrong",
    serves="correct totals",
    inputs=["data.csv"],
    expects=["src/invoice.py"],
    stop_when=["a test fails"],
    verify_by=["pytest", "-q"],
    needs_tools=["write_file"],
    needs_skills=["python"],
    budget=Budget(calls=9),
    role="editor",
    phase="fixing",
    none=["artifact"],
    relation="peer-to-peer",
    context="The customer called twice.",
)
GRANTED: Final = Grant(
    may=["write:src/**"], may_delegate=["read:**"], limits="at most 5 calls", until=NOON, max_depth=2
)


def an_offer(**more: Any) -> OfferRequest:  # noqa: ANN401 - as asked_for has it
    """Return an offer that says as much as one can."""
    given: dict[str, Any] = {
        "now": NOON,
        "deadline": None,
        "carrier": "caller",
        "hold": False,
        "grant": GRANTED,
        "brief": SAID,
        "criteria": ["12.345 becomes 12.34"],
        "items": ITEMS,
        "handling": None,
    }
    return asked_for("editor", "Make it so", **{**given, **more})


def fingerprinted(offer: OfferRequest) -> str:
    return sha256(offer.described()).hexdigest()


def test_the_fingerprint_of_an_offer_is_what_it_always_was() -> None:
    """It is the key of handoffs in ledgers that exist: the same content makes the same bytes in every version."""
    assert "65db3cd9e2e74976e11f5f33c6a2915b4cc1d9bdfea8a46bf3371d9dc80e5305" == fingerprinted(an_offer())


def test_the_order_of_kinds_and_how_an_offer_is_handled_make_no_other_fingerprint() -> None:
    """Items are put in one order, and a deadline, a hold or a carrier say nothing about the task."""
    other = an_offer(items=ITEMS[::-1][:7] + ITEMS[:2], deadline=NOON, hold=True, carrier="worker")

    assert fingerprinted(an_offer()) == fingerprinted(other)


def test_how_long_a_grant_lasts_is_the_same_whenever_it_is_said() -> None:
    """Two hours end later when they are asked for later, and are the same request."""
    lasting = Grant(may=["write:src/**"], until="2h")
    early, late = an_offer(grant=lasting), an_offer(grant=lasting, now=NOON + timedelta(minutes=5))

    assert fingerprinted(early) == fingerprinted(late)
    assert early.grant is not None
    assert late.grant is not None
    assert (NOON + timedelta(hours=2), timedelta(minutes=5)) == (
        early.grant.until,
        (late.grant.until or NOON) - (early.grant.until or NOON),
    )


def test_a_moment_of_another_zone_is_taken_as_the_moment_it_is() -> None:
    """An aware moment says when, whichever zone its author lives in."""
    there = NOON.astimezone(timezone(timedelta(hours=2)))

    assert NOON == Grant(may=["read:**"], until=there).at(NOON).until


WRONG: Final = [
    ("a text among the items", lambda: an_offer(items=["be careful"]), "write one of Constraint, Exclusion, WorkItem"),
    ("a text instead of items", lambda: an_offer(items="be careful"), "write a list of Constraint"),
    ("a report among the items", lambda: an_offer(items=[Report(result="x")]), "Report is none of Constraint"),
    ("criteria twice", lambda: an_offer(brief=Brief(criteria=["x"])), "by criteria= and by brief="),
    ("a text for a brief", lambda: an_offer(brief="do it well"), "write Brief"),
    ("a dict for how it is handled", lambda: an_offer(handling={"key": "k"}), "write Handling"),
    ("a list as a text", lambda: Brief(criteria="x"), "criteria"),
    ("a budget that is a number", lambda: Brief(budget=5), "budget"),  # type: ignore[arg-type]
    ("an unknown relation", lambda: Brief(relation="boss-to-worker"), "relation"),
    ("reasoning as a text", lambda: Brief(reasoning="because"), "reasoning"),  # type: ignore[arg-type]
    ("an empty context", lambda: Brief(context=""), "context"),
    ("a grant of nothing", lambda: Grant(limits="at most 5 calls"), "may"),
    ("a permit that is none", lambda: Grant(may=["write"]), "write"),
    ("a text for permits", lambda: Grant(may="write:src/**"), "may"),
    ("a grant that is over", lambda: Grant(may=["read:**"], until=timedelta(0)), "over already"),
    ("an end that is no time", lambda: Grant(may=["read:**"], until="soon"), "until"),
    ("a moment without a zone", lambda: Grant(may=["read:**"], until=datetime(2026, 1, 1)), "until"),  # noqa: DTZ001
    ("an end that is a number", lambda: Grant(may=["read:**"], until=5), "until"),  # type: ignore[arg-type]
    ("an empty key", lambda: Handling(key=""), "key"),
    ("what is carried is no item", lambda: Handling(carry=["x"]), "carry"),  # type: ignore[list-item]
    ("who answers is no function", lambda: Handling(answer="yes"), "answer"),  # type: ignore[arg-type]
    ("a policy that is a text", lambda: Handling(policy="lax"), "policy"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "told"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_cannot_be_right_is_refused_where_it_is_written(make: Any, told: str) -> None:  # noqa: ANN401 - a lambda
    """Each value checks its parts, and says what to write."""
    with pytest.raises(InvalidValueError, match=told):
        make()


def test_both_forms_of_a_grant_are_refused_by_their_names(lead: LiveRun) -> None:
    """Nobody has to guess which of the two counts."""
    with pytest.raises(InvalidValueError, match="by may= and by grant="):
        lead.hand_off("editor", "Make it so", may=["read:**"], grant=Grant(may=["read:**"]))


def test_the_short_forms_say_the_same_as_the_long_ones(lead: LiveRun) -> None:
    """`may` is a grant, and `criteria` are a brief."""
    short = lead.hand_off("editor", "Make it so", may=["read:**"], criteria=["it is so"])
    long = lead.hand_off("editor", "Make it so", grant=Grant(may=["read:**"]), brief=Brief(criteria=["it is so"]))

    assert short.id == long.id


def test_values_are_frozen_and_keep_what_they_were_made_of() -> None:
    """Whoever changes a list afterwards changes nothing."""
    lines, criteria = ["read:**"], ["it is so"]
    grant, brief = Grant(may=lines), Brief(criteria=criteria)
    lines.append("write:**")
    criteria.clear()

    assert (("read:**",), ("it is so",)) == (grant.may, brief.criteria)
    with pytest.raises(AttributeError):
        grant.may = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        brief.role = "x"  # type: ignore[misc]


def test_what_is_written_is_what_is_recorded(lead: LiveRun) -> None:
    """Every part of a brief arrives, and so does the kind of the handoff."""
    handoff = lead.hand_off("editor", "Make it so", brief=SAID, items=ITEMS)
    baton = handoff.baton()

    assert Relation.PEER_TO_PEER is baton.relation
    assert (SAID.rationale, SAID.budget, SAID.verify_by) == (
        baton.brief.rationale,
        baton.brief.budget,
        baton.brief.verify_by,
    )
    assert set(ITEMS) <= {item.value for item in baton.items}


def test_a_selection_travels_alone(lead: LiveRun, relay: Any) -> None:  # noqa: ANN401 - a relay
    """`carry` selects of what the sender knows; nothing is a selection, too."""
    kept, _ = lead.record(Decision("half-even"), Decision("once"))
    lead.hand_off("editor", "Make it so", handling=Handling(carry=[kept]))
    lead.hand_off("editor", "Make it otherwise", handling=Handling(carry=()))

    assert [1, 0] == [
        sum(ref.part == "decision" for ref in body.carries) for body in bodies(relay, "handoff.initiated")
    ]
