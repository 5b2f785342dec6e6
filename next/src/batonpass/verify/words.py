"""What a verification has checked, and what it has not."""

from collections.abc import Iterator
from typing import Final

from batonpass.narrate.tokens import Line, Token, Tone, counted, line
from batonpass.verify.verifier import Evidence

_NOT_RUN: Final = {
    "root key": "that it hangs from your root key: compare the one above with your note of it, or give --root-key",
    "relay key": "that the relay of this machine is enrolled in it: its key is not here",
    "end": "that nothing is missing at its end: whoever can write the file can cut it short",
    "grants": "each recorded call against its grant: that was judged when it was made",
}


def narrate_evidence(evidence: Evidence) -> Iterator[Line]:
    """Yield what was checked."""
    where = f"{counted(evidence.receipts, 'receipt')} in {counted(evidence.streams, 'stream')}"
    with_them = f"{counted(evidence.signatures, 'signature')}, {counted(evidence.contents, 'content')} as committed"
    yield line(Token("whole", Tone.GOOD), f": {where}, {with_them}")
    yield line("root key  ", evidence.root_key, lead="  ")


def narrate_not_run(evidence: Evidence) -> Iterator[str]:
    """Yield what was not checked, so that nobody takes it for checked."""
    for step in evidence.not_run:
        yield f"not checked: {_NOT_RUN.get(step, step)}"
