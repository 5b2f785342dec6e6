"""`batonpass demo`: the record and its answers, in a few seconds and without a network."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Final

import click
from msgspec import Struct

from batonpass.cli.input.options import Command
from batonpass.cli.output.terminal import paint, say
from batonpass.demo import delivery, poisoned_page, pull_request, story, two_sessions
from batonpass.demo.story import FLIPPED, SEAL, SHORTENED, Step, StoryTone

_COLOURS: Final = {StoryTone.GOOD: "green", StoryTone.BAD: "red"}


class DemoStory(Struct, frozen=True, kw_only=True):
    """A demonstration: its help text, its steps, its conclusion, and commands to look around afterwards."""

    about: str
    play: Callable[[Path], Iterator[Step]]
    conclusion: str
    look: tuple[str, ...]
    numbered: bool = True


def _play_desk(directory: Path) -> Iterator[Step]:
    from batonpass.demo.support_desk import play_desk  # noqa: PLC0415 - loads asyncio and all of the agents

    return play_desk(directory)


_MAIN: Final = DemoStory(
    about="Delegate work, kill an agent half-way, continue, and find every tampering.\n\nNeeds no network and no keys.",
    play=story.play,
    conclusion=(
        "Nothing was done twice, and every change was found. Receipts prove what was recorded; "
        "a seal proves that nothing is missing."
    ),
    look=(
        "batonpass run list",
        "batonpass handoff show drafter",
        "batonpass handoff show drafter --proof",
        f"(cd {FLIPPED} && batonpass ledger verify)",
        f"(cd {SHORTENED} && batonpass ledger verify --seal ../{SEAL})",
    ),
)
_STORIES: Final = {
    "freight": DemoStory(
        about="Find the handoff that lost a delivery window.\n\nFive carriers pass a load on.",
        play=delivery.play_delivery,
        conclusion="The same constraints bound the first and the fifth carrier, and the missed window has a name.",
        look=(
            f"batonpass why {delivery.LAST}",
            f"batonpass handoff show {delivery.LAST} --proof",
            f"batonpass handoff show {delivery.FIRST} --proof",
            "batonpass trail last",
        ),
    ),
    "pull-request": DemoStory(
        about="Find out who wrote a wrong line, and why.\n\nThree agents make a pull request.",
        play=pull_request.play,
        conclusion="Four questions, four answers, each compared with what really happened.",
        look=(f"batonpass blame {pull_request.NAME} --all", "batonpass trail last"),
        numbered=False,
    ),
    "poisoned": DemoStory(
        about="Hold a payment that a web page ordered.\n\nAn agent reads the page; the payment is traced back to it.",
        play=poisoned_page.play_poisoned,
        conclusion=(
            "The page was read, quoted and obeyed. It moved no money, because nobody had named that account before."
        ),
        look=(
            f"batonpass taint {poisoned_page.CLERK}",
            f"batonpass why {poisoned_page.CLERK}",
            f"batonpass handoff show {poisoned_page.CLERK}",
            "batonpass trail last",
        ),
    ),
    "sessions": DemoStory(
        about="Continue a lost session two weeks later.\n\nOnly what is still true comes along.",
        play=two_sessions.play_sessions,
        conclusion=(
            "Decisions were passed on, those that are no longer true became questions, and no open handoff was lost."
        ),
        look=("batonpass session show last", "batonpass session diff last", "batonpass trail last"),
    ),
    "support": DemoStory(
        about="Pass a customer's words through three models.\n\nA fourth is refused.",
        play=_play_desk,
        conclusion="The customer's own words reached every agent, and no agent could delegate without end.",
        look=("batonpass run list", "batonpass trail last", "batonpass handoff show payment-specialist"),
    ),
}


def keep_option(command: Command) -> Command:
    """Add `--keep`."""
    return click.option(
        "--keep",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Use this directory, which must be new or empty, instead of a temporary one.",
    )(command)


@click.group(invoke_without_command=True, help=_MAIN.about)
@keep_option
@click.pass_context
def command(context: click.Context, keep: Path | None) -> None:
    """Play the main story, unless another one is named."""
    if context.invoked_subcommand is None:
        _tell(_MAIN, keep)


def _command_of(name: str, played: DemoStory) -> click.Command:
    @click.command(name, help=played.about)
    @keep_option
    def tell_story(keep: Path | None) -> None:
        _tell(played, keep)

    return tell_story


for _name, _story in _STORIES.items():
    command.add_command(_command_of(_name, _story))


def _tell(played: DemoStory, keep: Path | None) -> None:
    with _place(keep) as directory:
        for number, step in enumerate(played.play(directory), 1):
            if number > 1:
                say()
            say(paint(f"{number}  {step.title}" if played.numbered else step.title, bold=True))
            for line in step.lines:
                say("   ", paint(line.text, _COLOURS.get(line.tone), dim=line.tone is StoryTone.QUIET))
        say()
        say(played.conclusion)
        say()
        there = shlex.quote(str(directory if keep is None else keep))
        say(f"Look around: cd {there}")
        for each in played.look:
            say(f"  {each}")
        say("All of it in your browser:")
        say(f"  cd {there} && batonpass ui")


@contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    """Give the story a directory. Its record stays there to be looked at, unless the story failed."""
    if keep is None:
        directory = Path(mkdtemp(prefix="batonpass-demo-"))
        try:
            yield directory
        except BaseException:
            rmtree(directory, ignore_errors=True)
            raise
        return
    if keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty; name a new directory")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.absolute()
