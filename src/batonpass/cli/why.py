"""`batonpass why`: explain why something was allowed, denied or held."""

import re
from typing import Final

import click

from batonpass.accounts.why.why import explain
from batonpass.accounts.why.why_hops import GONE, quoted
from batonpass.accounts.why.why_values import Fact, Why, WhyHop, WhyVerdict
from batonpass.audit.short_ids import ending
from batonpass.cli.input.id_types import ANY_ID
from batonpass.cli.input.ledger_access import opened_view
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.terminal import Painted, paint, say, say_json, table
from batonpass.cli.output.units import moment
from batonpass.model.base.kinds import Mode
from batonpass.model.base.visible import visible
from batonpass.records.json_shapes import exact, text_shape

_COLOURS: Final = {
    WhyVerdict.ALLOWED: "green",
    WhyVerdict.DENIED: "red",
    WhyVerdict.DECLINED: "red",
    WhyVerdict.CANCELLED: "magenta",
    WhyVerdict.EXPIRED: "magenta",
    WhyVerdict.EXCEEDED: "red",
}
_MOST: Final = 5
_LINE: Final = re.compile(r".+:\d+(?:-\d+)?", re.DOTALL)
_HELD: Final = {
    (Mode.ENFORCED, True): "enforced",
    (Mode.ENFORCED, False): "enforced; no grant is recorded",
    (Mode.OBSERVED, True): "observed: the grant is only tried out",
    (Mode.OBSERVED, False): "no grant: observed",
}


@click.command()
@click.argument("given", metavar="ID", type=ANY_ID)
@ledger_and_json
def command(given: str, *, as_json: bool) -> None:
    """Explain why something was allowed, denied or held.

    The first line is the answer. Below it are the facts behind it, and every hop up to the human. ID is the end of the
    id of a receipt, a call, a run or a handoff; an agent's name; or `last`, the latest decision.
    """
    if _LINE.fullmatch(given):
        raise click.UsageError(f"{given!r} is a line of a file: `batonpass blame` says who wrote it, and why")
    with opened_view() as view:
        why = explain(view, given)
    if as_json:
        say_json(why_facts(why))
        return
    # The answer is never cut: a narrow terminal gets more lines.
    table([[paint(why.verdict, _COLOURS.get(why.verdict, "yellow"), bold=True), why.answer]], gap=": ", fold=True)
    rows = [_fact_row(fact) for fact in why.facts]
    table([[paint(label, dim=True), text] for label, text in rows], indent="  ", fold=True)
    if why.hops:
        say()
        say(paint("hop by hop", bold=True))
        hops = [[paint(hop.name, bold=True), "; ".join(_hop_parts(hop))] for hop in why.hops]
        human = [paint(why.principal or "", bold=True), quoted(why.intent)]
        table([*hops, human], indent="  ", fold=True)
    say()
    at = "" if why.at is None else f" · {moment(why.at)}"
    rule = "" if why.rule is None else f" · rule {why.rule}"
    mark = "" if why.mark is None else f" · {why.mark}"
    say(paint(f"{why.kind} {why.id} · {why.mode}{rule}{at}{mark}", dim=True))


def _fact_row(fact: Fact) -> tuple[str, Painted]:
    where = "" if fact.receipt is None else f" · receipt {ending(fact.receipt, 6)}"
    return fact.label, Painted(visible(fact.text) + paint(where, dim=True))


def _by(hop: WhyHop) -> str:
    return f"asked for by {hop.asked_by}" if hop.granted_by is None else f"granted by {hop.granted_by}"


def _hop_parts(hop: WhyHop) -> list[str]:
    parts = []
    if hop.may is None:
        parts.append(f"may: {GONE}")
    elif hop.may:
        whose = "" if hop.asked_by is None else f" ({_by(hop)})"
        parts.append(f"may {', '.join(hop.may[:_MOST])}{' …' * (len(hop.may) > _MOST)}{whose}")
    elif hop.asked_by is not None:
        parts.append(f"{hop.asked_by} asked for nothing in particular")
    parts.append(_HELD[hop.mode, hop.granted])
    if hop.carried is not None:
        parts.append("the constraint was carried here" if hop.carried else "the constraint was not carried here")
    parts += [f"{fact.label} {fact.text}" for fact in hop.approvals] or (
        [] if hop.handoff is None else ["approval: none needed"]
    )
    return parts


def why_facts(why: Why) -> dict[str, object]:
    """Return an answer for programs."""
    return {
        "verdict": why.verdict,
        "answer": why.sentence,
        "kind": why.kind,
        "id": why.id,
        "receipt": why.receipt,
        "at": exact(why.at),
        "mode": why.mode,
        "imported": why.mark,
        "rule": why.rule,
        "facts": why.facts,
        "hops": [
            {
                "name": hop.name,
                "run": hop.run,
                "handoff": hop.handoff,
                "mode": hop.mode,
                "may": hop.may,
                "asked_by": hop.asked_by,
                "granted_by": hop.granted_by,
                "task": text_shape(hop.task),
                "offer": hop.offer,
                "carried": hop.carried,
                "approvals": hop.approvals,
            }
            for hop in why.hops
        ],
        "principal": why.principal,
        "intent": text_shape(why.intent),
    }
