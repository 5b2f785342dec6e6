"""What can be read: the same shapes as on the command line, in parts, and each part once."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import fields

from batonpass.model.baton.card import Card
from batonpass.relay import Relay
from batonpass.server.routes import ENDPOINTS
from tests.unit.server.conftest import ANA, House, raise_alarm
from tests.unit.server.test_every_route import QUERIES

PEOPLE = ("operator", "auditor", "admin")


def a_tree(relay: Relay) -> tuple[str, str, str]:
    """Record a lead that hands off; return its run, the handoff and the child."""
    with relay.start("Fix rounding", by=ANA) as lead:
        handoff = lead.hand_off("editor", "Make total() round half-even")
        with handoff as editor:
            editor.attach("notes.txt", b"\x00\xff")
            editor.report("done")
    return lead.id, handoff.id, editor.id


def all_of(house: House, path: str, cursor: str, **query: object) -> list[Any]:
    """Return a whole list, read two at a time."""
    visitor, found, after = house.visitor("auditor"), [], None
    while True:
        given = {**query, "limit": 2, **({} if after is None else {cursor: after})}
        answer = visitor.get(f"{path}?{'&'.join(f'{name}={value}' for name, value in given.items())}")
        assert 200 == answer.status, answer.body
        found += answer.json["items"]
        after = answer.json["next"]
        if after is None:
            return found


def test_lists_come_in_parts_and_lose_nothing(house: House) -> None:
    """Following `next` yields each thing once, in order."""
    for _ in range(3):
        a_tree(house.relay)
    with house.relay.store.view() as view:
        runs = [run.id for run in view.find_runs()]
        handoffs = [one.id for one in view.find_handoffs()]
        last = view.last_position()

    assert runs == [one["id"] for one in all_of(house, "/v1/runs", "before")]
    assert handoffs == [one["id"] for one in all_of(house, "/v1/handoffs", "before")]
    assert [*range(1, last + 1)] == [one["position"] for one in all_of(house, "/v1/receipts", "after")]
    assert 4 == len({one["id"] for one in house.visitor("admin").get("/v1/tokens").json["items"]})


def test_lists_are_filtered(house: House) -> None:
    """By what the ledger has an index for."""
    lead, _, editor = a_tree(house.relay)
    a_tree(house.relay)
    visitor = house.visitor("auditor")

    assert [editor] == [one["id"] for one in visitor.get(f"/v1/runs?parent={lead}").json["items"]]
    assert {"editor"} == {one["agent"] for one in visitor.get("/v1/runs?agent=editor").json["items"]}
    assert {lead} == {one["root"] for one in visitor.get(f"/v1/handoffs?root={lead}").json["items"]}
    assert {"handoff.accepted"} == {
        one["kind"] for one in visitor.get("/v1/receipts?kind=handoff.accepted").json["items"]
    }
    assert {editor} == {one["stream"] for one in visitor.get(f"/v1/receipts?run={editor}").json["items"]}


@pytest.mark.parametrize(
    "target",
    [
        "/v1/runs?limit=0",
        "/v1/runs?limit=201",
        "/v1/runs?limit=x",
        "/v1/runs?state=odd",
        "/v1/runs?state=null",
        "/v1/handoffs?state=NULL",
        "/v1/runs?colour=red",
        "/v1/runs?limit=1&limit=2",
        "/v1/receipts?after=-1",
        "/v1/ledger?x=1",
    ],
)
def test_a_parameter_that_cannot_be_right_is_refused(house: House, target: str) -> None:
    """It is never ignored: a filter that has no effect answers another question."""
    answer = house.visitor("auditor").get(target)

    assert (400, "value.invalid") == (answer.status, answer.code)


def test_what_there_is_not_is_not_found(house: House) -> None:
    """Whatever the name looks like."""
    visitor = house.visitor("admin")
    names = ["x", "last", "run_01jd0000000000000000000000", "%00", "é", "a" * 500]
    paths = ["/v1/runs/{}", "/v1/handoffs/{}", "/v1/receipts/{}", "/v1/grants/{}", "/v1/runs/{}/artifacts"]

    assert {404} == {visitor.get(path.format(name)).status for name in names for path in paths}


def test_an_answer_that_is_known_is_not_sent_again(house: House) -> None:
    """By its ETag, weak or among others; and a changed one is sent."""
    a_tree(house.relay)
    visitor = house.visitor("auditor")
    first = visitor.get("/v1/runs")
    etag = first.headers["etag"]
    again = [visitor.get("/v1/runs", if_none_match=given) for given in (etag, f'W/{etag}, "x"', "*")]
    a_tree(house.relay)

    assert [(304, b"")] * 3 == [(one.status, one.body) for one in again]
    assert 200 == visitor.get("/v1/runs", if_none_match=etag).status


def test_bytes_are_given_back_as_they_are(house: House) -> None:
    """As a file to keep and never as a page, whatever media type somebody gave them."""
    *_, editor = a_tree(house.relay)
    visitor = house.visitor("auditor")
    listed = visitor.get(f"/v1/runs/{editor}/artifacts").json["items"]
    (attached,) = (one for one in listed if one["size"] == 2)
    answer = visitor.get(f"/v1/runs/{editor}/artifacts/{attached['content']}")

    assert (b"\x00\xff", "application/octet-stream", "attachment") == (
        answer.body,
        answer.headers["content-type"],
        answer.headers["content-disposition"],
    )
    assert 404 == visitor.get(f"/v1/runs/{editor}/artifacts/content_01jd0000000000000000000000").status


def test_agents_are_told_of_by_their_cards(house: House) -> None:
    """Also whether they run here."""
    house.relay.register("editor", lambda run: run.task, card=Card(agent="editor", skills=("edit",)))  # type: ignore[arg-type]
    (card,) = house.visitor("auditor").get("/v1/agents").json["items"]

    assert ("editor", ["edit"], True) == (card["agent"], card["skills"], card["runs_here"])


def test_what_waits_is_listed(house: House) -> None:
    """A held handoff waits for an approval, and a question for an answer."""
    lead = house.relay.start("Ship it", by=ANA)
    held = lead.hand_off("shipper", "Ship it", hold=True)
    asked = lead.hand_off("editor", "Edit it")
    asked.ask("Which file?")
    visitor = house.visitor("operator")

    assert [(held.id, "handoff")] == [(one["id"], one["kind"]) for one in visitor.get("/v1/approvals").json["items"]]
    assert [(asked.id, "Which file?")] == [
        (one["handoff"], one["question"]["text"]) for one in visitor.get("/v1/questions").json["items"]
    ]


def test_the_grant_of_a_handoff_is_told_hop_by_hop(house: House) -> None:
    """From the root down; without a grant the chain is empty."""
    lead = house.relay.start("Fix it", by=ANA)
    free = lead.hand_off("reader", "Read it")
    bound = lead.hand_off("editor", "Edit it", may=["write:src/**"])
    visitor = house.visitor("auditor")

    assert [["write:src/**"]] == [one["may"] for one in visitor.get(f"/v1/grants/{bound.id}").json["chain"]]
    assert ([], "observed") == (
        visitor.get(f"/v1/grants/{free.id}").json["chain"],
        visitor.get(f"/v1/grants/{lead.id}").json["mode"],
    )


def shapes_of(answer: Any, kind: Any) -> tuple[set[str], set[str]]:  # noqa: ANN401 - an answer and its type
    """Return the fields of an answer, and those that its type says it always has."""
    if isinstance(answer, dict) and "items" in answer and "next" in answer:
        answer, kind = answer["items"][0], kind.__args__[0]
    needed = {one.name for one in fields(kind) if one.required}
    return set(answer) - {one.name for one in fields(kind) if not one.required}, needed


def test_answers_have_the_fields_of_their_types(house: House) -> None:
    """The document is made from the types, and the answers from `records`: neither changes alone."""
    lead, handoff, editor = a_tree(house.relay)
    house.relay.admin.seal()
    waiting = house.relay.start("Ship it", by=ANA)
    held = waiting.hand_off("shipper", "Ship it", hold=True)
    waiting.hand_off("editor", "Edit it").ask("Which file?")
    house.relay.register("editor", lambda run: run.task)
    ready = waiting.hand_off("worker", "Do it", carrier="worker")
    assert house.relay.claim(holder="w", lease_for=timedelta(minutes=1)) is not None, ready
    with house.relay.store.view() as view:
        receipt = next(iter(view.find_remarks())).receipt
    raise_alarm(house.relay, "analyst", 12 * "0")
    visitor = house.visitor("admin")
    waiting.hand_off("mailer", "Mail it", hold=True).approve(by="user:ben")  # unproven, which is a finding
    assert 201 == visitor.post("/v1/webhooks", {"url": "https://93.184.215.14/hook"}).status
    names = {"run": editor, "handoff": handoff, "receipt": receipt, "account": lead, "held": held.id}
    different: dict[str, object] = {}
    for one in ENDPOINTS:
        if one.is_read and one.answers not in {bytes, str} and not one.streams:
            told, needed = shapes_of(
                visitor.get(one.path.format(**names) + QUERIES.get(one.name, "")).json, one.answers
            )
            if told != needed:
                different[one.name] = {"told": sorted(told - needed), "missing": sorted(needed - told)}

    assert {} == different


@pytest.mark.parametrize("role", PEOPLE)
def test_people_read_the_whole_ledger(house: House, role: str) -> None:
    """Each of the three roles reads trees of everybody."""
    lead, handoff, _ = a_tree(house.relay)
    visitor = house.visitor(role)

    assert (200, 200) == (visitor.get(f"/v1/runs/{lead}").status, visitor.get(f"/v1/handoffs/{handoff}").status)


def test_other_methods_and_paths_are_told_so(house: House) -> None:
    """With the code, and with what is possible."""
    visitor = house.visitor("admin")
    wrong, none = visitor.send("DELETE", "/v1/runs"), visitor.get("/v2/runs")

    assert (405, "http.method") == (wrong.status, wrong.code)
    assert "GET" in wrong.headers["allow"]
    assert (404, "http.no_route") == (none.status, none.code)
    assert 200 == visitor.send("HEAD", "/v1/runs").status
