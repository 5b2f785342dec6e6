"""What the tests of several folders share."""

import signal

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests.memory import use_memory
from tests.sharing import Sharing, schedule

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
