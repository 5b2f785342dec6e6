"""The tail of a ledger in the hands of a test."""

from batonpass.store.sqlite.store import SqliteStore


def settle(store: SqliteStore) -> None:
    """Put everything into the indexes, so that no row is found by looking at those that came last."""
    store._write(store._tail.settle)
