"""Handoff infrastructure for multi-agent systems: the whole state travels, and who did what is a signed record."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from batonpass.adapters.blaming import blame
    from batonpass.aio import AsyncRelay
    from batonpass.audit.evidence import Evidence
    from batonpass.default import start
    from batonpass.dispatch.worker import Worker
    from batonpass.errors import BatonpassError, VerificationError
    from batonpass.handoff.calls.context import current_call
    from batonpass.handoff.calls.tools import tool
    from batonpass.handoff.programs import Program
    from batonpass.model.baton import Budget
    from batonpass.model.card import Card
    from batonpass.model.items import (
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
    from batonpass.model.policy import HandoffPolicy
    from batonpass.model.seal import Seal
    from batonpass.relay import Relay
    from batonpass.store.opening import open_store

__version__ = "0.1.0.dev0"
__all__ = [
    "Assumption",
    "AsyncRelay",
    "BatonpassError",
    "Budget",
    "Card",
    "Claim",
    "Constraint",
    "Decision",
    "Evidence",
    "Exclusion",
    "HandoffPolicy",
    "OpenQuestion",
    "Program",
    "RejectedPath",
    "Relay",
    "Report",
    "Seal",
    "VerificationError",
    "WorkItem",
    "Worker",
    "blame",
    "current_call",
    "open_store",
    "start",
    "tool",
]

# Names are imported when they are first used: `import batonpass` stays as cheap as a program that needs one of them.
_HOMES: _typing.Final = {
    "Assumption": "batonpass.model.items",
    "AsyncRelay": "batonpass.aio",
    "BatonpassError": "batonpass.errors",
    "Budget": "batonpass.model.baton",
    "Card": "batonpass.model.card",
    "Claim": "batonpass.model.items",
    "Constraint": "batonpass.model.items",
    "Decision": "batonpass.model.items",
    "Evidence": "batonpass.audit.evidence",
    "Exclusion": "batonpass.model.items",
    "HandoffPolicy": "batonpass.model.policy",
    "OpenQuestion": "batonpass.model.items",
    "Program": "batonpass.handoff.programs",
    "RejectedPath": "batonpass.model.items",
    "Relay": "batonpass.relay",
    "Report": "batonpass.model.items",
    "Seal": "batonpass.model.seal",
    "VerificationError": "batonpass.errors",
    "WorkItem": "batonpass.model.items",
    "Worker": "batonpass.dispatch.worker",
    "blame": "batonpass.adapters.blaming",
    "current_call": "batonpass.handoff.calls.context",
    "open_store": "batonpass.store.opening",
    "start": "batonpass.default",
    "tool": "batonpass.handoff.calls.tools",
}


def __getattr__(name: str) -> _typing.Any:  # noqa: ANN401 - each name has its own type, which type checkers see above
    if name not in _HOMES:
        raise AttributeError(f"module 'batonpass' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
