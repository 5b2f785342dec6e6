"""Broken constraints in words: which one, who set it, and who broke it first."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from batonpass.accounts.trail.first_lines import first_line, sentence_of
from batonpass.accounts.why.constraint_checks import (
    RULE,
    Checked,
    find_broken_by_close,
    find_way,
    read_carried,
    report_of,
)
from batonpass.accounts.why.why_hops import GONE, name_of
from batonpass.accounts.why.why_values import Explanation, Fact, WhyVerdict
from batonpass.audit.short_ids import ending
from batonpass.errors import NotFoundError
from batonpass.guard.constraints.constraints import Check
from batonpass.model.base.ids import ContentId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Item, ItemValue, OpenQuestion
from batonpass.model.bodies.body import Carried, HandoffInitiated, Part, RunRecorded
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.records.text import read_stream
from batonpass.store.port import LedgerView

_MOST: Final = 5


def quoted_sentence(check: Check) -> str:
    """Return a constraint in its author's words, on one line."""
    return f'"{_line(check.constraint)}"'


def constraint_fact(view: LedgerView, item: Item, check: Check) -> Fact:
    """Return which constraint was broken, who set it, and the value found instead."""
    introduced = view.get_content(item.id).receipt
    where = ""
    if introduced is not None:
        where = f" · recorded in {_stream_name(view, view.get_receipt(introduced).stream)}"
    text = f"{quoted_sentence(check)} · set by {item.by}{where} · found: {check.found}"
    return Fact(label="constraint", text=text, receipt=introduced, at=item.at)


def explain_result(view: LedgerView, run: Run) -> Explanation | None:
    """Return the explanation of a result that breaks a constraint; None if it breaks none."""
    broken = find_broken_by_close(view, run)
    if not broken:
        return None
    first = broken[0]
    denied = first.receipt.mode is Mode.ENFORCED
    verdict = WhyVerdict.DENIED if denied else WhyVerdict.ALLOWED
    answered = "enforced, so it was refused" if denied else "observed, so nothing was enforced"
    if first.item is None or first.check is None:
        answer = f"the result of {name_of(run)} breaks a constraint; {answered}; {GONE}"
        fact = Fact.of("rule", RULE, first.receipt)
        return Explanation(verdict=verdict, answer=answer, facts=(fact,), rule=RULE)
    way = list(find_way(view, run, first.check.constraint))
    earliest = next(checked for checked in way if checked.check is not None and not checked.holds)
    answer = f"{name_of(run)} must keep to {quoted_sentence(first.check)}, and in its result {first.found}"
    constraints = (
        constraint_fact(view, each.item, each.check) for each in broken if each.item is not None and each.check
    )
    return Explanation(
        verdict=verdict,
        answer=f"{answer}; {answered}; {_blame(earliest, run)}",
        facts=(*constraints, *_way_facts(way, earliest), *islice(_open_facts(view, earliest.run), _MOST)),
        item=first.item.id,
        rule=RULE,
    )


def _blame(earliest: Checked, run: Run) -> str:
    where = "in its result" if earliest.where == "its result" else f"in {earliest.where}"
    who = "it" if earliest.run.id == run.id else name_of(earliest.run)
    return f"{who} broke it first, {where}"


def _way_facts(way: list[Checked], earliest: Checked) -> Iterator[Fact]:
    """Yield until when it was kept, who broke it first, and how often since."""
    number = way.index(earliest)
    before = [checked for checked in way[:number] if checked.holds]
    if before:
        yield _told("kept last", before[-1], f" · kept {_times(len(before))} until then")
    if unknown := [checked for checked in way[:number] if checked.check is None]:
        yield _told("unclear", unknown[0], f" · {_times(len(unknown))} before it was broken for certain")
    yield _told("broken first", earliest)
    if since := [checked for checked in way[number + 1 :] if not checked.holds]:
        yield _told("broken since", since[-1], f" · {_times(len(since))}, this is the last")


def _told(label: str, checked: Checked, more: str = "") -> Fact:
    handoff = "" if checked.run.handoff is None else f" · handoff {ending(checked.run.handoff)}"
    text = f"by {name_of(checked.run)}{handoff} · {checked.where}, where {checked.found}{more}"
    return Fact.of(label, text, checked.receipt)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _open_facts(view: LedgerView, run: Run) -> Iterator[Fact]:
    """Yield the open questions of a run, in its own words."""
    for receipt in read_stream(view, StreamId(run.id)):
        for question in _questions(view, receipt):
            text = f'{name_of(run)} left open: "{_line(question)}"'
            yield Fact.of("question", text, receipt)


def _questions(view: LedgerView, receipt: Receipt) -> Iterator[OpenQuestion]:
    """Yield the questions that a receipt raises for the first time."""
    refs: list[Carried] = []
    match receipt.body:
        case RunRecorded() as body:
            refs = [ref for ref in body.items if ref.part is Part.QUESTION]
        case HandoffInitiated() as body:
            own = {ref.id for ref in receipt.content.values()}
            refs = [ref for ref in body.carries if ref.part is Part.QUESTION and ref.item in own]
        case _:
            report = report_of(view, receipt)
            yield from () if report is None else report.open_questions
    for item in read_carried(view, refs):
        if isinstance(item.value, OpenQuestion):
            yield item.value


def _line(value: ItemValue) -> str:
    return first_line("reason", ContentId(""), sentence_of(value).encode()).bare


def _stream_name(view: LedgerView, stream: StreamId) -> str:
    try:
        return name_of(view.get_run(RunId(stream)))
    except NotFoundError:
        return f"{stream.partition('_')[0]} {ending(stream)}"
