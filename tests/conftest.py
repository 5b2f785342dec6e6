"""What the tests of several folders share."""

import gc
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.counted import Counting, counted_last
from tests.memory import use_memory
from tests.ready_ledger import copy_ledgers
from tests.sharing import Sharing, import_from, longest_first, schedule, tell_results_only

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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let coverage be measured where it counts, which takes half as long as with `--cov`."""
    parser.addoption("--counted", action="store_true", help="measure the coverage of the tests that count for it")


def _runs_tests(config: pytest.Config) -> bool:
    """Say whether tests run here: in each of several processes, or in the only one."""
    return hasattr(config, "workerinput") or not config.getoption("numprocesses", None)


def pytest_configure(config: pytest.Config) -> None:
    """Measure where tests run, and say little about it."""
    if config.getoption("counted") and _runs_tests(config):
        config.pluginmanager.register(Counting())
        tell_results_only(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let each of several processes that run everything import another part of it first."""
    if _runs_tests(session.config):
        gc.disable()  # what is imported and collected stays: nothing of it is garbage
    one_of_many = getattr(session.config, "workerinput", None)
    if one_of_many is not None and session.config.getoption("counted"):
        import_from(int(one_of_many["workerid"].removeprefix("gw")), of=one_of_many["workercount"])


def pytest_collection_finish() -> None:
    """Look for garbage from here on, and only among what tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test have new ledgers as copies, unless it is about how they are made."""
    copy_ledgers(item.path)


@pytest.hookimpl(trylast=True)  # once they are in random order
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let what takes longest begin first, and what is measured come last."""
    if config.getoption("counted"):
        counted_last(items)
    longest_first(items)


@cache
def _says_slow(path: Path) -> bool:
    return b"slow" in path.read_bytes()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which nothing is asked for: each process would import all of them."""
    is_left_out = config.getoption("markexpr") == "slow" and collection_path.name.startswith("test_")
    return True if is_left_out and not _says_slow(collection_path) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a slow test of a file without the word: it would be left out above."""
    if item.get_closest_marker("slow") is not None and not _says_slow(item.path):
        raise pytest.UsageError(f"{item.nodeid} is slow, and its file does not say so")
