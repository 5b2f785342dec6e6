"""Findings about grants: calls outside of one, and permits that nobody needed."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from batonpass.accounts.handoff.scope_used import ScopeUsed, scope_said
from batonpass.errors import GrantExceededError, InvalidValueError
from batonpass.model.base.content_names import ARGUMENTS, SCOPE, TARGET, USE
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_toml import write_grants
from batonpass.model.grants.pattern import Pattern
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_scope
from batonpass.records.call import CallOutcome, CallRecord
from batonpass.review.earlier_grants import EarlierGrant, words_of
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

WIDE_GRANT: Final = FindingKind(
    code="wide-grant",
    title="Wider than its like",
    severity=Severity.MEDIUM,
    matters="The same sort of task got less every time before: a mistake, or somebody tries how far it goes.",
    owasp="ASI03",
)
BEYOND_TASK: Final = FindingKind(
    code="beyond-task",
    title="Beyond the task",
    severity=Severity.LOW,
    matters="A grant covered it, but the task names other targets: nobody had asked for this change.",
    mast="2.3",
    owasp="ASI02",
)

_GRANT: Final = "grant"  # the rule of a call that its grant does not cover


def find_scope_drift(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield, for each run, the calls outside its grant that were made, and the calls and offers that were refused."""
    for run, calls in tree.calls_of.items():
        made = [call for call in calls if call.is_made and call.is_beyond]
        if made:
            sentence = f"made {times(len(made), 'call')} outside its grant: {_places(tree, made)}"
            yield _drift(tree, made, f"{tree.runs[run].agent} {sentence}", Severity.HIGH)
        tried = [call for call in calls if call.outcome is CallOutcome.DENIED and call.rule == _GRANT]
        if tried:
            sentence = f"tried {times(len(tried), 'call')} outside its grant, and was stopped: {_places(tree, tried)}"
            yield _drift(tree, tried, f"{tree.runs[run].agent} {sentence}", Severity.MEDIUM)
    for receipt, body in tree.refusals:
        if body.error == GrantExceededError.code:
            yield tree.found(
                SCOPE_DRIFT,
                tree.work(body.run),
                f"{tree.runs[body.run].agent} tried to grant {body.to} more than it may pass on, and was stopped",
                (receipt,),
                severity=Severity.MEDIUM,
            )


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


_NAMED: Final = frozenset({"call", "run"})  # what they act on is a tool or a program, not a thing
_ALIKE: Final = 5  # so many of the same sort make a habit
_SAME_WORDS: Final = 0.5  # of all words of two tasks


def find_wide_grants(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the grants that are wider than all that the same agent got for the same sort of task before."""
    earlier: dict[AgentId, list[EarlierGrant]] = {}
    for handoff, (offer, body) in tree.offers.items():
        terms = None if body.terms is None or handoff not in tree.handoffs else tree.terms(handoff)
        tree.earlier.grants.note(handoff, terms, tree.task(handoff))
        if terms is None:
            continue
        if body.to not in earlier:
            # All of this tree's offers to an agent are compared with the same past: one look at it is enough.
            earlier[body.to] = [*tree.earlier.grants.find(body.to, before=handoff, outside=tree.root)]
        words = words_of(tree.task(handoff))
        like = [one for one in earlier[body.to] if _are_alike(words, one.words)]
        wider = [] if len(like) < _ALIKE else [*_find_wider(terms.may, like)]
        if wider:
            had = listed(str(pattern) for one in like for pattern in one.patterns)
            yield tree.found(
                WIDE_GRANT,
                tree.handoffs[handoff],
                f"{body.to} got {listed(wider)} for {quoted(tree.task(handoff))}; "
                f"for {len(like)} tasks like it, it got only {had}",
                (offer,),
                go_on=(f"batonpass grant show {handoff[-8:]}", f"batonpass handoff show {handoff[-8:]}"),
            )


def _are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one) and len(one & other) >= _SAME_WORDS * len(one | other)


def _find_wider(may: Scope, like: list[EarlierGrant]) -> Iterator[str]:
    """Yield the permits with an action that was never granted, or with room for more than one that was."""
    known = [pattern for one in like for pattern in one.patterns]
    for permit in may.permits:
        asked = permit.pattern
        if any(pattern.covers(asked) for pattern in known):
            continue
        # Another file each time is the work itself. A pattern around what was granted before is not.
        is_new = _right(asked) not in map(_right, known)
        if is_new or any(asked.covers(pattern) for pattern in known):
            yield permit.text


def _right(pattern: Pattern) -> str:
    """Return the right that a pattern gives: an action, or all of it for a tool without a target and for a command."""
    return str(pattern) if pattern.action in _NAMED else pattern.action


def find_beyond_tasks(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the handoffs that name the files to change, and whose agent changed something in quite another place."""
    for handoff, known in tree.handoffs.items():
        brief = tree.brief(handoff)
        expected = [PurePosixPath(target) for target in brief.expects if _is_path(target)]
        if not expected:
            continue
        calls = [call for run in tree.attempts.get(handoff, ()) for call in tree.calls_of.get(run.id, ())]
        wrote = [call for call in calls if call.is_made and not call.reads and TARGET in call.receipt.content]
        tree.read_ahead((call.receipt for call in wrote), TARGET)
        said = " ".join((tree.task(handoff), brief.rationale or "", *brief.criteria))
        beyond = [call for call in wrote if not _belongs(tree.words(call.receipt, TARGET), expected, said)]
        if beyond:
            yield tree.found(
                BEYOND_TASK,
                known,
                f"{tree.worker(known)} was to change {listed(brief.expects)}, and also changed "
                f"{listed(tree.words(call.receipt, TARGET) for call in beyond)}",
                (*(call.receipt for call in beyond), tree.offers[handoff][0]),
                calls=beyond,
            )


def _is_path(target: str) -> bool:
    return bool(target) and ":" not in target and ("/" in target or "." in target)


def _belongs(target: str, expected: list[PurePosixPath], said: str) -> bool:
    """Return whether a change is next to an expected one, is about it (its test), or stands in the task."""
    if not _is_path(target):
        return True  # no file: whether it belongs to the task cannot be told from its name
    path = PurePosixPath(target)
    if path.name in said or target in said:
        return True
    near = any(path.parent == wanted.parent if wanted.suffix else path.is_relative_to(wanted) for wanted in expected)
    return near or any(wanted.stem in path.stem for wanted in expected)
