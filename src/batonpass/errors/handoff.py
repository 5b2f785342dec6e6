"""Errors of handoffs: refused, held, asked back, declined or already over. Nothing that was recorded is lost."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from batonpass.errors.base import BatonpassError


class HandoffError(BatonpassError):
    """A handoff cannot continue as requested."""


class PolicyRefusedError(HandoffError):
    """The policy refused a handoff. It is recorded as failed, and none of it ran."""


class HandoffDepthExceededError(PolicyRefusedError):
    """The signed lineage is already as deep as the policy allows."""

    code = "handoff.too_deep"

    def __init__(self, depth: int, most: int) -> None:
        super().__init__(
            f"this lineage already has {depth} agents, and the policy allows {most}; do not delegate further, "
            "answer with what you know",
        )
        self.depth = depth
        self.most = most


class AgentNotAllowedError(PolicyRefusedError):
    """The policy does not allow handoffs to this agent."""

    code = "handoff.not_allowed"

    def __init__(self, agent: str, allowed: tuple[str, ...]) -> None:
        others = f"{', '.join(allowed)}, not to {agent}; choose one of them, or" if allowed else "nobody;"
        super().__init__(f"the policy allows handoffs to {others} do it yourself")
        self.agent = agent


class UnknownAgentWarning(UserWarning):
    """Workers are to run an agent that nobody has registered or introduced, so it may wait for ever."""

    def __init__(self, agent: str, alike: tuple[str, ...]) -> None:
        meant = f"; did you mean {' or '.join(alike)}?" if alike else ""
        super().__init__(
            f"nobody has registered or introduced {agent}, and it never ran in this ledger: the handoff waits until a "
            f"worker runs this agent{meant}",
        )


class HandoffLoopError(PolicyRefusedError):
    """An agent higher up in the lineage was given exactly this task and is waiting for it."""

    code = "handoff.loop"

    def __init__(self, agent: str) -> None:
        super().__init__(f"{agent} has this same task further up, and waits for its result; answer with what you know")
        self.agent = agent


class IncompleteBatonError(PolicyRefusedError):
    """The policy requires parts of the baton that the sender left out."""

    code = "handoff.incomplete"

    def __init__(self, missing: tuple[str, ...], relation: str) -> None:
        super().__init__(
            f"a {relation} handoff must say {', '.join(missing)}; give them, or say explicitly that there are none "
            f"with none={list(missing)!r}",
        )
        self.missing = missing


class UnknownAgentError(PolicyRefusedError):
    """A handoff names an agent that nobody here knows."""

    code = "handoff.unknown_agent"

    def __init__(self, agent: str, known: Sequence[str], near: Sequence[str] = ()) -> None:
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known) or 'none'}"
        super().__init__(f"there is no agent {agent} here; {hint}")
        self.agent = agent
        self.near = tuple(near)


class TurnsExhaustedError(HandoffError):
    """The model of a native agent was asked as often as allowed, and has not finished."""

    code = "handoff.turns_exhausted"

    def __init__(self, agent: str, most: int) -> None:
        super().__init__(
            f"{agent} did not finish within {most} answers of its model; give it a smaller task, or more with "
            "RunnerConfig(max_iterations=…)",
        )
        self.agent = agent
        self.most = most


class CrewFailedError(HandoffError):
    """Somebody in a crew did not deliver, so the crew did not either."""

    code = "handoff.crew_failed"

    def __init__(self, crew: str, missing: Sequence[str]) -> None:
        super().__init__(f"{crew} is not complete: {'; '.join(missing)}")
        self.crew = crew
        self.missing = tuple(missing)


class IncompleteReportError(HandoffError):
    """The policy requires parts of a report that the agent left out, or filled with placeholders."""

    code = "handoff.report_incomplete"

    def __init__(self, missing: tuple[str, ...]) -> None:
        super().__init__(
            f"a report must say {', '.join(missing)}; report again with them, or say explicitly that there are none "
            f"with none={list(missing)!r}",
        )
        self.missing = missing


class KeyReusedError(HandoffError):
    """The idempotency key was already used for a different task."""

    code = "handoff.key_reused"

    def __init__(self, handoff: str, differences: tuple[str, ...]) -> None:
        what = ", ".join(differences) or "the request"
        super().__init__(f"{handoff} already has this key and differs in {what}; use another key for another task")
        self.handoff = handoff
        self.differences = differences


class ReusedResultWarning(UserWarning):
    """A run handed off a task that it has the result of already: nobody works for it again."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"{agent} has done exactly this task for this run already, and its result is used again; to have it done "
            "once more, say which repetition it is: handling=Handling(again=1)",
        )


class TaskInFlightWarning(UserWarning):
    """A run handed off a task that an earlier session has handed off too, and that is not over there."""

    def __init__(self, handoff: str, agent: str, state: str) -> None:
        super().__init__(
            f"{agent} has exactly this task of an earlier session already: {handoff} is {state}. Wait for it, or "
            f"cancel it with `batonpass handoff cancel {handoff[-6:]}`; if it is to be done twice, say so: "
            "handling=Handling(again=1)",
        )


class TaskInFlightError(PolicyRefusedError):
    """An enforced run handed off a task that is in flight since an earlier session."""

    code = "handoff.in_flight"

    def __init__(self, handoff: str, agent: str, state: str) -> None:
        super().__init__(str(TaskInFlightWarning(handoff, agent, state)))
        self.handoff = handoff


class InputsChangedError(HandoffError):
    """A handoff is to be used or tried again, and its inputs no longer stand, or were made anew."""

    code = "handoff.inputs_changed"

    def __init__(self, handoff: str, changed: tuple[str, ...]) -> None:
        super().__init__(
            f"{handoff} was offered with inputs that have changed since: {'; '.join(changed)}. Say which you want: the "
            "same inputs as before (same), or a new start with those of now (fresh)",
        )
        self.handoff = handoff
        self.changed = changed


class NotEntitledError(HandoffError):
    """Only some may relax a constraint or waive a problem: its author, the sender, the root's principal, a person."""

    code = "handoff.not_entitled"

    def __init__(self, item: str, by: str, entitled: tuple[str, ...], act: str = "relax") -> None:
        super().__init__(f"{by} may not {act} {item}; ask {' or '.join(entitled)}")
        self.item = item


class HandoffAskedError(HandoffError):
    """The receiver has a question before it starts; settle it, and the handoff continues.

    `again` says that it was answered before, and the answer did not settle it.
    """

    code = "handoff.asked"

    def __init__(self, handoff: str, question: str, *, again: bool = False) -> None:
        short = handoff[-6:]
        settle = f"Answer with `batonpass handoff answer {short} TEXT`"
        if again:
            settle = (
                f"The last answer does not settle it: see `batonpass handoff check {short}`, give what is missing with "
                f"`batonpass handoff answer {short} TEXT --attach FILE`, or waive it with a reason"
            )
        super().__init__(f"{handoff} asks: {question} {settle}")
        self.handoff = handoff
        self.question = question
        self.again = again


class HandoffDeclinedError(HandoffError):
    """The receiver declined the handoff."""

    code = "handoff.declined"

    def __init__(self, handoff: str, reason: str) -> None:
        super().__init__(f"{handoff} was declined: {reason}; retry it, replace the agent, or ask for something else")
        self.handoff = handoff
        self.reason = reason


class HandoffEndedError(HandoffError):
    """The handoff is over, or somebody else is working on it, so it cannot be taken."""

    code = "handoff.ended"

    def __init__(self, handoff: str, state: str) -> None:
        noun = handoff.partition("_")[0]
        super().__init__(f"{handoff} is {state}; see `batonpass {noun} show {handoff[-6:]}`")
        self.handoff = handoff
        self.state = state
        self.possible: tuple[str, ...] | None = None  # commands to try instead, if they were looked up


class AttemptsExhaustedError(HandoffError):
    """The last attempt that a handoff gets by itself has failed. It is not tried again unless somebody says so."""

    code = "handoff.attempts_exhausted"

    def __init__(self, handoff: str, attempts: int, why: str) -> None:
        super().__init__(
            f"{handoff} has failed after {attempts} attempts, and is not tried again by itself: {why}; look at it with "
            f"`batonpass handoff show {handoff[-6:]}`, and then `batonpass handoff retry {handoff[-6:]}`"
        )
        self.handoff = handoff
        self.attempts = attempts


class HandoffHeldError(HandoffError):
    """The handoff waits for an approval."""

    code = "handoff.held"

    def __init__(self, handoff: str) -> None:
        super().__init__(f"{handoff} is held; approve it with `batonpass handoff approve {handoff[-6:]}`")
        self.handoff = handoff


class HandoffSuspendedError(HandoffError):
    """The attempt stopped to wait for a handoff that it made. The next attempt continues from here."""

    code = "handoff.suspended"

    def __init__(self, handoff: str, awaits: str) -> None:
        super().__init__(
            f"{handoff} waits for {awaits}, and no worker waits with it; leave the run, and the next attempt "
            "continues from here",
        )
        self.handoff = handoff
        self.awaits = awaits


class NothingToDecideError(HandoffError):
    """The handoff is held only because it waits for another one, so nobody has to decide about it."""

    code = "handoff.nothing_to_decide"

    def __init__(self, handoff: str, awaits: str) -> None:
        super().__init__(
            f"{handoff} waits for {awaits}, and goes on by itself when that one is decided or has ended; "
            f"see `batonpass handoff show {awaits[-6:]}`",
        )
        self.handoff = handoff
        self.awaits = awaits


class HandoffRefusedError(PolicyRefusedError):
    """A rule of the policy refuses this handoff."""

    code = "handoff.refused"

    def __init__(self, rule: str, where: str, sentence: str) -> None:
        super().__init__(
            f"{sentence}, so it is refused (rule {rule}, {where}); ask for something else, or have the policy changed",
        )
        self.rule = rule


# Who may open which gate, in words; the rule itself is `guard.policy.gates.may_let_go_on`.
_OPENED_BY: Final = {
    "approve": "a person, such as user:ana",
    "confirm": "a person, whoever asked for it, or an agent that does not do the work",
    "deny": "a change of the policy, because nobody can open a gate that denies",
}
_ANYBODY_ELSE: Final = "anybody except the agent that does the work"


class NotApproverError(HandoffError):
    """The caller may not approve this; it needs somebody else."""

    code = "handoff.not_approver"

    def __init__(self, held: str, by: str, gate: str) -> None:
        super().__init__(f"{by} may not approve {held}: it needs {_OPENED_BY.get(gate, _ANYBODY_ELSE)}")
        self.held = held
        self.by = by


class OutOfScopeError(HandoffError):
    """The policy does not let this person approve this."""

    code = "handoff.out_of_scope"

    def __init__(self, held: str, by: str, *, what: str, who: tuple[str, ...], table: str) -> None:
        may = f"{', '.join(who)} may" if who else f"nobody may, by {table}"
        super().__init__(f"{by} may not approve {held}: {what}; {may}")
        self.held = held
        self.by = by
        self.who = who


class FourEyesError(HandoffError):
    """Several people who did not ask for it must approve, and the caller does not count as another one."""

    code = "handoff.four_eyes"

    def __init__(self, held: str, by: str, *, approvals: int, because: str) -> None:
        super().__init__(
            f"{held} needs {approvals} approvers who did not ask for it, and {because}; "
            f"somebody other than {by} has to approve it",
        )
        self.held = held
        self.by = by


class UnprovenError(HandoffError):
    """The approval must be signed with an approver's key, and it is not."""

    code = "handoff.unproven"

    def __init__(self, held: str, by: str) -> None:
        super().__init__(
            f"{held} needs a signed approval, and nothing proves that {by} gave one; make a key with "
            f"`batonpass approver add {by}`, then approve in a terminal",
        )
        self.held = held
        self.by = by


class ApprovalExpiredError(HandoffError):
    """The handoff was approved, and was not begun in time. It has expired."""

    code = "handoff.approval_expired"

    def __init__(self, handoff: str, by: str, at: datetime) -> None:
        super().__init__(
            f"{by} approved {handoff}, but it was not begun until {at:%Y-%m-%d %H:%M:%S}Z, so it has expired; "
            "hand it off again under another key",
        )
        self.handoff = handoff
        self.by = by


class HoldChangedError(HandoffError):
    """The held call or handoff changed after it was shown."""

    code = "handoff.hold_changed"

    def __init__(self, held: str) -> None:
        super().__init__(f"{held} has changed since it was shown; look at it again, then decide")
        self.held = held


class NotPersonError(HandoffError):
    """Only a person may endorse content from outside, take something out of a session, or acknowledge a finding."""

    code = "handoff.not_person"

    def __init__(self, source: str, by: str, *, act: str = "endorse") -> None:
        super().__init__(f"{by} may not {act} {source}: only a person may, such as user:ana")
        self.source = source
        self.by = by


class UnverifiedError(PolicyRefusedError):
    """The policy does not let a lead use results that nobody has verified."""

    code = "handoff.unverified"

    def __init__(self, handoffs: tuple[str, ...]) -> None:
        super().__init__(
            f"nobody has verified the result of {', '.join(handoffs)}; verify it, accept it with a reason, "
            "or send it back",
        )
        self.handoffs = handoffs


class RunnerError(HandoffError):
    """An agent's program broke the protocol, or ended without an answer."""

    code = "handoff.runner"
