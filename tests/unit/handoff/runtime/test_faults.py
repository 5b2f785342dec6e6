"""How an exception is written down: a code for machines, words for people."""

import re

import pytest

from batonpass.errors import FencedError, InvalidValueError
from batonpass.handoff.runtime.faults import code_of, words_of
from tests.unit.handoff.places import LONE_SURROGATE

CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


class HTTPTimeoutError(Exception):
    """An error of somebody else."""


class Élan(Exception):  # noqa: N818, PLC2401 - a name that no code can have
    """An error with a name from elsewhere."""


class Chatty(Exception):  # noqa: N818 - as above
    """An error whose own code is what a person wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.code = "ana-s-secret"


class Hostile(Exception):  # noqa: N818 - as above
    """An error that nobody can look at."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__

    @property
    def code(self) -> str:
        """Raise instead."""
        raise RuntimeError("no code either")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidValueError("a", "b"), "value.invalid"),
        (FencedError("run", 1, 2), "ledger.fenced"),
        (ValueError("x"), "value"),
        (KeyboardInterrupt(), "keyboard-interrupt"),
        (HTTPTimeoutError(), "httptimeout"),
        (Exception(), "exception"),
        (SystemExit("ana-s-secret"), "system-exit"),
        (Chatty(), "chatty"),
        (Hostile(), "hostile"),
        (Élan(), "lan"),
        (type("X" * 200, (Exception,), {})(), "x" * 60),
        (type("_9", (Exception,), {})(), "error"),
    ],
    ids=lambda value: type(value).__name__[:20] if isinstance(value, BaseException) else "",
)
def test_an_exception_has_a_code_and_it_is_nobodys_words(error: BaseException, expected: str) -> None:
    """Signed bytes are forever: the code comes from the type, never from what a person or a model wrote."""
    assert expected == code_of(error)
    assert CODE.fullmatch(code_of(error))


def test_words_say_what_and_where() -> None:
    """The last line is the error, the lines before say where it came from."""
    with pytest.raises(ValueError, match="boom") as raised:
        int("boom")
    said = words_of(raised.value)

    assert said.splitlines()[-1].startswith("ValueError: invalid literal")
    assert "test_faults.py" in said


@pytest.mark.parametrize(
    "error", [Hostile(), ValueError(LONE_SURROGATE), ValueError("x" * 10_000_000)], ids=["hostile", "no text", "long"]
)
def test_words_can_always_be_kept(error: Exception) -> None:
    """Whatever an exception says, it fits and it is Unicode."""
    assert 100_000 >= len(words_of(error).encode().decode())


def test_a_chain_that_never_ends_is_cut() -> None:
    """An exception that is its own cause, and a deep recursion, are written down in a few lines."""
    error = ValueError("round")
    error.__cause__ = error

    def deeper(levels: int) -> None:
        if levels == 0:
            raise ValueError("deep")
        deeper(levels - 1)

    with pytest.raises(ValueError, match="deep") as raised:
        deeper(500)

    assert 100 > len(words_of(raised.value).splitlines())
    assert "ValueError: round" in words_of(error)
