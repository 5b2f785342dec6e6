"""Calls as a tool server sees them: each thing that can be wrong with one is refused with a code of its own."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from batonpass.errors import (
    GrantBackdatedError,
    GrantContextError,
    GrantDeniedError,
    GrantDepthError,
    GrantExpiredError,
    GrantMalformedError,
    GrantNotYetValidError,
    GrantPolicyError,
    GrantPossessionError,
    GrantReplayedError,
    GrantRootError,
    InvalidValueError,
    KeyRefusedError,
)
from batonpass.grants.issuer import enrol, prove, sign
from batonpass.grants.verifier import Verifier
from batonpass.guard import Permitted, ToolPolicy
from batonpass.model.base.ids import AgentId, LedgerId, PublicKey, RelayId
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.scope_text import read_permit, read_scope
from batonpass.wire.token import encode_chain, encode_proof, join_token
from tests.unit.grants.world import (
    ANA,
    AUDIENCE,
    HOUR,
    OTHER_RELAY,
    ROOT,
    RUN,
    THIEF,
    WRITE,
    World,
    a_run,
    an_id,
    may,
    recertified,
    refusal,
    resigned,
    with_last,
)

MINUTE = timedelta(minutes=1)


def test_a_call_under_a_chain_is_permitted() -> None:
    """Whoever holds the key of the last hop may do what every hop lets through, and it is known who that is."""
    world = World()
    chain = world.chain()

    assert Permitted(
        agent=AgentId("editor2"),
        principal=ANA,
        run=a_run(2),
        permits=tuple(map(read_permit, ("write:src/**", "write:src/**", "write:src/*"))),
        limits=Limits(),
        revocations=None,
    ) == world.verifier().verify_call(world.token(chain), WRITE, run=a_run(2))


def test_a_chain_of_one_is_a_root_run() -> None:
    """A root run proves its own calls; nobody has handed anything off."""
    world = World()

    assert a_run(0) == world.verifier().verify_call(world.token(world.chain(may("write:**"))), WRITE).run


def test_the_least_limits_of_all_hops_are_told() -> None:
    """Whoever executes calls has to count; it learns what to count against."""
    world = World()
    chain = world.chain(
        replace(may("write:**"), limits=Limits(calls=9, rows=5)), replace(may("write:**"), limits=Limits(calls=3))
    )

    assert Limits(calls=3, rows=5) == world.verifier().verify_call(world.token(chain), WRITE).limits


def test_widened_terms_have_no_effect() -> None:
    """Terms that a relay should never have signed give nothing that the hops above did not let through."""
    world = World()
    chain = world.chain()
    widened = with_last(world, chain, may=read_scope(["*:**"]))
    secret = Call("write_file", "write", ".github/ci.yml")

    assert GrantDeniedError is refusal(world, widened, secret)
    assert a_run(2) == world.verifier().verify_call(world.token(widened), WRITE).run


def test_what_may_be_used_may_not_be_delegated() -> None:
    """The right to use is no right to pass on: every hop above needs the right to delegate as well."""
    world = World()
    chain = world.chain(may("write:**"), may("write:**"))
    keeps = resigned(chain.terms[0], may_delegate=read_scope(["read:**"]))
    terms = (keeps, resigned(chain.terms[1], parent=keeps.digest))
    token = world.token(replace(chain, terms=terms, certificate=world.certify(terms)))

    with pytest.raises(GrantDeniedError, match="but lead may not delegate it: lead may delegate read:"):
        world.verifier().verify_call(token, WRITE)


def test_a_coordinator_may_delegate_what_it_may_not_use() -> None:
    """The right to pass on is no right to use."""
    world = World()
    coordinator = Grant(may=read_scope(["read:**"]), may_delegate=read_scope(["write:src/**"]))

    assert GrantDeniedError is refusal(world, world.chain(coordinator))
    assert (
        a_run(1)
        == world.verifier()
        .verify_call(world.token(world.chain(coordinator, Grant(may=read_scope(["write:src/**"])))), WRITE)
        .run
    )


def test_two_relays_on_one_chain() -> None:
    """Hops may be signed by different relays, as long as the root key has enrolled each."""
    world = World()
    chain = world.chain()
    certificate = recertified(chain.certificate, OTHER_RELAY)

    assert GrantRootError is refusal(world, replace(chain, certificate=certificate))
    both = replace(chain, certificate=certificate, enrolments=(world.enrolment, world.enrol(OTHER_RELAY)))
    assert a_run(2) == world.verifier().verify_call(world.token(both), WRITE).run


def test_a_key_signs_nothing_after_it_was_replaced() -> None:
    """What is dated after the end of a key's enrolment, or before its beginning, was not signed by its owner then."""
    world = World()
    world.clock.tick(HOUR)
    chain = world.chain()
    until = world.clock.now() - MINUTE
    ended = sign(replace(world.enrolment.said, until=until), ROOT)
    later = sign(replace(world.enrolment.said, at=world.clock.now() + MINUTE), ROOT)

    assert GrantBackdatedError is refusal(world, replace(chain, enrolments=(ended,)))
    assert GrantBackdatedError is refusal(world, replace(chain, enrolments=(later,)))


def test_a_proof_is_for_one_audience() -> None:
    """What was shown to one server is worth nothing at another."""
    world = World()

    with pytest.raises(GrantContextError, match="made for https://elsewhere"):
        world.verifier().verify_call(world.token(world.chain(), audience="https://elsewhere.example"), WRITE)


@pytest.mark.parametrize(
    "other",
    [
        replace(WRITE, arguments={**WRITE.arguments, "ratio": 0.25}),
        replace(WRITE, arguments={}),
        replace(WRITE, resource="src/other.py"),
        replace(WRITE, tool="append_file"),
        replace(WRITE, action="read"),
    ],
    ids=["another argument", "no arguments", "another resource", "another tool", "another action"],
)
def test_a_proof_is_for_one_call(other: Call) -> None:
    """A token that was made for one call does not serve for another."""
    world = World()

    with pytest.raises(GrantContextError, match="another call of write_file"):
        world.verifier().verify_call(world.token(world.chain()), other)


def test_a_proof_is_for_one_run() -> None:
    """Neither the certificate of another run nor a proof about another certificate is taken."""
    world = World()
    one, other = world.chain(), world.chain(may("write:**"))
    proof = encode_proof(prove(WRITE, other.certificate, run_key=RUN, audience=AUDIENCE, at=world.clock.now()))

    with pytest.raises(GrantContextError, match="another certificate"):
        world.verifier().verify_call(join_token(encode_chain(one), proof), WRITE)
    with pytest.raises(GrantContextError, match="was expected"):
        world.verifier().verify_call(world.token(one), WRITE, run=a_run(7))


def test_a_proof_is_made_with_the_runs_own_key() -> None:
    """Whoever has seen a chain can show it, and cannot use it."""
    world = World()

    with pytest.raises(GrantPossessionError):
        world.verifier().verify_call(world.token(world.chain(), key=THIEF), WRITE)


def test_a_proof_is_taken_once() -> None:
    """The same bytes twice are a replay; another proof for the same call is another call."""
    world = World()
    verifier, chain = world.verifier(), world.chain()
    token = world.token(chain)
    verifier.verify_call(token, WRITE)

    with pytest.raises(GrantReplayedError):
        verifier.verify_call(token, WRITE)
    assert a_run(2) == verifier.verify_call(world.token(chain), WRITE).run


def test_the_verifiers_clock_decides() -> None:
    """Too late, too early, an old proof and one of tomorrow: each by the verifier's own clock."""
    world = World()
    verifier, chain = world.verifier(), world.chain()
    token = world.token(chain)

    world.clock.tick(2 * MINUTE)
    with pytest.raises(GrantExpiredError, match="the proof was made at"):
        verifier.verify_call(token, WRITE)
    world.clock.tick(3 * MINUTE)
    with pytest.raises(GrantExpiredError, match="the grant ended at"):
        verifier.verify_call(token, WRITE)
    world.clock.tick(-6 * MINUTE)
    with pytest.raises(GrantNotYetValidError, match="the grant begins at"):
        verifier.verify_call(token, WRITE)


def test_a_proof_of_tomorrow_or_from_before_its_certificate() -> None:
    """A client whose clock is wrong, or that lies about it, is told so."""
    world = World()
    world.clock.tick(HOUR)
    chain = world.chain()
    verifier = world.verifier()
    for minutes, error in ((1, GrantNotYetValidError), (-0.9, GrantBackdatedError)):
        made = prove(WRITE, chain.certificate, run_key=RUN, audience=AUDIENCE, at=world.clock.now() + minutes * MINUTE)
        with pytest.raises(error):
            verifier.verify_call(join_token(encode_chain(chain), encode_proof(made)), WRITE)


def test_a_permit_ends_by_itself() -> None:
    """The end of a permit counts as much as the end of the terms."""
    world = World()
    chain = world.chain(may("write:**; until 2026-01-02T12:00:10Z"))
    verifier = world.verifier()
    verifier.verify_call(world.token(chain), WRITE)
    world.clock.tick(timedelta(seconds=10))

    with pytest.raises(GrantDeniedError, match="with the time 2026-01-02T12:00:10Z"):
        verifier.verify_call(world.token(chain), WRITE)


@pytest.mark.parametrize(
    ("policy", "call"),
    [
        pytest.param(ToolPolicy(principals=frozenset()), WRITE, id="another principal"),
        pytest.param(ToolPolicy(agents=frozenset({AgentId("lead")})), WRITE, id="another agent"),
        pytest.param(ToolPolicy(lifetime=MINUTE), WRITE, id="a certificate that is valid for too long"),
        pytest.param(ToolPolicy(ceiling=read_scope(["read:**"])), WRITE, id="nothing that is done here"),
    ],
)
def test_the_verifiers_policy_decides_too(policy: ToolPolicy, call: Call) -> None:
    """A server takes what was granted only as far as it serves such things at all."""
    world = World()

    with pytest.raises(GrantPolicyError):
        world.verifier(policy=policy).verify_call(world.token(world.chain()), call)


def test_a_policy_that_lets_everything_through_that_it_names() -> None:
    """Principals, agents, lifetimes and ceilings that fit refuse nothing."""
    world = World()
    policy = ToolPolicy(
        principals=frozenset({ANA}),
        agents=frozenset({AgentId("editor2")}),
        lifetime=timedelta(minutes=5),
        ceiling=read_scope(["write:src/**"]),
    )

    assert a_run(2) == world.verifier(policy=policy).verify_call(world.token(world.chain()), WRITE).run


def test_a_verifier_takes_only_so_many_hops() -> None:
    """A chain that no terms forbid may still be longer than a server wants to look at."""
    world = World()

    with pytest.raises(GrantDepthError, match="3 hops, and 2 are taken"):
        world.verifier(most_hops=2).verify_call(world.token(world.chain()), WRITE)


def test_what_the_file_system_says_is_what_counts() -> None:
    """The proof is about the call as it was sent; what has to be granted is where it leads."""
    world = World()
    chain = world.chain()
    real = replace(WRITE, resource=".github/ci.yml")

    with pytest.raises(GrantDeniedError, match=r"tried write:\.github/ci\.yml"):
        world.verifier().verify_call(world.token(chain), WRITE, acts_on=real)


def test_a_verified_chain_is_remembered_and_still_judged() -> None:
    """A chain that was verified is not checked again byte by byte, but by the clock every time."""
    world = World()
    verifier, chain = world.verifier(), world.chain()
    verifier.verify_call(world.token(chain), WRITE)
    verifier.verify_call(world.token(chain), WRITE)
    world.clock.tick(6 * MINUTE)

    with pytest.raises(GrantExpiredError):
        verifier.verify_call(world.token(chain), WRITE)


def test_a_verifier_needs_a_strong_root_key() -> None:
    """For a key of small order anybody could sign."""
    with pytest.raises(KeyRefusedError):
        Verifier(PublicKey("00" * 32), audience=AUDIENCE, revocations=False)


def test_nobody_signs_for_another_key() -> None:
    """A statement that names another key than the one that signs would never verify, so it is never made."""
    with pytest.raises(KeyRefusedError):
        sign(World().enrolment.said, THIEF)


def test_weak_keys_are_never_certified_or_enrolled() -> None:
    """Neither a run nor a relay gets a key with which anybody could sign."""
    world, weak = World(), PublicKey("00" * 32)
    terms = world.terms([may("write:**")])[0]

    with pytest.raises(KeyRefusedError):
        world.issuer.certify(terms, run=a_run(0), attempt=0, epoch=1, run_key=weak, valid_for=HOUR)
    with pytest.raises(KeyRefusedError):
        enrol(weak, ledger=LedgerId(an_id("ledger", 1)), relay=RelayId(an_id("relay", 1)), root=ROOT, at=terms.said.at)


@pytest.mark.parametrize("token", ["", ".", "a.b", "a", "a.", ".b", "é.b", "a.b.c", "AAAA.AAAA"])
def test_what_is_no_token(token: str) -> None:
    """Whatever stands in the header is refused as what it is."""
    with pytest.raises(GrantMalformedError):
        World().verifier().verify_call(token, WRITE)


def test_arguments_that_json_cannot_hold_are_no_call() -> None:
    """A call whose arguments have no canonical form is refused before anything is compared."""
    world = World()

    with pytest.raises(InvalidValueError):
        world.verifier().verify_call(world.token(world.chain()), replace(WRITE, arguments={"x": float("nan")}))
