"""The statements of grants as bytes: one spelling, closed, with a version, and signed as DSSE."""

import json
from datetime import timedelta
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields, replace
from securesystemslib.dsse import Envelope

from batonpass.errors import GrantMalformedError, GrantVersionError
from batonpass.grants.issuer import prove
from batonpass.model.grants.grant import (
    Certificate,
    Grant,
    Proof,
    RelayEnrolment,
    Revocations,
    Signed,
    Statement,
    Terms,
)
from batonpass.model.grants.limits import Limits
from batonpass.wire.grant_statements import PAYLOAD_TYPE, decode_statement, encode_statement, kind_of, signing_bytes
from batonpass.wire.token import decode_revocations
from tests.unit.grants.world import AUDIENCE, RUN, WRITE, World, a_run, may, resigned
from tests.unit.model.scopes import any_limits, any_scopes, any_times

WORLD = World()
CHAIN = WORLD.chain()
NOON = WORLD.clock.now()
PARTS: dict[type[Statement], Signed[Any]] = {
    RelayEnrolment: WORLD.enrolment,
    Terms: resigned(
        CHAIN.terms[2], limits=Limits(calls=3), until=NOON + timedelta(microseconds=1, hours=1), max_depth=4
    ),
    Certificate: CHAIN.certificate,
    Proof: prove(WRITE, CHAIN.certificate, run_key=RUN, audience=AUDIENCE, at=NOON),
    Revocations: decode_revocations(WORLD.revocations(runs=frozenset({a_run(1)})))[1],
}

every_kind = pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)


def edited(kind: type[Statement], **changed: object) -> bytes:
    """Return a payload with fields replaced; what is None is left out."""
    said = json.loads(PARTS[kind].payload) | changed
    return rfc8785.dumps({name: value for name, value in said.items() if value is not None})


@every_kind
def test_a_statement_comes_back_as_it_was(kind: type[Statement]) -> None:
    """What is encoded is decoded to the same value, and its bytes are those of RFC 8785."""
    part = PARTS[kind]

    assert part.said == decode_statement(part.payload, kind)
    assert rfc8785.dumps(json.loads(part.payload)) == part.payload
    assert kind is kind_of(part.payload)


@settings(max_examples=40)
@given(st.builds(Grant, may=any_scopes, may_delegate=any_scopes, limits=any_limits, until=any_times))
def test_any_grant_comes_back_from_its_terms(grant: Grant) -> None:
    """Whatever a scope holds, it is written canonically and read as the same."""
    terms = resigned(
        CHAIN.terms[2], may=grant.may, may_delegate=grant.may_delegate, limits=grant.limits, until=grant.until
    )

    assert terms.said == decode_statement(terms.payload, Terms)
    assert rfc8785.dumps(json.loads(terms.payload)) == terms.payload


@every_kind
def test_an_unknown_field_is_refused_by_name(kind: type[Statement]) -> None:
    """A field that this version does not know could be the one that forbids it."""
    with pytest.raises(GrantMalformedError, match="colour: there is no such field"):
        decode_statement(edited(kind, colour="red"), kind)


@every_kind
def test_every_field_that_is_needed_is_needed(kind: type[Statement]) -> None:
    """Leaving one out makes it something else, and no default is made up."""
    for field in fields(kind):
        if field.default is NODEFAULT:
            with pytest.raises(GrantMalformedError):
                decode_statement(edited(kind, **{field.name: None}), kind)


@every_kind
def test_a_newer_version_is_named_and_refused(kind: type[Statement]) -> None:
    """It is not broken, and it is not understood either."""
    newer = json.loads(PARTS[kind].payload)["_type"].replace(":v0", ":v1")

    with pytest.raises(GrantVersionError, match="upgrade it"):
        decode_statement(edited(kind, _type=newer), kind)


@every_kind
def test_one_kind_is_not_taken_for_another(kind: type[Statement]) -> None:
    """The type is part of what is signed."""
    for other, part in PARTS.items():
        if other is not kind:
            with pytest.raises(GrantMalformedError, match="stands where"):
                decode_statement(part.payload, kind)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(PARTS[Terms].payload.replace(b":", b": ", 1), id="a space"),
        pytest.param(PARTS[Terms].payload + b"\n", id="a new line behind"),
        pytest.param(edited(Terms, may=["write:src/*", "read:x"]), id="permits out of order"),
        pytest.param(edited(Terms, may=["write:src/*", "write:src/*"]), id="a permit twice"),
        pytest.param(edited(Terms, may=["write:./src/*"]), id="a permit in another spelling"),
        pytest.param(edited(Terms, may_delegate=[]), id="a default that is spelled out"),
        pytest.param(edited(Terms, limits="at most 03 calls"), id="limits in another spelling"),
        pytest.param(edited(Terms, until="2026-01-02T13:00:00+00:00"), id="a time in another spelling"),
        pytest.param(edited(Terms).replace(b'"max_depth":4', b'"max_depth":4.0'), id="a number in another spelling"),
        pytest.param(PARTS[Terms].payload[:-1] + b',"max_depth":4}', id="a field twice"),
        pytest.param(edited(Terms, handoff=None), id="a parent without a handoff"),
        pytest.param(b"{}", id="nothing"),
        pytest.param(b"", id="not even that"),
        pytest.param(b'{"_type":"urn:batonpass:terms:v0"', id="cut short"),
        pytest.param(b'{"_type":"urn:batonpass:receipt:v0"}', id="something else of ours"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_a_second_spelling_is_refused(payload: bytes) -> None:
    """Equal statements have equal bytes, so a digest names one statement."""
    with pytest.raises(GrantMalformedError):
        decode_statement(payload, Terms)


def test_signatures_are_over_the_bytes_of_dsse() -> None:
    """What others call pre-authentication encoding is what is signed."""
    payload = PARTS[Terms].payload

    assert Envelope(payload, PAYLOAD_TYPE, {}).pae() == signing_bytes(payload)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        pytest.param(Certificate, {"valid_until": "2026-01-02T12:00:00Z"}, id="a certificate that ends as it begins"),
        pytest.param(Certificate, {"epoch": 0}, id="no epoch"),
        pytest.param(RelayEnrolment, {"purposes": []}, id="an enrolment for nothing"),
        pytest.param(RelayEnrolment, {"purposes": ["revoke", "grant"]}, id="purposes out of order"),
        pytest.param(RelayEnrolment, {"purposes": ["rule"]}, id="an unknown purpose"),
        pytest.param(Proof, {"nonce": "short"}, id="a short nonce"),
        pytest.param(Proof, {"audience": " "}, id="no audience"),
        pytest.param(Proof, {"audience": "x" * 513}, id="a long audience"),
        pytest.param(Revocations, {"number": 0}, id="no number"),
        pytest.param(Revocations, {"best_before": "2026-01-02T12:00:00Z"}, id="a list that is never good"),
        pytest.param(Revocations, {"runs": [a_run(2), a_run(1)]}, id="runs out of order"),
        pytest.param(Revocations, {"terms": ["x"]}, id="no digest"),
    ],
)
def test_a_value_that_cannot_be_right_is_refused(kind: type[Statement], changed: dict[str, object]) -> None:
    """Each field is checked when it is read, not when it is used."""
    with pytest.raises(GrantMalformedError):
        decode_statement(edited(kind, **changed), kind)


def test_equal_grants_have_equal_bytes() -> None:
    """In whatever order a scope was written down."""
    one, other = (
        replace(CHAIN.terms[0].said, may=may(*lines).may) for lines in (("a:x", "b:y"), ("b:y", "a:x", "a:x"))
    )

    assert encode_statement(one) == encode_statement(other)
