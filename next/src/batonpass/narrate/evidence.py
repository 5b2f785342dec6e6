"""What a verification has checked, and what it has not."""

from collections.abc import Iterator
from typing import Final, Protocol

from batonpass.narrate.tokens import Line, Token, Tone, counted, line

_NOT_RUN: Final = {
    "root key": "that it hangs from your root key: compare the one above with your note of it, or give --root-key",
    "relay key": "that the relay of this machine is enrolled in it: its key is not here",
    "end": "that nothing is missing at its end: whoever can write the file can cut it short",
    "grants": "each recorded call against its grant: that was judged when it was made",
}


class Checked(Protocol):
    """The evidence of a verification that found nothing wrong."""

    @property
    def receipts(self) -> int: ...  # noqa: D102 - counts

    @property
    def streams(self) -> int: ...  # noqa: D102

    @property
    def signatures(self) -> int: ...  # noqa: D102

    @property
    def contents(self) -> int: ...  # noqa: D102

    @property
    def root_key(self) -> str: ...  # noqa: D102 - of the ledger

    @property
    def not_run(self) -> tuple[str, ...]: ...  # noqa: D102 - names of steps


def narrate_evidence(evidence: Checked) -> Iterator[Line]:
    """Yield what was checked."""
    where = f"{counted(evidence.receipts, 'receipt')} in {counted(evidence.streams, 'stream')}"
    with_them = f"{counted(evidence.signatures, 'signature')}, {counted(evidence.contents, 'content')} as committed"
    yield line(Token("whole", Tone.GOOD), f": {where}, {with_them}")
    yield line("root key  ", evidence.root_key, lead="  ")


def narrate_not_run(evidence: Checked) -> Iterator[str]:
    """Yield what was not checked, so that nobody takes it for checked."""
    for step in evidence.not_run:
        yield f"not checked: {_NOT_RUN.get(step, step)}"
