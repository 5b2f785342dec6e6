"""Lines between processes."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters.mcp.messages.line_pipes import Bell, EndlessLineError, Outlet, read_lines


def written(data: bytes) -> int:
    """Return what some bytes can be read from."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading


@given(st.lists(st.binary(max_size=200).filter(lambda line: b"\n" not in line), max_size=20), st.booleans())
def test_lines_come_as_they_were_written(lines: list[bytes], ended: bool) -> None:  # noqa: FBT001 - hypothesis calls it
    """Each once, without blanks around it, the last one also if it has no end."""
    descriptor = written(b"\n".join(lines) + (b"\n" if ended else b""))

    found = list(read_lines(descriptor))
    os.close(descriptor)

    assert [line.strip() for line in lines if line.strip()] == found


def test_a_line_without_an_end_does_not_take_all_memory() -> None:
    """A server that never ends its line is stopped."""
    descriptor = written(b"x" * 60_000)

    with pytest.raises(EndlessLineError):
        list(read_lines(descriptor, longest=1000))
    os.close(descriptor)


def test_a_bell_ends_the_waiting() -> None:
    """Also if it rang before, and if nothing ever comes in."""
    reading, writing = os.pipe()
    bell = Bell()
    bell.ring()

    assert [] == list(read_lines(reading, bell))
    bell.close()
    os.close(reading)
    os.close(writing)


def test_lines_of_two_threads_are_whole() -> None:
    """However much the pipe takes at once."""
    reading, writing = os.pipe()
    outlet = Outlet(writing)

    def send(line: bytes) -> None:
        for _ in range(20):
            outlet.send(line)

    senders = [threading.Thread(target=send, args=(line,)) for line in (b"a" * 70_000, b"b" * 70_000)]
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.extend(read_lines(reading)))
    reader.start()
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    os.close(writing)
    reader.join()
    os.close(reading)

    assert {b"a" * 70_000: 20, b"b" * 70_000: 20} == {line: found.count(line) for line in found}
