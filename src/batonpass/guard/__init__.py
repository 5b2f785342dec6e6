"""Guards: each decides one question about values, says why, and touches nothing."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from batonpass.guard.grants.call_verification import Permitted, verify_call
    from batonpass.guard.grants.grant_chain import ToolPolicy

__all__ = ["Permitted", "ToolPolicy", "verify_call"]

# Imported when they are first used, as the names of `batonpass` are: whoever asks one guard loads none of the others,
# and what checks signatures is loaded by whoever has some.
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
