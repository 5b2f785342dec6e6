"""Opening the ledger that is meant: its store, to read it, or its relay, to act. The front door needs neither."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from batonpass.cli.input.options import given_ledger
from batonpass.cli.output.terminal import paint, tell
from batonpass.config import LEDGER, Settings, find_settings
from batonpass.errors import EditedError, InvalidValueError, StoreUnavailableError
from batonpass.store.factory import SQLITE, open_store
from batonpass.store.home import find_intruders
from batonpass.store.port import LedgerStore, LedgerView

if TYPE_CHECKING:
    from batonpass.relay import Relay


class _Closable(Protocol):
    def close(self) -> None: ...


_Opened = TypeVar("_Opened", bound=_Closable)

IMPORT_HINT: Final = "Claude Code has kept sessions of this project: `batonpass import claude-code` records them"


def settings() -> Settings:
    """Return which ledger is meant: by option, by environment, or the nearest."""
    return find_settings(given_ledger())


@contextmanager
def opened_relay(*, create: bool = False) -> Iterator["Relay"]:
    """Open the ledger that is meant, to act; only a command that writes a new one makes one that does not exist."""
    from batonpass.relay import Relay  # noqa: PLC0415 - two thirds of the package, and most commands only read

    with _opened(lambda found: Relay.open(found.ledger, home=found.home, create=create, policy=found.policy)) as relay:
        yield relay


@contextmanager
def opened_store() -> Iterator[LedgerStore]:
    """Open the ledger that is meant, to read it."""
    with _opened(lambda found: open_store(found.ledger, create=False)) as store:
        yield store


@contextmanager
def opened_view() -> Iterator[LedgerView]:
    """Open the ledger that is meant, and look at everything as it is now."""
    with opened_store() as store, viewed(store) as view:
        yield view


@contextmanager
def viewed(store: LedgerStore) -> Iterator[LedgerView]:
    """Look at everything as it is now. What cannot be read there was edited, and is not a mistake of the caller."""
    try:
        with store.view() as view:
            yield view
    except InvalidValueError as error:
        raise EditedError(
            f"a stored value cannot be right: {error.problem}; run `batonpass ledger verify`",
            field=error.field,
        ) from None


@contextmanager
def _opened(opening: Callable[[Settings], _Opened]) -> Iterator[_Opened]:
    found = settings()
    if found.home is not None and (problem := find_intruders(found.home)) is not None:
        tell(paint(f"batonpass: {problem}", "yellow"))
    try:
        opened = opening(found)
    except StoreUnavailableError:
        _point_at_transcripts(found)
        raise
    with closing(opened):
        yield opened


def _point_at_transcripts(found: Settings) -> None:
    """Say how to begin where nothing is recorded and Claude Code has worked."""
    from batonpass.adapters.claude_code.transcripts.transcript_places import find_transcripts  # noqa: PLC0415 - only where something is missing

    is_there = bool(given_ledger() or os.environ.get(LEDGER)) or Path(found.ledger.removeprefix(SQLITE)).exists()
    if not is_there and next(find_transcripts(Path.cwd().resolve()), None) is not None:
        tell(paint(IMPORT_HINT, dim=True))
