"""Paths: which recorded changes they find, as long as the contents are kept."""

import json
import secrets
from collections.abc import Sequence

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import StaleHeadError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import sign_receipt
from batonpass.ledger.position import Working
from batonpass.model.base.ids import ContentId, StreamId
from batonpass.model.bodies.body import Changed, ToolCompleted
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.ledger.entry import Entry, Touch
from batonpass.store.port import LedgerStore, Touched
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.support import NOW, WithScribe, an_entry, head_of


def a_change(path: str, number: int = 1, lines: str = "") -> Content:
    """Return the document of a change to a file."""
    document = json.dumps({"lines": lines, "path": path}, ensure_ascii=False)
    return new_content(f"change.{number}", document, NOW, media_type="application/json")


def a_changing_call(scribe: Scribe, working: Working, changes: Sequence[Content]) -> Entry:
    """Request a call, and return its signed outcome with changes, not yet appended."""
    call = scribe.recording.request(working, "write_file", "{}")
    signer, _ = scribe.run_keys.get(working.run.id)
    contents = (new_content("result", "ok", NOW), *changes)
    draft = Draft(
        stream=StreamId(working.run.id),
        body=ToolCompleted(
            run=working.run.id,
            call=call,
            changes=tuple(Changed(change=change.ref.id) for change in changes),
        ),
        root=working.run.root,
        cosigner=signer,
        contents=contents,
    )
    return Entry(
        signed=sign_receipt(draft, head_of(scribe.store, working), scribe.identity, NOW),
        contents=contents,
        touches=tuple(Touch(path=json.loads(change.body)["path"], content=change.ref.id) for change in changes),
    )


def changed(scribe: Scribe, working: Working, *paths: str) -> list[Touched]:
    """Record a call that changed files, and return the rows that their paths must find."""
    entry = a_changing_call(scribe, working, [a_change(path, number) for number, path in enumerate(paths, 1)])
    scribe.store.append([entry])
    receipt = entry.signed.receipt.id
    return [Touched(path=touch.path, receipt=receipt, content=touch.content) for touch in entry.touches]


def touches(store: LedgerStore, path: str | None = None) -> list[Touched]:
    """Return the rows of a path."""
    with store.view() as view:
        return list(view.find_touches(path))


def by_content(found: list[Touched]) -> list[Touched]:
    """Return rows sorted, because no store promises an order."""
    return sorted(found, key=lambda touched: touched.content)


class Touching(WithScribe):
    """Paths: which recorded changes they find, as long as the contents are kept."""

    def test_a_change_is_found_under_its_path(self, store: LedgerStore, scribe: Scribe) -> None:
        """A path finds the receipts and the contents of its changes."""
        one, other = changed(scribe, scribe.start(), "src/total.py", "src/tax.py")

        assert [one] == touches(store, "src/total.py")
        assert [other] == touches(store, "src/tax.py")
        assert [] == touches(store, "total.py")

    def test_changes_come_latest_first(self, store: LedgerStore, scribe: Scribe) -> None:
        """The latest change of a path is found first, whichever run made it."""
        runs = [scribe.start() for _ in range(3)]
        recorded = [
            touched for run in (*runs, *runs) for touched in changed(scribe, run, "src/total.py", f"{run.run.id}")
        ]

        assert [touched for touched in recorded[::-1] if touched.path == "src/total.py"] == touches(
            store, "src/total.py"
        )
        assert by_content(recorded) == by_content(touches(store))

    def test_one_call_can_change_a_path_twice(self, store: LedgerStore, scribe: Scribe) -> None:
        """Every change is found, also if one receipt records several of one path."""
        recorded = changed(scribe, scribe.start(), "a", "b", "a")

        assert by_content([recorded[0], recorded[2]]) == by_content(touches(store, "a"))

    def test_touches_are_found_by_content(self, store: LedgerStore, scribe: Scribe) -> None:
        """A lookup by contents returns the paths of those that are changes."""
        first, second, _ = changed(scribe, scribe.start(), "a", "b", "c")
        with store.view() as view:
            unknown = ContentId("content_" + "0" * 26)
            found = list(view.find_touches_of([second.content, unknown, first.content]))

        assert by_content([first, second]) == by_content(found)

    @pytest.mark.parametrize(
        "path",
        ["Größe/日本/🐍.py", "a b/'\"\\%_[*].py", "/" + secrets.token_hex(4_000)],
        ids=["of any script", "with signs that mean something elsewhere", "longer than a row of an index"],
    )
    def test_any_path_will_do(self, store: LedgerStore, scribe: Scribe, path: str) -> None:
        """A path is found exactly as it was given."""
        recorded = changed(scribe, scribe.start(), path)

        assert recorded == touches(store, path)
        with store.view() as view:
            assert [path] == list(view.find_touched_paths(path))

    def test_paths_are_found_by_their_ending(self, store: LedgerStore, scribe: Scribe) -> None:
        """A path is found by its last whole names; each path comes once, sorted by code points."""
        lead = scribe.start()
        changed(
            scribe, lead, "z/x_y.py", "x_y.py", "/é/x_y.py", "x_y.py/z", "z/xxy.py", "z/X_y.py", "zx_y.py", "x_y.py"
        )
        with store.view() as view:
            found = {ending: list(view.find_touched_paths(ending)) for ending in ("x_y.py", "z/x_y.py", "y.py", "%")}

        assert {
            "x_y.py": ["/é/x_y.py", "x_y.py", "z/x_y.py"],
            "z/x_y.py": ["z/x_y.py"],
            "y.py": [],
            "%": [],
        } == found

    def test_an_erased_change_is_found_no_more(self, store: LedgerStore, scribe: Scribe) -> None:
        """The path of an erased change is gone too; the receipt's other changes stay."""
        one, other, again = changed(scribe, scribe.start(), "a", "b", "a")
        with store.view() as view:
            before = list(view.find_touches("b"))
            scribe.erasure.erase([one.content, other.content], by=ANA, reason="asked to")
            after = list(view.find_touches("b"))

        assert [other] == before == after
        assert ([], [again]) == (touches(store, "b"), touches(store, "a"))
        with store.view() as view:
            assert [] == list(view.find_touched_paths("b"))
            assert [again] == list(view.find_touches_of([one.content, other.content, again.content]))

    def test_a_refused_entry_leaves_no_path_behind(self, store: LedgerStore, scribe: Scribe) -> None:
        """A path is written with its receipt, or not at all."""
        lead = scribe.start()
        entry = a_changing_call(scribe, lead, [a_change("a")])
        stale = an_entry(scribe, lead, head_of(store, lead))

        with pytest.raises(StaleHeadError):
            store.append([entry, stale])
        assert [] == touches(store)

    def test_an_entry_that_is_written_twice_is_found_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """Appending the same bytes again is a success and adds nothing."""
        entry = a_changing_call(scribe, scribe.start(), [a_change("a")])
        store.append([entry])
        store.append([entry])

        assert 1 == len(touches(store, "a"))

    def test_a_ledger_with_changes_verifies(self, store: LedgerStore, scribe: Scribe) -> None:
        """Paths match the documents that they come from: small, large and erased ones."""
        lead = scribe.start()
        store.append([a_changing_call(scribe, lead, [a_change("a"), a_change("b", 2, "x" * 100_000)])])
        (erased,) = changed(scribe, lead, "a")
        scribe.erasure.erase([erased.content], by=ANA, reason="asked to")
        store.sequence()

        assert 1 == verify_ledger(store).erased
