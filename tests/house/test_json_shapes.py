"""One JSON shape for all commands: what docs/reference/json.md says is what records print, field by field."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import HandoffId, PrincipalId, new_webhook_id
from batonpass.model.base.kinds import WebhookChange
from batonpass.model.bodies.body import Gate, WebhookChanged
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from batonpass.records.call import read_calls
from batonpass.records.handoff import read_handoff
from batonpass.records.hold import find_leave
from batonpass.records.json_shapes import (
    Shape,
    approval_shape,
    call_shape,
    handoff_shape,
    hold_shape,
    leave_shape,
    run_shape,
    text_shape,
    token_shape,
    verdict_shape,
    webhook_shape,
)
from batonpass.records.lineage import read_task
from batonpass.relay import Relay
from batonpass.testing.clock import NOON
from tests.house.tree import ROOT

PAGE = ROOT / "docs" / "reference" / "json.md"
ANA = "user:ana"


@tool(reversible=True)
def deploy(place: str) -> str:
    """Pretend to deploy."""
    return place


def work(run: LiveRun) -> str:
    """Deploy, which somebody has to approve."""
    return run.call(deploy, "north")


@pytest.fixture(scope="module")
def shapes() -> dict[str, Shape]:
    """Return one of each shape, from a handoff with a call that was held, approved, made and verified."""
    rule = Rule(name="ask-first", on=Subject.CALL, gate=Gate.APPROVE, tool="deploy")
    with Relay.open("memory:", policy=Policy(enforce=True, rules=(rule,))) as relay:
        lead = relay.start("Ship it", by=ANA)
        handoff = lead.hand_off("shipper", "Ship it", criteria=["it answers"], run=work)
        handoff.wait()
        handoff.approve(by="user:ben")
        handoff.wait()
        handoff.verify(by=ANA, check=lambda: True)
        relay.admin.add_token(ANA, "auditor", by=ANA, lasts=timedelta(days=1))
        (token,) = relay.admin.tokens()
        added = WebhookChanged(webhook=new_webhook_id(NOON), change=WebhookChange.ADDED, by=PrincipalId(ANA))
        relay.admin.record_webhook(added, url="https://example.org/")
        (webhook,) = relay.admin.webhooks()
        with relay.store.view() as view:
            record = read_handoff(view, view.get_handoff(HandoffId(handoff.id)))
            run = view.get_run(record.handoff.run or lead.id)
            (call,) = (one for one in read_calls(view, run).values() if one.is_made)
            leave = find_leave(view, call)
            task = read_task(view, record.handoff)
    (hold,) = record.holds
    return {
        "Words": text_shape(task) or {},
        "Run": run_shape(run, task),
        "Handoff": handoff_shape(record.handoff, task),
        "Call": call_shape(call),
        "Decision": approval_shape(hold.approvals[0]),
        "Hold": hold_shape(hold),
        "Approval of a call": leave_shape(leave),
        "Token": token_shape(token, token.added_at),
        "Webhook": webhook_shape(webhook, "https://example.org"),
        "Verdict": verdict_shape(record.verdicts(run.attempt)[0]),
    }


def documented(page: Path) -> dict[str, list[str]]:
    """Return the fields that the page lists, by heading."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        name: re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def test_the_page_lists_every_field_and_no_other(shapes: dict[str, Shape]) -> None:
    """Programs rely on these names: whoever adds one writes it down, and none is taken away."""
    assert {name: sorted(fields) for name, fields in documented(PAGE).items()} == {
        name: sorted(shape) for name, shape in shapes.items()
    }
