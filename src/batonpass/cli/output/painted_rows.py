"""Rows of an account in the colours of a terminal."""

from typing import Final

from batonpass.accounts.blame.blame_words import BlameRow
from batonpass.accounts.trail.receipt_lines import Tone
from batonpass.cli.output.terminal import Painted, paint

TONES: Final = {Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "red"}


def paint_row(row: BlameRow, indent: str = "") -> Painted:
    """Return a row in colours; quiet parts are dim."""
    parts = (paint(part.text, TONES.get(part.tone), dim=part.tone is Tone.QUIET) for part in row.parts)
    return Painted(paint(f"{indent}{row.indent}") + "".join(parts).rstrip())
