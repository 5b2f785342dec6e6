"""Who may do what: a role has its acts, and an agent finds what its principal has, and nothing else."""

from pathlib import Path

import pytest

from batonpass.api.acts import ACTS, Caller
from batonpass.errors import AccessError, BatonpassError
from batonpass.testing import a_relay, an_attempt, for_caller, say_in_json

IDS = {
    "intent": "x",
    "run": "run_1",
    "handoff": "handoff_1",
    "call": "call_1",
    "account": "run_1",
    "to": "editor",
    "task": "x",
    "tool": "t",
    "action": "call",
    "target": "t",
    "how": "skip",
    "path": "a.txt",
    "items": [{"item": "decision", "text": "x"}],
}


@pytest.mark.parametrize("role", ["agent", "operator", "auditor"])
@pytest.mark.parametrize("name", sorted(ACTS))
def test_a_role_has_its_acts(name: str, role: str) -> None:
    """Who lacks an act is told so, before its request is looked at; who has it gets as far as the request."""
    act = ACTS[name]
    request = {field: IDS[field] for field in act.request.__struct_fields__ if field in IDS}
    code = ""
    with a_relay(caller=Caller("user:ana", role)) as relay:  # type: ignore[arg-type]
        try:
            say_in_json(relay, name, request)
        except BatonpassError as error:
            code = error.code

    assert (code == "access.denied") == (role not in act.roles)
    assert "value.invalid" != code or name == "blame"


def test_every_act_that_writes_says_how_it_is_repeated() -> None:
    """An act without an answer for a repeated request is a read."""
    assert [] == [act.name for act in ACTS.values() if (act.again is None) != (act.method == "GET")]


@pytest.mark.parametrize("is_served", [True, False], ids=["by one server", "by another process"])
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "ended"])
@pytest.mark.parametrize(
    ("act", "field"),
    [
        ("close", "run"),
        ("begin_call", "run"),
        ("show_run", "run"),
        ("open_run", "run"),
        ("accept", "handoff"),
        ("show_handoff", "handoff"),
        ("show_baton", "handoff"),
        ("show_result", "handoff"),
        ("retry", "handoff"),
    ],
)
def test_what_another_principal_has_is_absent(
    act: str, field: str, tmp_path: Path, *, is_open: bool, is_served: bool
) -> None:
    """Forbidden and absent are one answer, in the same words."""
    path, agent = tmp_path / "l.db", Caller("user:eve", "agent")
    with a_relay(path) as relay, a_relay(path, caller=agent) as elsewhere:
        run = an_attempt(relay)
        eve = for_caller(relay, agent) if is_served else elsewhere
        if not is_open:
            run.close()
        others = {"tool": "t", "action": "call", "target": "t"} if act == "begin_call" else {}
        told = []
        for identity in (run.id if field == "run" else run.handoff or "", f"{field}_{'0' * 26}"):
            with pytest.raises(BatonpassError) as raised:
                say_in_json(eve, act, {field: identity, **others})
            told.append((raised.value.code, str(raised.value).replace(identity, "ID")))

    assert told[0] == told[1]
    assert "id.unknown" == told[0][0]


def test_a_token_speaks_for_its_own_principal() -> None:
    """It need not say for whom, and may not say another."""
    with a_relay(caller=Caller("user:eve", "agent")) as relay:
        assert "user:eve" == relay.start("x").principal
        with pytest.raises(AccessError, match="acts for user:eve, not for user:ana"):
            relay.start("x", by="user:ana")
