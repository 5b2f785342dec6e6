"""Opening the ledger that is meant. Nouns import this; the front door does not, because it takes a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from batonpass.cli.options import given_ledger
from batonpass.config import Settings, find_settings
from batonpass.errors import EditedError, InvalidValueError
from batonpass.relay import Relay
from batonpass.store.port import LedgerView


def settings() -> Settings:
    """Return which ledger is meant: by option, by environment, or the nearest."""
    return find_settings(given_ledger())


@contextmanager
def opened_relay(*, create: bool = False) -> Iterator[Relay]:
    """Open the ledger that is meant; one that does not exist is made only by a command that writes a new one."""
    found = settings()
    with Relay.open(found.ledger, home=found.home, create=create) as relay:
        yield relay


@contextmanager
def viewed(relay: Relay) -> Iterator[LedgerView]:
    """Look at everything as it is now. What cannot be read there was edited, and is not a mistake of the caller."""
    try:
        with relay.store.view() as view:
            yield view
    except InvalidValueError as error:
        raise EditedError(
            f"a stored value cannot be right: {error.problem}; run `batonpass ledger verify`",
            field=error.field,
        ) from None


@contextmanager
def opened_view() -> Iterator[LedgerView]:
    """Open the ledger that is meant, for reading."""
    with opened_relay() as relay, viewed(relay) as view:
        yield view
