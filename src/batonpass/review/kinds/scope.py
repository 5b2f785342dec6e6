"""Findings about grants: calls outside of one, and permits that nobody needed."""

from collections.abc import Iterator
from typing import Final

from batonpass.accounts.handoff.scope_used import ScopeUsed, scope_said
from batonpass.errors import InvalidValueError
from batonpass.model.base.content_names import ARGUMENTS, SCOPE, TARGET, USE
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_toml import write_grants
from batonpass.model.grants.scope_text import read_scope
from batonpass.records.call import CallOutcome, CallRecord
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import listed, quoted, times
from batonpass.review.reviewed_tree import ReviewedTree

SCOPE_DRIFT: Final = FindingKind(
    code="scope-drift",
    title="Scope drift",
    severity=Severity.HIGH,
    matters="An agent did, or tried to do, what nobody had granted for its task.",
    mast="2.3",
    owasp="ASI03",
)
OVER_GRANT: Final = FindingKind(
    code="over-grant",
    title="Over-grant",
    severity=Severity.LOW,
    matters="A permit that a task does not need is what an injected instruction uses.",
    owasp="ASI03",
)

_GRANT: Final = "grant"  # the rule of a call that its grant does not cover


def find_scope_drift(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield, for each run, the calls outside its grant that were made, and those that were denied."""
    for run, calls in tree.calls_of.items():
        made = [call for call in calls if call.is_made and call.is_beyond]
        if made:
            sentence = f"made {times(len(made), 'call')} outside its grant: {_places(tree, made)}"
            yield _drift(tree, made, f"{tree.runs[run].agent} {sentence}", Severity.HIGH)
        tried = [call for call in calls if call.outcome is CallOutcome.DENIED and call.rule == _GRANT]
        if tried:
            sentence = f"tried {times(len(tried), 'call')} outside its grant, and was stopped: {_places(tree, tried)}"
            yield _drift(tree, tried, f"{tree.runs[run].agent} {sentence}", Severity.MEDIUM)


def _drift(tree: ReviewedTree, calls: list[CallRecord], sentence: str, severity: Severity) -> Finding:
    return tree.found(
        SCOPE_DRIFT,
        tree.work(calls[0].run),
        sentence,
        (call.receipt for call in calls),
        severity=severity,
        calls=calls,
    )


def _places(tree: ReviewedTree, calls: list[CallRecord]) -> str:
    tree.read_ahead((call.receipt for call in calls), SCOPE)
    return listed(_place(tree, call) for call in calls)


def _place(tree: ReviewedTree, call: CallRecord) -> str:
    # A call that was never made has no scope on record; its arguments say what it was to act on.
    said = tree.words(call.receipt, SCOPE).strip()
    tried = quoted(tree.words(call.receipt, TARGET) or tree.words(call.receipt, ARGUMENTS))
    return said or (f"{call.tool} {tried}" if tried != quoted("") else call.tool)


def find_over_grants(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the handoffs whose work is done, and that never used one of their permits."""
    for handoff, (offer, body) in tree.offers.items():
        runs = tree.attempts.get(handoff, ())
        closings = [closing for run in runs if (closing := tree.closing(run.id)) is not None]
        # Who passes work on holds its permits for others.
        passes_on = any(run.id in tree.children for run in runs)
        if body.terms is None or passes_on or not closings or not closings[-1].delivered:
            continue
        used = scope_said(tree.body(closing.receipt, USE) for closing in closings)
        if used is None or not used.unused:
            continue
        agent = runs[-1].agent
        yield tree.found(
            OVER_GRANT,
            tree.handoffs[handoff],
            f"{agent} never used {listed(used.unused)}",
            (offer, closings[-1].receipt),
            details=_least(agent, used),
        )


def _least(agent: AgentId, used: ScopeUsed) -> tuple[str, ...]:
    """Return the grant that would have been enough, as lines of TOML."""
    try:
        text = write_grants({agent: Grant(may=read_scope(list(used.least)))})
    except InvalidValueError:
        return ()
    return ("this would have been enough:", *text.splitlines())
