"""Each kind of finding is raised by its program, not by the near miss, and names receipts that are there."""

import importlib
import warnings
from pathlib import Path
from types import ModuleType

import pytest

from batonpass.records.text import read_receipt
from batonpass.relay import desk_of
from batonpass.review.catalogue import KINDS
from tests.unit.review.reviews import findings_of, ledger_in, review_of
from website.findings import MODES, PAGE, PROGRAMS, UNRAISED, page

RAISED = sorted(KINDS.keys() - UNRAISED)


def program(code: str) -> ModuleType:
    return importlib.import_module(f"examples.findings.{code.replace('-', '_')}")


@pytest.mark.parametrize("code", RAISED)
def test_a_program_raises_it(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding says what happened, which receipts prove it, and how to go on."""
    monkeypatch.chdir(tmp_path)
    one = program(code)
    with ledger_in(tmp_path, getattr(one, "POLICY", None)) as relay, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.raises(relay)
        found = findings_of(relay, code)
        with desk_of(relay).store.view() as view:
            roots = {read_receipt(view.get_receipt(receipt)).root for finding in found for receipt in finding.receipts}

    assert found, code
    # The habit of a person is proved by what they did in other trees as well.
    own = {finding.root for finding in found}
    assert own == roots if all(finding.person is None for finding in found) else own < roots
    assert all(finding.sentence and finding.go_on and finding.receipts for finding in found)


@pytest.mark.parametrize("code", RAISED)
def test_a_near_miss_does_not(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly the same program is not found."""
    monkeypatch.chdir(tmp_path)
    one = program(code)
    with ledger_in(tmp_path, getattr(one, "POLICY", None)) as relay, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one.near_miss(relay)

        assert [] == findings_of(relay, code)


def test_every_program_belongs_to_a_kind() -> None:
    """No program is left over, and none is missing."""
    there = {path.stem.replace("_", "-") for path in PROGRAMS.glob("*.py")} - {"tools"}

    assert set(RAISED) == there


def test_the_page_is_made_from_the_code() -> None:
    """`make findings` writes the page; whoever changes a kind runs it."""
    assert page() == PAGE.read_text(encoding="utf-8")


def test_every_failure_mode_is_found_or_said_not_to_be() -> None:
    """A kind names a mode that MAST has; a mode without a kind has a reason, and one with a kind has none."""
    found = {kind.mast for kind in KINDS.values()} - {None}

    assert found == {number for number, (_, why) in MODES.items() if not why}


def test_the_worst_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings are ordered by severity, then by time."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        program("repeated-step").raises(relay)
        program("injection-path").raises(relay)
        ranks = [finding.severity.rank for finding in review_of(relay).findings]

    assert sorted(ranks) == ranks
    assert len(set(ranks)) > 1


def test_a_finding_keeps_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same evidence is the same finding, however often somebody looks."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        program("loop").raises(relay)
        keys = [[finding.key for finding in review_of(relay).findings] for _ in range(2)]

    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(keys[0])
