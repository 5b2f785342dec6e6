"""Guards: pure functions that decide one question each. They take values, return or raise, and do no I/O."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from batonpass.guard.grants.call_verification import Permitted, verify_call
    from batonpass.guard.grants.grant_chain import ToolPolicy

__all__ = ["Permitted", "ToolPolicy", "verify_call"]

# Imported on first use, like the names of `batonpass`: a caller of one guard does not load the others, and the code for
# signatures is loaded only by callers that have some.
_HOMES: _typing.Final = {
    "Permitted": "batonpass.guard.grants.call_verification",
    "ToolPolicy": "batonpass.guard.grants.grant_chain",
    "verify_call": "batonpass.guard.grants.call_verification",
}


def __getattr__(name: str) -> _typing.Any:  # noqa: ANN401 - each name has its own type, which type checkers see above
    if name not in _HOMES:
        raise AttributeError(f"module 'batonpass.guard' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - with the names

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
