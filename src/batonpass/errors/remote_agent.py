"""Errors about agents elsewhere, which are asked over A2A."""

from batonpass.errors.base import BatonpassError


class RemoteAgentError(BatonpassError):
    """An agent elsewhere did not do its task."""


class RemoteCardError(RemoteAgentError):
    """The card of a remote agent is not the one that was pinned, or cannot be used."""

    code = "elsewhere.card"


class RemoteRefusedError(RemoteAgentError):
    """A remote agent refused a request, or its answer is not A2A."""

    code = "elsewhere.refused"


class RemoteFailedError(RemoteAgentError):
    """The task of a remote agent ended without a result."""

    code = "elsewhere.failed"

    def __init__(self, agent: str, state: str, words: str) -> None:
        said = f": {words}" if words else ""
        super().__init__(f"{agent} ended its task as {state}{said}")
        self.agent = agent
        self.state = state


class RemoteAskedError(RemoteAgentError):
    """A remote agent asks something, and nobody here answers."""

    code = "elsewhere.asked"

    def __init__(self, agent: str, question: str) -> None:
        super().__init__(f"{agent} asks: {question}; give RemoteAgent an `answer`, or say it in the task, then retry")
        self.agent = agent
        self.question = question


class RemoteWithdrawnError(RemoteAgentError):
    """The handoff to a remote agent ended here while it worked; it was told to stop."""

    code = "elsewhere.withdrawn"
