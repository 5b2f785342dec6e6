"""Blame for what is rare: changes without a place, names that only records know, and records that cannot be read."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown
from batonpass.accounts.blame.file_changes import place_of, read_changes
from batonpass.accounts.blame.line_candidates import find_unplaced
from batonpass.attribution.changes.change import FileChange, digest_of, lines_of
from batonpass.attribution.changes.change_document import encode_change
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import CallId, StreamId, new_call_id
from batonpass.model.bodies.body import Changed, ToolCompleted, ToolRequested
from batonpass.model.ledger.entry import Touch
from batonpass.records.source import Source, source_of
from batonpass.records.text import read_receipt
from batonpass.relay import desk_of
from batonpass.store.port import ReceiptQuery
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, NEW, OLD, Shop, write_file

Twist = Callable[[bytes], bytes]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a shop with one file, as somebody has changed it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(AFTER, encoding="utf-8")
    return Shop(tmp_path)


def a_change(run: LiveRun, **given: object) -> FileChange:
    change = FileChange(
        call="call",
        run=run.id,
        at=datetime(2026, 1, 2, tzinfo=UTC),
        path="a.py",
        before=digest_of(BEFORE.encode()),
        after=digest_of(AFTER.encode()),
        hunks=hunks_between(lines_of(BEFORE), lines_of(AFTER)),
    )
    return replace(change, **given)


def records(
    shop: Shop, run: LiveRun, change: FileChange, arguments: object = None, *, twist: Twist = bytes, under: str = ""
) -> CallId:
    """Record a change as adapters do, whatever it says."""
    desk, working = desk_of(shop.relay), run._holding.working
    call = new_call_id(shop.clock.now())
    given = json.dumps(arguments if arguments is not None else {}).encode()
    desk.recording.record(working, ToolRequested(run=run.id, call=call, tool="Edit"), (desk.json("arguments", given),))
    content = desk.json("change.1", twist(encode_change(change)))
    changed = Changed(change=content.ref.id, before=change.before, after=change.after)
    touch = Touch(path=under or change.path, content=content.ref.id)
    body = ToolCompleted(run=run.id, call=call, changes=(changed,))
    desk.recording.record(working, body, (content,), touches=(touch,))
    return call


def test_a_change_without_a_place_makes_a_candidate(shop: Shop) -> None:
    """Whoever was given a line's words, whole or in part, may have written it; nobody else."""
    lead = shop.relay.start("Fix it", by=ANA)
    unplaced = a_change(lead, before=None, after=None, hunks=None)
    call = records(shop, lead, unplaced, {"arguments": {"edits": [{"old_string": OLD, "new_string": "it should be"}]}})
    records(shop, lead, unplaced, {"arguments": {"file_path": NEW, "old_string": NEW, "new_string": "something else"}})
    line = shop.line(2)

    assert (HowKnown.CANDIDATES, (call,), True) == (line.known, line.calls, line.or_nobody)
    assert HowKnown.UNEXPLAINED is shop.line(1).known


@pytest.mark.parametrize("arguments", [[1], "words", {"arguments": 7}], ids=str)
def test_arguments_that_cannot_be_read_name_nobody(shop: Shop, arguments: object) -> None:
    """What a call was given is whatever its tool takes."""
    lead = shop.relay.start("Fix it", by=ANA)
    records(shop, lead, a_change(lead, before=None, after=None, hunks=None), arguments)

    assert HowKnown.UNEXPLAINED is shop.line(2).known


def test_a_request_that_is_not_kept_names_nobody(shop: Shop) -> None:
    """Without arguments there are no words."""
    lead = shop.relay.start("Fix it", by=ANA)
    records(shop, lead, a_change(lead, hunks=None), {"text": NEW})
    with shop.viewed() as view:
        (recorded,) = read_changes(view, place_of(shop.path(), roots=[shop.folder]), ["a.py"]).found
        started = read_receipt(view.get_receipt_at(StreamId(lead.id), 1))
        (unplaced,) = find_unplaced(view, [replace(recorded, receipt=started)])

    assert frozenset() == unplaced.written


@pytest.mark.parametrize("is_repository", [False, True])
def test_a_name_that_is_not_utf_8_is_found_as_it_was_recorded(shop: Shop, *, is_repository: bool) -> None:
    """With its byte spelled out: a single such file in a commit stopped the review of all others."""
    name = os.fsdecode(b"caf\xe9.py")
    if is_repository:
        shop.git("init", "-q")
    with shop.relay.start("Fix it", by=ANA) as lead:
        lead.call(write_file, name, AFTER)
    if is_repository:
        shop.git("add", "-A")
        shop.git("commit", "-qm", "1")

    assert (lead.id, 1) == (shop.maker(name).run.id, shop.blame(name).recorded)


def test_a_rename_that_was_recorded_is_followed(shop: Shop) -> None:
    """Without git, the record itself says what a file was called."""
    lead = shop.relay.start("Fix it", by=ANA)
    first = records(shop, lead, a_change(lead, path="old.py"))
    same = digest_of(AFTER.encode())
    later = datetime(2026, 1, 3, tzinfo=UTC)
    records(shop, lead, a_change(lead, renamed_from="old.py", before=same, after=same, hunks=(), at=later))

    assert (2, (first,)) == (shop.blame().recorded, shop.line(2).calls)


def test_names_that_go_in_a_circle_end(shop: Shop) -> None:
    """Somebody may have renamed a file there and back."""
    lead = shop.relay.start("Fix it", by=ANA)
    records(shop, lead, a_change(lead, path="old.py", renamed_from="a.py"))
    records(shop, lead, a_change(lead, renamed_from="old.py"))

    assert 2 == shop.blame().recorded


@pytest.mark.parametrize(
    ("twist", "note"),
    [
        pytest.param(lambda _: b"{}", "a change of a.py cannot be read: ", id="no change"),
        pytest.param(bytes, "a change of b.py is found under a.py; run `batonpass ledger verify`", id="another's"),
    ],
)
def test_what_cannot_be_read_is_noted(shop: Shop, twist: Twist, note: str) -> None:
    """And explains nothing."""
    lead = shop.relay.start("Fix it", by=ANA)
    records(shop, lead, a_change(lead, path="b.py"), twist=twist, under="a.py")
    blame = shop.blame("a.py", 2)

    assert (HowKnown.UNEXPLAINED, True) == (blame.lines[0].known, blame.notes[0].startswith(note))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b'{"imported":true,"at":"2026-01-02T00:00:00Z"}', datetime(2026, 1, 2, tzinfo=UTC), id="a time"),
        pytest.param(b'{"imported":true,"at":"yesterday"}', None, id="no time"),
        pytest.param(b'{"imported":true,"at":"2026-01-02T03:04:05"}', None, id="a time of nowhere"),
        pytest.param(b"[]", None, id="no object"),
        pytest.param(b"{", None, id="no JSON"),
    ],
)
def test_a_source_that_cannot_be_read_is_hearsay(shop: Shop, body: bytes, expected: datetime | None) -> None:
    """It was there, so the act itself did not record it."""
    lead = shop.relay.start("Fix it", by=ANA)
    desk = desk_of(shop.relay)
    source = desk.json("source", body)
    requested = ToolRequested(run=lead.id, call=new_call_id(shop.clock.now()), tool="Edit")
    desk.recording.record(lead._holding.working, requested, (source,))
    with shop.viewed() as view:
        receipt = read_receipt(next(view.find_receipts(ReceiptQuery(kind="tool.requested"))))
        contents = {one.id: one for one in view.find_contents([source.ref.id])}
    found = source_of(receipt, contents)

    assert (True, expected) == (found is not None and found.imported, None if found is None else found.at)
    assert Source(imported=True) == source_of(receipt, {})


def test_a_file_outside_is_seen_from_where_paths_are_told(shop: Shop, tmp_path: Path) -> None:
    """From the first directory that it lies in, else from its own."""
    inside = place_of(shop.folder / "sub" / "b.py", roots=[shop.folder])
    outside = place_of(shop.folder / "b.py", roots=[tmp_path / "elsewhere"])

    assert [("sub/b.py", shop.folder), ("b.py", shop.folder)] == [(one.path, one.root) for one in (inside, outside)]


def test_paths_of_a_part_of_the_repository_count(shop: Shop) -> None:
    """Transcripts that were imported from a directory below the root name files from there, or absolutely."""
    shop.git("init", "--quiet")
    sub = shop.folder / "sub"
    place = place_of(sub / "a.py", roots=[sub])

    assert ["sub/a.py", str(sub / "a.py"), "a.py"] == list(place.spellings(place.path))


def test_a_change_from_before_a_line_is_no_candidate(shop: Shop) -> None:
    """Whoever worked before the line was there cannot have written it."""
    lead = shop.relay.start("Fix it", by=ANA)
    records(shop, lead, a_change(lead, hunks=None), {"text": NEW})
    with shop.viewed() as view:
        found = read_changes(view, place_of(shop.path(), roots=[shop.folder]), ["a.py"]).found
        (unplaced,) = find_unplaced(view, found)
    line = BlamedLine(number=2, text=NEW, known=HowKnown.UNEXPLAINED)

    assert [True, False] == [
        unplaced.may_have_written(replace(line, since=since)) for since in (None, shop.clock.now() + timedelta(days=1))
    ]
