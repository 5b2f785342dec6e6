"""Tools that act with a credential: whose it is gets recorded, the secret nowhere."""

import asyncio
import io
import logging
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from batonpass.accounts.handoff.account import find_acted, read_account
from batonpass.aio import AsyncRelay
from batonpass.credentials import Credential, CredentialRequest, FromEnvironment
from batonpass.errors import CredentialError, InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import current_call
from batonpass.handoff.tools.declaration import tool
from batonpass.model.baton.items import Decision
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from tests.unit.handoff.places import ANA, bodies, receipts, words

PLANTED = "s3cr3t-v4lue-nobody-may-see"
OTHER = "an0ther-v4lue-for-another"


@tool(credential="forge", target="branch")
def push(branch: str) -> str:
    call = current_call()
    assert call is not None
    assert call.credential is not None
    return f"pushed {branch} with {call.credential.secret.reveal()}"


@tool(credential="forge")
def fail(words: str) -> None:
    call = current_call()
    assert call is not None
    assert call.credential is not None
    message = f"{words}: 401 for {call.credential.secret.reveal()}"
    raise ConnectionError(message)


def a_relay(tmp_path: Path, secret: str = PLANTED) -> Relay:
    relay = Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db")
    relay.credential("forge", FromEnvironment("FORGE", "bot:ci", environment={"FORGE": secret}))
    return relay


def test_the_tool_gets_it_and_the_record_says_whose_it_is(tmp_path: Path) -> None:
    """The caller sees what the tool returned; the record has the identity and a flag that something was taken out."""
    with a_relay(tmp_path) as relay, relay.start("Ship it", by=ANA) as lead:
        assert f"pushed main with {PLANTED}" == lead.call(push, "main")
        (requested,), (completed,) = bodies(relay, "tool.requested"), bodies(relay, "tool.completed")
        told = words(relay, receipts(relay, "tool.requested")[0], "credential")

    assert '{"identity":"bot:ci","name":"forge"}' == told
    assert (64, ("result.redacted",)) == (len(requested.credential), completed.flags)


def everything_in(place: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())


def test_a_planted_secret_is_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not in a receipt, a content, a file of the ledger, a log line, an error or a terminal; whatever repeats it."""
    out, place = io.StringIO(), tmp_path / "target.txt"
    caplog.set_level(logging.DEBUG)
    with redirect_stdout(out), redirect_stderr(out), a_relay(tmp_path) as relay:
        lead = relay.start("Ship it", by=ANA)
        result = lead.call(push, "main")
        lead.record(Decision(f"we push with {PLANTED}"))
        lead.attach("log", result)
        lead.checkpoint([{"role": "tool", "content": result}])
        with pytest.raises(ConnectionError):
            lead.call(fail, f"cannot reach {PLANTED}")
        with lead.hand_off("editor", f"Push with {PLANTED}") as editor:
            editor.call(_write, str(place), f"token = {PLANTED}\n")
            editor.report(f"pushed with {PLANTED}", open_questions=[f"is {PLANTED} right?"])
        lead.close()
        relay.verify()

    assert PLANTED.encode() not in everything_in(tmp_path / ".batonpass")
    assert PLANTED not in caplog.text + out.getvalue()


@tool(target="path", reversible=True)
def _write(path: str, text: str) -> int:
    return Path(path).write_text(text, encoding="utf-8")


def test_secrets_in_arguments_and_results_are_taken_out(tmp_path: Path) -> None:
    """Nobody has to register what stands under a telling name or has a telling look."""

    def log_in(user: str, password: str) -> dict[str, Any]:
        return {"user": user, "session_token": f"for-{password}", "ok": True}

    with Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db") as relay, relay.start("Log in", by=ANA) as lead:
        assert {"user": "ana", "session_token": "for-hunter2!", "ok": True} == lead.call(
            log_in, "ana", password="hunter2!"
        )
        relay.verify()

    assert b"hunter2!" not in everything_in(tmp_path / ".batonpass")


def test_a_redacted_result_is_not_given_back(tmp_path: Path) -> None:
    """A later attempt would work with something that the tool never returned; it is told instead."""

    def work(run: LiveRun) -> None:
        run.call(push, "main")
        if run.attempt == 1:
            raise ConnectionError

    with a_relay(tmp_path) as relay, relay.start("Ship it", by=ANA) as lead:
        handoff = lead.hand_off("editor", "Push", run=work)
        handoff.wait()
        handoff.retry(by=ANA)
        with pytest.raises(InvalidValueError, match="has no form that can be kept"):
            handoff.accept().call(push, "main")


@pytest.mark.parametrize("registered", [True, False], ids=["its provider fails", "nobody registered it"])
def test_without_it_the_call_is_not_made(registered: bool) -> None:  # noqa: FBT001 - a case
    """It is denied, with the reason, and nothing of what the provider said."""

    class Broken:
        def fetch(self, _: CredentialRequest) -> Credential:
            raise RuntimeError(PLANTED)

    with Relay(open_store("memory:")) as relay, relay.start("Ship it", by=ANA) as lead:
        if registered:
            relay.credential("forge", Broken())
        with pytest.raises(CredentialError) as refused:
            lead.call(push, "main")

        assert (["credential"], []) == (
            [body.rule for body in bodies(relay, "tool.denied")],
            bodies(relay, "tool.requested"),
        )
        assert PLANTED not in str(refused.value) + words(relay, receipts(relay, "tool.denied")[0], "reason")


def test_two_runs_with_one_credential_are_found(tmp_path: Path) -> None:
    """Equal secrets are equal in one tree, whatever they are called; another tree cannot be compared."""
    with a_relay(tmp_path) as relay, relay.start("Ship it", by=ANA) as lead:
        with lead.hand_off("editor", "Push") as editor:
            editor.call(push, "one")
            editor.call(push, "two")
        with lead.hand_off("tester", "Push too") as tester:
            tester.call(push, "three")
        relay.credential("forge", FromEnvironment("FORGE", "bot:own", environment={"FORGE": OTHER}))
        alone = lead.hand_off("reader", "Push alone")
        with alone as reader:
            reader.call(push, "four")
        with relay.start("Other", by=ANA) as other:
            other.call(push, "five")
        with relay.store.view() as view:
            found = find_acted(view, lead.id)
            shown = read_account(view, view.get_handoff(alone.id))
        keys = {body.credential for body in bodies(relay, "tool.requested")}

    assert [("bot:ci", True, [2, 1]), ("bot:own", False, [1])] == [
        (acted.identity, acted.is_shared, list(acted.calls.values())) for acted in found
    ]
    assert ("bot:own",) == tuple(acted.identity for acted in shown.acted)
    assert 3 == len(keys)


def test_an_async_tool_gets_it_too() -> None:
    """The same context, the same record."""
    asyncio.run(_ask())


async def _ask() -> None:
    @tool(credential="forge")
    async def ask() -> str:
        call = current_call()
        assert call is not None
        assert call.credential is not None
        return call.credential.identity

    async with AsyncRelay(Relay(open_store("memory:"))) as relay:
        relay.credential("forge", FromEnvironment("FORGE", "bot:ci", environment={"FORGE": PLANTED}))
        async with relay.start("Ask", by=ANA) as lead:
            assert "bot:ci" == await lead.call(ask)
