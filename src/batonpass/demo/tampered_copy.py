"""Tampering with copies of a ledger, as an attacker with a shell and knowledge of the tables would."""

import shutil
from pathlib import Path
from typing import Final

import apsw

from batonpass.model.base.ids import RunId
from batonpass.store.sql import Queries

_QUERIES: Final = Queries("batonpass.demo")


def copy_ledger(ledger: Path, to: Path) -> Path:
    """Copy a ledger that nobody uses, with its home directory, and return the file of the copy."""
    shutil.copytree(ledger.parent, to / ledger.parent.name)
    copy = to / ledger.parent.name / ledger.name
    # Opening and closing it for writing moves the write-ahead log into the file.
    apsw.Connection(str(copy)).close()
    return copy


def change_byte(ledger: Path, text: bytes, at: int, to: bytes) -> int:
    """Change one byte of a text in the file and return its offset. Raises `ValueError` if the text is not there."""
    data = ledger.read_bytes()
    offset = data.index(text) + at
    with ledger.open("r+b") as file:
        file.seek(offset)
        file.write(to)
    return offset


def delete_tree(ledger: Path, root: RunId) -> None:
    """Delete a whole tree of runs and every trace of it, as carefully as an intruder would."""
    connection = apsw.Connection(str(ledger))
    with connection:
        connection.execute(_QUERIES["delete_tree"], {"root": root})
    connection.close()
