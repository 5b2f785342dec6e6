"""How the command line reports an error: one sentence and an exit code. The only place that knows both.

0 yes, 1 no, 2 wrong usage, 3 broken. With `--json` an error is an object on stdout, otherwise a message on stderr.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import click

from batonpass.cli.output.terminal import paint, say_json, tell
from batonpass.errors import (
    BatonpassError,
    HandoffEndedError,
    IllegalTransitionError,
    InvalidValueError,
    NotFoundError,
    StoreError,
    UnknownFieldError,
    VerificationError,
)
from batonpass.errors.base import error_shape

DEBUG: Final = "BATONPASS_DEBUG"

NO: Final = 1
USAGE: Final = 2
BROKEN: Final = 3
INTERRUPTED: Final = 130  # 128 and SIGINT, as shells count
_PIPE_CLOSED: Final = 141  # 128 and SIGPIPE

_JSON: Final = "batonpass.json"

_KEEP: Final = "keep the ledger as it is, and compare it with a backup or an exported bundle"
_WHAT_TO_DO: Final = {
    "verify.missing": f"something was deleted: {_KEEP}",
    "verify.chain": f"receipts were reordered, duplicated or inserted: {_KEEP}",
    "verify.edited": f"it was changed after it was recorded: {_KEEP}",
    "verify.signature": f"the bytes differ from the signed ones: {_KEEP}",
    "verify.unknown_key": "the root key never enrolled this key: `batonpass key list` shows the keys that it did",
    "verify.untrusted_key": "ask whoever runs the ledger for its key, by another way than you got the files",
    "verify.revoked_key": "somebody recorded with a revoked key: find out who still has it",
    "verify.unlinked": f"the receipts of a tree do not fit together: {_KEEP}",
    "verify.content": f"the text differs from the recorded one: {_KEEP}",
    "verify.derived": "the receipts are right and this row is wrong: do not trust lists of runs here",
    "verify.position": f"the order was changed: {_KEEP}",
    "verify.schema": "somebody changed the database itself: keep it as it is, and copy the receipts into a new ledger",
    "verify.seal": "sealed receipts are gone: keep the ledger as it is, and look for a copy that matches the seal",
    "verify.terms": "find out who recorded it: a relay's key wrote a grant that no relay would give",
    "verify.widened": "find out who recorded it: nobody may give this grant, and no call was allowed because of it",
    "verify.certificate": "find out who recorded it: somebody else's key may have acted for this run",
    "verify.ungranted": "find out who recorded it: the guard would have denied it; see `batonpass grant show`",
    "verify.over_limit": "find out who recorded it: the guard allows no call once a limit is used up",
    "verify.uncounted": "find out who recorded it: the relay counts every call under a limit",
    "verify.version": "upgrade batonpass and verify again",
}
_ANOTHER_LEDGER: Final = "this is not the ledger that you expect, or somebody replaced all of it"
_WHERE_TO_LOOK: Final = {
    "run": "`batonpass run list` lists all runs",
    "handoff": "`batonpass handoff list` lists all handoffs",
    "handoff or run": "`batonpass handoff list` and `batonpass run list` list all of them",
    "grant of": "`batonpass grant show` shows what is allowed without a grant",
    "receipt": "`batonpass receipt grep . --since 1h` lists the latest receipts",
    "key": "`batonpass key list` lists all keys",
    "seal": "`batonpass ledger stats` shows how much is sealed, and `batonpass ledger seal` makes a seal",
}


def answer_in_json(context: click.Context, _: click.Parameter, wanted: bool) -> bool:  # noqa: FBT001 - click calls it
    """Remember that this command reports errors as JSON too."""
    context.meta[_JSON] = wanted
    return wanted


def exit_code(error: BatonpassError) -> int:
    """Return the exit code for an error."""
    match error:
        case StoreError():
            return BROKEN
        case InvalidValueError() | UnknownFieldError():
            return USAGE
        case _:
            return NO


@contextmanager
def answered(context: click.Context) -> Iterator[None]:
    """Turn every error inside into one sentence and an exit code."""
    try:
        yield
    except BatonpassError as error:
        if context.meta.get(_JSON):
            say_json({"error": error_shape(error)})
        else:
            tell_error(error)
        context.exit(exit_code(error))
    except (KeyboardInterrupt, click.Abort):
        tell("batonpass: stopped")
        context.exit(INTERRUPTED)
    except BrokenPipeError:
        _leave_quietly()
    except (click.UsageError, click.exceptions.Exit):
        raise
    except click.ClickException as error:
        if context.meta.get(_JSON):
            say_json({"error": {"code": getattr(error, "code", "cli.failed"), "message": error.message}})
        else:
            tell("batonpass: ", paint(error.message, "red"))
        context.exit(NO)
    except OSError as error:
        _tell_trace()
        tell(f"batonpass: {error.filename or 'the output'}: {error.strerror or error}")
        context.exit(BROKEN)
    except Exception as error:  # noqa: BLE001 - the last resort: a person gets a sentence, whatever happened
        _tell_trace()
        tell(
            f"batonpass: internal error: {type(error).__name__}: {error}; this is a bug in Batonpass: "
            f"please report it, with the output of the same command under {DEBUG}=1",
        )
        context.exit(BROKEN)


def tell_error(error: BatonpassError) -> None:
    """Print the error, its place, and the remedy."""
    head, *more = str(error).split("\n")
    if isinstance(error, VerificationError):
        head = error.problem if _is_stream(error.stream) else f"{error.stream}: {error.problem}"
    tell("batonpass: ", paint(head, "red"), " ", paint(f"[{error.code}]", dim=True))
    for line in more:
        tell(line)
    if isinstance(error, VerificationError):
        for name, value in find_places(error):
            tell(f"  {name:<6}  ", value)
        if advice := _ANOTHER_LEDGER if error.field in {"root_key", "origin"} else _WHAT_TO_DO.get(error.code):
            tell("  next    ", advice)
    elif isinstance(error, HandoffEndedError | IllegalTransitionError) and error.possible is not None:
        rest = (
            f"possible: {', '.join(f'`{each}`' for each in error.possible)}"
            if error.possible
            else "nothing more can be done with it"
        )
        tell(f"  it is {error.state}; {rest}")
    elif isinstance(error, NotFoundError) and (advice := _where_to_look(error.what)):
        tell("  ", advice)


def tell_trouble(error: BatonpassError) -> None:
    """Print an error after which the command continues."""
    tell("batonpass: ", paint(str(error), "yellow"), " ", paint(f"[{error.code}]", dim=True), "; continuing")


def _where_to_look(what: str) -> str | None:
    # If it may be of several kinds, the list of runs leads to all of them.
    return _WHERE_TO_LOOK.get(what) or (_WHERE_TO_LOOK["run"] if what.endswith("or run") else None)


def find_places(error: VerificationError) -> Iterator[tuple[str, str]]:
    """Yield the place of a finding, as far as it is known."""
    for name, value in (("stream", error.stream), ("seq", error.seq), ("field", error.field)):
        if value is not None and not (name == "stream" and not _is_stream(error.stream)):
            yield name, str(value)


def _is_stream(named: str | None) -> bool:
    # A finding may also be in a seal, in a line of a bundle, or in no particular place.
    return named is None or "_" in named


def _tell_trace() -> None:
    if os.environ.get(DEBUG):
        import traceback  # noqa: PLC0415 - only for debugging

        for line in traceback.format_exc().splitlines():
            tell(line)


def _leave_quietly() -> NoReturn:
    # The reader of our output has closed the pipe. Python would complain again when it flushes at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_PIPE_CLOSED)
