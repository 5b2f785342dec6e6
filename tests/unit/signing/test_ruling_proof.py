"""What a passkey has to have signed to prove a ruling, and everything that proves nothing."""

import json
from collections.abc import Callable
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS, PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256, SHA512
from msgspec.structs import replace
from webauthn import verify_authentication_response
from webauthn.helpers.exceptions import InvalidAuthenticationResponse

from batonpass.errors import InvalidValueError, KeyRefusedError
from batonpass.model.base.ids import PublicKey
from batonpass.model.base.passkey import Passkey, PasskeyAlgorithm, find_passkey, require_approver_key
from batonpass.model.bodies.body import PasskeyAnswer
from batonpass.model.ledger.projection import key_id
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.p256 import read_der
from batonpass.signing.rs256 import EXPONENT
from batonpass.signing.ruling_proof import challenge_of, find_objection, is_site_of, require_usable
from batonpass.wire.receipt_codec import signing_bytes
from tests.unit.handoff.authenticator import ORIGIN, PRESENT, SITE, VERIFIED, Authenticator, base64url

RULING = b'{"a ruling": 1}'

Change = Callable[[Authenticator], Authenticator]


def told(device: Authenticator, key: Passkey, *, ruling: bytes = RULING) -> str | None:
    """Return what is wrong with the signature of a device on a ruling, checked by a key."""
    answer, made = device.answer(challenge_of(ruling))
    return find_objection(key.text, RULING, read_der(made), answer)


def test_what_a_passkey_signs_proves_the_ruling() -> None:
    """The challenge is the digest of the bytes that a key in a file would sign."""
    device = Authenticator()
    answer, made = device.answer(sha256(signing_bytes(RULING)).digest())

    assert None is find_objection(device.passkey.text, RULING, read_der(made), answer)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda one: one.but(origin="https://evil.example"), "another site", id="another site"),
        pytest.param(lambda one: one.but(origin=f"http://{SITE}"), "another site", id="the site without TLS"),
        pytest.param(lambda one: one.but(origin=f"{ORIGIN}.evil.example"), "another site", id="a longer name"),
        pytest.param(lambda one: one.but(origin=f"https://sub.{SITE}"), "another site", id="a name below it"),
        pytest.param(lambda one: one.but(origin=f"{ORIGIN}@evil.example"), "another site", id="the site as a user"),
        pytest.param(lambda one: one.but(origin=f"{ORIGIN}/path"), "another site", id="more than an origin"),
        pytest.param(lambda one: one.but(more={"origin": 7}), "another site", id="an origin that is no text"),
        pytest.param(lambda one: one.but(site="evil.example"), "answered for another site", id="for another site"),
        pytest.param(lambda one: one.but(flags=VERIFIED), "nobody was at", id="nobody touched it"),
        pytest.param(lambda one: one.but(flags=PRESENT), "did not verify who", id="somebody, but nobody knows who"),
        pytest.param(lambda one: one.but(more={"crossOrigin": True}), "within a page of another", id="in a frame"),
        pytest.param(lambda one: one.but(more={"topOrigin": ORIGIN}), "within a page of another", id="below another"),
        pytest.param(lambda one: one.but(more={"type": "webauthn.create"}), "did not ask", id="when it was made"),
        pytest.param(
            lambda one: one.but(more={"challenge": base64url(b"x" * 32)}), "another ruling", id="another text"
        ),
    ],
)
def test_anything_else_proves_nothing(change: Change, words: str) -> None:
    """Each is signed by the right key, and says why it does not count."""
    device = Authenticator()

    assert words in str(told(change(device), device.passkey))


def test_a_ruling_is_not_another_one_and_a_key_not_another_persons() -> None:
    """The answer for one ruling fits no other; the answer of one passkey fits no other."""
    device = Authenticator()

    assert "the passkey signed another ruling" == told(device, device.passkey, ruling=b'{"a ruling": 2}')
    assert "the passkey did not sign this answer" == told(device, Authenticator().passkey)


def test_every_bit_of_the_answer_counts() -> None:
    """One flipped bit anywhere in what browser and device said, or in the signature, and it proves nothing."""
    device = Authenticator(counter=9)
    answer, made = device.answer(challenge_of(RULING))
    data, signature = bytes.fromhex(answer.authenticator_data), read_der(made)
    held = []
    for place in range(0, 37 * 8, 5):
        flipped = bytes(byte ^ (1 << place % 8) * (index == place // 8) for index, byte in enumerate(data))
        held.append(
            find_objection(device.passkey.text, RULING, signature, replace(answer, authenticator_data=flipped.hex()))
        )
    for place in range(0, len(answer.client_data), 3):
        letters = [*answer.client_data]
        letters[place] = chr(ord(letters[place]) ^ 1)
        held.append(
            find_objection(device.passkey.text, RULING, signature, replace(answer, client_data="".join(letters)))
        )
    for place in range(0, 64 * 8, 17):
        other = bytes(byte ^ (1 << place % 8) * (index == place // 8) for index, byte in enumerate(signature))
        held.append(find_objection(device.passkey.text, RULING, other, answer))

    assert None not in held


def test_what_cannot_be_read_is_refused() -> None:
    """Neither JSON that is none, nor a list, nor one that is nested beyond reading."""
    device = Authenticator()
    answer, made = device.answer(challenge_of(RULING))
    found = [
        find_objection(device.passkey.text, RULING, read_der(made), replace(answer, client_data=text))
        for text in ("{", "[]", "null", "[" * 4000)
    ]

    assert None not in found


def test_more_than_was_announced_is_refused() -> None:
    """Bytes after the counter stand for something only if the flags say so."""
    device = Authenticator()
    answer, made = device.answer(challenge_of(RULING))
    longer = replace(answer, authenticator_data=answer.authenticator_data + "00")

    assert "says more than it announces" in str(find_objection(device.passkey.text, RULING, read_der(made), longer))


def test_each_kind_of_key_takes_its_own_proof() -> None:
    """A passkey without the browser's words proves nothing; a key in a file proves nothing with them."""
    device, signer = Authenticator(), Ed25519Signer.generate()
    answer, made = device.answer(challenge_of(RULING))
    signature = signer.sign(signing_bytes(RULING))

    assert (None, True, True, True) == (
        find_objection(signer.public_key, RULING, signature),
        "the key is a passkey" in str(find_objection(device.passkey.text, RULING, read_der(made))),
        "the key is none" in str(find_objection(signer.public_key, RULING, signature, answer)),
        "did not sign" in str(find_objection(signer.public_key, RULING, bytes(64))),
    )


def test_a_passkey_of_ed25519_signs_as_well() -> None:
    """It signs the same bytes, and without the browser's words its signature on the ruling itself proves nothing."""
    signer, device = Ed25519Signer.generate(), Authenticator()
    key = Passkey(algorithm=PasskeyAlgorithm.ED25519, site=SITE, credential="AAAA", public=signer.public_key)
    answer, _ = device.answer(challenge_of(RULING))
    message = bytes.fromhex(answer.authenticator_data) + sha256(answer.client_data.encode()).digest()

    assert None is find_objection(key.text, RULING, signer.sign(message), answer)
    assert None is not find_objection(key.text, RULING, signer.sign(signing_bytes(RULING)), answer)
    assert None is not find_objection(key.text, RULING, signer.sign(signing_bytes(RULING)))
    assert key_id(signer.public_key) == key_id(key.text)


def test_a_passkey_of_rsa_signs_as_well() -> None:
    """Computers that keep it in their chip make no other. Beside the right padding nothing is taken."""
    key, device = rsa.generate_private_key(EXPONENT, 2048), Authenticator()
    public = key.public_key().public_numbers().n.to_bytes(256, "big").hex()
    passkey = Passkey(algorithm=PasskeyAlgorithm.RS256, site=SITE, credential="AAAA", public=public)
    answer, _ = device.answer(challenge_of(RULING))
    message = bytes.fromhex(answer.authenticator_data) + sha256(answer.client_data.encode()).digest()
    good = key.sign(message, PKCS1v15(), SHA256())
    number = int.from_bytes(good, "big")
    modulus = int(public, 16)
    others = [
        key.sign(message + b"x", PKCS1v15(), SHA256()),
        key.sign(message, PKCS1v15(), SHA512()),
        key.sign(message, PSS(MGF1(SHA256()), 32), SHA256()),
        bytes(256),
        (modulus - number).to_bytes(256, "big"),
        (modulus - 1).to_bytes(256, "big"),
        b"\xff" * 256,
        b"\x00" + good,
        good[:-1],
    ]

    assert None is find_objection(passkey.text, RULING, good, answer)
    assert ["the passkey did not sign this answer"] * len(others) == [
        find_objection(passkey.text, RULING, one, answer) for one in others
    ]
    assert passkey.text == require_usable(passkey.text)
    with pytest.raises(KeyRefusedError):
        require_usable(replace(passkey, public="00" * 256).text)


def test_webauthn_says_the_same() -> None:
    """The library that thousands of servers use takes what we take, and refuses what we refuse."""
    device = Authenticator()
    cbor2 = pytest.importorskip("cbor2")
    raw = bytes.fromhex(device.passkey.public)
    cose = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: raw[:32], -3: raw[32:]})
    changes: list[Change] = [
        lambda one: one,
        lambda one: one.but(origin="https://evil.example"),
        lambda one: one.but(site="evil.example"),
        lambda one: one.but(flags=PRESENT),
        lambda one: one.but(flags=VERIFIED),
        lambda one: one.but(more={"type": "webauthn.create"}),
        lambda one: one.but(more={"challenge": base64url(b"x")}),
        lambda one: one.but(key=Authenticator().key),
    ]
    found = []
    for change in changes:
        answer, made = change(device).answer(challenge_of(RULING))
        ours = find_objection(device.passkey.text, RULING, read_der(made), answer) is None
        given = {
            "id": device.passkey.credential,
            "rawId": device.passkey.credential,
            "type": "public-key",
            "response": {
                "clientDataJSON": base64url(answer.client_data.encode()),
                "authenticatorData": base64url(bytes.fromhex(answer.authenticator_data)),
                "signature": base64url(made),
            },
        }
        try:
            verify_authentication_response(
                credential=given,
                expected_challenge=challenge_of(RULING),
                expected_rp_id=SITE,
                expected_origin=ORIGIN,
                credential_public_key=cose,
                credential_current_sign_count=0,
                require_user_verification=True,
            )
            theirs = True
        except InvalidAuthenticationResponse:
            theirs = False
        found.append((ours, theirs))

    assert [(True, True), *[(False, False)] * (len(changes) - 1)] == found


@pytest.mark.parametrize("site", ["localhost", SITE])
def test_the_site_is_asked_for_over_tls_or_on_this_machine(site: str) -> None:
    """At any port; without TLS only at the name that is this machine."""
    found = [is_site_of(f"{scheme}://{site}{port}", site) for scheme in ("https", "http") for port in ("", ":41873")]

    assert [True, True, site == "localhost", site == "localhost"] == found
    assert not is_site_of("https://[", site)


def test_a_passkey_is_one_word() -> None:
    """It is read back as it was written, and its id is the digest of its point."""
    passkey = Authenticator().passkey

    assert (passkey, sha256(bytes.fromhex(passkey.public)).hexdigest()) == (
        find_passkey(passkey.text),
        key_id(passkey.text),
    )


@pytest.mark.parametrize(
    "text",
    [
        "passkey:es256:localhost:AAAA",
        f"passkey:rs256:localhost:AAAA:{'ab' * 64}",
        f"passkey:rs512:localhost:AAAA:{'ab' * 256}",
        f"passkey:es256:127.0.0.1:AAAA:{'ab' * 64}",
        f"passkey:es256:-x.example:AAAA:{'ab' * 64}",
        f"passkey:es256:LOCALHOST:AAAA:{'ab' * 64}",
        f"passkey:es256:localhost::{'ab' * 64}",
        f"passkey:es256:localhost:A+A=:{'ab' * 64}",
        f"passkey:es256:localhost:A:{'ab' * 64}",
        f"passkey:es256:localhost:{'A' * 1400}:{'ab' * 64}",
        f"passkey:es256:localhost:AAAA:{'ab' * 32}",
        f"passkey:ed25519:localhost:AAAA:{'ab' * 64}",
        f"passkey:es256:localhost:AAAA:{'AB' * 64}",
        f"passkey:es256:{'a.' * 200}example:AAAA:{'ab' * 64}",
        "passkey",
        "",
    ],
)
def test_what_is_no_public_key_is_refused(text: str) -> None:
    """Every part has one form."""
    with pytest.raises(InvalidValueError):
        require_approver_key("public_key", PublicKey(text))


def test_only_a_usable_key_is_enrolled() -> None:
    """A point beside the curve, and a point of small order, would let anybody sign."""
    beside = replace(Authenticator().passkey, public="11" * 64)
    small = Passkey(algorithm=PasskeyAlgorithm.ED25519, site=SITE, credential="AAAA", public="00" * 32)
    good = Authenticator().passkey.text

    assert good == require_usable(good)
    for wrong in (beside.text, small.text, PublicKey("passkey:x")):
        with pytest.raises(KeyRefusedError):
            require_usable(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"client_data": ""},
        {"client_data": "x" * 5000},
        {"authenticator_data": "00" * 36},
        {"authenticator_data": "00" * 2000},
        {"authenticator_data": "zz" * 37},
        {"authenticator_data": "0" * 75},
    ],
)
def test_an_answer_has_bounds(wrong: dict[str, str]) -> None:
    """Neither empty nor endless, and bytes are hexadecimal."""
    with pytest.raises(InvalidValueError):
        PasskeyAnswer(**{"client_data": json.dumps({}), "authenticator_data": "00" * 37, **wrong})
