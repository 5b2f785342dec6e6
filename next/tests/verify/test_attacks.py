"""What an attacker without keys tries on the file: it is refused, or it is on the list of what is not claimed."""

from collections.abc import Callable
from typing import Any

import apsw
import pytest
from msgspec import msgpack

from batonpass import Relay
from batonpass.errors import StoreError, VerificationError
from batonpass.testing import a_relay, observe
from tests.verify.conftest import RichLedger

Attack = Callable[[apsw.Connection], None]


def contents_of(connection: apsw.Connection, kind: str, part: str) -> tuple[int, dict[str, Any]]:
    """Return the position and the packed parts of the first receipt of a kind that has a part."""
    for position, contents in connection.execute(
        "SELECT position, contents FROM receipts WHERE CAST(payload AS TEXT) LIKE ? AND contents IS NOT NULL",
        (f'%"kind":"{kind}"%',),
    ):
        parts: dict[str, Any] = msgpack.decode(contents)
        if part in parts:
            return position, parts
    raise AssertionError(kind, part)


def put_contents(connection: apsw.Connection, position: int, parts: dict[str, Any]) -> None:
    connection.execute("UPDATE receipts SET contents = ? WHERE position = ?", (msgpack.encode(parts), position))


def reword(connection: apsw.Connection) -> None:
    """Let a person have given another reason."""
    position, parts = contents_of(connection, "handoff.retried", "reason")
    put_contents(connection, position, {**parts, "reason": (parts["reason"][0], b"I was told to")})


def move_words_into_the_salt(connection: apsw.Connection) -> None:
    """Cut the beginning off a task: salt and words are digested as one."""
    position, parts = contents_of(connection, "handoff.initiated", "task")
    salt, task = parts["task"]
    put_contents(connection, position, {**parts, "task": (salt + task[:4], task[4:])})


def erase(connection: apsw.Connection) -> None:
    """Erase why a call was denied."""
    position, parts = contents_of(connection, "tool.denied", "reason")
    put_contents(connection, position, {**parts, "reason": None})


def swap_contents(connection: apsw.Connection) -> None:
    """Let two calls have had each other's results."""
    first, one = contents_of(connection, "tool.completed", "result")
    ((second, other),) = connection.execute(
        "SELECT position, contents FROM receipts WHERE contents IS NOT NULL AND position > ? AND CAST(payload AS TEXT) "
        """LIKE '%"kind":"tool.completed"%' ORDER BY position LIMIT 1""",
        (first,),
    )
    put_contents(connection, first, msgpack.decode(other))
    put_contents(connection, second, one)


def rewrite_payload(old: bytes, new: bytes) -> Attack:
    """Return what replaces some signed bytes, wherever they stand."""

    def attack(connection: apsw.Connection) -> None:
        for position, payload in list(connection.execute("SELECT position, payload FROM receipts")):
            changed = payload.replace(old, new)
            connection.execute("UPDATE receipts SET payload = ? WHERE position = ?", (changed, position))

    return attack


def run(*statements: str) -> Attack:
    """Return what executes some statements."""

    def attack(connection: apsw.Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    return attack


def take_from_another_ledger(connection: apsw.Connection) -> None:
    """Let the receipts of another ledger, with other keys, stand in the place of these."""
    with a_relay("other.db") as relay, relay.start("Mine", by="user:eve"):
        pass
    connection.execute("ATTACH 'other.db' AS other")
    for table in ("receipts", "streams", "ledger"):
        connection.execute(f"DELETE FROM main.{table}")
        connection.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
    connection.execute("DETACH other")


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        pytest.param(reword, "verify.content", id="another reason"),
        pytest.param(move_words_into_the_salt, "verify.content", id="the beginning of a task in its salt"),
        pytest.param(erase, "verify.content", id="a reason is gone"),
        pytest.param(swap_contents, "verify.content", id="results of two calls"),
        pytest.param(
            run("UPDATE receipts SET contents = x'80' WHERE contents IS NULL"), "verify.content", id="an empty map"
        ),
        pytest.param(rewrite_payload(b"user:ana", b"user:eve"), "verify.signature", id="another principal"),
        pytest.param(
            rewrite_payload(b'"mode":"enforced"', b'"mode":"observed"'), "verify.signature", id="another mode"
        ),
        pytest.param(rewrite_payload(b'{"_type"', b'{ "_type"'), "verify.bytes", id="a space"),
        pytest.param(
            run("UPDATE receipts SET cosignature = signature"), "verify.signature", id="a second signature for all"
        ),
        pytest.param(run("UPDATE receipts SET cosignature = NULL"), "verify.signature", id="no second signature"),
        pytest.param(
            run("UPDATE receipts SET signature = CAST(signature || x'00' AS BLOB)"),
            "verify.signature",
            id="a longer signature",
        ),
        pytest.param(
            run('DELETE FROM receipts WHERE CAST(payload AS TEXT) LIKE \'%"kind":"tool.denied"%\''),
            "verify.order",
            id="no denials",
        ),
        pytest.param(
            run(
                'DELETE FROM receipts WHERE CAST(payload AS TEXT) LIKE \'%"kind":"tool.denied"%\'',
                "CREATE TEMP TABLE kept AS SELECT * FROM receipts ORDER BY position",
                "DELETE FROM receipts",
                "INSERT INTO receipts SELECT rowid, stream, seq, payload, signature, cosignature, contents FROM kept",
            ),
            "verify.chain",
            id="no denials, and positions counted anew",
        ),
        pytest.param(run("DELETE FROM open_calls"), "verify.rows", id="nothing in doubt"),
        pytest.param(run("DELETE FROM revoked"), "verify.rows", id="nothing revoked"),
        pytest.param(run("UPDATE touches SET target = upper(target)"), "verify.rows", id="lines without a maker"),
        pytest.param(
            run("UPDATE streams SET agent = 'mallory' WHERE agent = 'editor'"), "verify.rows", id="another agent"
        ),
        pytest.param(run("UPDATE handoffs SET state = 'completed'"), "verify.rows", id="all is done"),
        pytest.param(run("UPDATE requests SET fingerprint = request"), "verify.rows", id="another fingerprint"),
        pytest.param(run("DELETE FROM requests"), "verify.rows", id="requests that would be made twice"),
        pytest.param(
            run("UPDATE streams SET recorder = (SELECT max(id) FROM streams WHERE id LIKE 'relay%')"),
            "verify.rows",
            id="another relay may go on with each run",
        ),
        pytest.param(take_from_another_ledger, "store.key", id="the receipts of another ledger"),
        pytest.param(
            run("CREATE TRIGGER t AFTER INSERT ON receipts BEGIN DELETE FROM open_calls; END"),
            "store.not_a_ledger",
            id="a trigger",
        ),
        pytest.param(
            run(
                "DROP VIEW stored",
                "CREATE VIEW stored AS SELECT position AS place, stream, seq, payload, signature, cosignature, NULL AS "
                "contents FROM receipts",
            ),
            "store.not_a_ledger",
            id="a view that shows readers something else",
        ),
        pytest.param(run("CREATE TABLE notes (x)"), "store.not_a_ledger", id="a table beside"),
        pytest.param(run("DELETE FROM receipts"), "store.not_a_ledger", id="nothing at all"),
    ],
)
def test_an_attack_without_keys_is_found(ledger: RichLedger, attack: Attack, code: str) -> None:
    """Whatever was signed, stored beside it or derived from it: changed without keys, it is refused and named."""
    connection = apsw.Connection(str(ledger.path))
    attack(connection)
    connection.close()

    with pytest.raises((VerificationError, StoreError)) as fault, ledger.open() as relay:
        relay.verify()

    assert code == fault.value.code


def test_a_trigger_in_an_open_ledger_is_found(ledger: RichLedger) -> None:
    """The schema is compared when a ledger is verified too, and not only when it is opened."""
    with ledger.open() as relay:
        connection = apsw.Connection(str(ledger.path))
        connection.execute("CREATE TRIGGER t AFTER INSERT ON receipts BEGIN DELETE FROM open_calls; END")
        connection.close()

        with pytest.raises(StoreError) as refusal:
            relay.verify()

    assert "store.not_a_ledger" == refusal.value.code


def test_a_tree_that_nothing_names_can_be_missing(ledger: RichLedger) -> None:
    """Not claimed: a whole tree is gone, positions are counted anew and its rows too, and the rest verifies."""
    with ledger.open() as relay:
        gone = next(info for info in relay.runs() if info.agent == "owner")
        seen = observe(relay)
    root_of = {row[0]: row[1] for row in seen.rows["streams"]}
    kept = sum(root_of[receipt.stream] != gone.id for receipt in seen.receipts)
    connection = apsw.Connection(str(ledger.path))
    tree = f"IN (SELECT id FROM streams WHERE root = '{gone.id}')"
    run(
        f"DELETE FROM receipts WHERE stream {tree}",
        "CREATE TEMP TABLE kept AS SELECT * FROM receipts ORDER BY position",
        "DELETE FROM receipts",
        "INSERT INTO receipts SELECT rowid, stream, seq, payload, signature, cosignature, contents FROM kept",
        *(f"DELETE FROM {table} WHERE stream {tree}" for table in ("requests", "touches")),
        f"DELETE FROM open_calls WHERE run {tree}",
        f"DELETE FROM handoffs WHERE root = '{gone.id}'",
        f"DELETE FROM streams WHERE root = '{gone.id}'",
    )(connection)
    connection.close()

    with ledger.open() as relay:
        evidence = relay.verify()

    assert (kept, True) == (evidence.receipts, "end" in evidence.not_run)


def test_a_ledger_of_other_keys_is_found_by_the_root_key(ledger: RichLedger) -> None:
    """Made anew from its first receipt, a ledger is whole in itself: only the root key that is kept apart tells."""
    with ledger.open() as relay:
        root_key = relay.verify().root_key
    with a_relay("other.db") as relay, relay.start("Mine", by="user:eve"):
        pass
    with Relay.open("other.db") as forged:
        assert ("root key", "end", "grants") == forged.verify().not_run

        with pytest.raises(VerificationError) as fault:
            forged.verify(root_key=root_key)

    assert "root_key" == fault.value.facts["field"]
