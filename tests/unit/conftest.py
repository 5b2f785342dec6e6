"""What every unit test has: no network."""

from collections.abc import Iterator

import pytest
from pytest_socket import disable_socket, enable_socket


@pytest.fixture(autouse=True)
def no_network() -> Iterator[None]:
    """Fail a unit test that opens a socket to anything but this machine's own files."""
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()
