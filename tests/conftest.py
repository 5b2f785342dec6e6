"""What the tests of several folders share."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.postgres_server"]

# A test never asserts a time, and neither does a machine that is busy with something else.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
