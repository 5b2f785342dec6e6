"""Findings about going in circles: the same step, the same task, the same agent again."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from batonpass.errors import HandoffLoopError
from batonpass.model.base.content_names import ARGUMENTS
from batonpass.model.base.ids import AgentId, HandoffId, RunId
from batonpass.records.call import CallRecord
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import quoted
from batonpass.review.reviewed_tree import ReviewedTree

REPEATED_STEP: Final = FindingKind(
    code="repeated-step",
    title="Repeated step",
    severity=Severity.LOW,
    matters="An agent makes the same call again and again: it is stuck, or does not see the result.",
    mast="1.3",
)
LOOP: Final = FindingKind(
    code="loop",
    title="Loop",
    severity=Severity.MEDIUM,
    matters="A run hands off the same task again and again and gets no further.",
    mast="1.3",
    owasp="ASI08",
)
CIRCULAR_DELEGATION: Final = FindingKind(
    code="circular-delegation",
    title="Circular delegation",
    severity=Severity.MEDIUM,
    matters="Work came back to an agent that is already waiting for it further up.",
    mast="2.1",
    owasp="ASI08",
)

# How often is a habit? Precision carries over from one system to another; these numbers are where ours begin.
_STEPS: Final = 3
_READS: Final = 5  # looking again is cheap, and may be a wait
_ROUNDS: Final = 3


def find_repeated_steps(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the calls that one run made with the same tool and arguments again and again, and nothing new between."""
    made_by = {run: [call for call in calls if call.is_made] for run, calls in tree.calls_of.items()}
    busy = {run: made for run, made in made_by.items() if len(made) >= _STEPS}
    tree.read_ahead((call.receipt for made in busy.values() for call in made), ARGUMENTS)
    for run, made in busy.items():
        for same in _stuck(tree, made):
            if len(same) >= (_READS if same[0].reads else _STEPS):
                yield tree.found(
                    REPEATED_STEP,
                    tree.work(run),
                    f"{tree.runs[run].agent} called {same[0].tool} {len(same)} times with the same arguments",
                    (call.receipt for call in same),
                    calls=same,
                )


def _stuck(tree: ReviewedTree, calls: list[CallRecord]) -> Iterator[list[CallRecord]]:
    """Yield the longest row of each call during which the run made no new call that changes something.

    Reading a file or running the tests again after each change is work. So only a call that was not made before
    counts as a step ahead, and a change that is made again is none.
    """
    row: dict[tuple[str, bytes], list[CallRecord]] = {}
    longest: dict[tuple[str, bytes], list[CallRecord]] = {}
    for call in calls:
        # Erased arguments are unknown, and so equal to none.
        if (body := tree.body(call.receipt, ARGUMENTS)) is None:
            continue
        step = (call.tool, body)
        if not call.reads and step not in longest:
            row.clear()
        row.setdefault(step, []).append(call)
        if len(row[step]) > len(longest.get(step, ())):
            longest[step] = row[step]
    yield from longest.values()


def find_loops(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the tasks that one run handed to one agent in the same words again and again."""
    for (parent, to, task), made in _rounds(tree).items():
        if len(made) >= _ROUNDS:
            yield tree.found(
                LOOP,
                tree.work(parent),
                f"{tree.runs[parent].agent} handed {quoted(task)} to {to} {len(made)} times",
                (tree.offers[handoff][0] for handoff in made),
            )


def _rounds(tree: ReviewedTree) -> dict[tuple[RunId, AgentId, str], list[HandoffId]]:
    found = defaultdict(list)
    for handoff in tree.handoffs.values():
        task = " ".join(tree.task(handoff.id).split())
        # An offer that replaces another one has other inputs, and so is no repetition.
        if task and tree.offers[handoff.id][1].replaces is None:
            found[handoff.parent, handoff.to, task].append(handoff.id)
    return found


def find_circular_delegations(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the handoffs to an agent that already works further up, on the way to this very handoff."""
    for handoff in tree.handoffs.values():
        above = [run.agent for run in tree.lineage(handoff.parent)]
        if handoff.to in above:
            way = " → ".join([*reversed(above[: above.index(handoff.to) + 1]), handoff.to])
            yield tree.found(
                CIRCULAR_DELEGATION,
                handoff,
                f"work came back to {handoff.to}: {way}",
                (tree.offers[handoff.id][0],),
                by=handoff.parent,
            )
    for receipt, body in tree.refusals:
        if body.error == HandoffLoopError.code:
            yield tree.found(
                CIRCULAR_DELEGATION,
                tree.work(body.run),
                f"{tree.runs[body.run].agent} tried to hand the same task back to {body.to}, and was stopped",
                (receipt,),
            )
