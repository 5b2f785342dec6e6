"""What the tests of several folders share."""

import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.memory import use_memory
from tests.sharing import Sharing, longest_first, schedule

pytest_plugins = ["tests.postgres_server"]

use_memory()

# A test never asserts a time, and neither does a machine that is busy with something else.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# A shell starts what runs in its background with Ctrl-C ignored, and whatever we start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Sharing | None:
    """Keep together what shares a set-up."""
    return schedule(config, log)


@pytest.hookimpl(trylast=True)  # once they are in random order
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes longest begin first."""
    longest_first(items)


@cache
def _says_slow(path: Path) -> bool:
    return b"slow" in path.read_bytes()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without anything slow where only that is asked for: each process would import all of them."""
    if config.getoption("markexpr") != "slow" or not collection_path.name.startswith("test_"):
        return None
    return None if _says_slow(collection_path) else True


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a slow test of a file that does not have the word: left out above, it would never run."""
    if item.get_closest_marker("slow") is not None and not _says_slow(item.path):
        raise pytest.UsageError(f"{item.nodeid} is slow, and its file does not say so")
