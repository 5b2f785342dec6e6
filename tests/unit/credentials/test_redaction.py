"""What is taken out of what is written down, and what is not."""

import json
from base64 import b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.credentials import Redactor
from batonpass.credentials.redaction import GONE

PLANTED = 's3cr3t "v4lue"/+=ü'

LOOKS = [
    "ghp_" + "a1" * 18,
    "github_pat_" + "a1" * 30,
    "glpat-" + "a1" * 12,
    "sk-ant-" + "a1" * 20,
    "xoxb-" + "123-abc-" * 4,
    "AKIA" + "A1" * 8,
    "AIza" + "a" * 35,
    "sk_live_" + "a1" * 12,
    "npm_" + "a1" * 18,
    "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20,
    "Bearer " + "a1" * 12,
    "Authorization: Basic " + "YW5h" * 4 + "==",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look[:10])
@pytest.mark.parametrize("name", ["arguments", "result", "message"])
def test_what_looks_like_a_secret_is_taken_out(look: str, name: str) -> None:
    """Whatever well-known services give out is recognised, in texts and in documents."""
    redactor = Redactor()
    document = json.dumps({"header": f"see {look} there"}).encode()

    assert f"see {GONE} there" == redactor.text(name, f"see {look} there")
    assert look not in json.dumps(json.loads(redactor.document(name, document)))


@pytest.mark.parametrize("key", ["password", "DB_PASSWORD", "api-key", "apiKey", "x-auth-token", "client_secret"])
def test_what_stands_under_such_a_name_is_taken_out(key: str) -> None:
    """However deep, also in lists; numbers and what stands beside it stay."""
    given_ = {"tool": "login", "arguments": {"user": "ana", key: "hunter2!", "deep": [{key: ["a", "b", 7]}]}}
    clean = json.loads(Redactor().document("arguments", json.dumps(given_).encode()))

    assert {"user": "ana", key: GONE, "deep": [{key: [GONE, GONE, 7]}]} == clean["arguments"]


def test_an_assignment_in_a_text_is_taken_out() -> None:
    """The name stays, so that one can see what was there."""
    text = "export DB_PASSWORD=hunter2! && curl -u x"

    assert f"export DB_PASSWORD={GONE} && curl -u x" == Redactor().text("message", text)
    assert f"postgres{GONE}" != Redactor().text("message", "postgres://ana:hunter2@db/x")
    assert "hunter2" not in Redactor().text("message", "postgres://ana:hunter2@db/x")


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 100",
        "basic responsibilities, and the bearer of them",
        "the token ring",
        "see https://example.org/a:b@c",
        "sk-learn and task-manager",
        "a1b2c3d4e5f60718293a4b5c6d7e8f90",
        "my password is short",
    ],
)
def test_what_only_sounds_like_one_stays(text: str) -> None:
    """Words about secrets are no secrets, and digests are none either."""
    assert text == Redactor().text("result", text)


def test_what_people_say_stays_byte_for_byte() -> None:
    """A task, a statement and a report are carried as they are, whatever they look like."""
    redactor = Redactor()
    text = f"use {LOOKS[0]} with password=hunter2!"

    assert [text] * 3 == [redactor.text(name, text) for name in ("task", "intent", "body")]
    assert json.dumps({"password": text}).encode() == redactor.document(
        "report", json.dumps({"password": text}).encode()
    )


@pytest.mark.parametrize(
    "spelled",
    [
        PLANTED,
        quote(PLANTED, safe=""),
        json.dumps(PLANTED),
        json.dumps(PLANTED, ensure_ascii=False),
        b64encode(PLANTED.encode()).decode(),
        PLANTED.encode().hex(),
    ],
    ids=["as it is", "in a URL", "in JSON", "in JSON, unescaped", "in base64", "in hexadecimal"],
)
def test_what_was_fetched_is_taken_out_everywhere(spelled: str) -> None:
    """Also of what people say and of files, in every common spelling."""
    redactor = Redactor()
    redactor.know(PLANTED)

    for name in ("task", "body", "arguments", "change.1"):
        assert spelled.strip('"') not in redactor.text(name, f"x {spelled} y")
        assert spelled.strip('"').encode() not in redactor.body(name, f"x {spelled} y".encode())
    assert PLANTED.encode() not in redactor.body("body", b"\xff" + PLANTED.encode())


def test_a_value_that_is_everywhere_is_no_secret() -> None:
    """A short one would take half of every text with it."""
    redactor = Redactor()
    redactor.know("a")

    assert "banana" == redactor.text("message", "banana")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_document_stays_one(value: object) -> None:
    """Whatever it holds, what is left is JSON; without a secret it is the same bytes."""
    redactor = Redactor()
    redactor.know("twelve-letters")
    document = json.dumps({"arguments": value}).encode()
    clean = redactor.document("arguments", document)

    json.loads(clean)
    assert clean == redactor.document("arguments", clean)
