"""Findings about state that travels: constraints, questions, results that no longer stand, and who verified them."""

import re
from collections.abc import Iterator
from typing import Final

from batonpass.audit.carriage import CarriageFault, prove_carriage
from batonpass.errors import EditedError, NotFoundError
from batonpass.guard.constraints.comparison import ORDERING, Fit, compare
from batonpass.guard.constraints.conditions import ConditionFinding, ConditionVerdict, KnownWorld, evaluate
from batonpass.model.base.ids import ContentId, HandoffId, RunId
from batonpass.model.base.kinds import Carried, Part
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import ABRIDGED, INHERITED
from batonpass.model.baton.items import Constraint, Decision, Operator, RejectedPath
from batonpass.model.bodies.body import HandoffAccepted, HandoffInitiated, RunRecorded, RunRelaxed, VerificationWaived
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.handoff import ResultVerdict, Standing
from batonpass.records.item import find_value
from batonpass.records.stale_results import describe_input, find_stale
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import listed, quoted
from batonpass.review.reviewed_tree import ReviewedTree

LOST_CONSTRAINT: Final = FindingKind(
    code="lost-constraint",
    title="Lost constraint",
    severity=Severity.HIGH,
    matters="What binds everybody below did not arrive, or arrived changed, so nobody below could keep to it.",
    mast="1.4",
    owasp="ASI07",
)
RELAXED_CONSTRAINT: Final = FindingKind(
    code="relaxed-constraint",
    title="Relaxed constraint",
    severity=Severity.LOW,
    matters="Somebody lifted or widened a constraint during the work; its author may not know.",
    mast="1.1",
)
UNANSWERED_QUESTION: Final = FindingKind(
    code="unanswered-question",
    title="Unanswered blocking question",
    severity=Severity.MEDIUM,
    matters="Work began, or waits, although a question that blocks it has no answer.",
    mast="2.2",
)
SUPPRESSED_QUESTION: Final = FindingKind(
    code="suppressed-question",
    title="Suppressed question",
    severity=Severity.LOW,
    matters="The receiver saw a gap and did not ask, because it was only observed or a limit kept it from asking.",
    mast="2.2",
)
RETRIED_PATH: Final = FindingKind(
    code="retried-path",
    title="Retried rejected path",
    severity=Severity.MEDIUM,
    matters="An agent was told to do, or decided for, what had been tried and rejected before.",
    mast="2.5",
)
STALE_STATE: Final = FindingKind(
    code="stale-state",
    title="Stale state",
    severity=Severity.MEDIUM,
    matters="Work stands on a result or a decision that no longer held, and was not told.",
    mast="2.5",
    owasp="ASI06",
)
ABRIDGED_STATE: Final = FindingKind(
    code="abridged-state",
    title="Abridged state",
    severity=Severity.LOW,
    matters="A baton was too large, so the receiver did not get everything that its sender had.",
    mast="1.4",
)
SELF_VERIFIED: Final = FindingKind(
    code="self-verified",
    title="Verified by its producer",
    severity=Severity.MEDIUM,
    matters="Only whoever delivered the result says that it holds.",
    mast="3.3",
)

_LOST: Final = frozenset({CarriageFault.LOST, CarriageFault.CHANGED, CarriageFault.NOT_ENTITLED})
_QUESTION_OPEN: Final = "data-gap.question-open"
_REJECTED: Final = "signal-corruption.rejected-path"
_LITTLE: Final = frozenset({"a", "an", "the", "to", "of", "in", "on", "by", "with", "it"})


def find_lost_constraints(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the offers that left out, changed or lifted without right a bound on everybody below."""
    for handoff in tree.handoffs.values():
        if _carries_all(tree, handoff):
            continue
        try:
            carriage = prove_carriage(tree.view, handoff)
        except (EditedError, NotFoundError):
            continue  # the receipts do not lead up to the root: `ledger verify` says where
        # Of a chain, only its last hop: a fault further up is found at that handoff.
        faults = [one for one in carriage.findings if one.fault in _LOST and one.hop == len(carriage.hops)]
        if faults:
            names = listed(f"{_name(tree, one.ref)} ({one.fault})" for one in faults)
            offer, _ = tree.offers[handoff.id]
            yield tree.found(
                LOST_CONSTRAINT,
                handoff,
                f"{tree.runs[handoff.parent].agent} handed off to {handoff.to} without {names}",
                (offer,),
                by=handoff.parent,
            )


def _carries_all(tree: ReviewedTree, handoff: Handoff) -> bool:
    """Return whether an offer plainly carries all that bound its sender; if not, it is looked at closely."""
    offer, body = tree.offers[handoff.id]
    carried = {ref.item: ref.digest for ref in body.carries}
    return all(carried.get(ref.item) == ref.digest for ref in _bound(tree, handoff, offer.seq))


def _bound(tree: ReviewedTree, handoff: Handoff, seq: int) -> Iterator[Carried]:
    sender = tree.runs[handoff.parent]
    if sender.handoff is not None and sender.handoff in tree.offers:
        yield from (ref for ref in tree.offers[sender.handoff][1].carries if ref.part in INHERITED)
    for receipt in tree.streams[sender.id]:
        if receipt.seq < seq and isinstance(receipt.body, RunRecorded):
            yield from (ref for ref in receipt.body.items if ref.part in INHERITED)


def _name(tree: ReviewedTree, ref: Carried | None) -> str:
    said = "" if ref is None else _said(tree, ref.item)
    part = "the baton" if ref is None else f"the {ref.part}"
    return f"{part} {quoted(said)}" if said else part


def _said(tree: ReviewedTree, item: ContentId) -> str:
    value = find_value(tree.view, item)
    return "" if value is None else str(getattr(value, "sentence", "") or getattr(value, "text", ""))


def find_relaxed_constraints(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the constraints that somebody lifted, and those that a sender passed on with more room."""
    yield from _find_looser(tree)
    for receipt in tree.receipts:
        if isinstance(receipt.body, RunRelaxed):
            run = tree.runs[receipt.body.run]
            yield tree.found(
                RELAXED_CONSTRAINT,
                tree.work(run.id),
                f"{receipt.body.by} lifted {_lifted(tree, receipt.body)} for {run.agent} and everybody below",
                (receipt,),
            )


def _lifted(tree: ReviewedTree, body: RunRelaxed) -> str:
    said = _said(tree, body.item)
    return quoted(said) if said else "a constraint"


def _find_looser(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the offers whose sender adds a bound that is wider than one which binds it."""
    for handoff in tree.handoffs.values():
        offer, body = tree.offers[handoff.id]
        refs = [ref for ref in body.carries if ref.part is Part.CONSTRAINT]
        known = {one: pair for one, pair in tree.items(refs).items() if isinstance(pair[0], Constraint)}
        above = _bound_above(tree, handoff)
        told = [
            f"{new.sentence}, where {old.sentence} binds"
            for one, (new, by) in known.items()
            if one not in above and isinstance(new, Constraint) and by != tree.runs[tree.root].principal
            for other, (old, _) in known.items()
            if other in above and isinstance(old, Constraint) and _is_looser(new, old)
        ]
        if told:
            yield tree.found(
                RELAXED_CONSTRAINT,
                handoff,
                f"{tree.runs[handoff.parent].agent} told {handoff.to}: {listed(told)}",
                (offer,),
                severity=Severity.MEDIUM,
                by=handoff.parent,
            )


def _bound_above(tree: ReviewedTree, handoff: Handoff) -> frozenset[ContentId]:
    """Return the items that bound the sender: those of its own offer, and those of its principal."""
    sender = tree.runs[handoff.parent]
    if sender.handoff is not None and sender.handoff in tree.offers:
        return frozenset(ref.item for ref in tree.offers[sender.handoff][1].carries)
    said = (receipt.body for receipt in tree.streams[sender.id] if isinstance(receipt.body, RunRecorded))
    return frozenset(ref.item for body in said if body.by == sender.principal for ref in body.items)


def _is_looser(new: Constraint, old: Constraint) -> bool:
    """Return whether a bound lets more through than another one about the same thing."""
    about = new.key is not None and (new.key, new.operator, new.unit) == (old.key, old.operator, old.unit)
    if not about or new.operator is None or (new.binds_to and old.binds_to and new.binds_to != old.binds_to):
        return False
    operator = Operator(new.operator)
    return operator in ORDERING and compare(operator, str(old.value), str(new.value)) is Fit.FAILS


def find_unanswered_questions(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the attempts that began with a blocking question open, and the handoffs that wait for an answer."""
    for handoff in tree.handoffs.values():
        begun = [receipt for receipt, body in _acceptances(tree, handoff.id) if _QUESTION_OPEN in body.problems]
        if begun:
            yield tree.found(
                UNANSWERED_QUESTION,
                handoff,
                f"{handoff.to} began although a blocking question had no answer",
                begun,
                go_on=(f"batonpass handoff check {handoff.id[-8:]}",),
            )
        elif handoff.state is State.ASKED:
            yield tree.found(
                UNANSWERED_QUESTION,
                handoff,
                f"{handoff.to} has asked, and nobody has answered",
                tree.acts(handoff.id)[-1:],
                severity=Severity.LOW,
                go_on=(f"batonpass handoff answer {handoff.id[-8:]} --help",),
            )


def find_suppressed_questions(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the handoffs of which an attempt had a question and did not ask it."""
    for handoff in tree.handoffs.values():
        silent = [
            (receipt, body)
            for receipt, body in _acceptances(tree, handoff.id)
            if body.would_ask and _QUESTION_OPEN not in body.problems and _REJECTED not in body.problems
        ]
        # The next attempt sees the same gap again, which is no other finding.
        if silent:
            yield tree.found(
                SUPPRESSED_QUESTION,
                handoff,
                f"{silent[-1][1].agent} did not ask about {listed(one for _, body in silent for one in body.problems)}",
                (receipt for receipt, _ in silent),
                go_on=(f"batonpass handoff check {handoff.id[-8:]}",),
            )


def find_retried_paths(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the tasks and the decisions that repeat, in the same words, a path that their own baton calls rejected."""
    yield from _find_decided_again(tree)
    for handoff in tree.handoffs.values():
        found = [receipt for receipt, body in _acceptances(tree, handoff.id) if _REJECTED in body.problems]
        if found:
            yield tree.found(
                RETRIED_PATH,
                handoff,
                f"{tree.runs[handoff.parent].agent} told {handoff.to} to {quoted(tree.task(handoff.id))}, "
                "which repeats a rejected path",
                found,
                by=handoff.parent,
            )


def _find_decided_again(tree: ReviewedTree) -> Iterator[Finding]:
    for handoff in tree.handoffs.values():
        refs = [ref for ref in tree.offers[handoff.id][1].carries if ref.part is Part.REJECTED]
        rejected = {
            _plain(value.what): value.what for value, _ in tree.items(refs).values() if isinstance(value, RejectedPath)
        }
        for run in tree.attempts.get(handoff.id, ()) if rejected else ():
            for receipt, words in _decisions(tree, run.id):
                if (found := rejected.get(_plain(words))) is not None:
                    yield tree.found(
                        RETRIED_PATH,
                        handoff,
                        f"{run.agent} decided for {quoted(words)}; its baton says that {quoted(found)} was rejected",
                        (receipt, tree.offers[handoff.id][0]),
                    )


def _decisions(tree: ReviewedTree, run: RunId) -> Iterator[tuple[Receipt, str]]:
    """Yield the decisions of a run, made while it worked and in its report."""
    for receipt in tree.streams[run]:
        if isinstance(receipt.body, RunRecorded):
            refs = [ref for ref in receipt.body.items if ref.part is Part.DECISION]
            values = (value for value, _ in tree.items(refs).values())
            yield from ((receipt, value.what) for value in values if isinstance(value, Decision))
    report = tree.report(run)
    if report is not None:
        yield from ((tree.streams[run][-1], decision.what) for decision in report.decisions)


def _plain(words: str) -> tuple[str, ...]:
    """Return the words that count: two texts with the same ones say the same."""
    return tuple(word for word in re.findall(r"[^\W_]+", words.casefold()) if word not in _LITTLE)


def find_stale_state(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the handoffs that stand on results or decisions which no longer stand, and were not told."""
    yield from _find_outdated(tree)
    for stale in find_stale(tree.view, tree.root):
        handoff = tree.handoffs.get(stale.handoff.id)
        if handoff is not None:
            offer, _ = tree.offers[handoff.id]
            why = listed(describe_input(tree.view, ref, fate) for ref, fate in stale.inputs)
            yield tree.found(
                STALE_STATE,
                handoff,
                f"{handoff.to} works or worked with what no longer stands: {why}",
                (offer,),
                go_on=(f"batonpass handoff retry {handoff.id[-8:]} --fresh",),
            )


def _find_outdated(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the offers with a decision whose own condition no longer held when it was handed on."""
    for handoff in tree.handoffs.values():
        offer, body = tree.offers[handoff.id]
        refs = [ref for ref in body.carries if ref.part is Part.DECISION]
        values = (value for value, _ in tree.items(refs).values())
        decisions = [value for value in values if isinstance(value, Decision) and value.conditions]
        if not decisions:
            continue
        world = KnownWorld(at=offer.at, constraints=_bounds(tree, body), checks=None)
        for decision in decisions:
            failed = [one for one in (evaluate(text, world) for text in decision.conditions) if _fails(one)]
            if failed:
                yield tree.found(
                    STALE_STATE,
                    handoff,
                    f"{handoff.to} got the decision {quoted(decision.what)}, and {failed[0].reason}",
                    (offer,),
                )


def _bounds(tree: ReviewedTree, body: HandoffInitiated) -> dict[str, tuple[str, ...]]:
    """Return the values that bind with an offer, by key."""
    found: dict[str, tuple[str, ...]] = {}
    for value, _ in tree.items(ref for ref in body.carries if ref.part is Part.CONSTRAINT).values():
        if isinstance(value, Constraint) and value.key is not None and value.value is not None:
            found[value.key] = (*found.get(value.key, ()), value.value)
    return found


def _fails(found: ConditionFinding) -> bool:
    return found.verdict is ConditionVerdict.FAILS


def find_abridged_state(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the offers that could not carry everything."""
    for handoff, (offer, body) in tree.offers.items():
        if ABRIDGED in body.missing and handoff in tree.handoffs:
            yield tree.found(
                ABRIDGED_STATE,
                tree.handoffs[handoff],
                f"{body.to} did not get everything that {tree.runs[body.run].agent} had: there was too much",
                (offer,),
                by=body.run,
            )


def find_self_verified(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the results that only their own producer verified."""
    for handoff in tree.handoffs.values():
        verdicts = tree.verdicts(handoff.id, handoff.attempt)
        own = [one for one in verdicts if one.standing is Standing.VERIFIED and getattr(one.body, "by_producer", False)]
        others = [one for one in verdicts if one not in own]
        if own and not any(_speaks_for(one) for one in others):
            yield tree.found(
                SELF_VERIFIED,
                handoff,
                f"only {own[0].body.by}, who delivered it, says that the result of {handoff.to} holds",
                (one.receipt for one in own),
                go_on=(f"batonpass handoff verify {handoff.id[-8:]} --help",),
            )
        elif not any(_speaks_for(one) for one in others):
            yield from _find_own_word(tree, handoff)


def _find_own_word(tree: ReviewedTree, handoff: Handoff) -> Iterator[Finding]:
    """Yield a report that calls its own work verified, and names its own agent as the one who did."""
    run = None if handoff.run is None else tree.runs.get(handoff.run)
    report = None if run is None else tree.report(run.id)
    if run is None or report is None:
        return
    own = [one for one in report.completed if one.verified_by in {run.agent, f"agent:{run.agent}"}]
    if own:
        yield tree.found(
            SELF_VERIFIED,
            handoff,
            f"{run.agent} says itself that it verified {listed(quoted(one.what) for one in own)}",
            (tree.streams[run.id][-1],),
            go_on=(f"batonpass handoff verify {handoff.id[-8:]} --help",),
        )


def _speaks_for(verdict: ResultVerdict) -> bool:
    return verdict.standing is not Standing.UNVERIFIED or isinstance(verdict.body, VerificationWaived)


def _acceptances(tree: ReviewedTree, handoff: HandoffId) -> Iterator[tuple[Receipt, HandoffAccepted]]:
    for run in tree.attempts.get(handoff, ()):
        receipt = tree.opening(run.id)
        if isinstance(receipt.body, HandoffAccepted):
            yield receipt, receipt.body
