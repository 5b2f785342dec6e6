"""Passphrases: read only from the terminal, so that none ever appears in a process list or a file."""

import getpass
import warnings
from typing import Final

import click

from batonpass.cli.output.terminal import tell
from batonpass.errors import KeyRefusedError
from batonpass.signing.approver_key import SHORTEST_PASSPHRASE, Approver, ApproverFile

_TRIES: Final = 3


def new_passphrase(whose: str) -> str:
    """Return a passphrase that was typed twice. Raises `KeyRefusedError` if it is too short or differs."""
    first = _read(f"New passphrase for {whose}, at least {SHORTEST_PASSPHRASE} characters: ")
    if len(first) < SHORTEST_PASSPHRASE:
        raise KeyRefusedError(f"a passphrase has at least {SHORTEST_PASSPHRASE} characters; no key was made")
    if first != _read("The same passphrase again: "):
        raise KeyRefusedError("the two passphrases differ; no key was made")
    return first


def unlock(file: ApproverFile) -> Approver:
    """Ask for the passphrase and return the approver with their key. Raises `KeyRefusedError` after three tries."""
    for left in range(_TRIES - 1, -1, -1):
        try:
            return file.unlock(_read(f"Passphrase of {file.principal}: "))
        except KeyRefusedError as refused:
            if left == 0:
                raise
            tell(f"{refused}; {left} more {'tries' if left > 1 else 'try'}")
    raise AssertionError("the last try returns or raises")


def _read(prompt: str) -> str:
    with warnings.catch_warnings():
        # If the terminal cannot hide the input, nothing is read.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(prompt)
        except EOFError:
            raise click.Abort from None
        except getpass.GetPassWarning:
            raise click.UsageError("a passphrase is read from a terminal, and this one cannot hide the input") from None
