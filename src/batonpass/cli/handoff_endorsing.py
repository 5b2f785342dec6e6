"""`batonpass handoff endorse`: a person answers for content from outside."""

import click

from batonpass.audit.lookup import ending
from batonpass.audit.meant import choose, get_handoff
from batonpass.cli.handoff_chosen import by_option, reason_option
from batonpass.cli.ids import HANDOFF_ID
from batonpass.cli.opening import opened_relay, viewed
from batonpass.cli.options import json_option, ledger_option
from batonpass.cli.printing import say, say_json, tell
from batonpass.handoff.transfer.taint_received import find_sources
from batonpass.model.label import Source


@click.command()
@click.argument("handoff", metavar="ID", type=HANDOFF_ID)
@click.argument("source", metavar="SOURCE")
@by_option
@reason_option()
@json_option
@ledger_option
def endorse(handoff: str, source: str, *, by: str, reason: str, as_json: bool) -> None:
    """Answer for content from outside, so that it no longer taints.

    SOURCE is the end of the id of the call that returned it, or of the item that it is: `batonpass taint ID` names
    them. What came from elsewhere still taints. Only a person can; it takes effect from now on, in every attempt at
    the handoff.
    """
    with opened_relay() as relay:
        with viewed(relay.store) as view:
            found = get_handoff(view, handoff)
            standing = tuple(find_sources(view, found.id))
        meant = _meant(standing, source)
        relay.handoff(found.id).endorse(meant, by=by, reason=reason)
        left = tuple(one for one in standing if one != meant)
    if as_json:
        say_json({"handoff": found.id, "endorsed": meant, "by": by, "left": list(left)})
        return
    say(f"{found.to} {ending(found.id)} · {by} answers for {ending(meant)} (unproven)")
    if left:
        tell(f"  still from outside: {', '.join(ending(one) for one in left)}")


def _meant(standing: tuple[Source, ...], given: str) -> Source:
    return choose(
        given,
        "content from outside that taints it",
        named=lambda _: (),
        ended=lambda end: (source for source in standing if source.endswith(end)),
        lines=lambda found: (f"{ending(source, 8)} · {source.partition('_')[0]}" for source in found),
    )
