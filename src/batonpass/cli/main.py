"""Where the program begins. Which version this is, it says before anything is loaded."""

import io
import sys

from batonpass import __version__


def main() -> None:
    """Run the command line. What we read and print is UTF-8, wherever we are: a seal must keep its bytes."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"batonpass {__version__}\n")
        return
    from batonpass.cli.door import cli  # noqa: PLC0415 - the parser of options is two thirds of a start

    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    cli(prog_name="batonpass")
