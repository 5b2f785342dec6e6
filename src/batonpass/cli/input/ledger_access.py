"""Opening the chosen ledger: its store, to read it, or its relay, to act. The front door needs neither."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

import click

from batonpass.cli.input.options import given_ledger
from batonpass.cli.output.terminal import paint, tell
from batonpass.config import LEDGER, Settings, find_settings, require_own_ledger
from batonpass.errors import EditedError, InvalidValueError, StoreUnavailableError
from batonpass.store.factory import MEMORY, SQLITE, open_store
from batonpass.store.home import find_intruders
from batonpass.store.port import LedgerStore, LedgerView

if TYPE_CHECKING:
    from batonpass.relay import Relay


class _Closable(Protocol):
    def close(self) -> None: ...


_Opened = TypeVar("_Opened", bound=_Closable)


def settings() -> Settings:
    """Return the settings of the chosen ledger: by option, by environment, or the nearest one."""
    return find_settings(given_ledger())


def own_settings() -> Settings:
    """Return the same for commands that open the ledger. Raises `ForeignLedgerError` if it came with a repository."""
    found = settings()
    require_own_ledger(found)
    return found


def ledger_word() -> str | None:
    """Return the value of `--ledger` as it can be written into another program's settings."""
    given = given_ledger()
    if given is None:
        return None
    if urlsplit(given).password is not None:
        raise click.UsageError("a hook would show the password in --ledger; set BATONPASS_LEDGER instead")
    return given if "://" in given or given == MEMORY else str(Path(given).absolute())


@contextmanager
def opened_relay(*, create: bool = False) -> Iterator["Relay"]:
    """Open the chosen ledger to act; only with `create` is a missing ledger created."""
    from batonpass.relay import Relay  # noqa: PLC0415 - two thirds of the package, and most commands only read

    with _opened(lambda found: Relay.open(found.ledger, home=found.home, create=create, policy=found.policy)) as relay:
        yield relay


@contextmanager
def opened_store() -> Iterator[LedgerStore]:
    """Open the chosen ledger to read it."""
    with _opened(lambda found: open_store(found.ledger, create=False)) as store:
        yield store


@contextmanager
def opened_view() -> Iterator[LedgerView]:
    """Open the chosen ledger and a consistent view of it."""
    with opened_store() as store, viewed(store) as view:
        yield view


@contextmanager
def viewed(store: LedgerStore) -> Iterator[LedgerView]:
    """Open a consistent view. A stored value that is not valid was edited; that is not the caller's mistake."""
    try:
        with store.view() as view:
            yield view
    except InvalidValueError as error:
        raise EditedError(
            f"a stored value is not valid: {error.problem}; run `batonpass ledger verify`",
            field=error.field,
        ) from None


@contextmanager
def _opened(opening: Callable[[Settings], _Opened]) -> Iterator[_Opened]:
    found = own_settings()
    if found.home is not None and (problem := find_intruders(found.home)) is not None:
        tell(paint(f"batonpass: {problem}", "yellow"))
    try:
        opened = opening(found)
    except StoreUnavailableError:
        _point_at_sessions(found)
        raise
    with closing(opened):
        yield opened


def _point_at_sessions(found: Settings) -> None:
    """Suggest an import if nothing is recorded here and agents have kept sessions of this project."""
    is_there = bool(given_ledger() or os.environ.get(LEDGER)) or Path(found.ledger.removeprefix(SQLITE)).exists()
    if not is_there:
        suggest_import(Path.cwd().resolve())


def suggest_import(project: Path) -> None:
    """Say which agents have kept sessions of a project, if any have."""
    from batonpass.adapters.session_readers import find_kept  # noqa: PLC0415 - only where something is missing

    kept = list(find_kept(project))
    if not kept:
        return
    names = " and ".join(filter(None, (", ".join(one.title for one in kept[:-1]), kept[-1].title)))
    does = "has" if len(kept) == 1 else "have"
    name = f" {kept[0].program}` records" if len(kept) == 1 else "` lists"
    tell(paint(f"{names} {does} kept sessions of this project: `batonpass import{name} them", dim=True))
