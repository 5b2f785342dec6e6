"""The drafter, as a program of its own: `python -m batonpass.demo.drafter HANDOFF`, in the folder of the analysis.

When the summary is half done it says so on stdout, and waits for a word on stdin. It is killed there, or goes on.
"""

import sys

from batonpass import Relay
from batonpass.demo.analysis import AT_HALF, draft


def main(handoff: str) -> None:
    """Accept the handoff and do its work."""
    AT_HALF.append(_wait)
    with Relay.open(create=False) as relay, relay.handoff(handoff).accept() as run:
        draft(run)


def _wait() -> None:
    sys.stdout.write("half\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1])
