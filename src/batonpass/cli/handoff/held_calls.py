"""The calls of open runs that wait for an approval, as a table."""

from batonpass.accounts.held_calls import WaitingCall
from batonpass.audit.short_ids import ending, telling_length
from batonpass.cli.output.terminal import paint, say, table
from batonpass.cli.output.units import minute


def say_waiting(calls: list[WaitingCall]) -> None:
    """Print waiting calls as a table."""
    if not calls:
        return
    say()
    length = telling_length([each.held.id for each in calls])
    table(
        [
            [
                ending(each.held.id, length),
                f"{each.run.agent} {ending(each.run.id)}",
                paint("held", "yellow"),
                minute(each.at),
                f"{each.held.tool} {each.target or ''}".rstrip(),
            ]
            for each in calls
        ],
        header=("call", "run", "state", "since", "tool"),
    )
