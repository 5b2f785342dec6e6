"""Coverage, measured only while tests run that count for it: measuring makes a test take more than twice as long."""

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from _typeshed import TraceFunction

# The folders whose tests go through the product line by line; what two of the stores do beyond the suite for all is in
# folders of theirs. The other folders go whole ways through the product.
COUNTED: Final = (
    "tests/conformance/",
    "tests/integration/postgres/",
    "tests/integration/sqlite/",
    "tests/unit/",
)

# What these run, others run as well, in a fraction of the time.
NOT_COUNTED: Final = (
    "tests/unit/adapters/coders/session/test_recovery.py",
    "tests/unit/cli/input/test_id_types.py",
)

# A test that runs on several stores counts once: each store has the conformance suite.
_OTHER_STORES: Final = ("in a file", "on a server")

_FOR_CHILDREN: Final = "COVERAGE_PROCESS_CONFIG"


def counts(item: pytest.Item) -> bool:
    """Say whether the lines that a test runs count as covered.

    Nothing counts that is slow or made by Hypothesis: it runs the same lines again, hundreds of times.
    """
    return (
        item.nodeid.startswith(COUNTED)
        and not item.nodeid.startswith(NOT_COUNTED)
        and not any(store in item.name for store in _OTHER_STORES)
        and not any(item.get_closest_marker(mark) for mark in ("slow", "hypothesis"))
    )


class Counting:
    """Measures in this process, and in those that it starts, while a test runs that counts.

    Python is slow wherever a tracer listens. So ours listens to fixtures and tests, and not to what pytest does around
    them, which takes longer than most tests.
    """

    def __init__(self) -> None:
        from coverage import Coverage  # noqa: PLC0415 - every run would take a quarter of a second longer

        self._coverage = Coverage(data_suffix=True)
        self._tracer: TraceFunction | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Begin or end measuring, where the next test differs from the one before it."""
        self._turn(on=counts(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_fixture_setup(self) -> Generator[None, object, object]:
        """Listen to a fixture."""
        return (yield from self._listening())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self) -> Generator[None, object, object]:
        """Listen to a test."""
        return (yield from self._listening())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Listen to what fixtures do after a test."""
        return (yield from self._listening())

    def pytest_sessionfinish(self) -> None:
        """Keep what was measured beside what other processes have."""
        self._turn(on=False)
        self._coverage.save()

    def _listening(self) -> Generator[None, object, object]:
        before = sys.gettrace()
        if self._tracer is None or before is self._tracer:  # a fixture may ask for another
            return (yield)
        sys.settrace(self._tracer)
        try:
            return (yield)
        finally:
            sys.settrace(before)

    def _turn(self, *, on: bool) -> None:
        if on == (self._tracer is not None):
            return
        if on:
            self._coverage.start()  # which tells children, too
            self._tracer = sys.gettrace()
            sys.settrace(None)
        else:
            self._coverage.stop()
            self._tracer = None
            os.environ.pop(_FOR_CHILDREN, None)


def counted_last(items: list[pytest.Item]) -> None:
    """Let the tests that count run one after another: each process begins to measure once. All else keeps its order."""
    items.sort(key=counts)
