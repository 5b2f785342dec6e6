"""Handoff infrastructure for multi-agent systems: a signed, chained record of who did what, under whose authority."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from batonpass.audit.evidence import Evidence
    from batonpass.errors import BatonpassError, VerificationError
    from batonpass.model.seal import Seal
    from batonpass.relay import Relay
    from batonpass.store.opening import open_store

__version__ = "0.1.0.dev0"
__all__ = ["BatonpassError", "Evidence", "Relay", "Seal", "VerificationError", "open_store"]

# Names are imported when they are first used: `import batonpass` stays as cheap as a program that needs one of them.
_HOMES: _typing.Final = {
    "BatonpassError": "batonpass.errors",
    "Evidence": "batonpass.audit.evidence",
    "Relay": "batonpass.relay",
    "Seal": "batonpass.model.seal",
    "VerificationError": "batonpass.errors",
    "open_store": "batonpass.store.opening",
}


def __getattr__(name: str) -> _typing.Any:  # noqa: ANN401 - each name has its own type, which type checkers see above
    if name not in _HOMES:
        raise AttributeError(f"module 'batonpass' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
