"""`batonpass demo`: what is recorded and what is found, in a few seconds and without a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from msgspec.structs import replace

from batonpass.cli.input.options import Command
from batonpass.cli.output.terminal import Painted, paint, say
from batonpass.demo import delivery, poisoned_page, pull_request, story, two_sessions
from batonpass.demo.story import FLIPPED, SEAL, SHORTENED, Step, StoryLine, StoryTone

_COLOURS: Final = {StoryTone.GOOD: "green", StoryTone.BAD: "red"}


def keep_option(command: Command) -> Command:
    """Let a demonstration leave what it did to look at."""
    return click.option(
        "--keep",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Do it there and leave everything to look at; the directory must be new or empty.",
    )(command)


@click.group(invoke_without_command=True)
@keep_option
@click.pass_context
def command(context: click.Context, keep: Path | None) -> None:
    """Hand work on, kill an agent half-way, go on with what is left, tamper with copies, and show what is found."""
    if context.invoked_subcommand is not None:
        return
    with _place(keep) as directory:
        _show(_numbered(story.play(directory)))
    say()
    say(
        "Nothing was done twice, and everything was found. Receipts prove what was recorded; a seal, that all is there."
    )
    if keep is not None:
        say()
        say(f"Look around: cd {keep}")
        say("  batonpass run list")
        say("  batonpass handoff show drafter")
        say("  batonpass handoff show drafter --proof")
        say(f"  (cd {FLIPPED} && batonpass ledger verify)")
        say(f"  (cd {SHORTENED} && batonpass ledger verify --seal ../{SEAL})")


@command.command("freight")
@keep_option
def of_freight(keep: Path | None) -> None:
    """Let five carriers hand a load on, change the route in the middle, and trace a missed window to its handoff."""
    with _place(keep) as directory:
        _show(_numbered(delivery.play_delivery(directory)))
    say()
    say("What was asked for bound the fifth carrier as it bound the first, and the missed window has a name.")
    if keep is not None:
        say()
        say(f"Look around: cd {keep}")
        say(f"  batonpass why {delivery.LAST}")
        say(f"  batonpass handoff show {delivery.LAST} --proof")
        say(f"  batonpass handoff show {delivery.FIRST} --proof")
        say("  batonpass trail last")


@command.command("pull-request")
@keep_option
def of_pull_request(keep: Path | None) -> None:
    """Let three agents make a pull request with one wrong line, then ask who changed this, and why."""
    with _place(keep) as directory:
        _show(pull_request.play(directory))
    say()
    say("Four questions, four answers, each compared with what really happened.")
    if keep is not None:
        say()
        say(f"Look around: cd {keep}")
        say(f"  batonpass blame {pull_request.NAME} --all")
        say("  batonpass trail last")


@command.command("poisoned")
@keep_option
def of_poisoned(keep: Path | None) -> None:
    """Let an agent read a page that tells it to pay, hold the payment, and trace it to the page."""
    with _place(keep) as directory:
        _show(_numbered(poisoned_page.play_poisoned(directory)))
    say()
    say("The page was read, quoted and obeyed; no money moved by it, because nobody had named that account before.")
    if keep is not None:
        say()
        say(f"Look around: cd {keep}")
        say(f"  batonpass taint {poisoned_page.CLERK}")
        say(f"  batonpass why {poisoned_page.CLERK}")
        say(f"  batonpass handoff show {poisoned_page.CLERK}")
        say("  batonpass trail last")


@command.command("sessions")
@keep_option
def of_sessions(keep: Path | None) -> None:
    """Agree on something, lose the lead, and go on two weeks later with what still holds."""
    with _place(keep) as directory:
        _show(_numbered(two_sessions.play_sessions(directory)))
    say()
    say("What was agreed came along, what no longer holds is a question, and nothing in flight was forgotten.")
    if keep is not None:
        say()
        say(f"Look around: cd {keep}")
        say("  batonpass session show last")
        say("  batonpass session diff last")
        say("  batonpass trail last")


@command.command("support")
@keep_option
def of_support(keep: Path | None) -> None:
    """Hand a customer's words on through three models, and refuse a fourth."""
    from batonpass.demo.support_desk import play_desk  # noqa: PLC0415 - asyncio and all of the agents, for one story

    with _place(keep) as directory:
        _show(_numbered(iter(play_desk(directory))))
    say()
    say("The customer's own words reached everybody, and nobody could delegate without end.")
    if keep is not None:
        say()
        say(f"Look around: cd {keep}")
        say("  batonpass run list")
        say("  batonpass trail last")
        say("  batonpass handoff show payment-specialist")


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with TemporaryDirectory(prefix="batonpass-demo-") as directory:
            yield Path(directory)
        return
    if keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty; name a new directory")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.absolute()


def _numbered(steps: Iterator[Step]) -> Iterator[Step]:
    return (replace(step, title=f"{number}  {step.title}") for number, step in enumerate(steps, 1))


def _show(steps: Iterator[Step]) -> None:
    for index, step in enumerate(steps):
        if index:
            say()
        say(paint(step.title, bold=True))
        for line in step.lines:
            say("   ", _painted(line))


def _painted(line: StoryLine) -> Painted:
    return paint(line.text, _COLOURS.get(line.tone), dim=line.tone is StoryTone.QUIET)
