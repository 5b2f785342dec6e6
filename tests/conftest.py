"""What the tests of several folders share."""

pytest_plugins = ["tests.postgres_server"]
