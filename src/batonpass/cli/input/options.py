"""Options that many commands share, and how their values are read."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import click

from batonpass.cli.output.exits import answer_in_json
from batonpass.errors import InvalidValueError
from batonpass.model.base.durations import moment_before
from batonpass.model.base.ids import require_principal

Command = TypeVar("Command", bound=Callable[..., Any])

_LEDGER: Final = "batonpass.ledger"


def _keep_ledger(context: click.Context, _: click.Parameter, given: str | None) -> None:
    if given is not None:
        context.meta[_LEDGER] = given


def ledger_option(command: Command) -> Command:
    """Add `--ledger`, which may stand before or after the noun."""
    return click.option(
        "--ledger",
        metavar="URL|PATH",
        callback=_keep_ledger,
        expose_value=False,
        help="The ledger: a file, sqlite:///PATH or postgresql://…  [default: the nearest .batonpass]",
    )(command)


def json_option(command: Command) -> Command:
    """Add `--json`."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=answer_in_json,
        help="Print JSON, errors included.",
    )(command)


def ledger_and_json(command: Command) -> Command:
    """Add `--json` and `--ledger`, which almost every command has."""
    return json_option(ledger_option(command))


def output_option(command: Command) -> Command:
    """Add `-o`, the file that is written instead of stdout."""
    return click.option(
        "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE, not to stdout."
    )(command)


def key_option(command: Command) -> Command:
    """Add `--key`, which may be repeated: the keys that somebody trusts who has no ledger."""
    return click.option(
        "--key",
        "keys",
        metavar="KEY",
        multiple=True,
        required=True,
        help="The public key of a relay, as `batonpass key list` prints it; may be repeated.",
    )(command)


def limit_option(command: Command) -> Command:
    """Add `--limit` to a list."""
    return click.option(
        "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="List at most N."
    )(command)


def project_option(command: Command) -> Command:
    """Add `--project`, the directory that another program works in."""
    return click.option(
        "--project",
        metavar="DIR",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        default=Path(),
        show_default="here",
        help="The project's directory.",
    )(command)


def given_ledger() -> str | None:
    """Return the value of `--ledger`."""
    found: str | None = click.get_current_context().meta.get(_LEDGER)
    return found


def checked(check: Callable[[str], str]) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Validate an argument with one of our own checks; a refused value is a usage error."""

    def accept(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
        try:
            return None if given is None else check(given)
        except InvalidValueError as error:
            raise click.BadParameter(error.problem) from None

    return accept


def read_moment(_: click.Context, __: click.Parameter, given: str | None) -> datetime | None:
    """Return a time in UTC from an age such as `2d`, a date, or a date with a time."""
    if given is None:
        return None
    try:
        return moment_before("since", given, datetime.now(UTC))
    except InvalidValueError as error:
        raise click.BadParameter(error.problem) from None


@contextmanager
def written(path: Path | None) -> Iterator[IO[str]]:
    """Open the file of `-o`, or stdout. The file appears only once all of it is written."""
    if path is None or str(path) == "-":
        yield sys.stdout
        return
    special = path.exists() and not path.is_file()
    waiting = path if special else path.with_name(f"{path.name}.part")
    try:
        file = waiting.open("w", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from None
    try:
        with file:
            yield file
        if not special:
            waiting.replace(path)
    except BaseException:
        if not special:
            waiting.unlink(missing_ok=True)
        raise


def read_text(path: Path) -> str:
    """Return the text of a file, or of stdin for `-`. A file that cannot be opened is a usage error."""
    return "".join(read_lines(path))


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, or of stdin for `-`. A file that cannot be opened is a usage error."""
    if str(path) == "-":
        yield from sys.stdin
        return
    try:
        file = path.open(encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
    with file:
        yield from file


def principal_option(about: str) -> Callable[[Command], Command]:
    """Add `--by`, a principal; the user of this machine unless given."""
    return click.option(
        "--by",
        metavar="PRINCIPAL",
        callback=checked(lambda given: require_principal("by", given)),
        default=lambda: f"user:{os.environ.get('USER') or 'unknown'}",
        show_default="user:$USER",
        help=about,
    )


by_option: Final = principal_option("Who decides. The name is recorded as given, not proven.")


def reason_option(*, required: bool = True) -> Callable[[Command], Command]:
    """Add `--reason`."""
    return click.option("--reason", metavar="TEXT", required=required, help="The reason; it is recorded.")


def is_person() -> bool:
    """Return whether somebody is there to answer a question."""
    return sys.stdin.isatty()
