"""Opening the ledger of a project for its hooks: what it is judged by, and what records in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batonpass.adapters.claude_code.hooks.client import HookInvocation
from batonpass.adapters.claude_code.hooks.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.claude_code.hooks.session.hook_recorder import HookRecorder
from batonpass.config import find_settings
from batonpass.model.base.kinds import Mode
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay


class OpenedRecorder:
    """A recorder together with the ledger that it records in."""

    def __init__(self, call: HookInvocation) -> None:
        project = Path(call.project)
        settings = find_settings(call.told, directory=project, environment=call.environment)
        # Reading never makes a ledger, and neither does a hook: `batonpass init claude-code` does.
        self._relay = Relay.open(
            settings.ledger,
            home=settings.home,
            keys_in_files=True,
            create=False,
            policy=Policy(),  # what holds is read for each event, and may be wrong: then the model is told
            work_tree=project,
        )
        mode = Mode.ENFORCED if call.enforce else Mode.OBSERVED
        policy = DirectoryPolicy(project, settings.policy)
        self._recorder = HookRecorder(self._relay, project, mode=mode, policy=policy)

    def handle(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record an event and return the answer for Claude Code."""
        return self._recorder.handle(event)

    def note_gap(self, event: Mapping[str, Any] | None, reason: str) -> None:
        """Record that an event was missed."""
        self._recorder.note_gap(event, reason)

    def close(self) -> None:
        """Let go of the work tree and of the ledger."""
        self._recorder.close()
        self._relay.close()
