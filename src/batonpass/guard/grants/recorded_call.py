"""Checks a recorded call against permits again. A value that was redacted since is not guessed."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from batonpass.model.grants.condition import Condition, keeps
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.permit import Permit

JUDGED: Final = "judged"  # name of the content with the arguments that a guard evaluated, by the names in permits
REDACTED: Final = "[redacted]"  # a value from which a secret was removed can no longer be compared


def conditioned(terms: Iterable[Terms]) -> tuple[str, ...]:
    """Return the names of all arguments for which some permit has a condition, sorted."""
    scopes = [scope for one in terms for scope in (one.may, one.may_delegate)]
    return tuple(
        sorted({condition.argument for scope in scopes for permit in scope.permits for condition in permit.where})
    )


def find_broken(permit: Permit, judged: Mapping[str, object]) -> Iterator[Condition]:
    """Yield the conditions that a recorded call violates. A redacted value is skipped, because nobody can tell."""
    for condition in permit.where:
        # An argument that was not given keeps to no condition, here as in the guard: a condition on an argument demands
        # it.
        value = judged.get(condition.argument)
        if condition.argument not in judged or not (is_redacted(value) or keeps(condition, value)):
            yield condition


def is_redacted(value: object) -> bool:
    """Return whether a secret was removed from a recorded value or from any part of it."""
    if isinstance(value, Mapping):
        return any(map(is_redacted, value)) or any(map(is_redacted, value.values()))
    if isinstance(value, list):
        return any(map(is_redacted, value))
    return isinstance(value, str) and REDACTED in value
