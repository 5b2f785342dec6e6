"""Secrets in calls: whatever shape they come in, and whatever becomes of the call, no content of the ledger has one."""

import json
import shlex
import string
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batonpass.errors import GrantDeniedError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, receipts, words

# In a URL, what may stand there as it is; else anything that can be typed.
IN_URLS: Final = st.text(string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@", min_size=8, max_size=24)
TYPED: Final = st.text(string.ascii_letters + string.digits + " -._~!$&'()*+,;=:@\"\\/{}[]<>#%^|?`", min_size=8)
TEXTS: Final[dict[str, Callable[[str], str]]] = {
    "a URL": lambda secret: f"https://ana:{secret}@host.example/x",
    "a URL without a user": lambda secret: f"redis://:{secret}@cache:6379/0",
    "a line with an option": lambda secret: shlex.join(["deploy", f"--password={secret}", "now"]),
    "a line with a word": lambda secret: shlex.join(["deploy", "--token", secret, "now"]),
    "a line of mysql": lambda secret: shlex.join(["mysql", "-h", "db", f"-p{secret}", "shop"]),
    "a line with a variable": lambda secret: shlex.join(["env", f"PGPASSWORD={secret}", "psql"]),
    "JSON": lambda secret: json.dumps({"user": "ana", "password": secret}),
    "JSON in JSON": lambda secret: json.dumps({"body": json.dumps({"api_key": secret})}),
    "JSON in a sentence": lambda secret: f"sent {json.dumps({'password': secret})} and waited",
    "JSON in JSON in a sentence": lambda secret: f"sent {json.dumps(json.dumps({'password': secret}))} and waited",
}
VALUES: Final[dict[str, Callable[[str], Any]]] = {
    **TEXTS,
    "words with an option": lambda secret: ["deploy", f"--client-secret={secret}"],
    "words with a value": lambda secret: ["deploy", "--api-key", secret],
    "words with a header": lambda secret: ["curl", "-H", f"Authorization: Bearer {secret}"],
    "words with a variable": lambda secret: ["env", f"DB_PASSWORD={secret}", "make"],
    "words with a user": lambda secret: ["curl", "-u", f"ana:{secret}"],
    "a field": lambda secret: {"deep": [{"password": secret, "note": "x"}]},
}


def kept(relay: Relay) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every content in the ledger."""
    for receipt in receipts(relay):
        for name, ref in receipt.content.items():
            yield name, relay.read(ref.id).decode("utf-8", "replace")


def spellings(secret: str) -> set[str]:
    """Return how a secret may stand in a text: as it is, and in JSON, and in JSON in JSON."""
    once = json.dumps(secret)[1:-1]
    return {secret, once, json.dumps(once)[1:-1], shlex.quote(secret)[1:-1] if " " in secret else secret}


@st.composite
def given_secrets(draw: st.DrawFn) -> tuple[str, Any]:
    """Return a secret, and a value that it stands in, in some shape at some depth."""
    name = draw(st.sampled_from(sorted(VALUES)))
    secret = draw(IN_URLS if name.startswith("a URL") else TYPED).strip(" -")
    value = VALUES[name](f"Zq7{secret}")
    for wrap in draw(st.lists(st.sampled_from(["list", "dict"]), max_size=3)):
        value = [value, 7] if wrap == "list" else {"inner": value, "n": 7}
    return f"Zq7{secret}", value


class TestEverywhere:
    """One secret, in all that can become of a call."""

    @pytest.mark.slow
    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(given_secrets())
    def test_no_content_has_a_secret(self, tmp_path: Path, found: tuple[str, Any]) -> None:
        """Made, failed and refused; by name, as the target, and in what came back."""
        secret, value = found
        with Relay.open("memory:", work_tree=tmp_path) as relay:
            use_everywhere(relay, value)
            shown = [
                (name, text, spelled) for name, text in kept(relay) for spelled in spellings(secret) if spelled in text
            ]

            assert [] == shown


def use_everywhere(relay: Relay, value: Any) -> None:  # noqa: ANN401 - whatever a secret stands in
    """Let a value be what calls are given, act on, return and raise, with a grant and without."""
    echo = tool("echo")(lambda thing: thing)
    write = tool("write", target="path")(lambda path: path)

    def fail(thing: object) -> None:
        raise ValueError(thing if isinstance(thing, str) else json.dumps(thing))

    for may, mode in (((), "observed"), (("write:src/**",), "observed"), (("write:src/**", "call:echo"), "enforced")):
        lead = relay.start("Fix it", by=ANA, may=may, mode=mode)
        for function in (echo, write, tool("fail")(fail)):
            try:
                lead.call(function, value)
            except (GrantDeniedError, ValueError) as error:
                lead.call(echo, f"it said: {error}" if isinstance(error, GrantDeniedError) else "")
        try:
            if mode == "enforced":
                lead.call(write, value)
        except GrantDeniedError as error:
            lead.fail(error)
        else:
            lead.close()


@pytest.mark.parametrize(
    "url", ["https://ana:{}@host.example/x", "https://ana:{}%40@host/x", "https://ana:{}@host/../x"]
)
@pytest.mark.parametrize("mode", ["observed", "enforced"])
def test_a_password_in_a_url_is_in_no_scope_and_no_refusal(tmp_path: Path, url: str, mode: Any) -> None:  # noqa: ANN401
    """Neither in what a call does to what, nor in why it may not, nor in what is told to whoever tried."""
    secret = "hunter2hunter2" * 4
    fetch = tool("fetch", target="url", reads=True)(lambda url: url)
    with Relay.open("memory:", work_tree=tmp_path) as relay:
        lead = relay.start("Look", by=ANA, may=["read:src/**", "read:https:/**"], mode=mode)
        with suppress(GrantDeniedError):
            lead.call(fetch, url.format(secret))
        held = relay.start("Look", by=ANA, may=["read:src/**"])
        with pytest.raises(GrantDeniedError) as refused:
            held.call(fetch, url.format(secret))
        lead.close()

        assert "hunter2" not in f"{refused.value} {refused.value.tried}"
        assert [] == [(name, text) for name, text in kept(relay) if "hunter2" in text]


def test_a_command_is_recorded_without_what_it_was_given(tmp_path: Path) -> None:
    """Neither its line, nor its words, nor its variables; what it printed likewise."""
    secret = 'it\'s "my" secret'
    with Relay.open("memory:", work_tree=tmp_path) as relay:
        lead = relay.start("Look", by=ANA)
        lead.shell(
            ["echo", f"--password={secret}", "--token", secret, f"Authorization: Bearer {secret}"],
            env={"PGPASSWORD": secret, "FINE": "1"},
        )
        (asked,) = receipts(relay, Kind.TOOL_REQUESTED)
        arguments = json.loads(words(relay, asked, "arguments"))["arguments"]

        assert ["--password=[redacted]", "--token", "[redacted]", "Authorization: Bearer [redacted]"] == arguments[
            "arguments"
        ]
        assert {"PGPASSWORD": "[redacted]", "FINE": "1"} == arguments["env"]
        for name in ("target", "arguments"):
            assert "my" not in words(relay, asked, name)
