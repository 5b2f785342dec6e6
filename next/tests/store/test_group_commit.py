"""Group commit over a writer in memory: what is refused fails alone, whatever was in its batch."""

import threading
from collections.abc import Sequence

import pytest

from batonpass.errors import BatonpassError, ConflictError, OutcomeUnknownError, StoreError
from batonpass.store.group_commit import GroupCommit, RefusedError
from batonpass.system import RealSystem


class FakeWriter:
    """Writes numbers; refuses a batch with a negative one, and fails on a zero. The first batch waits for `go`."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self.batches: list[int] = []
        self.began = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def prepare(self, given: int) -> int:
        """Return it as it is."""
        return given

    def write(self, batch: Sequence[int]) -> None:
        """Write a batch as a whole, or not at all."""
        self.began.set()
        self.go.wait(10)
        self.batches.append(len(batch))
        if 0 in batch:
            raise StoreError("the disk is full")
        for number in batch:
            if number < 0:
                raise RefusedError(ConflictError(f"{number} is refused"))
        self.written += batch

    def roll_back(self) -> None:
        """Leave nothing open: there is nothing."""


class NoTurn:
    """The only process there is."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def append_together(writer: FakeWriter, numbers: Sequence[int]) -> dict[int, str]:
    """Append the first, and the others while it is being written; return what each was told."""
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), RealSystem())
    answers: dict[int, str] = {}

    def append(number: int) -> None:
        try:
            commit.run(number)
        except BatonpassError as error:
            answers[number] = str(error)
        else:
            answers[number] = "written"

    writer.go.clear()
    threads = [threading.Thread(target=append, args=(number,)) for number in numbers]
    threads[0].start()
    writer.began.wait(10)
    for thread in threads[1:]:
        thread.start()
    writer.go.set()
    for thread in threads:
        thread.join(10)
    return answers


def test_what_is_refused_fails_alone() -> None:
    """Of appends that wait at the same time the refused ones are told so, and the others are written."""
    writer = FakeWriter()

    answers = append_together(writer, (1, 2, -3, 4, -5))

    assert {1: "written", 2: "written", -3: "-3 is refused", 4: "written", -5: "-5 is refused"} == answers
    assert [1, 2, 4] == sorted(writer.written)


def test_what_is_refused_alone_is_written_once_less() -> None:
    """A single append that is refused is not tried a second time."""
    writer = FakeWriter()
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), RealSystem())

    with pytest.raises(ConflictError, match="-1 is refused"):
        commit.run(-1)

    assert [1] == writer.batches


def test_a_batch_that_cannot_be_written_fails_all_of_it() -> None:
    """When the transaction itself fails each caller gets an error of its own, and none is left waiting."""
    writer = FakeWriter()
    commit: GroupCommit[int, int] = GroupCommit(writer, NoTurn(), RealSystem())

    with pytest.raises(StoreError, match="the disk is full"):
        commit.run(0)
    commit.run(7)

    assert [7] == writer.written


def test_what_nobody_can_tell_is_an_unknown_outcome() -> None:
    """An error that the writer does not explain leaves the outcome unknown."""

    class BrokenWriter(FakeWriter):
        def write(self, batch: Sequence[int]) -> None:
            raise RuntimeError(f"{len(batch)} lost")

    commit: GroupCommit[int, int] = GroupCommit(BrokenWriter(), NoTurn(), RealSystem())

    with pytest.raises(OutcomeUnknownError, match="1 lost"):
        commit.run(1)
