"""What tests of calls of nobody need: no enforced run that an earlier test left open."""

import pytest

from batonpass.api.run_base import ENFORCED_RUNS


@pytest.fixture(autouse=True)
def no_enforced_run() -> None:
    """Forget runs that a traceback or a cycle still holds: all calls of nobody would be refused for them."""
    ENFORCED_RUNS.clear()
