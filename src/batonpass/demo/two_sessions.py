"""The story of two sessions, two weeks apart; each step has happened when it is yielded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from batonpass.demo.examples import load_sessions
from batonpass.demo.story import Step, StoryLine, StoryTone

_TONES: Final = {
    "comes along": StoryTone.GOOD,
    "still": StoryTone.GOOD,
    "decide again": StoryTone.BAD,
    "left behind": StoryTone.QUIET,
}


def play_sessions(directory: Path) -> Iterator[Step]:
    """Play both sessions in a directory. Raises `VerificationError` if what they recorded is not whole."""
    told: list[str] = []
    with load_sessions().main(directory, told.append) as relay:
        yield Step(
            "Two weeks after its lead was lost, a session goes on from the receipts alone",
            tuple(StoryLine(line, _tone(line)) for line in told),
        )
        evidence = relay.verify()
        yield Step(
            "What came along is held against what was recorded",
            (StoryLine(f"whole: {evidence.receipts} receipts, {evidence.signatures} signatures", StoryTone.GOOD),),
        )


def _tone(line: str) -> StoryTone:
    return next((tone for words, tone in _TONES.items() if line.startswith(words)), StoryTone.PLAIN)
