"""Errors of a handoff: something was refused, asked, declined or is in doubt, and nothing is lost."""

from typing import Final

from batonpass.errors.base import BatonpassError


class HandoffError(BatonpassError):
    """A handoff does not go on as it was asked to."""


class PolicyRefusedError(HandoffError):
    """A policy did not let a handoff go; that is recorded as a handoff that failed, and nothing of it ran."""


class HandoffDepthExceededError(PolicyRefusedError):
    """The signed lineage is already as deep as the policy allows."""

    code = "handoff.too_deep"

    def __init__(self, depth: int, most: int) -> None:
        super().__init__(
            f"{depth} agents stand in this lineage already, and the policy allows {most}; do not delegate further, "
            "answer with what is known",
        )
        self.depth = depth
        self.most = most


class AgentNotAllowedError(PolicyRefusedError):
    """The policy does not let work be handed to this agent."""

    code = "handoff.not_allowed"

    def __init__(self, agent: str, allowed: tuple[str, ...]) -> None:
        who = ", ".join(allowed) if allowed else "nobody"
        super().__init__(f"the policy lets work be handed to {who}, not to {agent}; ask one of them, or do it yourself")
        self.agent = agent


class HandoffLoopError(PolicyRefusedError):
    """The same agent was asked for exactly this further up, and is waiting for it."""

    code = "handoff.loop"

    def __init__(self, agent: str) -> None:
        super().__init__(f"{agent} was asked for exactly this further up and waits for it; answer with what is known")
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


class KeyReusedError(HandoffError):
    """The same idempotency key was used for something else."""

    code = "handoff.key_reused"

    def __init__(self, handoff: str, differences: tuple[str, ...]) -> None:
        what = ", ".join(differences) or "what was asked for"
        super().__init__(f"{handoff} has this key already and differs in {what}; use another key for another task")
        self.handoff = handoff
        self.differences = differences


class ReusedResultWarning(UserWarning):
    """A run handed off a task that it has the result of already: nobody works for it again."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"{agent} has done exactly this task for this run already, and its result is used again; for another one, "
            "give the handoff a key of its own, for instance key='draft 2'",
        )


class InputsChangedError(HandoffError):
    """A handoff is to be used or tried again, and what it was offered with no longer stands, or was made anew."""

    code = "handoff.inputs_changed"

    def __init__(self, handoff: str, changed: tuple[str, ...]) -> None:
        super().__init__(
            f"{handoff} was offered with inputs that have changed since: {'; '.join(changed)}. Say which you want: the "
            "same inputs as before (same), or a new start with those of now (fresh)",
        )
        self.handoff = handoff
        self.changed = changed


class NotEntitledError(HandoffError):
    """Somebody tried to relax what only its author or the root's principal may relax."""

    code = "handoff.not_entitled"

    def __init__(self, item: str, by: str, entitled: tuple[str, ...]) -> None:
        super().__init__(f"{by} may not relax {item}; ask {' or '.join(entitled)}")
        self.item = item


class HandoffAskedError(HandoffError):
    """The receiver asks before it acts; answer, and go on."""

    code = "handoff.asked"

    def __init__(self, handoff: str, question: str) -> None:
        super().__init__(f"{handoff} asks: {question} Answer with `batonpass handoff answer {handoff[-6:]} TEXT`")
        self.handoff = handoff
        self.question = question


class HandoffDeclinedError(HandoffError):
    """The receiver did not take the handoff."""

    code = "handoff.declined"

    def __init__(self, handoff: str, reason: str) -> None:
        super().__init__(f"{handoff} was declined: {reason}; retry it, replace the agent, or ask for something else")
        self.handoff = handoff
        self.reason = reason


class HandoffEndedError(HandoffError):
    """The handoff is over, or somebody else works on it: there is nothing to take."""

    code = "handoff.ended"

    def __init__(self, handoff: str, state: str) -> None:
        noun = handoff.partition("_")[0]
        super().__init__(f"{handoff} is {state}; see `batonpass {noun} show {handoff[-6:]}`")
        self.handoff = handoff
        self.state = state
        self.possible: tuple[str, ...] | None = None  # what can be done instead, where somebody looked


class HandoffHeldError(HandoffError):
    """Somebody has to approve first."""

    code = "handoff.held"

    def __init__(self, handoff: str) -> None:
        super().__init__(f"{handoff} is held; approve it with `batonpass handoff approve {handoff[-6:]}`")
        self.handoff = handoff


class HandoffRefusedError(PolicyRefusedError):
    """The policy does not let this be handed off."""

    code = "handoff.refused"

    def __init__(self, rule: str, where: str, sentence: str) -> None:
        super().__init__(
            f"{sentence}, so it is refused (rule {rule}, {where}); ask for something else, or have the policy changed",
        )
        self.rule = rule


# Who opens which gate, in words; the rule itself is `guard.gates.may_let_go_on`.
_OPENED_BY: Final = {
    "approve": "a person, such as user:ana",
    "confirm": "a person, whoever asked for it, or any agent but the one whose work it is",
    "deny": "another policy, as nobody opens a gate that denies",
}
_ANYBODY_ELSE: Final = "anybody but the agent whose work it is"


class NotApproverError(HandoffError):
    """Somebody tried to let something go on that takes somebody else."""

    code = "handoff.not_approver"

    def __init__(self, held: str, by: str, gate: str) -> None:
        super().__init__(f"{by} may not let {held} go on: it takes {_OPENED_BY.get(gate, _ANYBODY_ELSE)}")
        self.held = held
        self.by = by


class OutOfScopeError(HandoffError):
    """Somebody tried to approve what the policy does not let them approve."""

    code = "handoff.out_of_scope"

    def __init__(self, held: str, by: str, *, what: str, who: tuple[str, ...], table: str) -> None:
        may = f"{', '.join(who)} may" if who else f"nobody may, by {table}"
        super().__init__(f"{by} may not approve {held}: {what}; {may}")
        self.held = held
        self.by = by
        self.who = who


class FourEyesError(HandoffError):
    """It takes several people, none of whom asked for it, and this would not be another one."""

    code = "handoff.four_eyes"

    def __init__(self, held: str, by: str, *, approvals: int, because: str) -> None:
        super().__init__(
            f"{held} takes {approvals} people who did not ask for it, and {because}; somebody other than {by} may"
        )
        self.held = held
        self.by = by


class UnprovenError(HandoffError):
    """It takes a decision that an approver's key signed, and none did."""

    code = "handoff.unproven"

    def __init__(self, held: str, by: str) -> None:
        super().__init__(
            f"{held} takes a proven approval, and nothing proves that {by} approves; make a key with "
            f"`batonpass approver add {by}`, and approve on a terminal",
        )
        self.held = held
        self.by = by


class HoldChangedError(HandoffError):
    """What waits now is not what was shown."""

    code = "handoff.hold_changed"

    def __init__(self, held: str) -> None:
        super().__init__(f"what waits for {held} is not what was shown any more; look at it again, and decide then")
        self.held = held


class NotPersonError(HandoffError):
    """Somebody who is no person tried to endorse what came from outside."""

    code = "handoff.not_person"

    def __init__(self, source: str, by: str) -> None:
        super().__init__(f"{by} may not endorse {source}: only a person answers for it, such as user:ana")
        self.source = source
        self.by = by


class UnverifiedError(PolicyRefusedError):
    """The policy does not let a lead go on with results that nobody verified."""

    code = "handoff.unverified"

    def __init__(self, handoffs: tuple[str, ...]) -> None:
        super().__init__(
            f"{', '.join(handoffs)} delivered and nobody has verified it; verify it, accept it with a reason, "
            "or send it back",
        )
        self.handoffs = handoffs


class RunnerError(HandoffError):
    """An agent's program did not keep to the protocol, or ended without an answer."""

    code = "handoff.runner"


class CallError(BatonpassError):
    """A tool call was not made."""


class CredentialError(CallError):
    """A tool needs a credential, and it cannot be had."""

    code = "call.credential"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"there is no credential {name!r}: {problem}")
        self.name = name


class CallInDoubtError(CallError):
    """An earlier attempt requested this very call and nobody knows whether it happened."""

    code = "call.in_doubt"

    def __init__(self, tool: str, call: str) -> None:
        super().__init__(
            f"{tool} was requested before and its outcome is unknown ({call}); find out, then settle it with "
            f"`batonpass handoff settle HANDOFF {call[-6:]} --repeat` or `--skip`",
        )
        self.tool = tool
        self.call = call


class CallHeldError(CallError):
    """The call would change what an earlier attempt has changed already."""

    code = "call.held"

    def __init__(self, tool: str, earlier: str) -> None:
        super().__init__(
            f"{tool} would change a target that an earlier attempt changed ({earlier}); read what it did and go on "
            "from there, or have the call approved",
        )
        self.tool = tool
        self.earlier = earlier


class CallSuspendedError(CallError):
    """The call waits for somebody to let it be made. This attempt is over; the next one goes on from here."""

    code = "call.suspended"

    def __init__(self, tool: str, call: str, rule: str, sentence: str, handoff: str | None) -> None:
        how = (
            f"let it be made with `batonpass handoff approve {handoff[-6:]}`, and the next attempt goes on from here"
            if handoff is not None
            else f"let it be made with `batonpass handoff approve {call[-6:]}`, and call it again"
        )
        super().__init__(f"{sentence} (rule {rule}); {how}")
        self.tool = tool
        self.call = call
        self.rule = rule
        self.sentence = sentence
        self.handoff = handoff


class CallDeniedError(CallError):
    """A rule of the policy denies the call."""

    code = "call.denied"

    def __init__(self, tool: str, rule: str, where: str, sentence: str) -> None:
        super().__init__(f"{sentence} (rule {rule}, {where}); do it in a way that is allowed, or have the rule changed")
        self.tool = tool
        self.rule = rule


class CallDecidedError(CallError):
    """Somebody decided about the call already, and a decision stands."""

    code = "call.decided"

    def __init__(self, call: str, by: str, decision: str) -> None:
        super().__init__(f"{by} {decision} {call} already, and that stands; see `batonpass why {call[-6:]}`")
        self.call = call
        self.by = by
        self.decision = decision


class ConstraintViolatedError(CallError):
    """An argument or a result breaks a constraint that travels with the task."""

    code = "call.constraint"

    def __init__(self, constraint: str, found: str) -> None:
        super().__init__(f"{constraint} does not hold: {found}; keep to it, or have it relaxed by whoever set it")
        self.constraint = constraint


class CallProtectedError(CallError):
    """The call would touch the record itself, its keys, or what decides about calls."""

    code = "call.protected"

    def __init__(self, tool: str, does: str, instead: str) -> None:
        super().__init__(f"{tool} would {does}, and no agent may do that; {instead}")
        self.tool = tool


class GuardFailedError(CallError):
    """The guard itself failed, so nobody knows whether the call may be made; it was not made."""

    code = "call.guard_failed"

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"{tool} was not called: the guard failed with {problem}; have it mended, then try again")
        self.tool = tool


class CallReplayError(CallError):
    """A finished handoff is gone through again and asks for something that it never did."""

    code = "call.replay"

    def __init__(self, tool: str, handoff: str) -> None:
        super().__init__(f"{handoff} is finished and never called {tool} like this; start another handoff for new work")
        self.tool = tool
