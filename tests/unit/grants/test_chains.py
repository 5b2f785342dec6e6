"""Chains of any grants: authority only shrinks, and no bit of a token can be changed."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from batonpass.errors import (
    GrantChainError,
    GrantDeniedError,
    GrantError,
    GrantExceededError,
    GrantIntegrityError,
    GrantMalformedError,
    GrantPossessionError,
    GrantRootError,
    GrantVersionError,
)
from batonpass.guard.grants.authority import authorise
from batonpass.guard.grants.narrower_terms import narrow
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Chain, Grant, Signed, Statement, Terms
from batonpass.wire.token import decode_chain, decode_proof, encode_chain, encode_proof, join_token, split_token
from tests.unit.grants.world import WRITE, World, may
from tests.unit.model.scopes import NOON, PLAIN_CALLS, argued_scopes, plain_scopes

scopes = plain_scopes | argued_scopes
grants = st.builds(Grant, may=scopes, may_delegate=scopes)


def held_by(world: World, asked: list[Grant]) -> list[Terms]:
    """Return the terms of a chain in which everybody asks for something, and gets what may be delegated of it."""
    terms = [world.terms([asked[0]])[0].said]
    for depth, grant in enumerate(asked[1:]):
        above = terms[-1]
        cut = Grant(
            may=above.may_delegate.narrow(grant.may), may_delegate=above.may_delegate.narrow(grant.may_delegate)
        )
        given_to = narrow(above, cut, depth=depth)
        terms.append(replace(above, may=given_to.may, may_delegate=given_to.may_delegate))
    return terms


@settings(max_examples=60)
@given(st.lists(grants, min_size=2, max_size=5))
def test_every_ancestor_may_delegate_what_a_descendant_may_do(asked: list[Grant]) -> None:
    """However a chain comes about, both rights of each hop are covered by what every hop above may delegate."""
    terms = held_by(World(), asked)
    for depth, below in enumerate(terms):
        for above in terms[:depth]:
            assert above.may_delegate.covers(below.may)
            assert above.may_delegate.covers(below.may_delegate)


def is_authorised(terms: list[Terms], call: Call) -> bool:
    """Tell whether a call passes; a refusal names what was tried."""
    try:
        authorise(terms, call, NOON)
    except GrantDeniedError as error:
        return str(call) != error.tried
    return True


@settings(max_examples=60)
@given(st.lists(grants, min_size=1, max_size=4))
def test_a_call_passes_only_if_every_hop_lets_it(asked: list[Grant]) -> None:
    """Whatever was signed at any hop, widened or not: the last may use it, and all above may delegate it."""
    world = World()
    terms = [world.terms([grant])[0].said for grant in asked]
    for call in PLAIN_CALLS[::5]:
        lets = [terms[-1].may.allows(call, NOON), *(one.may_delegate.allows(call, NOON) for one in terms[:-1])]
        assert all(lets) is is_authorised(terms, call)


@settings(max_examples=60)
@given(grants, grants)
def test_asking_for_too_much_is_refused_with_each_part(parent: Grant, asked: Grant) -> None:
    """A child gets what it asked for, or an error that names exactly what the parent cannot give."""
    terms = World().terms([parent])[0].said
    excess = [
        f"{right} {permit}"
        for right, scope in (("may", asked.may), ("may delegate", asked.may_delegate))
        for permit in parent.may_delegate.find_excess(scope, unsaid=True)
    ]
    if not excess:
        given_to = narrow(terms, asked, depth=0)
        assert parent.may_delegate.covers(given_to.may)
        assert asked.may.covers(given_to.may)
        return
    with pytest.raises(GrantExceededError) as caught:
        narrow(terms, asked, depth=0)

    assert excess == [part.removesuffix(" (which it may use, and may not delegate)") for part in caught.value.excess]
    assert parent.may_delegate.lines == caught.value.held


def parts_of(token: str) -> list[Signed[Statement]]:
    """Return every signed part of a token, the proof last."""
    chain_text, proof_text = split_token(token)
    chain = decode_chain(chain_text)
    return [*chain.enrolments, *chain.terms, chain.certificate, decode_proof(proof_text)]


def packed(parts: Sequence[Signed[Any]]) -> str:
    """Return a token of one enrolment and whatever else there is, packed as if nothing had happened."""
    enrolment, *terms, certificate, proof = parts
    chain = Chain(enrolments=(enrolment,), terms=tuple(terms), certificate=certificate)
    return join_token(encode_chain(chain), encode_proof(proof))


def test_any_flipped_bit_in_any_part_is_refused() -> None:
    """One bit of each byte of each payload and each signature, flipped behind the packing: none gets through."""
    world, chosen = World(), random.Random(20261116)
    verifier, chain = world.verifier(), world.chain(may("write:src/**"), may("write:src/**"))
    parts = parts_of(world.token(chain))
    verifier.verify_chain(encode_chain(chain))
    found: dict[str, set[type[GrantError]]] = {}
    for number, part in enumerate(parts):
        for at in range(len(part.payload) + len(part.signature)):
            whole = bytearray(part.payload + part.signature)
            whole[at] ^= 1 << chosen.randrange(8)
            changed = replace(
                part, payload=bytes(whole[: len(part.payload)]), signature=bytes(whole[len(part.payload) :])
            )
            with pytest.raises(GrantError) as caught:
                verifier.verify_call(packed([*parts[:number], changed, *parts[number + 1 :]]), WRITE)
            place = "payload" if at < len(part.payload) else "signature"
            found.setdefault(f"{number} {type(part.said).__name__} {place}", set()).add(type(caught.value))

    # A flipped bit makes a payload unreadable, or spoils its signature, or names another key, or another version.
    read = {GrantMalformedError, GrantVersionError, GrantIntegrityError, GrantRootError}
    assert {} == {name: kinds for name, kinds in found.items() if "Proof" not in name and not kinds <= read}
    assert {frozenset({GrantIntegrityError})} == {
        frozenset(kinds) for name, kinds in found.items() if name.endswith("signature") and "Proof" not in name
    }
    assert {GrantPossessionError} == found["4 Proof signature"]
    assert GrantChainError not in set().union(*found.values())


def test_any_changed_character_of_a_token_is_refused() -> None:
    """Each character in turn is exchanged for another of the alphabet; the packing has no bit to spare."""
    world, chosen = World(), random.Random(20261117)
    token, verifier = world.token(world.chain()), world.verifier()
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for at, was in enumerate(token):
        other = chosen.choice(letters.replace(was, ""))
        with pytest.raises(GrantError):
            verifier.verify_call(f"{token[:at]}{other}{token[at + 1 :]}", WRITE)
    verifier.verify_call(token, WRITE)
