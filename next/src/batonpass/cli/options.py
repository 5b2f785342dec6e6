"""What every command takes, and how it opens a ledger: to read it, or to act on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate

import click
from msgspec import Struct

from batonpass.api.opening import open_port, open_store
from batonpass.api.port import Port
from batonpass.cli.render import Screen
from batonpass.errors import StoreError
from batonpass.place import Place, find_place
from batonpass.store.port import Store
from batonpass.system import RealSystem


class Session(Struct, frozen=True):
    """What a command was given beside its own options."""

    ledger: str | None
    screen: Screen

    def find_place(self) -> Place:
        """Return where the ledger is. Raises `StoreError` if there is none."""
        return find_place(self.ledger, create=False)

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """Open the ledger to read it: no key is needed, and none is made."""
        store = open_store(self.find_place(), RealSystem())
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def acting(self, *, create: bool = False) -> Iterator[Port]:
        """Open the ledger to act on it, as the relay of this machine. Raises `StoreError` if it was begun elsewhere."""
        if not create and not self.find_place().directory.exists():
            detail = "this ledger was begun elsewhere, and its keys are not here: it can be read, and acted on there"
            raise StoreError(detail, code="store.key")
        port = open_port(self.ledger, create=create)
        try:
            yield port
        finally:
            port.close()


def common(function: Callable[Concatenate[Session, ...], None]) -> Callable[..., None]:
    """Give a command `--ledger`, `--json` and `--quiet`, as a session in front of its own parameters."""

    @click.option("--ledger", metavar="URL|FILE", help="The ledger; else that of this repository or folder.")
    @click.option("--json", "is_json", is_flag=True, help="Print one JSON object, also for an error.")
    @click.option("--quiet", "is_quiet", is_flag=True, help="Print the answer alone; of an act, nothing.")
    @wraps(function)
    def run(*, ledger: str | None, is_json: bool, is_quiet: bool, **kwargs: Any) -> None:  # noqa: ANN401
        function(Session(ledger, Screen(is_json=is_json, is_quiet=is_quiet)), **kwargs)

    return run
