"""Blame for what is no line: a call's effect, an artifact, a digest, words."""

from hashlib import sha256
from pathlib import Path

import pytest

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.other_blame import blame_artifact, blame_digest, blame_effect, blame_text
from batonpass.errors import AmbiguousIdError, InvalidValueError, NotFoundError
from batonpass.model.baton.items import Decision
from batonpass.store.port import ReceiptQuery
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, OLD, Shop, write_file
from tests.unit.accounts.trees import break_off, fail, tried


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a shop in which an editor has changed a file and attached another."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BEFORE, encoding="utf-8")
    shop = Shop(tmp_path)
    lead = shop.relay.start('Fix the "quoted" shop', by=ANA)
    with lead.hand_off("editor", "Shout") as editor:
        editor.call(write_file, "a.py", AFTER)
        editor.attach("notes.txt", "some notes")
    return shop


def effect(shop: Shop, given: str) -> Blame:
    with shop.viewed() as view:
        return blame_effect(view, given)


def artifact(shop: Shop, given: str) -> Blame:
    with shop.viewed() as view:
        return blame_artifact(view, given)


def digest(shop: Shop, given: str) -> Blame:
    with shop.viewed() as view:
        return blame_digest(view, given)


def text(shop: Shop, given: str, most: int | None = None) -> Blame:
    with shop.viewed() as view:
        return blame_text(view, given, most=most)


def test_an_effect_names_what_was_changed(shop: Shop) -> None:
    """By the end of the call's id, or of a receipt about it."""
    maker = shop.maker()
    assert maker.call is not None
    found = [effect(shop, given) for given in (maker.call, maker.call[-8:], maker.receipt)]

    assert [("editor", ["a.py"])] * 3 == [
        (made.run.agent, [change.path for change in made.changes]) for blame in found for made in blame.makers.values()
    ]


def test_a_call_that_did_not_return_says_so(shop: Shop) -> None:
    """Failed, and in doubt."""
    lead = shop.relay.start("Try", by=ANA)
    tried(lambda: lead.call(fail, "no"))
    tried(lambda: lead.call(break_off, "x"))
    trail = shop.relay.trail(lead.id)
    notes = [effect(shop, call).notes for call in trail.calls]

    assert [("it failed: value",), ("it has no outcome: nobody knows whether it happened",)] == notes


def test_a_denied_call_was_never_made(shop: Shop) -> None:
    """And the rule is named."""
    lead = shop.relay.start("Try", by=ANA)
    handoff = lead.hand_off("editor", "Try it")
    tried(lambda: handoff.accept().call(break_off, "x"))
    again = shop.relay.resume(lead.id)
    tried(lambda: again.hand_off("editor", "Try it").accept().call(break_off, "x"))
    denied = [call for call in shop.relay.trail(lead.id).calls.values() if call.record.outcome == "denied"]

    assert [("it was denied, and never made: call.in-doubt",)] == [
        effect(shop, call.record.id).notes for call in denied
    ]


def test_what_is_no_call_is_not_found(shop: Shop) -> None:
    """A receipt about something else, and an id that nobody has."""
    offer = shop.maker().hops[0].offer
    assert offer is not None

    for given in (offer, "zzzzzzzz"):
        with pytest.raises(NotFoundError):
            effect(shop, given)


def test_an_artifact_has_somebody_who_attached_it(shop: Shop) -> None:
    """By its name, or by the end of its id."""
    blame = artifact(shop, "notes.txt")
    (maker,) = blame.makers.values()

    assert ("editor", None, True) == (
        maker.run.agent,
        maker.call,
        maker.tool.startswith("attached notes.txt (10 bytes"),
    )
    with pytest.raises(NotFoundError):
        artifact(shop, "nothing.txt")


def test_artifacts_of_one_name_are_told_apart(shop: Shop) -> None:
    """The same bytes again are the same artifact; other bytes are another, and nothing is chosen."""
    lead = shop.relay.start("More", by=ANA)
    lead.attach("notes.txt", "some notes")
    assert "editor" == next(iter(artifact(shop, "notes.txt").makers.values())).run.agent
    other = lead.attach("notes.txt", "other notes", untrusted=True, source="web")

    with pytest.raises(AmbiguousIdError):
        artifact(shop, "notes.txt")
    assert ("it came from web: data from outside",) == artifact(shop, other.id[-8:]).notes


def test_a_digest_is_found_wherever_it_was(shop: Shop) -> None:
    """Written, replaced, attached, and as a content; what nobody had is nowhere."""
    task = shop.maker().task
    assert task is not None
    places = {
        name: [(place.what, place.detail.split(",")[0]) for place in digest(shop, given).places]
        for name, given in {
            "after": sha256(AFTER.encode()).hexdigest(),
            "before": f"sha256:{sha256(BEFORE.encode()).hexdigest().upper()}",
            "attached": sha256(b"some notes").hexdigest(),
            "content": task.ref.digest,
            "nobody": "0" * 64,
        }.items()
    }

    assert {
        "after": [("written", "a.py")],
        "before": [("replaced", "a.py")],
        "attached": [("artifact", "notes.txt (10 bytes)")],
        "content": [("content task", "5 bytes")],
        "nobody": [],
    } == places


def test_a_digest_is_a_sha256(shop: Shop) -> None:
    """Anything else is a mistake."""
    with pytest.raises(InvalidValueError):
        digest(shop, "abc")


def test_words_are_found_in_tasks_statements_calls_and_changes(shop: Shop) -> None:
    """In the order in which they were recorded; quotes and lines are as people write them."""
    assert ["statement"] == [place.what for place in text(shop, '"quoted" shop').places]
    assert ["task for editor"] == [place.what for place in text(shop, "Shout").places]
    assert ["call", "added to a.py"] == [place.what for place in text(shop, "as it should be").places]
    assert ["removed from a.py"] == [place.what for place in text(shop, OLD).places]
    assert ["artifact"] == [place.what for place in text(shop, "some notes").places]
    assert [] == list(text(shop, "nowhere to be found").places)


def test_the_first_place_leads_up_to_the_human(shop: Shop) -> None:
    """Where words entered is what people ask for."""
    blame = text(shop, "as it should be")

    assert [ANA] == [maker.principal for maker in blame.makers.values()]


def test_only_so_many_places_are_listed(shop: Shop) -> None:
    """Whoever wants more says so."""
    assert 1 == len(text(shop, "s", most=1).places)


def test_there_must_be_words(shop: Shop) -> None:
    """Nothing is everywhere."""
    with pytest.raises(InvalidValueError):
        text(shop, "  ")


def test_words_are_found_in_every_kind_of_content(shop: Shop) -> None:
    """Numbers and lists among arguments, briefs, and what was said to be true, included."""
    lead = shop.relay.start("More", by=ANA)
    lead.call(lambda given: given, [1, None, {"deep": ["down here"]}])
    lead.record(Decision("because of the tax office"))

    assert ["call", "result of a call"] == [place.what for place in text(shop, "down here").places]
    assert 1 == len(text(shop, "the tax office").places)


def test_what_was_erased_is_not_found(shop: Shop) -> None:
    """Words that are gone are nowhere; a change whose path is gone is still one."""
    task = shop.maker().task
    assert task is not None
    shop.relay.admin.erase([task.ref.id], by=ANA, reason="they asked")
    with shop.viewed() as view:
        (touched,) = view.find_touches("a.py")
    shop.relay.admin.erase([touched.content], by=ANA, reason="they asked")

    assert () == text(shop, "Shout").places
    assert [("written", "(erased)")] == [
        (place.what, place.detail) for place in digest(shop, sha256(AFTER.encode()).hexdigest()).places
    ]


def test_an_artifact_that_came_with_an_offer_is_found(shop: Shop) -> None:
    """Its receipt is the offer's."""
    lead = shop.relay.start("More", by=ANA)
    item = lead.attach("table.csv", b"a,b", media_type="text/csv")
    lead.hand_off("reader", "Read it")

    assert "lead" == next(iter(artifact(shop, item.id).makers.values())).run.agent
    assert "lead" == next(iter(artifact(shop, "table.csv").makers.values())).run.agent


def test_a_receipt_before_another_is_found_by_its_digest(shop: Shop) -> None:
    """Whoever holds a digest of a receipt learns where it stands."""
    with shop.viewed() as view:
        receipt = next(view.find_receipts(ReceiptQuery(kind="run.started")))
    found = digest(shop, sha256(receipt.payload).hexdigest())

    assert ["receipt before"] == [place.what for place in found.places]
