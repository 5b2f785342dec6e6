"""The socket of a server."""

import socket

from batonpass.server.listener import ServerPlace, bound


def test_answers_do_not_wait_for_an_acknowledgement() -> None:
    """A connection sends each part of an answer at once: otherwise a small answer takes 40 ms."""
    with bound(ServerPlace(port=0)) as (opened, _), socket.create_connection(opened.getsockname()):
        accepted, _ = opened.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
