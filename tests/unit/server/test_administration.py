"""Findings, exports, tokens and webhooks over HTTP: who may, and what is on record afterwards."""

from collections.abc import Callable
from pathlib import Path

from batonpass.audit.bundle import verify_bundle
from batonpass.model.base.kinds import WebhookChange
from batonpass.records.json_shapes import Shape
from batonpass.relay import Relay
from tests.unit.server.conftest import ANA, House, a_house, raise_alarm
from tests.unit.server.visitor import Visitor

HOOK = "https://93.184.215.14/T000/hunter2?key=hunter2"


def a_finding(house: House) -> str:
    """Record a tree with something to look at: an approval that nobody proved. Return its root."""
    lead = house.relay.start("Ship it", by=ANA)
    lead.hand_off("mailer", "Mail it", hold=True).approve(by="user:ben")
    return lead.id


def test_findings_are_listed_and_acknowledged_by_people(house: House) -> None:
    """By whoever decides, in their own name; the finding stays, with who left it and why."""
    root = a_finding(house)
    auditor, operator = house.visitor("auditor"), house.visitor("operator")
    (found,) = [
        one for one in auditor.get(f"/v1/findings?run={root}").json["items"] if one["kind"] == "approval-theatre"
    ]
    recent = auditor.get("/v1/findings").json["items"]
    said = {"run": root, "reason": "we know Ben"}
    done = operator.post(f"/v1/findings/{found['finding']}/acknowledgement", said)
    (seen,) = [
        one for one in auditor.get(f"/v1/findings?run={root}").json["items"] if one["finding"] == found["finding"]
    ]
    before = auditor.get("/v1/findings?since=2999-01-01T00:00:00Z").json["items"]

    assert (None, found["finding"] in {one["finding"] for one in recent}, []) == (found["acknowledged"], True, before)
    assert (200, "user:operator", "we know Ben") == (
        done.status,
        seen["acknowledged"]["by"],
        seen["acknowledged"]["reason"],
    )
    assert (
        "access.principal"
        == operator.post(f"/v1/findings/{found['finding']}/acknowledgement", {**said, "by": "user:ben"}).code
    )
    assert (404, 400, 400) == (
        operator.post("/v1/findings/nothing/acknowledgement", said).status,
        auditor.get("/v1/findings?since=yesterday").status,
        auditor.get("/v1/findings?since=2026-01-01T00:00:00").status,
    )


def test_an_alarm_is_listed_stops_handoffs_and_is_acknowledged_by_people(tmp_path: Path) -> None:
    """A handoff to the agent waits while the alarm stands. Once an operator lets it go on, it is offered as before."""
    (tmp_path / "batonpass.toml").write_text(
        '[policy]\nenforce = true\n\n[[rules]]\nname = "in-alarm"\non = "handoff"\ngate = "approve"\nalarm = "*"\n',
        encoding="utf-8",
    )
    with Relay.open(tmp_path / ".batonpass" / "ledger.db", home=tmp_path / ".batonpass", work_tree=tmp_path) as ruled:
        house = a_house(ruled)
        raise_alarm(ruled, "analyst", 12 * "0")
        auditor, operator, agent = (house.visitor(role) for role in ("auditor", "operator", "agent"))
        lead = ruled.start("Watch the figures", by=ANA)
        before = lead.hand_off("analyst", "Flag the anomalies").state()
        (listed,) = auditor.get("/v1/alarms").json["items"]
        said = {"reason": "2.5 is what the tax office wants"}
        refused = [
            (agent.get("/v1/alarms").status, auditor.post("/v1/alarms/000000000000/acknowledgement", said).status),
            (operator.post("/v1/alarms/analyst/acknowledgement", said).status, auditor.get("/v1/alarms?all=x").status),
        ]
        done = operator.post("/v1/alarms/000000000000/acknowledgement", said)
        after = lead.hand_off("analyst", "Flag them again").state()
        (seen,) = auditor.get("/v1/alarms?all=yes").json["items"]

        assert ("analyst", "analysis", True, None) == (
            listed["agent"],
            listed["task_kind"],
            listed["stands"],
            listed["acknowledged"],
        )
        assert [(403, 403), (404, 400)] == refused
        assert (200, "held", "offered") == (done.status, before, after)
        assert (False, "user:operator", []) == (
            seen["stands"],
            seen["acknowledged"]["by"],
            auditor.get("/v1/alarms").json["items"],
        )


def settled_by_page(operator: Visitor, lists: str, settle: Callable[[Shape], tuple[str, Shape]]) -> list[Shape]:
    """List something one by one, and settle each before the next is asked for. Return everything that was listed."""
    found: list[Shape] = []
    address = f"{lists}limit=1"
    while address:
        page = operator.get(address).json
        found += page["items"]
        for one in page["items"]:
            path, said = settle(one)
            assert 200 == operator.post(path, said).status
        address = f"{lists}limit=1&after={page['next']}" if page["next"] else ""
    return found


def test_whoever_settles_page_by_page_leaves_nothing_out(house: House) -> None:
    """The last one of a page is settled when the next page is asked for: that page begins behind it all the same."""
    operator, lead = house.visitor("operator"), house.relay.start("Ship it", by=ANA)
    for number, agent in enumerate(("analyst", "mailer", "editor")):
        raise_alarm(house.relay, agent, 12 * str(number))
        lead.hand_off("mailer", f"Mail letter {number}", hold=True)
        lead.hand_off(agent, f"Mail parcel {number}", hold=True).approve(by=f"user:ben-{number}")
    known = {one["finding"] for one in operator.get(f"/v1/findings?run={lead.id}").json["items"]}
    reason: Shape = {"reason": "we know"}

    alarms = settled_by_page(
        operator, "/v1/alarms?", lambda one: (f"/v1/alarms/{one['alarm']}/acknowledgement", reason)
    )
    findings = settled_by_page(
        operator,
        f"/v1/findings?run={lead.id}&",
        lambda one: (f"/v1/findings/{one['finding']}/acknowledgement", {**reason, "run": lead.id}),
    )
    approvals = settled_by_page(
        operator, "/v1/approvals?", lambda one: (f"/v1/approvals/{one['id']}", {"approved": False, **reason})
    )

    assert ["editor", "mailer", "analyst"] == [one["agent"] for one in alarms]
    assert (known, True) == ({one["finding"] for one in findings}, len(known) > 1)
    assert 3 == len(approvals)


def test_a_tree_is_exported_as_it_verifies_offline(house: House) -> None:
    """With the words or without them; it is what `batonpass ledger verify --bundle` takes."""
    root = a_finding(house)
    auditor = house.visitor("auditor")
    whole, bare = auditor.get(f"/v1/runs/{root}/export"), auditor.get(f"/v1/runs/{root}/export?content=no")

    assert ("application/jsonl", "attachment") == (whole.headers["content-type"], whole.headers["content-disposition"])
    assert verify_bundle(whole.body.decode().splitlines(keepends=True)).receipts
    assert len(bare.body) < len(whole.body)


def test_an_administrator_makes_and_revokes_tokens(house: House) -> None:
    """The text is in one answer and in no list; a revoked one lets nobody in from the next request on."""
    admin = house.visitor("admin")
    said = {"principal": "service:nightly", "role": "agent", "may": ["read:**"], "agents": ["lead"], "lasts": "8h"}
    made = admin.post("/v1/tokens", said, idempotency_key="one")
    again = admin.post("/v1/tokens", said, idempotency_key="one")
    nightly = house.visitor()
    nightly.token = made.json["token"]
    let_in = nightly.get("/v1/ledger").status
    short = [admin.post(f"/v1/tokens/{made.json['id'][-n:]}/revocation", {"reason": "left"}).status for n in (1, 6, 26)]
    assert ([404] * 3, 200) == (short, nightly.get("/v1/ledger").status)
    revoked = admin.post(f"/v1/tokens/{made.json['id']}/revocation", {"reason": "left"})
    (listed,) = [one for one in admin.get("/v1/tokens").json["items"] if one["id"] == made.json["id"]]

    assert (201, made.json["token"], 200) == (made.status, again.json["token"], let_in)
    assert (200, 401, "user:admin") == (revoked.status, nightly.get("/v1/ledger").status, listed["revoked_by"])
    assert ("user:admin", ["lead"], False) == (listed["added_by"], listed["agents"], "token" in listed)
    for wrong in (
        {**said, "may": []},
        {**said, "lasts": "soon"},
        {**said, "lasts": "900d"},
        {**said, "principal": "x"},
    ):
        assert 400 == admin.post("/v1/tokens", wrong).status
    assert "access.principal" == admin.post("/v1/tokens", {**said, "by": "user:ben"}).code


def test_an_administrator_looks_after_webhooks(house: House) -> None:
    """Its secret is in one answer; its URL is in none, because parts of it are secrets."""
    admin, auditor = house.visitor("admin"), house.visitor("auditor")
    made = admin.post("/v1/webhooks", {"url": HOOK, "kinds": ["tool.held"]})
    path = f"/v1/webhooks/{made.json['id']}"
    assert 404 == admin.post(f"/v1/webhooks/{made.json['id'][-6:]}/rotation").status
    rotated = admin.post(f"{path}/rotation")
    tried = admin.post(f"{path}/test")
    resumed = admin.post(f"{path}/resumption")
    (listed,) = auditor.get("/v1/webhooks").json["items"]
    removed = admin.post(f"{path}/removal", {"reason": "moved"})

    assert (201, 200, 200, 200) == (made.status, rotated.status, resumed.status, removed.status)
    assert (502, "egress.failed") == (tried.status, tried.code)
    assert made.json["secret"] != rotated.json["secret"]
    assert ("https://93.184.215.14", ["tool.held"], "resumed", True) == (
        listed["place"],
        listed["kinds"],
        listed["state"],
        listed["active"],
    )
    assert b"hunter2" not in auditor.get("/v1/webhooks").body + tried.body
    assert WebhookChange.REMOVED is house.relay.admin.webhooks()[0].state
    assert (404, "egress.refused", 400) == (
        admin.post(f"{path}/rotation").status,
        admin.post("/v1/webhooks", {"url": "https://169.254.169.254/"}).code,
        admin.post("/v1/webhooks", {"url": HOOK, "kinds": ["nothing"]}).status,
    )
