"""Whose changes a commit holds: followed by digests, and by time where nobody watched."""

from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.accounts.blame.committed_runs import Sides, find_committed_runs, find_touched
from batonpass.attribution.changes.change import digest_of
from batonpass.errors import NotFoundError
from batonpass.store.port import LedgerView
from tests.unit.accounts.shop import ANA, Shop, delete_file, write_file

# A capital letter is a run that writes that text, a small one somebody whom nobody watches; "-" deletes, "|" commits.


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a shop without files."""
    monkeypatch.chdir(tmp_path)
    return Shop(tmp_path)


@pytest.mark.parametrize(
    ("story", "staged", "expected"),
    [
        pytest.param("o|A", "A", "A", id="who wrote it"),
        pytest.param("o|ABC", "C", "CBA", id="all on the way there"),
        pytest.param("o|ABC", "B", "BA", id="none after it was staged"),
        pytest.param("oA|BC", "C", "CB", id="none before the parent"),
        pytest.param("o|AbC", "C", "CA", id="also before a gap"),
        pytest.param("o|Ab", "b", "A", id="also if somebody had the last word"),
        pytest.param("oAb|C", "C", "C", id="not beyond what was committed by hand"),
        pytest.param("o|AoB", "B", "B", id="not what was taken back"),
        pytest.param("o|AOb", "b", "", id="nobody if all was taken back"),
        pytest.param("oA|", "A", "", id="nobody if nothing was done"),
        pytest.param("|A", "A", "A", id="a new file"),
        pytest.param("|A-B", "B", "B", id="a file that was made twice"),
        pytest.param("o|A-", None, "-A", id="a deleted file"),
        pytest.param("o|ABAC", "A", "ABA", id="the last time that it was so"),
    ],
)
def test_runs_are_followed_from_what_is_committed_to_the_parent(
    shop: Shop, story: str, staged: str | None, expected: str
) -> None:
    """Every run on the way from the parent's bytes to those of the commit is named, and nobody else."""
    before: str | None = None
    since = shop.clock.now()
    now: str | None = None
    runs: dict[str, str] = {}
    for what in story:
        shop.clock.tick()
        if what == "|":
            before, since = now, shop.clock.now()
        elif what.islower():
            now = what
            shop.path().write_text(what, encoding="utf-8")
        else:
            run = shop.relay.start(f"Do {what}", by=ANA)
            runs[run.id] = what
            now = None if what == "-" else what.lower() if what == "O" else what
            if now is None:
                run.call(delete_file, "a.py")
            else:
                run.call(write_file, "a.py", now)
    sides = Sides(*(None if text is None else digest_of(text.encode()) for text in (before, staged)))

    with shop.viewed() as view:
        found = find_committed_runs(view, shop.folder, {"a.py": sides}, since=since)

    assert expected == "".join(runs[run] for run in found)


def test_left_out_long_ago_is_named_when_it_is_committed(shop: Shop) -> None:
    """What was written before the parent and committed only now is followed by its digest, not by its time."""
    run = shop.relay.start("Write", by=ANA)
    run.call(write_file, "a.py", "a")
    since = shop.clock.tick(timedelta(days=1))

    with shop.viewed() as view:
        found = find_committed_runs(view, shop.folder, {"a.py": Sides(None, digest_of(b"a"))}, since=since)

    assert [run.id] == found


def test_only_recorded_paths_are_touched(shop: Shop) -> None:
    """Files that no call wrote cost one question each, and their bytes are not read."""
    shop.relay.start("Write", by=ANA).call(write_file, "a.py", "a")

    with shop.viewed() as view:
        assert ["a.py"] == list(find_touched(view, shop.folder, ["a.py", "b.py"]))


def test_a_change_whose_receipt_is_gone_names_nobody(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody deleted a receipt: that is for the verifier to tell, and no reason to fail."""
    shop.relay.start("Write", by=ANA).call(write_file, "a.py", "a")

    with shop.viewed() as view:

        def gone(_: object, receipt: str) -> None:
            raise NotFoundError("receipt", receipt)

        monkeypatch.setattr(type(view), "get_receipt", gone)
        assert [] == find_committed_runs(view, shop.folder, {"a.py": Sides(None, digest_of(b"a"))}, since=None)


def test_the_view_is_asked_by_path(shop: Shop) -> None:
    """A ledger with many other files answers from an index: only the path's own changes are read."""
    run = shop.relay.start("Write", by=ANA)
    for number in range(20):
        run.call(write_file, f"other{number}.py", "x")
    run.call(write_file, "a.py", "a")
    with shop.viewed() as view:
        counting = Counting(view)
        find_committed_runs(counting, shop.folder, {"a.py": Sides(None, digest_of(b"a"))}, since=None)  # type: ignore[arg-type]

    assert 1 == counting.receipts


class Counting:
    """A view that counts the receipts that it is asked for."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self.receipts = 0
        self.find_touches = view.find_touches

    def get_receipt(self, receipt: object) -> object:
        """Count, and return it."""
        self.receipts += 1
        return self._view.get_receipt(receipt)  # type: ignore[arg-type]
