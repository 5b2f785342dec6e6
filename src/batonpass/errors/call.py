"""Errors of calls: the call was not made, or it was made and went wrong."""

from batonpass.errors.base import BatonpassError

_SHOWN = 5


class CallError(BatonpassError):
    """A tool call was not made."""


class CredentialError(CallError):
    """A tool needs a credential that is not available."""

    code = "call.credential"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"there is no credential {name!r}: {problem}")
        self.name = name


class CallInDoubtError(CallError):
    """An earlier attempt requested this call and its outcome is unknown."""

    code = "call.in_doubt"

    def __init__(self, tool: str, call: str) -> None:
        super().__init__(
            f"{tool} was requested before and its outcome is unknown ({call}); find out, then settle it with "
            f"`batonpass handoff settle HANDOFF {call[-6:]} --repeat` or `--skip`",
        )
        self.tool = tool
        self.call = call


class CallHeldError(CallError):
    """The call would change a target that an earlier attempt has already changed."""

    code = "call.held"

    def __init__(self, tool: str, earlier: str) -> None:
        super().__init__(
            f"{tool} would change a target that an earlier attempt changed ({earlier}); read what it did and go on "
            "from there, or have the call approved",
        )
        self.tool = tool
        self.earlier = earlier


class CallSuspendedError(CallError):
    """The call waits for an approval. This attempt is over; the next one continues from here."""

    code = "call.suspended"

    def __init__(self, tool: str, call: str, rule: str, sentence: str, handoff: str | None) -> None:
        how = (
            f"approve it with `batonpass handoff approve {handoff[-6:]}`, and the next attempt continues from here"
            if handoff is not None
            else f"approve it with `batonpass handoff approve {call[-6:]}`, then call it again"
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
    """Somebody has already decided about this call, and the decision is final."""

    code = "call.decided"

    def __init__(self, call: str, by: str, decision: str) -> None:
        super().__init__(f"{by} has already {decision} {call}; see `batonpass why {call[-6:]}`")
        self.call = call
        self.by = by
        self.decision = decision


class ConstraintViolatedError(CallError):
    """An argument or a result breaks a constraint that travels with the task."""

    code = "call.constraint"

    def __init__(self, constraint: str, found: str) -> None:
        super().__init__(f"{constraint} is violated: {found}; respect it, or have its author relax it")
        self.constraint = constraint


class CallProtectedError(CallError):
    """The call would change the ledger itself, its keys, or the policy."""

    code = "call.protected"

    def __init__(self, tool: str, does: str, instead: str) -> None:
        super().__init__(f"{tool} would {does}, and no agent may do that; {instead}")
        self.tool = tool


class GuardFailedError(CallError):
    """The guard failed, so it is not known whether the call is allowed; it was not made."""

    code = "call.guard_failed"

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"{tool} was not called: the guard failed with {problem}; have it fixed, then try again")
        self.tool = tool


class DeadlinePassedError(CallError):
    """The deadline of the handoff has passed, so its run makes no more calls."""

    code = "call.deadline"

    def __init__(self, tool: str, handoff: str, deadline: str) -> None:
        super().__init__(
            f"{tool} was not called: the deadline of {handoff} passed at {deadline}; close the run, and hand the rest "
            "off again with more time"
        )
        self.tool = tool
        self.handoff = handoff


class CallReplayError(CallError):
    """A finished handoff is replayed and makes a call that it never made before."""

    code = "call.replay"

    def __init__(self, tool: str, handoff: str) -> None:
        super().__init__(f"{handoff} is finished and never called {tool} like this; start another handoff for new work")
        self.tool = tool


class CallOutcomeError(BatonpassError):
    """A call was made and went wrong; its outcome is recorded."""


class CommandTimeoutError(CallOutcomeError):
    """A command exceeded its time limit and was killed, with every process it had started."""

    code = "call.timeout"

    def __init__(self, program: str, seconds: float, exit_code: int, last_words: str) -> None:
        said = f"; its last words: {last_words}" if last_words else ""
        super().__init__(f"{program} did not end within {seconds:g} seconds and was killed; give it more time{said}")
        self.program = program
        self.exit_code = exit_code


class OutsideGrantError(CallOutcomeError):
    """A command changed files that its run may not write. The change is made, and recorded."""

    code = "call.outside_grant"

    def __init__(self, agent: str, paths: tuple[str, ...]) -> None:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        super().__init__(
            f"the command changed {', '.join(paths[:_SHOWN])}{more}, which {agent} may not write; "
            "the files are changed: look at them, then undo it or ask for a grant that covers it"
        )
        self.agent = agent
        self.paths = paths
