"""What an error means to whoever called: one sentence, and an exit code. The only place that knows both.

0 yes, 1 no, 2 wrong usage, 3 broken. With `--json`, an error is an object on stdout, where a program reads; else it is
words on stderr.
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

DEBUG: Final = "BATONPASS_DEBUG"

NO: Final = 1
USAGE: Final = 2
BROKEN: Final = 3
INTERRUPTED: Final = 130  # 128 and SIGINT, as shells count
_PIPE_CLOSED: Final = 141  # 128 and SIGPIPE

_JSON: Final = "batonpass.json"

_KEEP: Final = "keep it as it is, and compare it with a backup or an exported bundle"
_WHAT_TO_DO: Final = {
    "verify.missing": f"something was deleted: {_KEEP}",
    "verify.chain": f"receipts were reordered, doubled or spliced in: {_KEEP}",
    "verify.edited": f"it was changed after it was recorded: {_KEEP}",
    "verify.signature": f"these bytes are not those that were signed: {_KEEP}",
    "verify.unknown_key": "the root key never let this key record: `batonpass key list` shows which it did",
    "verify.revoked_key": "somebody recorded with a key after it was revoked: find out who still has it",
    "verify.unlinked": f"a tree does not hang together: {_KEEP}",
    "verify.content": f"these words are not those that were recorded: {_KEEP}",
    "verify.derived": "the receipts are the truth and this row is not: do not trust lists of runs here",
    "verify.position": f"the order was changed: {_KEEP}",
    "verify.schema": "somebody changed the database itself: keep it as it is, and copy the receipts into a new ledger",
    "verify.seal": "what was sealed is gone: keep the ledger as it is, and look for a copy that the seal fits",
    "verify.terms": "find out who recorded it: a relay's key wrote a grant that no relay would give",
    "verify.widened": "find out who recorded it: nobody could give that, and no call was let through because of it",
    "verify.certificate": "find out who recorded it: somebody else's key may have acted for that run",
    "verify.ungranted": "find out who recorded it: no guard lets it through; `batonpass grant show` has the grant",
    "verify.over_limit": "find out who recorded it: no guard makes a call when nothing is left of its limit",
    "verify.uncounted": "find out who recorded it: every call under a limit is counted where the limit is",
    "verify.version": "upgrade batonpass and verify again",
}
_ANOTHER_LEDGER: Final = "this is another ledger than you think, or somebody replaced all of it"
_WHERE_TO_LOOK: Final = {
    "run": "`batonpass run list` shows what there is",
    "handoff": "`batonpass handoff list` shows what there is",
    "handoff or run": "`batonpass handoff list` and `batonpass run list` show what there is",
    "grant of": "`batonpass grant show` says what may be done without one",
    "receipt": "`batonpass receipt grep . --since 1h` shows what there is",
    "key": "`batonpass key list` shows what there is",
    "seal": "`batonpass ledger stats` says how much is sealed, and `batonpass ledger seal` makes one",
}


def answer_in_json(context: click.Context, _: click.Parameter, wanted: bool) -> bool:  # noqa: FBT001 - click calls it
    """Remember that errors of this command are to be JSON as well."""
    context.meta[_JSON] = wanted
    return wanted


def exit_code(error: BatonpassError) -> int:
    """Return the exit code that an error means."""
    match error:
        case StoreError():
            return BROKEN
        case InvalidValueError() | UnknownFieldError():
            return USAGE
        case _:
            return NO


@contextmanager
def answered(context: click.Context) -> Iterator[None]:
    """Turn whatever goes wrong inside into one sentence and an exit code."""
    try:
        yield
    except BatonpassError as error:
        if context.meta.get(_JSON):
            say_json({"error": describe(error)})
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
            f"batonpass: internal error: {type(error).__name__}: {error}; this is a mistake of ours: "
            f"please report it with what the same command prints under {DEBUG}=1",
        )
        context.exit(BROKEN)


def describe(error: BatonpassError) -> dict[str, object]:
    """Return an error as programs get it: the code, the sentence, and the facts that the error carries."""
    facts = {name: value for name, value in vars(error).items() if isinstance(value, str | int | tuple)}
    return {"code": error.code, "message": str(error), **facts}


def tell_error(error: BatonpassError) -> None:
    """Tell a person what is wrong, where, and what to do."""
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
            else "nothing is left to do about it"
        )
        tell(f"  it is {error.state}; {rest}")
    elif isinstance(error, NotFoundError) and (advice := _where_to_look(error.what)):
        tell("  ", advice)


def _where_to_look(what: str) -> str | None:
    # Where several kinds of things may be meant, runs lead to all of them.
    return _WHERE_TO_LOOK.get(what) or (_WHERE_TO_LOOK["run"] if what.endswith("or run") else None)


def find_places(error: VerificationError) -> Iterator[tuple[str, str]]:
    """Yield where a finding is, as far as it is known."""
    for name, value in (("stream", error.stream), ("seq", error.seq), ("field", error.field)):
        if value is not None and not (name == "stream" and not _is_stream(error.stream)):
            yield name, str(value)


def _is_stream(named: str | None) -> bool:
    # A finding may also stand in a seal, a line of a bundle, or nowhere in particular.
    return named is None or "_" in named


def _tell_trace() -> None:
    if os.environ.get(DEBUG):
        import traceback  # noqa: PLC0415 - when something went wrong, and somebody wants to know where

        for line in traceback.format_exc().splitlines():
            tell(line)


def _leave_quietly() -> NoReturn:
    # Whoever read our output has enough. Python would complain about it once more when it flushes at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_PIPE_CLOSED)
