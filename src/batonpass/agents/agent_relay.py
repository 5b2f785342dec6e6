"""The relay of native agents: a given one, or that of this directory."""

from typing import Final, TypeAlias

from batonpass.aio import AsyncRelay
from batonpass.default import default_relay
from batonpass.relay import Relay
from batonpass.store.port import LedgerStore


class StoreHere:
    """The store of this directory's ledger, by name: it is opened when something reads it, and not before."""


state_store: Final = StoreHere()

Place: TypeAlias = Relay | AsyncRelay | LedgerStore | StoreHere | None


def shown_place(place: Place) -> str:
    """Return in words whose ledger it is, without opening one."""
    if isinstance(place, Relay | AsyncRelay):
        return place.store.url
    return "this directory" if place is None or isinstance(place, StoreHere) else place.url


def relay_of(place: Relay | AsyncRelay | None) -> AsyncRelay:
    """Return the given relay, or that of this directory, as an `AsyncRelay`. It may block."""
    if isinstance(place, AsyncRelay):
        return place
    return AsyncRelay(default_relay() if place is None else place)


def store_of(place: Place) -> LedgerStore:
    """Return the given store, or that of the given relay, or that of this directory. It may block."""
    if isinstance(place, Relay | AsyncRelay):
        return place.store
    return default_relay().store if place is None or isinstance(place, StoreHere) else place
