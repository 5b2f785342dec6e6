"""`batonpass demo`: what is recorded and what is found, in a few seconds and without a network."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from batonpass.cli.printing import Painted, paint, say
from batonpass.demo.story import FLIPPED, SEAL, SHORTENED, Line, Tone, play

_COLOURS: Final = {Tone.GOOD: "green", Tone.BAD: "red"}


@click.command()
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Do it there and leave everything to look at; the directory must be new or empty.",
)
def command(keep: Path | None) -> None:
    """Hand work on, kill an agent half-way, go on with what is left, tamper with copies, and show what is found."""
    if keep is None:
        with TemporaryDirectory(prefix="batonpass-demo-") as directory:
            _show(Path(directory))
        return
    if keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty; name a new directory")
    keep.mkdir(parents=True, exist_ok=True)
    _show(keep.absolute())
    say()
    say(f"Look around: cd {keep}")
    say("  batonpass run list")
    say("  batonpass handoff show drafter")
    say("  batonpass handoff show drafter --proof")
    say(f"  (cd {FLIPPED} && batonpass ledger verify)")
    say(f"  (cd {SHORTENED} && batonpass ledger verify --seal ../{SEAL})")


def _show(directory: Path) -> None:
    for number, step in enumerate(play(directory), 1):
        if number > 1:
            say()
        say(paint(f"{number}  {step.title}", bold=True))
        for line in step.lines:
            say("   ", _painted(line))
    say()
    say(
        "Nothing was done twice, and everything was found. Receipts prove what was recorded; a seal, that all is there."
    )


def _painted(line: Line) -> Painted:
    return paint(line.text, _COLOURS.get(line.tone), dim=line.tone is Tone.QUIET)
