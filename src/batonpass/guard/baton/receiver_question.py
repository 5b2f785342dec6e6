"""Chooses the one question that the receiver asks, if any.

A receiver asks only if it cannot reliably go on, and then one closed question about the type of problem that it has
most of. A question that it would have asked is reported as well: going on without asking is a failure mode of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from batonpass.guard.baton.problem import BY_FREQUENCY, Problem
from batonpass.model.base.value import Value
from batonpass.model.policy.handoff_policy import HandoffPolicy


class Asking(Value, frozen=True, kw_only=True):
    """What to do about the problems of a baton. At most one of `question`, `would_ask` and `cached` is set."""

    question: Problem | None = None  # ask this now
    would_ask: Problem | None = None  # not asked: no questions are left, or the policy only observes
    cached: str | None = None  # every blocking problem was answered before; this is the answer to `settled`
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
    """Return the one question to ask now; `answered` has the earlier answers, by the words of their questions."""
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
    """Return whether the policy allows another question.

    A blocking one need not wait for the hops between questions.
    """
    waited = hops_since_question is None or hops_since_question >= policy.hops_between_questions
    return policy.asks and asked_here < policy.questions and (problem.blocking or waited)


def _dominant(problems: Sequence[Problem]) -> Problem:
    counted = Counter(problem.error for problem in problems)
    dominant = max(BY_FREQUENCY, key=counted.__getitem__)  # of equally frequent types, the generally more common one
    return next(problem for problem in problems if problem.error is dominant)
