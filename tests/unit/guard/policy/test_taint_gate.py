"""Taint as values: which calls have consequences, what names one, and who answers for a stranger."""

import pytest
from msgspec.structs import replace

from batonpass.guard.policy.gates import CallFacts, HandoffFacts, judge_handoff
from batonpass.guard.policy.taint_gate import is_consequential, is_named, judge_tainted_call, may_endorse
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Gate, Relation
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.policy_rules import Policy, Tier

CLERK = AgentId("clerk")


def a_call(*tiers: Tier, reads: bool = False, target: str | None = "src/a.py") -> CallFacts:
    """Return a call of these tiers."""
    return CallFacts(agent=CLERK, tool="put", tiers=tiers, reads=reads, target=target)


@pytest.mark.parametrize("tier", [tier for tier in Tier if tier not in {Tier.REVERSIBLE, Tier.BUDGETED_DELEGATION}])
def test_what_has_consequences(tier: Tier) -> None:
    """Whatever else it is; but a read has none, however dear."""
    assert is_consequential(a_call(tier, Tier.REVERSIBLE))
    assert not is_consequential(a_call(tier, reads=True))


def test_what_can_be_undone_has_none() -> None:
    """An agent that works in its own files is not held all day."""
    assert not is_consequential(a_call(Tier.REVERSIBLE))


@pytest.mark.parametrize(
    ("target", "terms", "named"),
    [
        ("src/a.py", ["write:src/a.py"], True),
        ("src/a.py", ["put:src/a.py"], True),
        ("src/a.py", ["write:src/*", "put:**", "read:src/a.py", "write:src/a.pyc", "write:SRC/a.py"], False),
        ("src/*", ["write:src/*"], False),
        (None, ["write:None", "put:put", "write:put"], False),
        (None, ["call:put"], True),
        (None, ["call:*", "call:**", "call:put/x", "call:puts"], False),
        ("src/a.py", ["call:put"], False),
    ],
)
def test_terms_name_letter_by_letter(target: str | None, terms: list[str], named: bool) -> None:  # noqa: FBT001
    """The action or the tool, and the very target; of one without a target the tool. A pattern names nothing."""
    call = replace(a_call(Tier.IRREVERSIBLE, target=target), resource="put")

    assert named == is_named(call, read_scope(terms).permits)


@pytest.mark.parametrize(
    ("terms", "arguments", "named"),
    [
        (["pay:A where amount <= 10"], {"amount": 10}, True),
        (["pay:A where amount <= 10"], {"amount": 11}, False),
        (["pay:A where amount <= 10"], {}, False),
        (["pay:A where amount <= 10"], {"amount": "9800"}, False),
        (["pay:A where amount <= 10", "pay:*"], {"amount": 9800}, False),
        (["pay:A where amount <= 10", 'pay:A where note is "rent"'], {"amount": 900, "note": "rent"}, True),
        (["pay:A"], {"amount": 9800}, True),
    ],
    ids=[
        "within",
        "beyond",
        "unsaid",
        "in another form",
        "a pattern has no such condition",
        "one of two permits",
        "without a condition any amount passes",
    ],
)
def test_what_names_a_call_holds_it_to_its_conditions(
    terms: list[str],
    arguments: dict[str, object],
    named: bool,  # noqa: FBT001
) -> None:
    """Who was named an account and a sum may not be paid another."""
    facts = CallFacts(agent=CLERK, tool="wire", action="pay", target="A", arguments=arguments)

    assert named == is_named(facts, read_scope(terms).permits)


def test_a_decision_says_who_what_and_why() -> None:
    """The sentence is what a person reads before they let it go on."""
    decision = judge_tainted_call(a_call(Tier.IRREVERSIBLE), (), "call 3f2a")

    assert decision is not None
    assert (Gate.APPROVE, "taint", "would_hold.taint") == (decision.gate, decision.rule, decision.flag)
    assert "clerk calls put on src/a.py, and content from outside has reached it (call 3f2a)" in decision.sentence


@pytest.mark.parametrize(("by", "may"), [("user:ana", True), ("agent:lead", False), ("service:nightly", False)])
def test_only_a_person_answers_for_a_stranger(by: str, may: bool) -> None:  # noqa: FBT001
    """Neither an agent nor a program does."""
    assert may == may_endorse(by)


def test_whoever_may_not_read_it_is_not_handed_it() -> None:
    """What only some may read is held before anybody else gets it."""
    facts = HandoffFacts(to=CLERK, relation=Relation.PEER_TO_PEER, may_read=False)

    assert ["readers"] == [found.rule for found in judge_handoff(facts, Policy()) if found.rule == "readers"]
