"""Handoff infrastructure for multi-agent systems: the whole state travels, and who did what is a signed record."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from batonpass.adapters.line_blame import blame
    from batonpass.aio import AsyncRelay
    from batonpass.audit.verification.evidence import Evidence
    from batonpass.default import start
    from batonpass.dispatch.worker import Worker
    from batonpass.errors import BatonpassError, VerificationError
    from batonpass.handoff.live.faces import LiveHandoff as Handoff
    from batonpass.handoff.live.faces import LiveRun as Run
    from batonpass.handoff.live.faces import current_run
    from batonpass.handoff.programs.program import Program
    from batonpass.handoff.tools.call_context import current_call
    from batonpass.handoff.tools.declaration import tool
    from batonpass.handoff.transfer.result import Result
    from batonpass.model.baton.baton import Budget
    from batonpass.model.baton.brief_request import BriefRequest as Brief
    from batonpass.model.baton.card import Card
    from batonpass.model.baton.items import (
        Assumption,
        Claim,
        Constraint,
        Decision,
        Exclusion,
        OpenQuestion,
        RejectedPath,
        Report,
        WorkItem,
    )
    from batonpass.model.grants.grant_request import GrantRequest as Grant
    from batonpass.model.ledger.seal import Seal
    from batonpass.model.policy.handoff_policy import HandoffPolicy
    from batonpass.model.policy.offer_options import Handling
    from batonpass.relay import Relay
    from batonpass.store.factory import open_store

__version__ = "0.1.0.dev0"
__all__ = [
    "Assumption",
    "AsyncRelay",
    "BatonpassError",
    "Brief",
    "Budget",
    "Card",
    "Claim",
    "Constraint",
    "Decision",
    "Evidence",
    "Exclusion",
    "Grant",
    "Handling",
    "Handoff",
    "HandoffPolicy",
    "OpenQuestion",
    "Program",
    "RejectedPath",
    "Relay",
    "Report",
    "Result",
    "Run",
    "Seal",
    "VerificationError",
    "WorkItem",
    "Worker",
    "blame",
    "current_call",
    "current_run",
    "open_store",
    "start",
    "tool",
]

# Each name is imported when it is first used. So `import batonpass` is fast, and a program pays only for the names it
# uses.
_HOMES: _typing.Final = {
    "Assumption": "batonpass.model.baton.items",
    "AsyncRelay": "batonpass.aio",
    "BatonpassError": "batonpass.errors",
    "Brief": "batonpass.model.baton.brief_request",
    "Budget": "batonpass.model.baton.baton",
    "Card": "batonpass.model.baton.card",
    "Claim": "batonpass.model.baton.items",
    "Constraint": "batonpass.model.baton.items",
    "Decision": "batonpass.model.baton.items",
    "Evidence": "batonpass.audit.verification.evidence",
    "Exclusion": "batonpass.model.baton.items",
    "Grant": "batonpass.model.grants.grant_request",
    "Handling": "batonpass.model.policy.offer_options",
    "Handoff": "batonpass.handoff.live.faces",
    "HandoffPolicy": "batonpass.model.policy.handoff_policy",
    "OpenQuestion": "batonpass.model.baton.items",
    "Program": "batonpass.handoff.programs.program",
    "RejectedPath": "batonpass.model.baton.items",
    "Relay": "batonpass.relay",
    "Report": "batonpass.model.baton.items",
    "Result": "batonpass.handoff.transfer.result",
    "Run": "batonpass.handoff.live.faces",
    "Seal": "batonpass.model.ledger.seal",
    "VerificationError": "batonpass.errors",
    "WorkItem": "batonpass.model.baton.items",
    "Worker": "batonpass.dispatch.worker",
    "blame": "batonpass.adapters.line_blame",
    "current_call": "batonpass.handoff.tools.call_context",
    "current_run": "batonpass.handoff.live.faces",
    "open_store": "batonpass.store.factory",
    "start": "batonpass.default",
    "tool": "batonpass.handoff.tools.declaration",
}

# Names that differ inside the package. There the short name is the recorded value, and this one is for callers.
_INSIDE: _typing.Final = {
    "Brief": "BriefRequest",
    "Grant": "GrantRequest",
    "Handoff": "LiveHandoff",
    "Run": "LiveRun",
}


def __getattr__(name: str) -> _typing.Any:  # noqa: ANN401 - each name has its own type, which type checkers see above
    if name not in _HOMES:
        raise AttributeError(f"module 'batonpass' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), _INSIDE.get(name, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
