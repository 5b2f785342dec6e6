"""Errors about calls that were made, and did not end as they should."""

from batonpass.errors.base import BatonpassError

_SHOWN = 5


class CallOutcomeError(BatonpassError):
    """A call was made, and did not end as it should; what came of it is on record."""


class CommandTimeoutError(CallOutcomeError):
    """A command took longer than it was given, and was ended with all that it had started."""

    code = "call.timeout"

    def __init__(self, program: str, seconds: float, exit_code: int, last_words: str) -> None:
        said = f"; its last words: {last_words}" if last_words else ""
        super().__init__(f"{program} did not end within {seconds:g} seconds and was killed; give it more time{said}")
        self.program = program
        self.exit_code = exit_code


class OutsideGrantError(CallOutcomeError):
    """A command changed files that its run may not write; that is done, and on record."""

    code = "call.outside_grant"

    def __init__(self, agent: str, paths: tuple[str, ...]) -> None:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        super().__init__(
            f"the command changed {', '.join(paths[:_SHOWN])}{more}, which {agent} may not write; "
            "that is done: look at it, and undo it or ask for a grant that covers it"
        )
        self.agent = agent
        self.paths = paths
