"""Gates: what goes on, what waits for somebody, and what is denied, by rules, tiers and what has to come along."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError, NotApproverError
from batonpass.guard.policy.gates import (
    CallFacts,
    Force,
    GateDecision,
    HandoffFacts,
    decide,
    is_silent_on_handoff,
    judge_call,
    judge_handoff,
    may_let_go_on,
    opens_unproven,
    takes_proof,
    tiers_of_call,
)
from batonpass.guard.policy.name_patterns import fits
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Gate, Mode, Relation
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.policy_rules import STRICTNESS, Demand, Policy, Posture, Requirement, Rule, Subject, Tier

EDITOR = AgentId("editor")


def a_call(**known: Any) -> CallFacts:  # noqa: ANN401 - whatever facts a test is about
    return CallFacts(**{"agent": EDITOR, "tool": "deploy", **known})


def a_handoff(**known: Any) -> HandoffFacts:  # noqa: ANN401 - as above
    return HandoffFacts(**{"to": EDITOR, "relation": Relation.LEAD_TO_WORKER, **known})


def a_rule(**known: Any) -> Rule:  # noqa: ANN401 - as above
    return Rule(**{"name": "mine", "on": Subject.CALL, "gate": Gate.APPROVE, **known})


def names(decisions: tuple[GateDecision, ...]) -> list[tuple[str, Gate]]:
    return [(decision.rule, decision.gate) for decision in decisions]


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        pytest.param((), [], id="what only reads goes on"),
        pytest.param((Tier.REVERSIBLE,), [], id="what can be undone goes on"),
        pytest.param((Tier.UNDECLARED,), [], id="what nobody declared goes on"),
        pytest.param((Tier.COSTLY,), [("tier.costly", Gate.CONFIRM)], id="what is costly is confirmed"),
        pytest.param(
            (Tier.IRREVERSIBLE,), [("tier.irreversible", Gate.APPROVE)], id="what cannot be undone is approved"
        ),
        pytest.param((Tier.EXTERNAL_WRITE,), [("tier.external-write", Gate.APPROVE)], id="what leaves us is approved"),
        pytest.param(
            (Tier.COSTLY, Tier.IRREVERSIBLE),
            [("tier.irreversible", Gate.APPROVE)],
            id="the strictest of several decides",
        ),
    ],
)
def test_tiers_decide_where_no_rule_does(tiers: tuple[Tier, ...], expected: list[tuple[str, Gate]]) -> None:
    """As shipped, only what leaves us, costs others or cannot be undone has a gate."""
    assert expected == names(judge_call(a_call(tiers=tiers), Policy()))


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, (Tier.UNDECLARED,)),
        ({"reads": True}, ()),
        ({"reads": True, "costly": True}, (Tier.COSTLY,)),
        ({"reversible": True}, (Tier.REVERSIBLE,)),
        ({"reversible": False}, (Tier.IRREVERSIBLE,)),
        ({"external": True}, (Tier.EXTERNAL_WRITE,)),
        ({"external": True, "reversible": True}, (Tier.EXTERNAL_WRITE, Tier.REVERSIBLE)),
    ],
)
def test_a_declaration_puts_calls_into_tiers(declared: dict[str, bool], expected: tuple[Tier, ...]) -> None:
    """What nobody declared is not taken for irreversible: approvals that everybody clicks away protect nobody."""
    known: dict[str, Any] = {"reads": False, "reversible": None, "external": False, "costly": False, **declared}

    assert expected == tiers_of_call(**known)


@pytest.mark.parametrize(
    ("patterns", "facts", "expected"),
    [
        ({"tool": "dep*"}, {}, True),
        ({"tool": "send"}, {}, False),
        ({"agent": "edit*", "tool": "deploy"}, {}, True),
        ({"agent": "reviewer"}, {}, False),
        ({"action": "write"}, {}, True),
        ({"action": "read"}, {}, False),
        ({"action": "read"}, {"reads": True}, True),
        ({"target": "prod/**"}, {"target": "prod/eu/db"}, True),
        ({"target": "prod/*"}, {"target": "prod/eu/db"}, False),
        ({"target": "prod/**"}, {}, False),
        ({"tier": Tier.COSTLY}, {"tiers": (Tier.COSTLY, Tier.UNDECLARED)}, True),
        ({"tier": Tier.COSTLY}, {}, False),
        ({"depth": 3}, {"depth": 3}, True),
        ({"depth": 3}, {"depth": 2}, False),
    ],
)
def test_a_rule_for_calls_fits_by_all_of_its_patterns(
    patterns: dict[str, Any], facts: dict[str, Any], *, expected: bool
) -> None:
    """A rule that says more than one thing means all of them."""
    policy = Policy(rules=(a_rule(**patterns),), tiers=dict.fromkeys(Tier, Gate.NONE))

    assert expected == bool(judge_call(a_call(**facts), policy))


@pytest.mark.parametrize(
    ("patterns", "facts", "expected"),
    [
        ({"agent": "editor"}, {}, True),
        ({"relation": Relation.PEER_TO_PEER}, {}, False),
        ({"relation": Relation.LEAD_TO_WORKER}, {}, True),
        ({"action": "write"}, {"may": ("read:src/**", "write:src/**")}, True),
        ({"action": "write", "target": "prod/**"}, {"may": ("read:prod/a", "write:src/a")}, False),
        ({"action": "write", "target": "prod/**"}, {"may": ("write:prod/a",)}, True),
        ({"action": "write"}, {}, False),
        ({"tier": Tier.BUDGETED_DELEGATION}, {"tiers": (Tier.BUDGETED_DELEGATION,)}, True),
        ({"depth": 2}, {"depth": 1}, False),
    ],
)
def test_a_rule_for_handoffs_fits_by_all_of_its_patterns(
    patterns: dict[str, Any], facts: dict[str, Any], *, expected: bool
) -> None:
    """An action and a target have to be of one and the same thing that is asked for."""
    policy = Policy(rules=(a_rule(on=Subject.HANDOFF, **patterns),))

    assert expected == ("mine" in [decision.rule for decision in judge_handoff(a_handoff(**facts), policy)])


def test_the_first_rule_that_fits_decides_instead_of_the_tiers() -> None:
    """An exception is written above what it is an exception from; `none` lets it go on."""
    drafts = a_rule(name="drafts", tool="publish_draft", gate=Gate.NONE)
    rest = a_rule(name="rest", tool="publish_*", gate=Gate.DENY)
    policy = Policy(rules=(drafts, rest))
    draft, final = (a_call(tool=tool, tiers=(Tier.EXTERNAL_WRITE,)) for tool in ("publish_draft", "publish_final"))

    assert [[], [("rest", Gate.DENY)]] == [names(judge_call(call, policy)) for call in (draft, final)]


def test_a_decision_names_its_rule_and_its_line() -> None:
    """Whoever is stopped can look up what stopped them."""
    (found,) = judge_call(a_call(target="prod/db"), Policy(rules=(a_rule(line=12),)))

    assert (12, "mine", "editor calls deploy on prod/db; rule mine says approve") == (
        found.line,
        found.rule,
        found.sentence,
    )


@pytest.mark.parametrize(
    ("enforced", "expected"), [(False, None), (True, "mine")], ids=["observed, it is told", "enforced, it holds"]
)
def test_gates_take_effect_where_they_are_enforced(*, enforced: bool, expected: str | None) -> None:
    """Observe first: until then the decision is a flag."""
    decisions = judge_call(a_call(), Policy(rules=(a_rule(),)))
    found = decide(decisions, enforced=enforced)

    assert (["would_hold.mine"], expected) == ([decision.flag for decision in decisions], found and found.rule)


def test_contract_first() -> None:
    """A directive that names no way to tell whether its result holds is reported, or refused where the file says so."""
    facts = a_handoff(has_method=False)
    strict = Requirement(posture=Posture.MAY_REJECT, method=Demand.REFUSE)
    silent = Requirement(posture=Posture.MAY_REJECT)
    policies = [Policy(requirements={Relation.LEAD_TO_WORKER: wanted}) for wanted in (silent, strict)]
    reported, nothing, refused = (judge_handoff(facts, policy) for policy in (Policy(), *policies))

    assert ["would_deny.method.lead-to-worker"] == [decision.flag for decision in reported]
    assert (None, ()) == (decide(reported, enforced=True), nothing)
    assert [Force.REQUIRED] == [decision.force for decision in refused]
    assert refused[0] is decide(refused, enforced=False)


def test_worker_to_lead_is_evaluated_and_verified() -> None:
    """Its results are not assumed to be right: building on one that nobody verified is reported."""
    wanted = Policy().requirements[Relation.WORKER_TO_LEAD]
    found = judge_handoff(a_handoff(relation=Relation.WORKER_TO_LEAD, unverified=2), Policy())

    assert (Posture.EVALUATE, ("completed", "question", "assumption")) == (wanted.posture, wanted.minimum)
    assert ["would_deny.verification.worker-to-lead"] == [decision.flag for decision in found]


def test_lead_to_worker_may_be_rejected_and_says_why() -> None:
    """A directive comes with its rationale and its constraints; the worker may decline it."""
    wanted = Policy().requirements[Relation.LEAD_TO_WORKER]

    assert (Posture.MAY_REJECT, ("rationale", "constraint")) == (wanted.posture, wanted.minimum)


def test_peer_to_peer_is_verified_independently() -> None:
    """A peer's word is not taken for it."""
    wanted = Policy().requirements[Relation.PEER_TO_PEER]

    assert (Posture.VERIFY, ("completed",)) == (wanted.posture, wanted.minimum)


def test_external_to_agent_is_never_passed_on_verbatim() -> None:
    """A task that is word for word a text from outside is somebody else's instruction."""
    wanted = Policy().requirements[Relation.EXTERNAL_TO_AGENT]
    found = judge_handoff(a_handoff(relation=Relation.EXTERNAL_TO_AGENT, is_verbatim=True), Policy())

    assert (Posture.UNTRUSTED, ("untrusted",)) == (wanted.posture, wanted.minimum)
    assert ["would_deny.verbatim.external-to-agent"] == [decision.flag for decision in found]


def test_required_parts_refuse() -> None:
    """What the file requires is refused wherever it is missing; what it does not is only in `missing`."""
    wanted = Requirement(posture=Posture.MAY_REJECT, require=("rationale",))
    policy = Policy(requirements={Relation.LEAD_TO_WORKER: wanted})
    found = [judge_handoff(a_handoff(missing=missing), policy) for missing in (("rationale",), ("criteria",))]

    assert [["require.lead-to-worker"], []] == [[decision.rule for decision in each] for each in found]


def test_who_may_be_asked_and_how_deep() -> None:
    """An agent beyond the list is refused; a chain that is too long is counted here, and refused at its offer."""
    policy = Policy(handoffs=HandoffPolicy(max_depth=3), allowed_agents=("review*",))
    found = judge_handoff(a_handoff(depth=3), policy)

    assert [("agents", Gate.DENY), ("depth", Gate.DENY)] == names(found)
    assert () == judge_handoff(a_handoff(to=AgentId("reviewer"), depth=2), policy)


@pytest.mark.parametrize("renewal", [Gate.APPROVE, Gate.DENY], ids=["a person renews", "it stops"])
def test_long_chains_are_renewed_or_stop(renewal: Gate) -> None:
    """Every so many hops a person renews the grant, or the chain stops."""
    policy = Policy(renew_every=3, renewal=renewal)
    gates = [[decision.gate for decision in judge_handoff(a_handoff(depth=depth), policy)] for depth in range(1, 7)]

    assert [[], [], [renewal], [], [], [renewal]] == gates


@pytest.mark.parametrize(
    ("gate", "by", "expected"),
    [
        (Gate.APPROVE, "user:ana", True),
        (Gate.APPROVE, "agent:lead", False),
        (Gate.CONFIRM, "agent:lead", True),
        (Gate.CONFIRM, "user:ana", True),
        (Gate.CONFIRM, "agent:editor", False),
        (Gate.DENY, "user:ana", False),
        (Gate.APPROVE, "service:nightly", False),
        (Gate.APPROVE, "bot:deploy", False),
        (Gate.APPROVE, "users:ana", False),
        (Gate.APPROVE, "agent:user:ana", False),
        (Gate.CONFIRM, "service:nightly", True),
        (Gate.CONFIRM, "service:other", False),
        (Gate.CONFIRM, "bot:deploy", False),
        (Gate.DENY, "service:nightly", False),
    ],
)
def test_who_may_open_a_gate(gate: Gate, by: str, *, expected: bool) -> None:
    """To approve takes a person; to confirm, a person, an agent other than whoever is to do it, or who asked for it."""
    assert expected == may_let_go_on(gate, by, worker=EDITOR, principal="service:nightly")


@pytest.mark.parametrize("gate", [Gate.NONE, Gate.CONFIRM, Gate.APPROVE, Gate.DENY])
def test_a_refusal_names_whoever_may_open_the_gate(gate: Gate) -> None:
    """Its words are those of the rule: who is named may, and who may is named."""
    words = str(NotApproverError("handoff 1", "x", gate)).partition("it needs ")[2]
    named = {
        "user:ana": "a person" in words or "anybody" in words,
        "agent:lead": "an agent that does not do the work" in words or "anybody" in words,
        "agent:editor": False,
        "service:nightly": "whoever asked" in words or "anybody" in words,
        "service:other": "anybody" in words,
    }

    assert named == {by: may_let_go_on(gate, by, worker=EDITOR, principal="service:nightly") for by in named}


def test_more_people_are_stricter() -> None:
    """What else holds a call, and comes first, does not make one person of two."""
    one, two = (GateDecision(gate=Gate.APPROVE, rule=str(n), line=None, sentence="", approvals=n) for n in (1, 2))

    assert (two, two) == (decide((one, two), enforced=True), decide((two, one), enforced=True))


@pytest.mark.parametrize(
    ("proven", "enrolled", "expected"),
    [(None, False, False), (None, True, True), (True, False, True), (False, True, False)],
    ids=["nobody has a key", "somebody has", "the file asks for one", "the file does without"],
)
def test_when_a_key_is_needed(proven: bool | None, enrolled: bool, expected: bool) -> None:  # noqa: FBT001
    """The file decides; where it says nothing, whether there is a key to sign with. Nobody confirms with one."""
    policy = Policy(proven=proven)

    assert (expected, False) == tuple(
        takes_proof(policy, gate, enrolled=enrolled) for gate in (Gate.APPROVE, Gate.CONFIRM)
    )


@pytest.mark.parametrize(
    ("mode", "rule", "policy", "opens"),
    [
        pytest.param(Mode.OBSERVED, "tier.irreversible", Policy(), True, id="harm where nothing is enforced"),
        pytest.param(Mode.ENFORCED, "tier.irreversible", Policy(), False, id="the run is enforced"),
        pytest.param(Mode.OBSERVED, "mine", Policy(), False, id="a rule that somebody wrote"),
        pytest.param(Mode.OBSERVED, None, Policy(), False, id="no rule"),
        pytest.param(Mode.OBSERVED, "tier.irreversible", Policy(enforce=True), False, id="the policy is enforced"),
        pytest.param(Mode.OBSERVED, "tier.irreversible", Policy(proven=True), False, id="the policy asks for proof"),
        pytest.param(Mode.OBSERVED, "tier.irreversible", Policy(proven=False), False, id="the policy asks for none"),
    ],
)
def test_when_a_name_is_enough(mode: Mode, rule: str | None, policy: Policy, *, opens: bool) -> None:
    """Only where a call is held although nobody asked for any enforcement."""
    assert opens == opens_unproven(policy, mode, rule)


@given(st.lists(st.sampled_from(STRICTNESS[1:])), st.booleans())
def test_the_strictest_decides(gates: list[Gate], enforced: bool) -> None:  # noqa: FBT001 - Hypothesis gives it
    """However many decisions there are, none that takes effect is stricter than the one that is taken."""
    decisions = [GateDecision(gate=gate, rule="a", line=None, sentence="b") for gate in gates]
    found = decide(decisions, enforced=enforced)

    assert (max(gates, key=STRICTNESS.index, default=None) if enforced else None) == (found and found.gate)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"name": "tier.mine"}, "is taken"),
        ({"name": "a" * 49}, "at most 48"),
        ({"name": "Mine"}, "is not a code"),
        ({"on": Subject.HANDOFF, "tool": "deploy"}, "a handoff has no tool"),
        ({"relation": Relation.PEER_TO_PEER}, "a call has no relation"),
        ({"tier": Tier.BUDGETED_DELEGATION}, "a call is never budgeted-delegation"),
        ({"on": Subject.HANDOFF, "tier": Tier.COSTLY}, "a handoff is never costly"),
        ({"depth": 0}, "from 1"),
        ({"agent": " "}, "is empty"),
    ],
)
def test_a_rule_that_could_never_fit_is_refused(wrong: dict[str, Any], problem: str) -> None:
    """It would look like protection, and be none."""
    with pytest.raises(InvalidValueError, match=problem):
        a_rule(**wrong)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"rules": (a_rule(), a_rule())}, "two rules are called mine"),
        ({"hold_for": timedelta(0)}, "a hold lasts for a while"),
        ({"renewal": Gate.CONFIRM}, "a person renews"),
        ({"renew_every": 0}, "from 1"),
        ({"digest": "ab"}, "hexadecimal"),
    ],
)
def test_a_policy_that_cannot_be_right_is_refused(wrong: dict[str, Any], problem: str) -> None:
    """Whoever wrote it learns of it before anything runs."""
    with pytest.raises(InvalidValueError, match=problem):
        Policy(**wrong)


def test_a_part_that_no_baton_has_is_refused() -> None:
    """A requirement that nothing can meet, or that means nothing, is a mistake."""
    with pytest.raises(InvalidValueError, match="summary is no part of a baton"):
        Requirement(posture=Posture.EVALUATE, minimum=("summary",))


def test_no_pattern_fits_everything_and_a_pattern_needs_something() -> None:
    """What a rule does not mention does not matter; what it mentions has to be there."""
    assert [True, False, True] == [fits(None, None), fits("*", None), fits("*", "a/b", across=True)]


@given(
    policy=st.builds(
        Policy,
        rules=st.sampled_from([(), (a_rule(on=Subject.HANDOFF),)]),
        allowed_agents=st.sampled_from([None, ("writer",)]),
        renew_every=st.sampled_from([None, 1]),
        handoffs=st.sampled_from([HandoffPolicy(), HandoffPolicy(max_depth=1)]),
    ),
    relation=st.sampled_from(Relation),
    tiers=st.sampled_from([(), (Tier.BUDGETED_DELEGATION,)]),
    has_method=st.booleans(),
    unverified=st.integers(0, 1),
    is_verbatim=st.booleans(),
    missing=st.sampled_from([(), ("rationale",)]),
)
def test_where_a_policy_is_silent_it_says_nothing(
    *,
    policy: Policy,
    relation: Relation,
    tiers: tuple[Tier, ...],
    has_method: bool,
    unverified: int,
    is_verbatim: bool,
    missing: tuple[str, ...],
) -> None:
    """What is not judged would have passed, whatever else is known of it."""
    facts = a_handoff(
        relation=relation,
        tiers=tiers,
        has_method=has_method,
        unverified=unverified,
        is_verbatim=is_verbatim,
        missing=missing,
    )
    silent = is_silent_on_handoff(policy, relation, tiers=tiers, has_method=has_method, unverified=unverified)

    assert not silent or judge_handoff(facts, policy) == ()
