"""Asking: which one question the receiver asks, if any.

It asks only when it cannot reliably go on, one closed question about the type of problem that it has most of. What it
would have asked and did not is said as well: going on without asking is a failure mode of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from batonpass.guard.baton.problem import BY_FREQUENCY, Problem
from batonpass.model.base.value import Value
from batonpass.model.policy.handoff_policy import HandoffPolicy


class Asking(Value, frozen=True, kw_only=True):
    """What to do about the problems of a baton: at most one of question, would_ask and cached is there."""

    question: Problem | None = None  # ask this now
    would_ask: Problem | None = None  # this would be asked; a budget, or mere observation, keeps it back
    cached: str | None = None  # everything that blocks was answered before; this is the answer to `settled`
    settled: Problem | None = None


NOTHING_TO_ASK: Final = Asking()


def choose_question(
    problems: Sequence[Problem],
    *,
    policy: HandoffPolicy,
    asked_here: int,
    hops_since_question: int | None,
    answered: Mapping[str, str],
) -> Asking:
    """Return the one question to ask now; `answered` has the answers so far by the words of their questions."""
    blocking = [problem for problem in problems if problem.blocking]
    if not blocking:
        return NOTHING_TO_ASK
    unanswered = [problem for problem in blocking if problem.question not in answered]
    if not unanswered:
        settled = _dominant(blocking)
        return Asking(cached=answered[settled.question], settled=settled)
    chosen = _dominant(unanswered)
    if may_ask(chosen, policy=policy, asked_here=asked_here, hops_since_question=hops_since_question):
        return Asking(question=chosen)
    return Asking(would_ask=chosen)


def may_ask(problem: Problem, *, policy: HandoffPolicy, asked_here: int, hops_since_question: int | None) -> bool:
    """Return whether the policy has a question left: one that blocks need not wait for the hops between questions."""
    waited = hops_since_question is None or hops_since_question >= policy.hops_between_questions
    return policy.asks and asked_here < policy.questions and (problem.blocking or waited)


def _dominant(problems: Sequence[Problem]) -> Problem:
    counted = Counter(problem.error for problem in problems)
    dominant = max(BY_FREQUENCY, key=counted.__getitem__)  # of two equally frequent here, the more common one
    return next(problem for problem in problems if problem.error is dominant)
