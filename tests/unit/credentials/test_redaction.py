"""What is taken out of what is written down, and what is not."""

import json
import shlex
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.credentials import Redactor
from batonpass.credentials.secret_names import GONE

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


@pytest.mark.parametrize("before", ["\n", "\r\n", "\t"], ids=ascii)
def test_a_secret_that_begins_a_line_of_a_document_is_taken_out(before: str) -> None:
    """JSON spells what stands before it with a letter: to a pattern, the word would begin there."""
    given_ = [f"one{before}{look}{before}two" for look in LOOKS]
    clean = json.loads(Redactor().document("arguments", json.dumps({"texts": given_}).encode()))

    assert [f"one{before}{GONE}{before}two"] * len(LOOKS) == clean["texts"]


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
@pytest.mark.slow
def test_a_document_stays_one(value: object) -> None:
    """Whatever it holds, what is left is JSON; without a secret it is the same bytes."""
    redactor = Redactor()
    redactor.know("twelve-letters")
    document = json.dumps({"arguments": value}).encode()
    clean = redactor.document("arguments", document)

    json.loads(clean)
    assert clean == redactor.document("arguments", clean)


SECRET = "Zq7-hunter"

SHAPES = {
    "the password in a URL": "git clone https://ana:{} @host/x".replace(" @", "@"),
    "the password in a URL that was read as a path": "write:https:/ana:{}@host/x",
    "a URL without a user": "redis://:{}@cache:6379/0",
    "a URL whose password has an @": "https://ana:a@{}@host/x",
    "a URL that is cut off": "'https://ana:{}…",
    "a URL with escaped slashes": r"https:\/\/ana:{}@host",
    "an option with a sign": "deploy --password={} now",
    "an option and the next word": "deploy --token {} now",
    "an option in quotes": "deploy '--api-key={} and more' now",
    "a value in quotes": 'deploy --client-secret "{} and more" now',
    "an option with one dash": "keytool -storepass {} -list",
    "the password of mysql": "mysql -h db -p{} shop",
    "the password of mysql in a sentence": "`mysql -h db -p{}` did not work",
    "the password of sshpass": "sshpass -p {} ssh host",
    "the password of a login": "docker login -u ana -p {} registry.example",
    "the password of redis": "redis-cli -a {} ping",
    "the password of curl": "curl -s -u ana:{} https://host/",
    "the password of curl in a sentence": "it said: `curl --user 'ana:{}' host`",
    "a header": "curl -H 'Authorization: Bearer {}' https://host/",
    "a header in a sentence": "see Authorization: Basic {} there",
    "a header without a scheme": "curl -H 'Authorization: {}' https://host/",
    "a header of another name": "curl -H 'X-Api-Key: {}' https://host/",
    "a cookie": "curl -H 'Cookie: session={}' https://host/",
    "a variable in front": "PGPASSWORD={} psql shop",
    "a variable in quotes": "export DB_PASSWORD='{} and more' && make",
    "a variable with a short name": "MYSQL_PWD={} mysql",
    "JSON in a text": '{{"user": "ana", "password": "{}"}}',
    "JSON in the middle of a text": 'sent {{"user": "ana", "password": "{}"}} and waited',
    "JSON in JSON": json.dumps(json.dumps({"password": "{}"})).replace("{\\", "{{\\").replace('"}', '"}}'),
    "a name that is spelled in another way": '{{"p\\u0061ssword": "{}"}}',
    "a name that stands there twice": '{{"password": "{}", "password": ""}}',
    "a list under such a name": '{{"passwords": {{"db_password": ["{}"]}}}}',
    "a document of Python": "{{'api_key': '{}', 'n': 1}}",
    "JSON that is cut off": '{{"user": "ana", "password": "{}',
    "words as a list in a text": "['deploy', '--token', '{}']",
}


@pytest.mark.parametrize("name", ["arguments", "result", "message", "target", "refusal"])
def test_a_secret_in_every_shape_is_taken_out(name: str) -> None:
    """In a text, in a document, in a document within a document, and once more what is left is the same."""
    found = {shape: wrong for shape, text in SHAPES.items() if (wrong := list(left_in(name, text.format(SECRET))))}

    assert {} == found


def left_in(name: str, text: str) -> Iterator[str]:
    """Yield what is wrong with a text and with documents that hold it, once they are redacted."""
    redactor = Redactor()
    clean = redactor.text(name, text)
    once = json.dumps({"tool": "x", "arguments": {"text": text, "many": [text]}})
    twice = json.dumps({"tool": "x", "arguments": {"body": once}})
    if SECRET in clean or GONE not in clean:
        yield f"the text: {clean}"
    if clean != (again := redactor.text(name, clean)):
        yield f"the text, once more: {again}"
    for document in (once, twice):
        cleaned = redactor.document(name, document.encode())
        json.loads(cleaned)
        if SECRET.encode() in cleaned:
            yield f"a document: {cleaned!r}"


LISTS: dict[str, tuple[list[str], str]] = {
    "an option with a sign": (["deploy", "--password={}"], "--password=[redacted]"),
    "an option and the next word": (["deploy", "--token", "{}"], GONE),
    "a short option": (["mysql", "-p{}"], "-p[redacted]"),
    "a short option with a telling value": (["mysql", "-p{}secret"], "-p[redacted]"),
    "a short option and the next word": (["/usr/bin/sshpass", "-p", "{}"], GONE),
    "a user": (["curl", "-u", "ana:{}"], "ana:[redacted]"),
    "a header": (["curl", "-H", "Authorization: Bearer {}"], "Authorization: Bearer [redacted]"),
    "a header behind its option": (["curl", "-HX-Api-Key: {}"], "-HX-Api-Key: [redacted]"),
    "a header in words": (["send", "Authorization:", "Bearer", "{}"], GONE),
    "a cookie": (["curl", "-H", "Cookie: {}"], "Cookie: [redacted]"),
    "a variable": (["env", "PGPASSWORD={}"], "PGPASSWORD=[redacted]"),
    "a lower-case assignment": (["deploy", "password={}"], "password=[redacted]"),
}


@pytest.mark.parametrize(("words", "expected"), LISTS.values(), ids=LISTS.keys())
@pytest.mark.parametrize("secret", ["x", "with blanks and 'quotes' \"in\" it"], ids=["short", "odd"])
def test_a_secret_among_words_is_taken_out_whatever_it_is(words: list[str], expected: str, secret: str) -> None:
    """Each word is whole, so a secret that is no word of its own is found too; the program may stand beside them."""
    given_ = [word.format(secret) for word in words]
    wanted = [*words[:-1], expected]
    command = {"line": shlex.join(given_), "arguments": given_[1:]}
    clean = json.loads(Redactor().document("arguments", json.dumps({"command": given_, "shell": command}).encode()))

    assert (wanted, wanted[1:]) == (clean["command"], clean["shell"]["arguments"])
    assert shlex.join(wanted) == clean["shell"]["line"]
    assert {"a": wanted} == Redactor().arguments({"a": given_})
    assert "\n".join(wanted) == Redactor().text("command", "\n".join(given_))


@pytest.mark.parametrize(
    "text",
    [
        "deploy --password-file /run/secrets/db now",
        "deploy --password-file=/run/secrets/db now",
        "deploy --password-stdin < file",
        "psql --no-password shop",
        "the password is wrong",
        "use the --password option for that",
        "--token TOKEN  the token to use",
        "--token <token>, or --token=[redacted]",
        "deploy --token $DEPLOY_TOKEN now",
        "--max-tokens 100 --token-limit 5",
        "authorization: required for all of it",
        "authorization: basic rules apply",
        "the cookie: chocolate",
        "ssh -p 2222 host && docker run -p 8080:80 web",
        "curl -u ana https://host/",
        "git clone ssh://git@host/x",
        "http://localhost:8080/a@b",
        "PWD=/home/ana OLDPWD=/tmp make",
        "bypass --compass north",
        '["user", "password", "email"]',
        '{"tokens": 7, "max_tokens": "all"}',
        "write:src/token/reader.py",
        "C:/dir/a:b and mail to a@b.example",
    ],
)
@pytest.mark.parametrize("name", ["result", "target", "message"])
def test_ordinary_words_stay_in_every_shape(text: str, name: str) -> None:
    """What names a secret, or where one lies, is none."""
    assert text == Redactor().text(name, text)
    document = json.dumps({"arguments": {"text": text}}).encode()
    assert document == Redactor().document(name, document)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("read_secret:billing", "read_secret:billing"),
        ("write:https:/ana:hunter2@host/x", "write:[redacted]host/x"),
        ("read:https:/host/x?token=hunter2", "read:https:/host/x?token=[redacted]"),
        ("run:mysql -psecret", "run:mysql '-p[redacted]'"),
        ("--password=hunter2", "'--password=[redacted]'"),
    ],
)
def test_what_is_done_to_what_is_cleaned_by_its_parts(scope: str, expected: str) -> None:
    """An action may be called like a secret; what it is done to is looked at by itself."""
    use = json.dumps({"least": [{"calls": 1, "permit": scope}]}, separators=(",", ":"))

    assert expected == Redactor().text("scope", scope)
    assert expected == json.loads(Redactor().document("use", use.encode()))["least"][0]["permit"]


@given(st.lists(st.sampled_from([*LOOKS, "to\u212aen=", "\u017fecret: ", "abcdef12", "é", "…", "://a:b@", " ", "x"])))
def test_bytes_are_as_harmless_as_their_text(pieces: list[str]) -> None:
    """Letters that only look alike are found in either; and what is kept as bytes is what is kept as text."""
    redactor, text = Redactor(), "".join(pieces)
    words = redactor.text("result", text)

    assert words.encode() == redactor.body("result", text.encode())
    assert (words == text) is (redactor.body("result", text.encode()) == text.encode())
    document = json.dumps({"text": text}, ensure_ascii=False).encode()
    cleaned = json.loads(redactor.document("result", document))["text"]
    assert cleaned == text or words != text or GONE in cleaned
