"""What people mean by an id: one rule for all kinds of things, and exactly one thing must answer."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from batonpass.accounts.why.why import KINDS
from batonpass.audit.meant_ids import (
    SHORTEST,
    Meant,
    find_erasable,
    get_handoff,
    get_key,
    get_meant,
    get_receipt,
    get_run,
    get_session,
)
from batonpass.audit.short_ids import ending
from batonpass.errors import AmbiguousIdError, NotFoundError, ShortIdError
from batonpass.ledger.position import Working
from batonpass.model.base import ids
from batonpass.model.base.ids import HANDOFF, RUN, KeyId, PublicKey, RelayId, RunId, StreamId
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.testing import Scribe, a_scribe
from tests.unit.accounts.trees import ANA, Place, calls_of, find

ALIKE = "8abcdefghjkmn"  # how every id ends whose random part is the same


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def scribe() -> Scribe:
    return a_scribe(MemoryStore())


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all ids that are made end in the same characters."""
    monkeypatch.setattr(ids, "_DRAWN", SimpleNamespace(pop=lambda: ALIKE))


@contextmanager
def tree(scribe: Scribe) -> Iterator[tuple[LedgerView, Working, Working]]:
    """Record a lead and an editor; give them, and a view of the ledger."""
    lead = scribe.start("Fix invoice rounding\nplease")
    editor = scribe.delegate(lead)
    scribe.call(editor)
    scribe.recording.close(editor, report="done")
    with scribe.store.view() as view:
        yield view, lead, editor


def receipts_of(view: LedgerView, run: RunId) -> list[StoredReceipt]:
    return list(view.find_receipts(ReceiptQuery(stream=StreamId(run))))


def meant(place: Place, given: str, kinds: tuple[str, ...] = KINDS) -> Meant:
    with place.store.view() as view:
        return get_meant(view, given, kinds)


def test_the_end_of_an_id_is_enough(place: Place) -> None:
    """As our own output prints it, for each kind of thing."""
    lead = place.relay().start("x", by=ANA)
    handoff = lead.hand_off("editor", "y")
    lead.call(find, 1)
    (call,) = calls_of(place.trail(lead.id), lead)
    ids = (lead.id, handoff.id, call.receipt, call.record.id)

    assert list(ids) == [meant(place, f"…{known[-12:]}").id for known in ids]
    assert ["run", "handoff", "receipt", "call"] == [meant(place, known).kind for known in ids]
    assert call.receipt == meant(place, call.record.id).receipt


def test_a_name_is_a_run_or_what_was_handed_to_it(place: Place) -> None:
    """One run is meant; several attempts at one handoff mean the handoff, and so does one that nobody took."""
    lead = place.relay().start("x", by=ANA)
    editor = lead.hand_off("editor", "y")
    editor.accept().fail(RuntimeError("no"))
    editor.retry(by=ANA)
    editor.accept()
    mailer = lead.hand_off("mailer", "z")

    assert [lead.id, editor.id, mailer.id] == [meant(place, name).id for name in ("lead", "editor", "mailer")]


@pytest.mark.parametrize("given", ["", "nobody", "x" * 1_000])
def test_nothing_is_not_found(place: Place, given: str) -> None:
    """The error says what was looked for."""
    place.relay().start("x", by=ANA)

    with pytest.raises(NotFoundError, match="no handoff or run"):
        meant(place, given, (RUN, HANDOFF))


@pytest.mark.usefixtures("alike")
def test_things_whose_ids_end_alike_are_listed() -> None:
    """Nothing is guessed: each line has kind, agent, time and task, and there are only a few."""
    relay = Relay(MemoryStore())
    relay.start("Fix it", by=ANA).hand_off("editor", "Write it").accept()

    with relay.store.view() as view, pytest.raises(AmbiguousIdError) as several:
        get_meant(view, ALIKE[-6:], KINDS)
    *shown, more = several.value.candidates

    assert (5, "… and more") == (len(shown), more)
    assert ["run of editor", "run of lead", "handoff to editor"] == [line.split(" · ")[1] for line in shown[:3]]
    assert '"Write it"' == shown[0].split(" · ")[-1]
    assert [] == [line for line in shown if not re.search(r" · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)]
    assert 5 == len({line.split(" · ")[0] for line in shown})


KINDS_TO_GET = [get_run, get_handoff, get_receipt, get_session, find_erasable]


@pytest.mark.parametrize("get", KINDS_TO_GET, ids=lambda get: get.__name__)
def test_a_short_ending_is_refused(scribe: Scribe, get: Callable[[LedgerView, str], object]) -> None:
    """Fewer than four characters find something by accident; the sentence says so, whatever they would find."""
    with tree(scribe) as (view, _, _):
        every = [one for kind in ("run", "handoff", "receipt", "content") for one in view.find_ids(kind, "")]
        for short in {one[-length:] for one in every for length in range(1, SHORTEST)}:
            with pytest.raises(ShortIdError, match=f"is called '{short}'; to use the end of an id, give at least 4"):
                get(view, short)


@pytest.mark.parametrize("get", KINDS_TO_GET, ids=lambda get: get.__name__)
def test_ids_are_lower_case(scribe: Scribe, get: Callable[[LedgerView, str], object]) -> None:
    """What has a capital letter is a name, and nobody is called so."""
    with tree(scribe) as (view, _, _):
        every = [one for kind in ("run", "handoff", "receipt", "content") for one in view.find_ids(kind, "")]
        for other in {one[-9:].upper() for one in every if re.search("[a-z]", one[-9:])}:
            with pytest.raises(NotFoundError):
                get(view, other)


def test_a_name_is_exact_and_may_be_short(scribe: Scribe) -> None:
    """One letter is a name if somebody is called so; and D is not d."""
    upper, lower = scribe.start(agent="D"), scribe.start(agent="d")
    with scribe.store.view() as view:
        assert [upper.run.id, lower.run.id] == [get_run(view, name).id for name in ("D", "d")]
        with pytest.raises(ShortIdError):
            get_run(view, "A")


def test_a_name_goes_before_an_ending(scribe: Scribe) -> None:
    """A name cannot be made longer, and an ending can."""
    lead = scribe.start()
    named = scribe.start(agent=lead.run.id[-5:])
    with scribe.store.view() as view:
        assert named.run.id == get_run(view, lead.run.id[-5:]).id
        assert lead.run.id == get_run(view, lead.run.id[-6:]).id


def test_nobody_takes_the_place_of_a_whole_id(scribe: Scribe) -> None:
    """An agent that is called like somebody's run is not meant by that run's id; nor is one that is called last."""
    lead = scribe.start()
    scribe.start(agent=lead.run.id)
    scribe.start(agent="last")
    newest = scribe.start()
    with scribe.store.view() as view:
        assert [lead.run.id, newest.run.id] == [get_run(view, given).id for given in (lead.run.id, "last")]


@pytest.mark.parametrize(
    "given", ["\x00", "ab\x00cd", "\udcff\udcfe1234", "²³¹¹", "٣٣٣٣", "%%%%", "____", "x" * 10_000]
)
def test_what_nobody_can_be_called_is_not_found(scribe: Scribe, given: str) -> None:
    """Bytes that no terminal prints, digits of other scripts and wildcards of databases lead nowhere."""
    with tree(scribe) as (view, _, _):
        for get in KINDS_TO_GET:
            with pytest.raises(NotFoundError):
                get(view, given)


def test_a_run_and_its_handoff_are_one_thing(place: Place) -> None:
    """Two handoffs to one agent are two things, with their runs or without."""
    lead = place.relay().start("x", by=ANA)
    taken = lead.hand_off("editor", "first").accept()
    waiting = lead.hand_off("editor", "second")

    with pytest.raises(AmbiguousIdError) as several:
        meant(place, "editor")

    assert [ending(taken.id), ending(waiting.id)] == [line.split(" · ")[0] for line in several.value.candidates]


def test_a_session_is_meant_by_its_name(place: Place) -> None:
    """Whoever gave it a name can say it; a series too, and that name goes before the end of an id."""
    relay = place.relay()
    named = relay.start("x", by=ANA, session=ids.session_named("ticket-42"))
    # A code begins with a letter, and the end of an id may not: there are enough ends to choose from.
    end = next(named.id[-length:] for length in range(5, 20) if named.id[-length].isalpha())
    series = relay.start("y", by=ANA, series=end)
    with place.store.view() as view:
        first, second = get_session(view, "ticket-42"), get_session(view, end)

    assert (ids.session_named("ticket-42"), f"session_{series.id[4:]}") == (first, second)


A = Key(
    id=KeyId("aa" * 32),
    role=KeyRole.RELAY,
    public_key=PublicKey("11" * 32),
    relay=RelayId("relay_01m7ggp9d5esn9rcpxbg36fkjp"),
    status=KeyStatus.RETIRED,
)
B = replace(A, id=KeyId("bb" * 32), status=KeyStatus.ACTIVE)
C = replace(A, id=KeyId("cc" * 31 + "bb"), relay=RelayId("relay_01m7ggp9d5esn9rcpxbg36fkxx"), status=KeyStatus.ACTIVE)
ROOT = replace(A, id=KeyId("dd" * 32), role=KeyRole.ROOT, relay=None, status=KeyStatus.ACTIVE)


def test_a_run_is_found_by_what_people_type(scribe: Scribe) -> None:
    """A whole id, its last characters, what we print before them, `last`, and an agent's name all lead to a run."""
    with tree(scribe) as (view, _, editor):
        run = editor.run.id
        given = [run, run[-8:], f"…{run[-8:]}", f" {run[-8:]} ", "last", "editor"]

        assert [run] * len(given) == [get_run(view, each).id for each in given]


@pytest.mark.parametrize("given", ["", "…", "nobody", "zzzzzzzzzzzz", "run_01m7ggp9d5esn9rcpxbg36fkjp"])
def test_a_run_that_is_not_there_is_said(scribe: Scribe, given: str) -> None:
    """What leads nowhere is not found, and nothing else is guessed."""
    with tree(scribe) as (view, _, _), pytest.raises(NotFoundError) as caught:
        get_run(view, given)

    assert ("run", given) == (caught.value.what, caught.value.given)


def test_an_empty_ledger_has_no_last_run(scribe: Scribe) -> None:
    """`last` is not an error of ours where nothing has run yet."""
    with scribe.store.view() as view, pytest.raises(NotFoundError):
        get_run(view, "last")


def test_several_runs_of_an_agent_are_listed_with_enough_to_choose(scribe: Scribe) -> None:
    """The newest come first, each with its ending, agent, time, state and task."""
    lead = scribe.start()
    older = scribe.delegate(lead, "editor", "First\nand more")
    newer = scribe.delegate(lead, "editor", "Second")
    with scribe.store.view() as view, pytest.raises(AmbiguousIdError) as caught:
        get_run(view, "editor")

    first, second = caught.value.candidates
    assert [ending(newer.run.id), ending(older.run.id)] == [first.split(" · ")[0], second.split(" · ")[0]]
    assert ["run of editor", "open", '"First"'] == [second.split(" · ")[place] for place in (1, 3, 4)]


def test_more_runs_than_a_person_reads_are_not_listed(scribe: Scribe) -> None:
    """Five are shown, and that there are others."""
    for _ in range(7):
        scribe.start()
    with scribe.store.view() as view, pytest.raises(AmbiguousIdError) as caught:
        get_run(view, "lead")

    assert (6, "… and more") == (len(caught.value.candidates), caught.value.candidates[-1])


def test_a_receipt_is_found_by_what_people_type(scribe: Scribe) -> None:
    """A whole id, its last characters and `last` lead to a receipt."""
    with tree(scribe) as (view, _, editor):
        newest = receipts_of(view, editor.run.id)[-1].id

        assert [newest] * 3 == [get_receipt(view, given).id for given in (newest, newest[-8:], "last")]


def test_an_agents_receipts_are_listed(scribe: Scribe) -> None:
    """An agent's name is never one receipt of several; the newest are shown with their kinds."""
    with tree(scribe) as (view, _, _), pytest.raises(AmbiguousIdError) as caught:
        get_receipt(view, "editor")

    kinds = [line.split(" · ")[1].split()[1] for line in caught.value.candidates]
    assert ["handoff.completed", "tool.completed", "tool.requested", "handoff.accepted"] == kinds


def test_an_agent_with_one_receipt_means_that_one(scribe: Scribe) -> None:
    """Where there is nothing to choose, nothing is asked."""
    scribe.start(agent="scout")
    with scribe.store.view() as view:
        assert "run.started" == get_receipt(view, "scout").kind


def test_a_receipt_that_is_not_there_is_said(scribe: Scribe) -> None:
    """An unknown ending leads to no receipt."""
    with scribe.store.view() as view, pytest.raises(NotFoundError):
        get_receipt(view, "zzzzzzzzzzzz")


def test_what_can_be_erased_is_found_by_its_kind(scribe: Scribe) -> None:
    """A content is itself, a receipt its contents, a run the contents of its stream."""
    with tree(scribe) as (view, _, editor):
        requested = receipts_of(view, editor.run.id)[1]
        arguments = read_receipt(requested).content["arguments"].id
        everything = tuple(
            ref.id for stored in receipts_of(view, editor.run.id) for ref in read_receipt(stored).content.values()
        )

        assert (arguments, (arguments,)) == find_erasable(view, arguments[-9:])
        assert (requested.id, (arguments,)) == find_erasable(view, requested.id)
        assert (editor.run.id, everything) == find_erasable(view, "editor")
        assert (editor.run.id, everything) == find_erasable(view, "last")


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        pytest.param(A, "aaaa", id="by how it begins or ends"),
        pytest.param(B, "bbbbbb", id="by more of its end"),
        pytest.param(C, "cccc", id="by how it begins"),
        pytest.param(B, "fkjp", id="by its relay, the active one of several"),
        pytest.param(C, "fkxx", id="by its relay"),
        pytest.param(ROOT, "dddd", id="the root key too"),
    ],
)
def test_a_key_is_found(expected: Key, given: str) -> None:
    """A key is known by either end of its id, or by its relay."""
    assert expected == get_key([ROOT, A, B, C], given)


def test_a_key_that_is_not_clear_is_refused() -> None:
    """Nobody's key is revoked by accident."""
    with pytest.raises(AmbiguousIdError) as caught:
        get_key([ROOT, A, replace(B, id=KeyId("bbbb" + "ee" * 28 + "bbbb")), B], "bbbb")
    for given in ("", "bb", "AAAA"):
        with pytest.raises(NotFoundError):
            get_key([ROOT, A, B, C], given)

    assert ("bbbbbbbbbbbbbbbb · relay fkjp · active", 2) == (caught.value.candidates[1], len(caught.value.candidates))


def test_a_relay_whose_keys_are_all_over_is_still_found() -> None:
    """Without an active key, the only old one is meant."""
    assert A == get_key([A], "fkjp")
