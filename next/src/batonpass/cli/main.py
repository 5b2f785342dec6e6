"""The program: its nouns, and how a command ends. Data goes to stdout, words about it to stderr.

Exit status: 0 yes, 1 no, 2 a wrong question, 3 broken, 130 interrupted, 141 nobody reads any more. With `--json` there
is one object on stdout in any case: what was asked for, or the problem (RFC 9457).
"""

import errno
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from batonpass.errors import BatonpassError, InvalidValueError, StoreError

_INTERRUPTED: Final = 130
_CLOSED_PIPE: Final = 141
# More than the modules of a command make: a collection before its end only costs time.
_OBJECTS_BEFORE_COLLECTING: Final = 50_000


class LazyGroup(click.Group):
    """Commands by name, as `module:attribute` with a summary. Help shows the summaries and loads nothing."""

    def __init__(self, *, rows: Mapping[str, tuple[str, str]], **settings: Any) -> None:  # noqa: ANN401 - as click has it
        # Stand-ins: click looks here for the name that the user may have meant.
        super().__init__(commands={name: click.Command(name) for name in rows}, **settings)
        self.rows = rows

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as click calls it
        """Return a command from its module."""
        if cmd_name not in self.rows:
            return None
        module, _, attribute = self.rows[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the summaries."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.rows.items()])


NOUNS: Final[dict[str, tuple[str, str]]] = {
    "run": ("batonpass.cli.run:run", "List runs: which agent worked on which task."),
    "handoff": ("batonpass.cli.handoff:handoff", "Show a handoff, or try it again."),
    "blame": ("batonpass.cli.blame:blame", "Show who wrote a line, on which task, and for whom."),
    "ledger": ("batonpass.cli.ledger:ledger", "Verify the record as a whole."),
    "serve": ("batonpass.cli.serve:serve", "Let a program in another language record its work."),
    "demo": ("batonpass.cli.demo:demo", "See in seconds how work is handed over, killed and retried."),
}
_HELP: Final = """Batonpass records who handed what to whom, and what became of it, in signed receipts.

For an ID give its last four or more letters, an agent's name, or `last`.
"""


@click.group(
    cls=LazyGroup,
    rows=NOUNS,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="batonpass", message="batonpass %(version)s")
def commands() -> None:
    """Hold the nouns."""


def main() -> None:
    """Run the command that this process was started with."""
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    status = run_command(sys.argv[1:])
    gc.freeze()  # everything is closed: a search for cycles at the end finds nothing to do
    sys.exit(status)


def run_command(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status. What goes wrong is said, and not raised."""
    try:
        with commands.make_context("batonpass", list(arguments)) as context:
            commands.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except BrokenPipeError:
        # Python flushes stdout once more when it ends; that must not fail as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("batonpass: interrupted\n")
        return _INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last one who can say it
        return _fail(error, is_json=_wants_json(arguments))
    return 0


def _wants_json(arguments: Sequence[str]) -> bool:
    """Return whether errors are to be JSON, also of a command line that could not be read."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own


def _fail(error: Exception, *, is_json: bool) -> int:
    from batonpass.cli.render import print_error  # noqa: PLC0415 - most commands end well

    if os.environ.get("BATONPASS_DEBUG"):
        import traceback  # noqa: PLC0415 - as above

        traceback.print_exception(error)
    known = _as_ours(error)
    print_error(known, is_json=is_json)
    return known.exit_status


def _as_ours(error: Exception) -> BatonpassError:
    """Return an error in our terms: what a command line, a file or a mistake of ours means for its user."""
    if isinstance(error, BatonpassError):
        return error
    if isinstance(error, click.ClickException):
        context = error.ctx if isinstance(error, click.UsageError) else None
        where = "" if context is None else f" (see `{context.command_path} --help`)"
        return InvalidValueError(error.format_message().rstrip(".") + where)
    if isinstance(error, OSError):
        return StoreError(_explain(error), code="store.unavailable")
    return BatonpassError(f"{type(error).__name__}: {error}: a fault of Batonpass; BATONPASS_DEBUG=1 shows where")


def _explain(error: OSError) -> str:
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        hint = "a ledger is read where it can be locked, so copy it to a folder that you can write to"
        return f"{error.filename}: {error.strerror}: {hint}"
    if error.filename is None and isinstance(error, FileNotFoundError):
        return "the folder that this was started in is gone: change to one that exists"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)
