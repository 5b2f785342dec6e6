"""Calls that the policy holds or denies: told to a model, or asked of the person at the client."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from batonpass.errors import StoreUnavailableError
from batonpass.model.base.kinds import Gate
from batonpass.model.bodies.body import ToolApproved, ToolDenied, ToolHeld, ToolRefused
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.relay import Relay
from tests.unit.adapters.mcp.stage import ASKABLE, Stage

DONE = {"content": [{"type": "text", "text": "bought"}]}
ACCEPTED = {"result": {"action": "accept", "content": {}}}
DECLINED = {"result": {"action": "decline"}}


def said(stage: Stage) -> str:
    """Return what the model is told in the last answer, which has to be a failure."""
    answer = stage.to_client[-1]["result"]
    assert answer["isError"]
    return str(answer["content"][0]["text"])


def test_a_held_call_comes_back_at_once_with_what_to_do() -> None:
    """Where nobody can be asked, the model learns that it waits, why, and how it can go on; the server gets nothing."""
    stage = Stage(enforced=True)
    stage.greet()

    stage.call(1)

    (held,) = stage.bodies(ToolHeld)
    assert ([], True, True, True) == (
        stage.to_server,
        said(stage).startswith("Held, and not made: shopper calls mcp__shop__buy, which is declared external-write"),
        f"`batonpass handoff approve {held.call[-6:]}`" in said(stage),
        "call it again with the same arguments" in said(stage),
    )


def test_a_watching_proxy_only_flags() -> None:
    """Where nothing is enforced the same call is made, and the record says what the policy would have done."""
    stage = Stage()

    stage.call(1)

    (requested,) = [receipt.body for receipt in stage.receipts() if receipt.body.kind == "tool.requested"]
    assert ([1], ("would_hold.tier.external-write",)) == (
        [each["id"] for each in stage.to_server],
        getattr(requested, "flags", None),
    )


def test_a_person_who_accepts_lets_this_one_call_be_made() -> None:
    """The client is asked with tool, arguments and rule; after a yes the call goes on, and another is asked about."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1)
    question = stage.to_client[-1]
    stage.say(None, question["id"], **ACCEPTED)
    stage.call(2, arguments={"what": "gold"})

    assert ("elicitation/create", [1], "elicitation/create") == (
        question["method"],
        [each["id"] for each in stage.to_server],
        stage.to_client[-1]["method"],
    )
    for part in ("mcp__shop__buy · changes something", 'what = "tea"', "rule tier.external-write"):
        assert part in question["params"]["message"]
    (approved,) = stage.bodies(ToolApproved)
    digest = sha256(question["params"]["message"].encode()).hexdigest()
    assert ("user:ana", digest, False) == (approved.by, approved.shown, approved.proven)


@pytest.mark.parametrize("modern", [False, True], ids=["asked", "asked by a result"])
def test_a_held_call_goes_on_where_the_policy_alone_is_enforced(modern: bool) -> None:  # noqa: FBT001
    """The server gets the call that was held, and never the answer to our question."""
    stage = Stage(policy=Policy(enforce=True))
    more: dict[str, Any] = {"modern": ASKABLE} if modern else {}
    if not modern:
        stage.greet(capabilities=ASKABLE)

    stage.call(1, **more)
    asked = stage.to_client[-1]
    assert [] == stage.to_server
    if modern:
        state = asked["result"]["requestState"]
        (name,) = asked["result"]["inputRequests"]
        stage.call(2, requestState=state, inputResponses={name: ACCEPTED["result"]}, **more)
    else:
        stage.say(None, asked["id"], **ACCEPTED)

    (sent,) = stage.to_server
    assert ("tools/call", {"what": "tea"}) == (sent["method"], sent["params"]["arguments"])
    assert {"requestState", "inputResponses"}.isdisjoint(sent["params"])


def test_a_person_who_declines_is_heard() -> None:
    """After a no the call is not made, and the model is told by whom."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1)
    stage.say(None, stage.to_client[-1]["id"], **DECLINED)

    assert ([], True) == (stage.to_server, said(stage).startswith("Declined by the user, and not made"))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"result": {"action": "cancel"}}, id="dismissed"),
        pytest.param({"error": {"code": -32601, "message": "no such method"}}, id="the client cannot"),
        pytest.param({"result": {"action": ["accept"]}}, id="no answer at all"),
    ],
)
def test_without_an_answer_nothing_is_decided(answer: dict[str, Any]) -> None:
    """The call waits, and the model is told how it can go on."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1)
    stage.say(None, stage.to_client[-1]["id"], **answer)

    assert ([], True, False) == (
        stage.to_server,
        said(stage).startswith("Held"),
        bool(stage.bodies(ToolApproved, ToolRefused)),
    )


def test_nobody_is_asked_where_their_answer_would_prove_nothing() -> None:
    """A policy that takes proof takes an approver's key, which no client has."""
    stage = Stage(enforced=True, policy=Policy(proven=True))
    stage.greet(capabilities=ASKABLE)

    stage.call(1)

    assert ([], True) == (stage.to_server, said(stage).startswith("Held"))


def test_somebody_who_decided_first_is_heard() -> None:
    """A yes at the client after a no elsewhere changes nothing, and the model is told so."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1)
    (held,) = stage.bodies(ToolHeld)
    stage.relay.held_call(held.call).deny(by="user:bo", reason="too dear")
    stage.say(None, stage.to_client[-1]["id"], **ACCEPTED)

    assert ([], True) == (
        stage.to_server,
        "The answer at the client does not count: user:bo has already refused" in said(stage),
    )


def test_a_call_that_was_declined_stays_so() -> None:
    """The same call again is denied, and not asked about."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1)
    stage.say(None, stage.to_client[-1]["id"], **DECLINED)
    stage.call(2)

    assert ([], True) == (stage.to_server, said(stage).startswith("Denied, and not made: user:ana denied "))


def test_a_call_that_is_repeated_while_it_waits_is_held_once() -> None:
    """A model that does not give up fills no record."""
    stage = Stage(enforced=True)

    for identifier in range(3):
        stage.call(identifier)

    assert 1 == len(list(stage.bodies(ToolHeld)))


def test_an_answer_counts_once() -> None:
    """Whoever sends the same yes again lets nothing more be made: it passes to the server as any other answer."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1)
    question = stage.to_client[-1]["id"]
    stage.say(None, question, **ACCEPTED)
    stage.say(None, question, **ACCEPTED)

    assert ([1, question], 1) == ([each["id"] for each in stage.to_server], stage.kinds().count("tool.requested"))


def test_a_call_that_is_given_up_takes_its_question_along() -> None:
    """The client is told that it need not ask any more, and the server, which knows of no call, nothing."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1)
    question = stage.to_client[-1]["id"]
    stage.say("notifications/cancelled", params={"requestId": 1})
    stage.say(None, question, **ACCEPTED)

    assert ({"requestId": question}, ["tool.held"]) == (stage.to_client[-1]["params"], stage.kinds()[1:])


def test_a_client_that_takes_no_requests_is_asked_by_a_result() -> None:
    """The newer protocol asks by answering: the client calls again with the yes, and the server sees neither."""
    stage = Stage(enforced=True)

    stage.call(1, modern=ASKABLE)
    asked = stage.to_client[-1]["result"]
    (name,) = asked["inputRequests"]
    stage.call(2, modern=ASKABLE, inputResponses={name: ACCEPTED["result"]}, requestState=asked["requestState"])
    stage.tell(None, 2, result=DONE)

    (passed,) = stage.to_server
    assert ("input_required", 2, {"name", "arguments", "_meta"}, "tool.completed") == (
        asked["resultType"],
        passed["id"],
        set(passed["params"]),
        stage.kinds()[-1],
    )


def test_a_yes_to_one_call_is_none_to_another() -> None:
    """The state of a question with other arguments is another call, which is asked about anew."""
    stage = Stage(enforced=True)

    stage.call(1, modern=ASKABLE)
    asked = stage.to_client[-1]["result"]
    (name,) = asked["inputRequests"]
    answer = {name: ACCEPTED["result"]}
    gold = {"what": "gold"}
    stage.call(2, modern=ASKABLE, arguments=gold, inputResponses=answer, requestState=asked["requestState"])

    assert ([], "input_required", 2) == (
        stage.to_server,
        stage.to_client[-1]["result"]["resultType"],
        stage.kinds().count("tool.held"),
    )


def test_a_modern_client_without_forms_gets_a_sentence() -> None:
    """It has the shape that the newer protocol wants of results."""
    stage = Stage(enforced=True)

    stage.call(1, modern={})

    assert ("complete", True) == (stage.to_client[-1]["result"]["resultType"], said(stage).startswith("Held"))


@pytest.mark.parametrize("capabilities", [{"elicitation": {"url": {}}}, {"elicitation": None}, {}], ids=repr)
def test_only_who_can_show_a_form_is_asked(capabilities: dict[str, Any]) -> None:
    """A client that only opens pages, or says nothing, is not asked."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=capabilities)

    stage.call(1)

    assert said(stage).startswith("Held")


def test_a_denied_call_is_a_sentence_with_its_rule() -> None:
    """What a rule denies is not made and not asked about."""
    rule = Rule(name="no-purchases", on=Subject.CALL, gate=Gate.DENY, tool="mcp__shop__*")
    stage = Stage(enforced=True, policy=Policy(rules=(rule,)))
    stage.greet(capabilities=ASKABLE)

    stage.call(1)

    (denied,) = stage.bodies(ToolDenied)
    assert ([], "no-purchases", True) == (stage.to_server, denied.rule, said(stage).startswith("Denied, and not made"))


def test_a_denied_reading_is_an_error() -> None:
    """A resource has no result that a model reads, so the request fails, with the sentence."""
    rule = Rule(name="no-mail", on=Subject.CALL, gate=Gate.DENY, tool="mcp-resource__*")
    stage = Stage(enforced=True, policy=Policy(rules=(rule,)))

    stage.say("resources/read", 1, params={"uri": "mail://1"})

    error = stage.to_client[-1]["error"]
    assert ([], -32010, True) == (stage.to_server, error["code"], "no-mail" in error["message"])


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"path": "{home}/ledger.db"}, id="by its path"),
        pytest.param({"edits": [{"file": "{home}"}]}, id="deep in the arguments"),
        pytest.param({"uri": "file://{home}/root%2Ekey"}, id="as an address"),
        pytest.param({"path": "{home}/../link/relay.key"}, id="by a link"),
    ],
)
def test_no_call_names_the_place_of_the_record(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """Not even where nothing else is refused; that it was tried is recorded."""
    home = tmp_path / ".batonpass"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    stage = Stage(home=home)

    stage.call(1, arguments=json.loads(json.dumps(arguments).replace("{home}", str(home))))

    (denied,) = stage.bodies(ToolDenied)
    assert ([], "protected", True) == (stage.to_server, denied.rule, said(stage).startswith("Denied, and not made"))


def test_the_record_is_kept_also_while_nothing_can_be_recorded(tmp_path: Path) -> None:
    """Else whoever locks it could then change it; other calls are made, as the proxy only watches."""

    def broken(_: Relay) -> Relay:
        raise StoreUnavailableError("it is locked")

    stage = Stage(home=tmp_path / ".batonpass", opened=broken)
    stage.call(1, arguments={"path": str(tmp_path / ".batonpass" / "ledger.db")})
    stage.call(2, arguments={"path": str(tmp_path / "a")})

    assert [2] == [each["id"] for each in stage.to_server]
    assert "the ledger or its keys" in said(stage)


def test_words_about_the_place_of_the_record_pass(tmp_path: Path) -> None:
    """A text that speaks of it, a path beside it, and what is no path are no attempt to touch it."""
    stage = Stage(home=tmp_path / ".batonpass")

    stage.call(
        1,
        arguments={
            "text": f"see {tmp_path}/.batonpass\nand go on",
            "path": f"{tmp_path}/a",
            "x": "\0",
            "y": "~nobody/a",
        },
    )

    assert [1] == [each["id"] for each in stage.to_server]


def test_hostile_arguments_are_shown_harmless_and_in_bounds() -> None:
    """What a person is asked about cannot obey their screen, nor push the question off it."""
    stage = Stage(enforced=True)
    stage.greet(capabilities=ASKABLE)

    stage.call(1, arguments={"what": "tea\x1b[2J\u202e", "more": "x" * 4_000})
    asked = stage.to_client[-1]["params"]["message"]
    stage.call(2, arguments={"what": "tea", "more": "x" * 100_000})

    assert (True, False, False) == ("x" * 4_000 in asked, "\x1b" in asked, "\u202e" in asked)
    # What is longer than a person reads in a form is not asked there: it stays held.
    assert 2 == stage.to_client[-1]["id"]
    assert "params" not in stage.to_client[-1]
