"""Unit tests reach nothing but this machine's own files."""

import socket

import pytest
from pytest_socket import SocketBlockedError


def test_a_network_socket_is_refused() -> None:
    """A unit test that would reach the network fails."""
    with pytest.warns(UserWarning, match="tried to use socket"), pytest.raises(SocketBlockedError):
        socket.socket(socket.AF_INET)


def test_a_unix_socket_is_allowed() -> None:
    """A socket that is a file may be opened."""
    with socket.socket(socket.AF_UNIX) as opened:
        assert opened.family == socket.AF_UNIX
