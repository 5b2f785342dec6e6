"""Long output in a pager, as git does it: only on a terminal, and with the program that the person chose.

The pager is `$PAGER`, or `less`; an empty `$PAGER` or `cat` means none. It never comes from a repository's settings.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from batonpass.cli.output.terminal import Painted, is_plain, is_terminal, say, uncoloured

# As git sets them, if the person has not: leave at once if all fits, show colours, leave the text on the screen; and
# cut long lines instead of folding them, since the code is behind a column of authors.
_LESS: Final = {"LESS": "FRSX", "LV": "-c"}
_SHELL_WORDS: Final = frozenset("|&;<>()$`\\\"' \t\n*?[#~=%")


def page(lines: Iterable[Painted], *, wanted: bool = True) -> None:
    """Print lines in a pager if a person looks at the terminal and wants one."""
    command = _pager() if wanted and is_terminal() else None
    if command is None:
        for line in lines:
            say(line)
        return
    _show(command, lines)


def _show(command: list[str], lines: Iterable[Painted]) -> None:
    import subprocess  # noqa: PLC0415 - only where somebody looks

    rows = [uncoloured(line) for line in lines] if is_plain() else list(lines)
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env={**_LESS, **os.environ})  # noqa: S603 - the person's own pager
    except OSError:
        for row in rows:
            say(Painted(row))
        return
    with _uninterrupted(), process:
        # It does not mind a person who leaves before the end.
        process.communicate("".join(f"{row}\n" for row in rows).encode("utf-8", "backslashreplace"))


def _pager() -> list[str] | None:
    chosen = os.environ.get("PAGER", "less").strip()
    if chosen in {"", "cat"} or os.environ.get("TERM") == "dumb":
        return None
    # A person writes a command line there; a shell reads it, as git has one do.
    return ["/bin/sh", "-c", chosen] if _SHELL_WORDS & set(chosen) else [chosen]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Leave Ctrl-C to the pager, which means something else by it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
