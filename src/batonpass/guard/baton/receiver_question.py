"""Chooses the one question that the receiver asks, if any.

A receiver asks only if it cannot reliably go on, and then one closed question about the type of problem that it has
most of. A problem that blocks stays until its check passes, an answer settles it, or somebody waives it. A question
that the receiver would have asked is reported as well: going on without asking is a failure mode of its own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from batonpass.guard.baton.placeholder import says_nothing
from batonpass.guard.baton.problem import BY_FREQUENCY, Problem, Settles
from batonpass.model.base.value import Value
from batonpass.model.baton.baton import Answer
from batonpass.model.policy.handoff_policy import HandoffPolicy


class Asking(Value, frozen=True, kw_only=True):
    """The question about the problems of a baton: one to ask now, or one that is only noted. At most one is set."""

    question: Problem | None = None  # ask this now
    would_ask: Problem | None = None  # not asked: no questions are left, or the policy only observes


NOTHING_TO_ASK: Final = Asking()


def choose_question(
    problems: Sequence[Problem],
    *,
    policy: HandoffPolicy,
    asked_here: int,
    hops_since_question: int | None,
    answers: Sequence[Answer] = (),
) -> Asking:
    """Return the one question to ask now.

    A blocking problem is asked about until it is settled, so nothing begins before. A doubtful one is asked about as
    long as the policy has a question left for it.
    """
    unsettled = find_unsettled(problems, answers)
    if not unsettled:
        return NOTHING_TO_ASK
    blocking = [problem for problem in unsettled if problem.blocking]
    chosen = _dominant(blocking or unsettled)
    if may_ask(chosen, policy=policy, asked_here=asked_here, hops_since_question=hops_since_question):
        return Asking(question=chosen)
    return Asking(would_ask=chosen)


def may_ask(problem: Problem, *, policy: HandoffPolicy, asked_here: int, hops_since_question: int | None) -> bool:
    """Return whether the policy allows another question. Its limits do not hold for blocking problems."""
    waited = hops_since_question is None or hops_since_question >= policy.hops_between_questions
    return policy.asks and (problem.blocking or (asked_here < policy.questions and waited))


def find_unsettled(problems: Iterable[Problem], answers: Sequence[Answer]) -> list[Problem]:
    """Return the problems that block or are doubtful, that no answer settles and nobody waived."""
    asked_about = [problem for problem in problems if problem.blocking or problem.doubtful]
    return [problem for problem in asked_about if not is_settled(problem, answers)] if answers else asked_about


def is_settled(problem: Problem, answers: Sequence[Answer]) -> bool:
    """Return whether a problem was waived, or the last answer to its question settles it.

    "dunno" is on the record as an answer, and settles nothing.
    """
    said = [answer for answer in answers if answer.question == problem.question]
    if any(answer.waives for answer in said):
        return True
    if not said or problem.settles is Settles.CHECK or says_nothing(said[-1].answer):
        return False
    begins = _FIRST_WORD.match(said[-1].answer)
    first = "" if begins is None else begins.group(1).lower()
    return first not in _REFUSALS[problem.settles]


_FIRST_WORD: Final = re.compile(r"\W*(\w+)")
_REFUSALS: Final[Mapping[Settles, frozenset[str]]] = MappingProxyType(
    {
        Settles.ANSWER: frozenset(),
        Settles.YES: frozenset({"no", "not", "nope", "never", "n"}),
        Settles.NO: frozenset({"yes", "yeah", "yep", "y"}),
    }
)


def _dominant(problems: Sequence[Problem]) -> Problem:
    counted = Counter(problem.error for problem in problems)
    dominant = max(BY_FREQUENCY, key=counted.__getitem__)  # of equally frequent types, the generally more common one
    return next(problem for problem in problems if problem.error is dominant)
