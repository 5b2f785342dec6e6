"""What verification says of a ledger that is whole."""

from pathlib import Path
from threading import Thread

import pytest

from batonpass import Decision
from batonpass.errors import VerificationError
from batonpass.testing import a_relay, an_attempt, observe
from tests.conftest import Postgres
from tests.verify.conftest import RichLedger


def test_all_that_work_can_leave_behind_verifies(ledger: RichLedger) -> None:
    """Grants, denials, doubt, retries, late results, withdrawals, gaps, adoption and two relays: all of it holds."""
    with ledger.open() as relay:
        seen, evidence = observe(relay), relay.verify()

    assert (len(seen.receipts), len(seen.rows["streams"])) == (evidence.receipts, evidence.streams)
    assert sum(len(receipt.parts) for receipt in seen.receipts) == evidence.contents
    opening = ("run.started", "run.rekeyed", "handoff.accepted", "key.enrolled")
    assert len(seen.receipts) + sum(len(seen.of(kind)) for kind in opening) == evidence.signatures


def test_evidence_names_what_was_not_run(ledger: RichLedger) -> None:
    """A step that needs a key is only said to have been run with that key; the end and the grants never are."""
    with ledger.open() as relay:
        without = relay.verify()
        pinned = relay.verify(root_key=without.root_key)

    assert ("root key", "end", "grants") == without.not_run
    assert ("end", "grants") == pinned.not_run
    assert {"root key", *without.steps} == {*pinned.steps}


@pytest.mark.parametrize("name", ["root_key", "relay_key"])
def test_another_key_than_the_expected_one_is_a_fault(ledger: RichLedger, name: str) -> None:
    """A ledger that hangs from another root key, or never enrolled the relay, is not the one that is expected."""
    with ledger.open() as relay, pytest.raises(VerificationError) as fault:
        relay.verify(**{name: "ab" * 32})

    assert ("verify.recorder", name) == (fault.value.code, fault.value.facts["field"])


def test_an_older_copy_verifies(ledger: RichLedger) -> None:
    """The end is not claimed: a ledger as it was before its last receipts is whole, and the evidence says `end`."""
    with ledger.open() as relay:
        whole = relay.verify()
    found = []
    for copy in ledger.older:
        ledger.restore(copy)
        with ledger.open() as relay:
            evidence = relay.verify()
        found.append(evidence.receipts)
        assert "end" in evidence.not_run

    assert sorted({*found, whole.receipts}) == [*found, whole.receipts]


@pytest.mark.parity("verify-reads-one-view")
def test_others_may_write_meanwhile(tmp_path: Path) -> None:
    """Verification reads one moment: whatever is written while it reads, it finds nothing wrong."""
    with a_relay(tmp_path / "ledger.db") as relay:

        def work() -> None:
            for number in range(40):
                with relay.start(f"Task {number}", by="user:ana") as run, run.hand_off("editor", "Edit") as child:
                    child.record(Decision("so"))

        writer = Thread(target=work)
        writer.start()
        counts = []
        while writer.is_alive():
            counts.append(relay.verify().receipts)
        writer.join()

        assert counts == sorted(counts)
        assert 1 + 40 * 6 == relay.verify().receipts


@pytest.mark.postgres
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("UPDATE streams SET agent = 'mallory' WHERE agent = 'editor'", id="a row"),
        pytest.param("UPDATE receipts SET signature = sha256(signature)", id="a signature"),
        pytest.param("UPDATE receipts SET stream = stream || 'x' WHERE seq = 2", id="a stream"),
        pytest.param("DELETE FROM receipts WHERE seq = 2 AND stream LIKE 'run%'", id="receipts"),
        pytest.param("UPDATE receipts SET contents = contents || '\\x00'::bytea", id="contents"),
    ],
)
def test_a_database_on_a_server_is_verified_by_the_same_steps(postgres: Postgres, damage: str) -> None:
    """On PostgreSQL the same ledger is whole, and what is changed in it is found."""
    with postgres.database() as url, a_relay(url) as relay:
        an_attempt(relay, may=["read:**"]).record(Decision("so"))
        assert 5 == relay.verify().receipts

        postgres.execute(damage, url.rpartition("/")[2])

        with pytest.raises(VerificationError):
            relay.verify()
