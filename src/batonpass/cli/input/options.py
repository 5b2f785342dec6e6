"""Options that many commands take, and how their words become values."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import click

from batonpass.cli.output.exits import answer_in_json
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import require_principal

Command = TypeVar("Command", bound=Callable[..., Any])

_LEDGER: Final = "batonpass.ledger"
_AGO: Final = re.compile(r"(\d{1,6})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _keep_ledger(context: click.Context, _: click.Parameter, given: str | None) -> None:
    if given is not None:
        context.meta[_LEDGER] = given


def ledger_option(command: Command) -> Command:
    """Let a command be told which ledger, before or after its noun."""
    return click.option(
        "--ledger",
        metavar="URL|PATH",
        callback=_keep_ledger,
        expose_value=False,
        help="Which ledger: a file, sqlite:///PATH or postgresql://…  [default: the nearest .batonpass]",
    )(command)


def json_option(command: Command) -> Command:
    """Let a command answer a program."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=answer_in_json,
        help="Print JSON, also if something is wrong.",
    )(command)


def project_option(command: Command) -> Command:
    """Let a command be told in which directory another program works."""
    return click.option(
        "--project",
        metavar="DIR",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        default=Path(),
        show_default="here",
        help="Which project.",
    )(command)


def given_ledger() -> str | None:
    """Return which ledger was asked for with `--ledger`."""
    found: str | None = click.get_current_context().meta.get(_LEDGER)
    return found


def checked(check: Callable[[str], str]) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Let one of our own checks decide about an argument; what it refuses is wrong usage."""

    def accept(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
        try:
            return None if given is None else check(given)
        except InvalidValueError as error:
            raise click.BadParameter(error.problem) from None

    return accept


def read_moment(_: click.Context, __: click.Parameter, given: str | None) -> datetime | None:
    """Return a time in UTC: so long ago, as `2d`, or a date, or a date with a time."""
    if given is None:
        return None
    try:
        if ago := _AGO.fullmatch(given):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(given).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{given!r} is neither like 30m, 12h, 2d or 1w nor a date like 2026-11-15",
        ) from None


@contextmanager
def written(path: Path | None) -> Iterator[IO[str]]:
    """Open what `-o` asked for, or stdout. A file appears when all of it is written, or not at all."""
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


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, or of stdin for `-`. A file that cannot be opened is wrong usage."""
    if str(path) == "-":
        yield from sys.stdin
        return
    try:
        file = path.open(encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
    with file:
        yield from file


def by_option(command: Command) -> Command:
    """Let a command be told who decides."""
    return click.option(
        "--by",
        metavar="PRINCIPAL",
        callback=checked(lambda given: require_principal("by", given)),
        default=lambda: f"user:{os.environ.get('USER') or 'unknown'}",
        show_default="user:$USER",
        help="Who decides; it is taken as said, and not proven.",
    )(command)


def reason_option(*, required: bool = True) -> Callable[[Command], Command]:
    """Let a command be told why."""
    return click.option("--reason", metavar="TEXT", required=required, help="Why; it is kept.")


def is_person() -> bool:
    """Return whether somebody could answer a question now."""
    return sys.stdin.isatty()
