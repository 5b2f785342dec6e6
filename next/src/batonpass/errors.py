"""Every error: a class that names the fact, a stable code for machines, and a sentence that says what to do.

A class has a closed list of codes, the first of which is its own; `closed.toml` lists them all, and a test compares.
The same error looks the same at every entry point: `api.problems` writes it, and reads it back to the same class.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class BatonpassError(Exception):
    """Something went wrong in Batonpass itself."""

    codes: ClassVar[tuple[str, ...]] = ("internal",)
    exit_status: ClassVar[int] = 3  # of a command: 1 is "no", 2 is a wrong question, 3 is broken
    http_status: ClassVar[int] = 500

    def __init__(self, detail: str, *, code: str | None = None, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.code = self.codes[0] if code is None else code
        self.facts: Mapping[str, Any] = facts or {}


class InvalidValueError(BatonpassError):
    """A value has no meaning here."""

    codes: ClassVar[tuple[str, ...]] = ("value.invalid", "content.too_large")
    exit_status = 2
    http_status = 400


class MissingExtraError(BatonpassError):
    """An optional part of Batonpass is not installed."""

    codes: ClassVar[tuple[str, ...]] = ("extra.missing",)
    http_status = 501


class NotFoundError(BatonpassError):
    """There is no such thing in this ledger."""

    codes: ClassVar[tuple[str, ...]] = ("id.unknown", "id.ambiguous")
    exit_status = 1
    http_status = 404


class HandoffError(BatonpassError):
    """A handoff does not allow this."""

    codes: ClassVar[tuple[str, ...]] = ("handoff.is_attempt",)
    exit_status = 1
    http_status = 409


class LifecycleError(HandoffError):
    """The table of transitions has no such step."""

    codes: ClassVar[tuple[str, ...]] = ("lifecycle.illegal",)


class CallError(BatonpassError):
    """A call does not allow this."""

    codes: ClassVar[tuple[str, ...]] = ("call.not_open", "call.guard_failed")
    exit_status = 1
    http_status = 409


class CallDeniedError(CallError):
    """The call was not made, and the denial is recorded."""

    codes: ClassVar[tuple[str, ...]] = ("call.denied",)
    http_status = 403


class CallInDoubtError(CallError):
    """The call was requested before and left no outcome: a person decides whether to repeat or to skip it."""

    codes: ClassVar[tuple[str, ...]] = ("call.in_doubt",)


class GrantError(BatonpassError):
    """A grant does not allow this."""

    codes: ClassVar[tuple[str, ...]] = ("grant.required", "grant.revoked")
    exit_status = 1
    http_status = 403


class GrantExceededError(GrantError):
    """A grant would give more than its parent may delegate."""

    codes: ClassVar[tuple[str, ...]] = ("grant.exceeded",)


class KeyFailedError(BatonpassError):
    """A key may not sign here."""

    codes: ClassVar[tuple[str, ...]] = ("key.not_enrolled",)
    exit_status = 1
    http_status = 403


class ConflictError(BatonpassError):
    """Another writer came first: what was decided on the old state has to be decided again."""

    codes: ClassVar[tuple[str, ...]] = (
        "ledger.stale_head",
        "ledger.precondition_failed",
        "idempotency.key_reused",
        "handoff.already_offered",
    )
    exit_status = 1
    http_status = 409


class FencedError(ConflictError):
    """The run was taken over or has ended: it can request nothing and deliver nothing any more."""

    codes: ClassVar[tuple[str, ...]] = ("ledger.fenced", "ledger.stream_closed")


class StoreError(BatonpassError):
    """The ledger cannot be read or written."""

    codes: ClassVar[tuple[str, ...]] = (
        "store.unavailable",
        "store.not_a_ledger",
        "store.forked",
        "store.place",
        "store.key",
        "ledger.rewound",
    )
    http_status = 503


class OutcomeUnknownError(StoreError):
    """The commit was interrupted: the receipt may or may not be there. The next act looks."""

    codes: ClassVar[tuple[str, ...]] = ("store.outcome_unknown",)


class AccessError(BatonpassError):
    """The caller may not do this."""

    codes: ClassVar[tuple[str, ...]] = ("access.denied",)
    exit_status = 1
    http_status = 403


class VerificationError(BatonpassError):
    """Verification found the first thing that is wrong, and names it."""

    codes: ClassVar[tuple[str, ...]] = (
        "verify.bytes",
        "verify.order",
        "verify.chain",
        "verify.recorder",
        "verify.signature",
        "verify.admission",
        "verify.reference",
        "verify.content",
        "verify.rows",
    )
    exit_status = 1
    http_status = 409


def error_classes() -> dict[str, type[BatonpassError]]:
    """Return the class of each code."""
    found: dict[str, type[BatonpassError]] = {}
    queue: list[type[BatonpassError]] = [BatonpassError]
    while queue:
        kind = queue.pop()
        found.update(dict.fromkeys(kind.codes, kind))
        queue += kind.__subclasses__()
    return found
