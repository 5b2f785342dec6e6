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


# They go whole ways through the product, whose lines the other tests cover one by one. To count them again takes more
# than twice as long as to run them.
WHOLE_WAYS = ("acceptance", "attribution", "bench", "claude_code", "doors", "mcp")


def _goes_whole_ways(path: Path) -> bool:
    return path.relative_to(Path(__file__).parent).parts[0] in WHOLE_WAYS


@cache
def _says_slow(path: Path) -> bool:
    return b"slow" in path.read_bytes()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which nothing is asked for: each process would import all of them."""
    asked = config.getoption("markexpr")
    if asked not in {"slow", "slow or uncovered"} or not collection_path.name.startswith("test_"):
        return None
    wanted = _says_slow(collection_path) or (asked != "slow" and _goes_whole_ways(collection_path))
    return None if wanted else True


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is not counted; and refuse a slow test of a file without the word: it would be left out above."""
    if item.get_closest_marker("slow") is not None and not _says_slow(item.path):
        raise pytest.UsageError(f"{item.nodeid} is slow, and its file does not say so")
    if _goes_whole_ways(item.path):
        item.add_marker(pytest.mark.uncovered)
