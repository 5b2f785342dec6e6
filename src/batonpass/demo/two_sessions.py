"""The story of two sessions, two weeks apart; each step has happened when it is yielded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from batonpass.demo.analysis import load_sessions
from batonpass.demo.story import Line, Step, Tone

_TONES: Final = {"comes along": Tone.GOOD, "still": Tone.GOOD, "decide again": Tone.BAD, "left behind": Tone.QUIET}


def play_sessions(directory: Path) -> Iterator[Step]:
    """Play both sessions in a directory. Raises `VerificationError` if what they recorded is not whole."""
    told: list[str] = []
    with load_sessions().main(directory, told.append) as relay:
        yield Step(
            "Two weeks after its lead was lost, a session goes on from the receipts alone",
            tuple(Line(line, _tone(line)) for line in told),
        )
        evidence = relay.verify()
        yield Step(
            "What came along is held against what was recorded",
            (Line(f"whole: {evidence.receipts} receipts, {evidence.signatures} signatures", Tone.GOOD),),
        )


def _tone(line: str) -> Tone:
    return next((tone for words, tone in _TONES.items() if line.startswith(words)), Tone.PLAIN)
