"""What the tests of several folders share."""

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.postgres_server"]

# A test never asserts a time, and neither does a machine that is busy with something else.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# A shell starts what runs in its background with Ctrl-C ignored, and whatever we start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
