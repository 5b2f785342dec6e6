"""The entry point of the program. `--version` is answered before anything else is loaded."""

import gc
import io
import sys
from typing import Final

from batonpass import __version__

# Container objects before the first garbage collection: more than the modules of any command create. Those live until
# the end, and scanning them after every 700 new ones took a twentieth of the start. A command that runs for days still
# has its garbage collected, some megabytes later.
_MADE_BEFORE_COLLECTING: Final = 50_000


def main() -> None:
    """Run the command line. Input and output are UTF-8 everywhere, because a seal must keep its bytes."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"batonpass {__version__}\n")
        return
    gc.set_threshold(_MADE_BEFORE_COLLECTING)
    from batonpass.cli.nouns import cli  # noqa: PLC0415 - the option parser takes two thirds of the start

    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    try:
        cli(prog_name="batonpass")
    finally:
        # The process ends and everything is closed: searching for reference cycles would be wasted time.
        gc.freeze()
