"""A ledger on each store, and others on the same one."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from batonpass.testing.ledgers import Ledger, a_ledger

Opener = Callable[..., Ledger]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a ledger that nobody has begun."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    address: str = request.getfixturevalue("postgres_url")
    return address


@pytest.fixture
def open_ledger(url: str) -> Iterator[Opener]:
    """Return what opens the ledger, as another process would."""
    with ExitStack() as stack:

        def opened(**how: object) -> Ledger:
            ledger = a_ledger(url, **how)  # type: ignore[arg-type] # as `a_ledger` takes it
            stack.enter_context(closing(ledger.store))
            return ledger

        yield opened


@pytest.fixture
def ledger(open_ledger: Opener) -> Ledger:
    """Return a ledger with an enrolled relay."""
    return open_ledger().found()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT interrupt, also where it was ignored when Python began: in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
