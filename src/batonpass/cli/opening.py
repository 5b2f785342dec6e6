"""Opening the ledger that is meant. Nouns import this; the front door does not, because it takes a while."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from batonpass.cli.options import given_ledger
from batonpass.cli.printing import paint, tell
from batonpass.config import LEDGER, Settings, find_settings
from batonpass.errors import EditedError, InvalidValueError, StoreUnavailableError
from batonpass.relay import Relay
from batonpass.store.home import find_intruders
from batonpass.store.opening import SQLITE
from batonpass.store.port import LedgerView

IMPORT_HINT: Final = "Claude Code has kept sessions of this project: `batonpass import claude-code` records them"


def settings() -> Settings:
    """Return which ledger is meant: by option, by environment, or the nearest."""
    return find_settings(given_ledger())


@contextmanager
def opened_relay(*, create: bool = False) -> Iterator[Relay]:
    """Open the ledger that is meant; one that does not exist is made only by a command that writes a new one."""
    found = settings()
    if found.home is not None and (problem := find_intruders(found.home)) is not None:
        tell(paint(f"batonpass: {problem}", "yellow"))
    with ExitStack() as stack:
        try:
            relay = stack.enter_context(Relay.open(found.ledger, home=found.home, create=create, policy=found.policy))
        except StoreUnavailableError:
            _point_at_transcripts(found)
            raise
        yield relay


def _point_at_transcripts(found: Settings) -> None:
    """Say how to begin where nothing is recorded and Claude Code has worked."""
    from batonpass.adapters.claude_code.places import find_transcripts  # noqa: PLC0415 - only where something is missing

    is_there = bool(given_ledger() or os.environ.get(LEDGER)) or Path(found.ledger.removeprefix(SQLITE)).exists()
    if not is_there and next(find_transcripts(Path.cwd().resolve()), None) is not None:
        tell(paint(IMPORT_HINT, dim=True))


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
