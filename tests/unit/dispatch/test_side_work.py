"""Work beside other work."""

import threading

import pytest

from batonpass.dispatch.side_work import side_work


def test_it_ends_with_its_block() -> None:
    """It is told to end and waited for, also if the block fails."""
    began, ended = threading.Event(), threading.Event()

    def work(over: threading.Event) -> None:
        began.set()
        over.wait()
        ended.set()

    def fail() -> None:
        with side_work(work, "test"):
            assert began.wait(10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert (True, False) == (ended.is_set(), "batonpass-test" in {one.name for one in threading.enumerate()})
