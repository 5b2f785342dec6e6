"""`batonpass handoff show --proof`: whether intent, constraints and exclusions arrived, and the items left behind."""

import math
from typing import Final

from batonpass.accounts.trail.first_lines import sentence_of
from batonpass.audit.carriage import Carriage, CarriageFault, CarriageFinding, CarriageHop, CarriedWords, Passenger
from batonpass.audit.short_ids import ending
from batonpass.cli.output.sheet import quoted, room
from batonpass.cli.output.terminal import Painted, cut, paint, say, table
from batonpass.cli.output.units import counted
from batonpass.errors import InvalidValueError
from batonpass.model.base.visible import visible
from batonpass.model.bodies.body import Carried, Part
from batonpass.wire.documents import decode_item

_MOST: Final = 12
_HOPS: Final = 30
_FAULTS: Final = {
    CarriageFault.LOST: "was lost",
    CarriageFault.CHANGED: "was changed",
    CarriageFault.UNRECORDED: "appears although nobody recorded it",
    CarriageFault.NOT_ENTITLED: "was relaxed by somebody who may not",
    CarriageFault.ALTERED: "has a text that differs from its digest",
}


def carriage_facts(carriage: Carriage) -> dict[str, object]:
    """Return the proof for programs."""
    return {
        "handoff": carriage.handoff,
        "root": carriage.root,
        "principal": carriage.principal,
        "binds": carriage.binds,
        "fidelity": fidelity_facts(carriage),
        "whole": carriage.whole,
        "hops": [_hop_facts(hop) for hop in carriage.hops],
        "items": [_item_facts(item) for item in carriage.items],
        "left": [
            {**_item_facts(item), "hop": hop.number, "by": hop.run, "chosen": not hop.abridged}
            for hop, item in _left(carriage)
        ],
        "later": [_item_facts(item) for item in carriage.later],
        "findings": [
            {
                "fault": finding.fault,
                "hop": finding.hop,
                "item": None if finding.ref is None else _ref_facts(finding.ref),
                "receipt": finding.receipt,
                "sentence": sentence(carriage, finding),
            }
            for finding in carriage.findings
        ],
    }


def fidelity_facts(carriage: Carriage) -> dict[str, object]:
    """Return the share of upstream items that arrived: one figure, and where the others were left."""
    return {
        "figure": round(carriage.fidelity, 3),
        "upstream": carriage.upstream,
        "arrived": carriage.kept,
        "hops": [
            {
                "hop": hop.number,
                "from": hop.sender,
                "to": hop.to,
                "had": hop.had,
                "passed": hop.passed,
                "dropped": hop.dropped,
                "abridged": hop.cut,
                "figure": round(hop.fidelity, 3),
            }
            for hop in carriage.hops
        ],
    }


def fidelity_words(carriage: Carriage) -> str:
    """Return the share of upstream items that arrived, and where the others were left, in words."""
    if not carriage.upstream:
        return "nothing was known upstream"
    # Rounded down: only a complete carriage is 100 %.
    share = f"{math.floor(carriage.fidelity * 100)} %: {carriage.kept} of {counted(carriage.upstream, 'item')} upstream"
    losses = [
        f"hop {hop.number} {' and '.join(parts)}"
        for hop in carriage.hops
        if (parts := [f"{verb} {count}" for verb, count in (("dropped", hop.dropped), ("abridged", hop.cut)) if count])
    ]
    return f"{share} · {', '.join(losses)}" if losses else share


def say_carriage(carriage: Carriage) -> None:
    """Print the proof: each hop, each item, and the verdict last."""
    columns = room()
    _say_hops(carriage)
    _say_items("items", carriage.items, columns)
    relaxed = [(hop, each) for hop in carriage.hops for each in hop.relaxed]
    if relaxed:
        say()
        say(paint("relaxed", bold=True))
        for hop, each in relaxed[:_MOST]:
            words = _words_of_ref(carriage, each.ref)
            line = visible(f"  hop {hop.number}: {words} by {each.by} · receipt {ending(each.receipt, 6)}")
            say(Painted(cut(line, columns)))
        _say_rest(len(relaxed))
    _say_items("recorded later or elsewhere, and not carried", carriage.later, columns)
    say()
    for finding in carriage.findings[:_MOST]:
        say(paint(cut(visible(f"not whole: {sentence(carriage, finding)}"), 2 * columns), "red"))
    _say_rest(len(carriage.findings))
    for hop, item in _left(carriage)[:_MOST]:
        how = "because there were too many" if hop.abridged else "by its choice"
        who = f"{hop.sender} {ending(hop.run)} did not hand it on to {hop.to}, {how}"
        what = f"{item.ref.part} {ending(item.ref.item, 6)} {words_of(item)}"
        say(paint(cut(visible(f"left behind at hop {hop.number}: {what}: {who}"), 2 * columns), "yellow"))
    _say_rest(len(carriage.left))
    if carriage.binds:
        binding = f"{counted(len(carriage.arrived), 'item')} over {counted(len(carriage.hops), 'hop')}, byte for byte"
        said = f"whole: {binding}" if carriage.whole else f"all that is binding arrived: {binding}"
        gone = sum(item.words is not CarriedWords.KEPT for item in carriage.arrived)
        rest = f"; the text of {gone} is no longer here, only the digest" if gone else ""
        say(paint(said, "green"), rest)


def _left(carriage: Carriage) -> list[tuple[CarriageHop, Passenger]]:
    items = {item.ref.item: item for item in carriage.left}
    return [(hop, items[ref.item]) for hop in carriage.hops for ref in hop.left]


def sentence(carriage: Carriage, finding: CarriageFinding) -> str:
    """Return a finding as a sentence: the fault and its place."""
    hop = carriage.hops[finding.hop - 1]
    where = f"at hop {hop.number}, where {hop.sender} {ending(hop.run)} handed off to {hop.to}"
    receipt = f"(receipt {ending(finding.receipt, 6)})"
    if finding.ref is None:
        return f"{hop.to} accepted a baton that differs from the offered one {where} {receipt}"
    return f"{_words_of_ref(carriage, finding.ref)} {_FAULTS[finding.fault]} {where} {receipt}"


def _say_hops(carriage: Carriage) -> None:
    hops = carriage.hops
    shown = hops if len(hops) <= _HOPS else (*hops[: _HOPS // 2], *hops[-_HOPS // 2 :])
    table(
        [_hop_row(carriage, hop) for hop in shown],
        header=("hop", "from", "to", "offer", "items", "same", "accepted", "on the way"),
    )
    if len(shown) < len(hops):
        say(paint(f"… {len(hops) - len(shown)} hops in between are not shown; --json has all", dim=True))


def _hop_row(carriage: Carriage, hop: CarriageHop) -> list[str]:
    faults = [finding for finding in carriage.findings if finding.hop == hop.number]
    changes = [f"+{counted(count, part)}" for part, count in _parts(hop.added)]
    changes += [f"-{counted(count, part)} relaxed" for part, count in _parts(tuple(each.ref for each in hop.relaxed))]
    mark = paint(" ".join(f"{finding.fault}!" for finding in faults), "red") if faults else Painted("")
    return [
        str(hop.number),
        f"{hop.sender} {ending(hop.run)}",
        hop.to,
        ending(hop.receipt, 6),
        str(len(hop.carried)),
        str(hop.same),
        _accepted(hop),
        Painted(" ".join(filter(None, [*map(visible, changes), mark]))),
    ]


def _accepted(hop: CarriageHop) -> str:
    if hop.accepted is None:
        return "not yet"
    attempt = f" ({hop.attempt})" if hop.attempt is not None and hop.attempt > 1 else ""
    return f"{ending(hop.accepted, 6)}{attempt}" + ("" if hop.countersigned else " unsigned")


def _parts(refs: tuple[Carried, ...]) -> list[tuple[str, int]]:
    found = {part: sum(ref.part is part for ref in refs) for part in (Part.INTENT, Part.CONSTRAINT, Part.EXCLUSION)}
    return [("statement" if part is Part.INTENT else str(part), count) for part, count in found.items() if count]


def _say_items(title: str, items: tuple[Passenger, ...], columns: int) -> None:
    if not items:
        return
    say()
    say(paint(title, bold=True))
    rows = []
    for item in items[:_MOST]:
        origin = item.origin
        source = "nobody" if origin is None else f"{origin.by} · {ending(origin.receipt, 6)}"
        if origin is not None and origin.at_hop is None:
            source += f" in {ending(origin.run)}"
        rows.append([item.ref.part, ending(item.ref.item, 6), item.ref.digest[:12], source, words_of(item)])
    used = sum(max(len(cell) for cell in column) + 2 for column in list(zip(*rows, strict=True))[:-1])
    table([[*row[:-1], cut(visible(row[-1]), max(20, columns - 2 - used))] for row in rows], indent="  ")
    _say_rest(len(items))


def _say_rest(count: int) -> None:
    if count > _MOST:
        say(paint(f"  … {count - _MOST:,} more; --json has all", dim=True))


def _words_of_ref(carriage: Carriage, ref: Carried) -> str:
    item = next((item for item in carriage.items if item.ref.item == ref.item), None)
    return f"{ref.part} {ending(ref.item, 6)}" + ("" if item is None else f" {words_of(item)}")


def words_of(item: Passenger) -> str:
    """Return the text of an item in quotation marks, or why it is not here."""
    if item.words is CarriedWords.ERASED:
        return "text erased"
    if item.body is None:
        return "text not here" if item.words is CarriedWords.ABSENT else "text altered"
    text = _text(item)
    return f"{len(item.body):,} bytes" if text is None else quoted(text, 60)


def _ref_facts(ref: Carried) -> dict[str, object]:
    return {"id": ref.item, "digest": ref.digest, "part": ref.part}


def _item_facts(item: Passenger) -> dict[str, object]:
    origin = item.origin
    return {
        **_ref_facts(item.ref),
        "arrived": item.arrived,
        "words": item.words,
        "text": _text(item),
        "origin": None
        if origin is None
        else {"receipt": origin.receipt, "run": origin.run, "by": origin.by, "hop": origin.at_hop},
    }


def _text(item: Passenger) -> str | None:
    if item.body is None:
        return None
    if item.ref.part is Part.INTENT:
        return item.body.decode("utf-8", "replace")
    try:
        value, _, _ = decode_item(item.body)
    except InvalidValueError:
        return None
    return sentence_of(value)


def _hop_facts(hop: CarriageHop) -> dict[str, object]:
    return {
        "hop": hop.number,
        "handoff": hop.handoff,
        "from": hop.sender,
        "run": hop.run,
        "to": hop.to,
        "offer": hop.receipt,
        "items": [_ref_facts(ref) for ref in hop.carried],
        "same": hop.same,
        "added": [ref.item for ref in hop.added],
        "relaxed": [{"item": each.ref.item, "receipt": each.receipt, "by": each.by} for each in hop.relaxed],
        "accepted": hop.accepted,
        "attempt": hop.attempt,
        "countersigned": hop.countersigned,
    }
