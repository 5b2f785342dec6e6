"""Classifies errors of PostgreSQL and its driver: is the outcome known, does another try help, what to tell people."""

from typing import Final

import psycopg

from batonpass.errors import (
    NotALedgerError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreRefusedError,
    StoreUnavailableError,
)

# The server ended the session, or the connection broke: the statement may or may not have taken effect.
_LOST: Final = ("08", "57P", "25P03", "25P04")
# Serialization failure and deadlock: it had no effect, and is likely to succeed the next time.
_TRANSIENT: Final = frozenset({"40001", "40P01"})

_MEANINGS: Final[tuple[tuple[str, type[StoreError], str], ...]] = (
    ("53100", StoreFullError, "the disk of {where} is full; nothing was recorded: free some room there"),
    ("25006", StoreReadOnlyError, "{where} takes no writes: it is a standby or set to read-only; name the primary"),
    ("42501", StoreRefusedError, "{where} does not permit this to its user: {said}; grant it, or name another user"),
    ("28", StoreRefusedError, "{where} refuses the connection: {said}; check user, password and database"),
    ("57014", StoreBusyError, "another session keeps {where} waiting; look into pg_stat_activity there"),
    ("55P03", StoreBusyError, "another session keeps {where} waiting; look into pg_stat_activity there"),
    ("40", StoreBusyError, "{where} has too many sessions in each other's way; try again"),
    ("42P01", NotALedgerError, "{where} is not a ledger, or a part of it is gone: {said}; restore it or name another"),
    ("42703", NotALedgerError, "{where} is another program's database: {said}; name another one for the ledger"),
    ("42883", NotALedgerError, "{where} is not a ledger, or a part of it is gone: {said}; restore it or name another"),
)

# libpq gives no code for a refused connection, only the server's text. FATAL means that the server is there and does
# not let us in, except for these passing states.
_NOT_NOW: Final = (
    "starting up",
    "shutting down",
    "not yet accepting connections",
    "not accepting connections",
    "in recovery mode",
    "too many clients",
    "too many connections",
    "connection slots are reserved",
    "terminating connection",
)
_REFUSED: Final = ("FATAL:", "no password supplied", "authentication failed", "does not support SSL")


def is_lost(error: psycopg.Error, connection: psycopg.Connection) -> bool:
    """Return whether the outcome of the statement is unknown, because its connection is gone."""
    if connection.closed or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None):
        return True
    return (error.sqlstate or "").startswith(_LOST)


def is_transient(error: psycopg.Error) -> bool:
    """Return whether the statement had no effect and is likely to succeed if it is repeated."""
    return error.sqlstate in _TRANSIENT


def unreached(error: psycopg.Error, where: str) -> StoreError:
    """Return the `StoreError` for a connection that could not be made."""
    said = _first_line(str(error))
    if any(words in str(error) for words in _REFUSED) and not any(words in str(error) for words in _NOT_NOW):
        return StoreRefusedError(f"{where} refuses the connection: {said}; check user, password and database")
    return StoreUnavailableError(f"{where} cannot be reached: {said}; check the server and the network")


def translated(error: psycopg.Error, where: str) -> StoreError:
    """Return the `StoreError` for an error of a statement, with a sentence for a person."""
    said = error.diag.message_primary or _first_line(str(error))
    for state, meaning, sentence in _MEANINGS:
        if (error.sqlstate or "").startswith(state):
            return meaning(sentence.format(where=where, said=said))
    return StoreUnavailableError(f"{where} could not do it: {said}; look into its log")


def _first_line(text: str) -> str:
    """Return the reason in the first line of an error, without address, number of the attempt and libpq's hints."""
    line = text.strip().partition("\n")[0]
    return line.rpartition("failed: ")[2].removeprefix("FATAL:").strip() or "no reason was given"
