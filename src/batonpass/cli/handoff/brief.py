"""`batonpass handoff brief`: a baton as its receiver reads it, as a person does, or compared with the hop before."""

from datetime import UTC, datetime
from typing import Final

import click

from batonpass.accounts.handoff.handoff_briefing import brief_handoff
from batonpass.audit.meant_ids import get_handoff
from batonpass.briefing.baton_difference import compare, describe_difference
from batonpass.briefing.person import describe
from batonpass.briefing.render import LIMIT, Briefing
from batonpass.cli.input.id_types import HANDOFF_ID
from batonpass.cli.input.ledger_access import opened_view
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.terminal import say, say_json
from batonpass.errors import NotFoundError
from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.programs.program_briefing import tell_grant
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Item
from batonpass.model.grants.effective_grant import EffectiveGrant
from batonpass.store.port import LedgerView

MODEL: Final = "model"
PERSON: Final = "person"
HOP: Final = "hop"


@click.command("brief")
@click.argument("handoff", metavar="ID", type=HANDOFF_ID)
@click.option(
    "--for",
    "audience",
    type=click.Choice([MODEL, PERSON, HOP]),
    default=MODEL,
    show_default=True,
    help="The text for a model; Markdown for a person; or what the last hop carried, added and left out.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="For a model: at most N characters; the largest parts are replaced by references.",
)
@ledger_and_json
def show_briefing(handoff: str, *, audience: str, limit: int, as_json: bool) -> None:
    """Show the briefing of a handoff: the text for its receiver.

    For a model this is the text that its provider gets, with two differences: control characters are spelled out, and
    the random marker around quoted data is a new one each time.
    """
    with opened_view() as view:
        found = get_handoff(view, handoff)
        baton = read_offer(view, found).baton
        if audience == MODEL:
            briefing, grant = brief_handoff(view, found, datetime.now(UTC), limit=limit)
            said, facts = briefing.text, _briefing_facts(briefing, grant)
        elif audience == PERSON:
            said = describe(baton)
            facts = {"markdown": said}
        else:
            before = _before(view, baton)
            said, facts = describe_difference(before, baton), _hop_facts(before, baton)
    if as_json:
        say_json({"handoff": found.id, "for": audience, **facts})
        return
    for line in said.rstrip("\n").split("\n"):
        say(line)


def _before(view: LedgerView, baton: Baton) -> Baton:
    """Return the baton that the sender was given."""
    sender = view.get_run(baton.parent)
    if sender.handoff is None:
        raise NotFoundError("hop before", f"{baton.sender}, who began with {baton.principal}")
    return read_offer(view, view.get_handoff(sender.handoff)).baton


def _briefing_facts(briefing: Briefing, grant: EffectiveGrant | None) -> dict[str, object]:
    return {
        "marker": briefing.marker,
        "instructions": briefing.instructions,
        "data": briefing.data,
        "deferred": list(briefing.deferred),
        "grant": None if grant is None else tell_grant(grant),
    }


def _hop_facts(before: Baton, after: Baton) -> dict[str, object]:
    found = compare(before, after)
    return {
        "from": before.handoff,
        "whole": found.is_whole,
        **{name: _items(getattr(found, name)) for name in ("carried", "added", "dropped", "lost")},
    }


def _items(items: tuple[Item, ...]) -> list[dict[str, object]]:
    return [{"id": item.id, "part": item.part, "digest": item.digest} for item in items]
