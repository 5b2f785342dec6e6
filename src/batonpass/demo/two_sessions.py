"""The story of two sessions, two weeks apart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from batonpass.demo.examples import load_example
from batonpass.demo.story import Step, StoryLine, StoryTone, verified_step

_TONES: Final = {
    "comes along": StoryTone.GOOD,
    "still": StoryTone.GOOD,
    "decide again": StoryTone.BAD,
    "left behind": StoryTone.QUIET,
}


def play_sessions(directory: Path) -> Iterator[Step]:
    """Play both sessions in a directory. Raises `VerificationError` if the ledger is not whole afterwards."""
    told: list[str] = []
    with load_example("sessions.py").main(directory, told.append) as relay:
        yield Step(
            "Two weeks after its lead was lost, a session continues from the receipts alone",
            tuple(StoryLine(line, _tone(line)) for line in told),
        )
        yield verified_step(relay)


def _tone(line: str) -> StoryTone:
    return next((tone for words, tone in _TONES.items() if line.startswith(words)), StoryTone.PLAIN)
