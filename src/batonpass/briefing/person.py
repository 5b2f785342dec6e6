"""A briefing for a person: the baton as Markdown, with all active characters escaped."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from batonpass.briefing.sections import SUSPECT, YOUR_TASK, Piece, describe_budget, opening_of, pieces_of
from batonpass.model.baton.baton import SUSPECT_WORDS, Answer, Baton

# Characters that have a meaning in Markdown or HTML.
_ACTIVE: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


def describe(baton: Baton) -> str:
    """Return a baton as Markdown. Files are named; their content is not shown."""
    parts = [f"**{escaped(opening_of(baton))}**"]
    for heading, group in groupby(pieces_of(baton), key=lambda piece: piece.heading):
        lines = [f"## {heading}", "", *map(_entry, group)]
        if heading == YOUR_TASK:
            lines += _terms(baton)
        parts.append("\n".join(lines))
    if baton.answers:
        told = (f"- {escaped(one.question)} → {escaped(one.by)}: {escaped(_answer(one))}" for one in baton.answers)
        parts.append("\n".join(("## Asked before it began", "", *told)))
    if baton.missing:
        parts.append(f"Nobody said anything about: {', '.join(map(escaped, baton.missing))}.")
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Return a text as one line of Markdown, character by character; unprintable ones by their number."""
    shown = "".join(one if one.isprintable() else " ⏎ " if one == "\n" else f"⟨U+{ord(one):04X}⟩" for one in text)
    return _ACTIVE.sub(r"\\\1", shown)


def _answer(one: Answer) -> str:
    return SUSPECT_WORDS.format("answer") if one.suspect else one.answer


def _entry(piece: Piece) -> str:
    facts = dict(piece.facts)
    if piece.heading == SUSPECT:
        where = facts.get("field") or facts.get("part") or facts.get("name", "")
        return f"- {escaped(piece.text)} *({escaped(where)} by {escaped(facts.get('by') or facts.get('from', ''))})*"
    if facts:
        told = f"{facts['type']}, {int(facts['bytes']):,} bytes, from {facts['from']}, sha256 {facts['sha256'][:12]}"
        return f"- {escaped(facts['name'])} ({escaped(told)})"
    around = "; ".join(one for one in (piece.lead, piece.note) if one)
    return f"- {escaped(piece.text)}" + (f" *({escaped(around)})*" if around else "")


def _terms(baton: Baton) -> Iterator[str]:
    said = baton.brief
    for name, label, values in (
        ("serves", "serves", (said.serves,) if said.serves else ()),
        ("criteria", "done well when", said.criteria),
        ("inputs", "needs", said.inputs),
        ("expects", "must change", said.expects),
        ("stop_when", "stops when", said.stop_when),
        ("may", "may", said.may),
        ("verify_by", "verified by", (" ".join(said.verify_by),) if said.verify_by else ()),
        ("deadline", "deadline", (f"{baton.deadline:%Y-%m-%d %H:%M:%S} UTC",) if baton.deadline else ()),
        ("budget", "budget", (describe_budget(said.budget),) if said.budget else ()),
    ):
        if values and name not in baton.suspect:
            yield f"- {label}: {'; '.join(map(escaped, values))}"
