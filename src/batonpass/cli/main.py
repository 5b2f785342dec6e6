"""Where the program begins. Which version this is, it says before anything is loaded."""

import gc
import io
import sys
from typing import Final

from batonpass import __version__

# Containers that are made before Python looks for garbage among them: more than the modules of any command make. Those
# stay until the end, and to go through them whenever there are 700 more was a twentieth of a start. A command that
# goes on for days still has its garbage collected, some megabytes later.
_MADE_BEFORE_COLLECTING: Final = 50_000


def main() -> None:
    """Run the command line. What we read and print is UTF-8, wherever we are: a seal must keep its bytes."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"batonpass {__version__}\n")
        return
    gc.set_threshold(_MADE_BEFORE_COLLECTING)
    from batonpass.cli.nouns import cli  # noqa: PLC0415 - the parser of options is two thirds of a start

    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    try:
        cli(prog_name="batonpass")
    finally:
        # The process ends, and all that has to be closed was closed: nobody needs to search the rest for cycles.
        gc.freeze()
