"""Opening the ledger of a project for its hooks: what it is judged by, and what records in it."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from batonpass.adapters.claude_code.hooks.client import Call
from batonpass.adapters.claude_code.hooks.enforcing import Judge, Keeper
from batonpass.adapters.claude_code.hooks.recorder import Recorder
from batonpass.config import find_settings
from batonpass.model.receipt import Mode
from batonpass.model.rules import Policy
from batonpass.policy.document import FILE_NAME
from batonpass.policy.granting import read_tables
from batonpass.relay import Relay
from batonpass.store.opening import SQLITE, path_of


class Opened:
    """A recorder together with the ledger that it records in."""

    def __init__(self, call: Call) -> None:
        project = Path(call.project)
        settings = find_settings(call.told, directory=project, environment=call.environment)
        # Reading never makes a ledger, and neither does a hook: `batonpass init claude-code` does.
        # What the file says about these agents is read by the judge, which can also tell them that it is wrong.
        self._relay = Relay.open(
            settings.ledger,
            home=settings.home,
            keys_in_files=True,
            create=False,
            policy=Policy(),
            work_tree=project,
        )
        ledger = path_of(settings.ledger) if settings.ledger.startswith(SQLITE) else None
        judging = Judge if call.enforce else Keeper
        judge = judging(project, home=Path(call.home), ledger=ledger)
        mode = Mode.ENFORCED if call.enforce else Mode.OBSERVED
        tables = partial(read_tables, project / FILE_NAME)
        self._recorder = Recorder(self._relay, project, judge=judge, mode=mode, tables=tables)

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
