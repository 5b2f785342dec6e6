"""Rows beside the receipts: contents are what was committed to, derived rows what the receipts add up to."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import fields, replace

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import ContentMismatchError, DerivedStateError, MissingError
from batonpass.model.base.ids import CallId, ContentId, Digest, HandoffId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.grants.charge import Unit
from batonpass.model.ledger.content import Place, StoredContent, new_content
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.model.ledger.run import RunState
from batonpass.testing.builders import ANA
from batonpass.testing.clock import NOON
from batonpass.testing.conformance.charges import one_call, request
from batonpass.testing.conformance.decided_calls import decided, held
from batonpass.testing.conformance.kept_results import kept
from batonpass.testing.conformance.remarks import ONE, OTHER, left
from tests.unit.audit.forging import Forger
from tests.unit.model.examples import DIGEST, RUN_KEY, an_id


def content_of(forger: Forger, name: str, seq: int) -> ContentId:
    """Return the one content of a receipt."""
    (ref,) = forger.receipt(name, seq).content.values()
    return ref.id


def change(forger: Forger, name: str, seq: int, **columns: Any) -> None:  # noqa: ANN401 - any column
    """Change columns of a receipt's content."""
    content = content_of(forger, name, seq)
    forger.tables.contents[content] = replace(forger.tables.contents[content], **columns)


def exchange(forger: Forger) -> None:
    """Let two contents change owners, with everything else about them."""
    one, other = content_of(forger, "child", 2), content_of(forger, "child", 3)
    contents = forger.tables.contents
    contents[one], contents[other] = replace(contents[other], id=one), replace(contents[one], id=other)


def surplus(forger: Forger) -> None:
    """Add a content that no receipt names."""
    content = new_content("task", "uninvited", NOON)
    forger.tables.contents[content.ref.id] = StoredContent(
        id=content.ref.id,
        receipt=forger.row("child", 2).id,
        place=Place.ROW,
        salt=content.salt,
        body=content.body,
    )


def brought_back(forger: Forger) -> None:
    """Erase a content, and put it back where it was."""
    content = content_of(forger, "child", 2)
    kept = forger.tables.contents[content]
    forger.scribe.erasure.erase([content], by=ANA, reason="asked to")
    forger.tables.contents[content] = kept


def half_erased(forger: Forger) -> None:
    """Erase a content, and keep its salt, with which its words can be guessed."""
    content = content_of(forger, "child", 2)
    salt = forger.tables.contents[content].salt
    forger.scribe.erasure.erase([content], by=ANA, reason="asked to")
    change(forger, "child", 2, salt=salt)


CONTENTS: dict[str, tuple[Callable[[Forger], object], str | None, int | None, str | None]] = {
    "other words": (lambda f: change(f, "child", 2, body=b"[]"), "child", 2, "content.arguments"),
    "one byte more": (lambda f: change(f, "child", 2, body=b"{} "), "child", 2, "content.arguments"),
    "no words": (lambda f: change(f, "child", 2, body=b""), "child", 2, "content.arguments"),
    "another salt": (lambda f: change(f, "child", 2, salt=bytes(16)), "child", 2, "content.arguments"),
    "a byte moved from the salt to the body": (
        lambda f: change(
            f,
            "child",
            2,
            salt=(f.tables.contents[content_of(f, "child", 2)].salt or b"")[:-1],
            body=(f.tables.contents[content_of(f, "child", 2)].salt or b"")[-1:] + b"{}",
        ),
        "child",
        2,
        "content.arguments",
    ),
    "a lost body": (lambda f: change(f, "child", 2, body=None), "child", 2, "content.arguments"),
    "a lost salt": (lambda f: change(f, "child", 2, salt=None), "child", 2, "content.arguments"),
    "another owner": (
        lambda f: change(f, "child", 2, receipt=f.row("child", 3).id),
        "child",
        2,
        "content.arguments",
    ),
    "no owner": (lambda f: change(f, "child", 2, receipt=None), "child", 2, "content.arguments"),
    "two that changed places": (exchange, "child", 2, "content.arguments"),
    "erased without a receipt": (
        lambda f: change(f, "child", 2, place=Place.ERASED, salt=None, body=None),
        "child",
        2,
        None,
    ),
    "marked as erased, and still there": (
        lambda f: change(f, "child", 2, place=Place.ERASED),
        "child",
        2,
        "content.arguments",
    ),
    "erased, with its salt": (half_erased, "child", 2, "content.arguments"),
    "erased, and there again": (brought_back, None, None, None),
    "removed": (lambda f: f.tables.contents.pop(content_of(f, "child", 2)), "child", 2, None),
    "one that nobody committed to": (surplus, None, None, None),
}


@pytest.mark.parametrize(("act", "stream", "seq", "field"), CONTENTS.values(), ids=CONTENTS.keys())
def test_content_that_is_not_what_was_committed_to_is_found(
    act: Callable[[Forger], object],
    stream: str | None,
    seq: int | None,
    field: str | None,
) -> None:
    """Whatever happens to a body, its salt or its row, the receipt that committed to it says so."""
    forger = Forger()
    act(forger)

    with pytest.raises(ContentMismatchError) as found:
        verify_ledger(forger.store)

    assert (stream and forger.stream(stream), seq, field) == (
        found.value.stream,
        found.value.seq,
        found.value.field,
    )


def test_a_surplus_content_is_named() -> None:
    """Content that nobody committed to is called by its id."""
    forger = Forger()
    before = set(forger.tables.contents)
    surplus(forger)
    (added,) = set(forger.tables.contents) - before

    with pytest.raises(ContentMismatchError, match=f"no receipt names {added}"):
        verify_ledger(forger.store)


# Another value for every column that is derived: valid by itself, and not what the receipts say.
DERIVED: dict[str, dict[str, Any]] = {
    "streams": {"root": an_id("run", 9), "seq": 7, "head": DIGEST, "epoch": 2, "open": True},
    "runs": {
        "root": an_id("run", 9),
        "parent": None,
        "handoff": None,
        "attempt": 2,
        "agent": "reviewer",
        "principal": "user:eve",
        "state": RunState.FAILED,
        "started_at": NOON - timedelta(microseconds=1),
        "ended_at": None,
        "series": "quarterly",
        "session": an_id("session", 9),
    },
    "handoffs": {
        "root": an_id("run", 9),
        "parent": an_id("run", 9),
        "to": "reviewer",
        "carrier": Carrier.WORKER,
        "state": State.VERIFIED,
        "attempt": 2,
        "run": None,
        "initiated": DIGEST,
        "seq": 3,
        "scope": an_id("run", 9),
        "key": DIGEST,
        "deadline": NOON,
    },
    "stated": {
        "root": an_id("run", 9),
        "digest": DIGEST,
        "by": "user:eve",
        "at": NOON - timedelta(microseconds=1),
    },
    "cached": {"key": Digest("ef" * 32), "receipt": an_id("receipt", 9), "until": NOON},
    "keys": {
        "role": KeyRole.ROOT,
        "public_key": RUN_KEY,
        "relay": None,
        "status": KeyStatus.REVOKED,
        "principal": "user:eve",
    },
    "held_calls": {"run": an_id("run", 9), "receipt": an_id("receipt", 9)},
    "decided_calls": {"run": an_id("run", 9), "receipt": an_id("receipt", 9), "approved": False},
}
# What names a row, and what people call it.
NAMES = {
    "stated": ("item", "statement"),
    "cached": ("call", "cached result"),
    "held_calls": ("call", "held call"),
    "decided_calls": ("call", "decided call"),
}
CHANGES = [
    pytest.param(table, column, value, id=f"the {column} of one of the {table}")
    for table, columns in DERIVED.items()
    for column, value in columns.items()
]


def keeping(forger: Forger) -> CallId:
    """Return the call whose result the forger's ledger keeps; it makes one if there is none."""
    if not forger.tables.cached:
        kept(forger.scribe, forger.scribe.start())
    return next(iter(forger.tables.cached))


def waiting(forger: Forger) -> CallId:
    """Return a root's call about which somebody decided; it is held and decided about if there is none."""
    if not forger.tables.held_calls:
        root = forger.scribe.start()
        decided(forger.scribe, held(forger.scribe, root))
    return next(iter(forger.tables.held_calls))


def row_of(forger: Forger, table: str) -> tuple[str, Any]:
    """Return the key and value of the row that the tests change."""
    wanted = {
        "streams": forger.stream("child"),
        "runs": forger.child.run.id,
        "handoffs": forger.handoff,
        "stated": content_of(forger, "lead", 1),
        "cached": keeping(forger),
        "held_calls": waiting(forger),
        "decided_calls": waiting(forger),
        "keys": forger.scribe.identity.signer.key,
    }[table]
    return wanted, getattr(forger.tables, table)[wanted]


@pytest.mark.parametrize(("table", "column", "value"), CHANGES)
def test_a_derived_column_that_the_receipts_do_not_support_is_found(table: str, column: str, value: object) -> None:
    """Change any one column of what is derived, and row and column are named."""
    forger = Forger()
    key, row = row_of(forger, table)
    getattr(forger.tables, table)[key] = replace(row, **{column: value})

    with pytest.raises(DerivedStateError) as found:
        verify_ledger(forger.store)

    assert (key, None, column) == (found.value.stream, found.value.seq, found.value.field)


@pytest.mark.parametrize("table", DERIVED, ids="every column of {}".format)
def test_no_derived_column_is_left_out(table: str) -> None:
    """The table above has every column, besides the id."""
    _, row = row_of(Forger(), table)

    assert {field.name for field in fields(row)} == {NAMES.get(table, ("id",))[0], *DERIVED[table]}


@pytest.mark.parametrize("table", DERIVED, ids="a row of {}".format)
def test_a_row_that_no_receipt_supports_is_found(table: str) -> None:
    """An invented row is named."""
    forger = Forger()
    key, row = row_of(forger, table)
    invented = DIGEST if table == "keys" else an_id(key.partition("_")[0], 9)
    getattr(forger.tables, table)[invented] = replace(row, **{NAMES.get(table, ("id",))[0]: invented})

    with pytest.raises(DerivedStateError, match="no receipt supports") as found:
        verify_ledger(forger.store)

    assert invented == found.value.stream


@pytest.mark.parametrize(
    "table", ["runs", "handoffs", "stated", "cached", "keys", "held_calls", "decided_calls"], ids="a row of {}".format
)
def test_a_row_that_is_gone_is_found(table: str) -> None:
    """A removed row is counted."""
    forger = Forger()
    getattr(forger.tables, table).pop(row_of(forger, table)[0])

    what = NAMES[table][1] if table in NAMES else table.removesuffix("s")
    with pytest.raises(MissingError, match=f"1 of . {what} rows are gone"):
        verify_ledger(forger.store)


def charging(forger: Forger) -> str:
    """Let a run of the forger's ledger use something up, and return what names the row."""
    working = forger.scribe.start()
    request(forger.scribe, working, one_call(working, 1)[0])
    return next(iter(forger.tables.charged))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"used": 0}, "the row says 0 and the receipts say 1"),
        ({"unit": Unit.TOKENS}, "no receipt supports this charged account"),
        ({"account": an_id("run", 9)}, "no receipt supports this charged account"),
    ],
    ids=["less is used", "of another unit", "by somebody else"],
)
def test_what_is_used_up_cannot_be_changed(change: dict[str, Any], problem: str) -> None:
    """Whoever wants more than was granted, or wants others to have less, is found out."""
    forger = Forger()
    name = charging(forger)
    forger.tables.charged[name] = replace(forger.tables.charged[name], **change)

    with pytest.raises(DerivedStateError, match=problem):
        verify_ledger(forger.store)


def test_what_is_used_up_cannot_be_forgotten() -> None:
    """A removed row is counted."""
    forger = Forger()
    forger.tables.charged.pop(charging(forger))

    with pytest.raises(MissingError, match=r"1 of . charged account rows are gone"):
        verify_ledger(forger.store)


def a_worker_has_claimed(forger: Forger) -> HandoffId:
    """Return a handoff that a worker holds under a lease and has not begun."""
    forger.scribe.recording.offer(forger.scribe.start(), forger.child.run.agent, "x", carrier=Carrier.WORKER)
    lease = forger.store.claim(holder="worker", lease_for=timedelta(hours=1))
    assert lease is not None
    return lease.handoff


def test_a_claim_is_not_derived_from_receipts() -> None:
    """A ready handoff that a worker has claimed is as good as one that is ready: a lease is not a receipt."""
    forger = Forger()
    handoff = a_worker_has_claimed(forger)

    with forger.store.view() as view:
        assert State.CLAIMED == view.get_handoff(handoff).state
    assert 2 == verify_ledger(forger.store).handoffs


def test_a_row_that_says_claimed_without_a_lease_is_found() -> None:
    """Nobody holds it, and still its row keeps workers away: no receipt supports that."""
    forger = Forger()
    handoff = a_worker_has_claimed(forger)
    forger.tables.leases.clear()
    forger.tables.handoffs[handoff] = replace(forger.tables.handoffs[handoff], state=State.CLAIMED)

    with pytest.raises(DerivedStateError, match="the row says claimed and the receipts say ready") as found:
        verify_ledger(forger.store)

    assert (handoff, None, "state") == (found.value.stream, found.value.seq, found.value.field)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda found: replace(found, name=OTHER), "no receipt supports this remark"),
        (lambda found: replace(found, said=RemarkKind.ENDORSED), "no receipt supports this remark"),
        (lambda found: replace(found, receipt=an_id("receipt", 9)), "no receipt supports this remark"),
        (lambda _: None, "1 of 1 remark rows are gone"),
    ],
    ids=["of other bytes", "that a person answers for", "of another receipt", "that is gone"],
)
def test_a_remark_that_the_receipts_do_not_support_is_found(
    change: Callable[[Remark], Remark | None], problem: str
) -> None:
    """Whoever takes a tainted file's row away, or makes an endorsement of it, is found out."""
    forger = Forger()
    kept_ = left(forger.scribe, forger.scribe.start(), ONE)
    forged = change(forger.tables.remarks.pop(kept_.id))
    if forged is not None:
        forger.tables.remarks[forged.id] = forged

    with pytest.raises((DerivedStateError, MissingError), match=problem):
        verify_ledger(forger.store)
