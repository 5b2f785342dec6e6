"""Revoking a grant, as an operator does it."""

from typing import Any

from batonpass.runtime.retry import revoke_grant


def revoke(context: Any, account: str, *, by: str) -> None:  # noqa: ANN401 - what the acts of the core work on
    """End a grant."""
    revoke_grant(context, account, by=by)
