"""What each field of each value must refuse: the table behind `test_values`."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Final

from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Changed, Kind
from tests.unit.model.examples import (
    CALL,
    CHARGED,
    CHILD,
    COMMIT,
    CONTENT,
    DECIDED,
    DECLINED,
    DIGEST,
    FALLEN,
    FOUND,
    HANDOFF,
    HEAD,
    PARENT,
    RELAY,
    SENT,
    TRACE,
    an_id,
)

Wrong = Mapping[str, Sequence[object]]

NOT_IDS: Final = ("", "last", f"{PARENT}\n", an_id("ledger"), 7, None)
NOT_OPTIONAL_IDS: Final = NOT_IDS[:-1]
NOT_STREAMS: Final = (*NOT_OPTIONAL_IDS, CONTENT, CALL)
NOT_DIGESTS: Final = ("", "AB" * 32, "ab" * 31, "ab" * 33, "gh" * 32, bytes(32), None)
NOT_OPTIONAL_DIGESTS: Final = NOT_DIGESTS[:-1]
NOT_NUMBERS: Final = (-1, 2**53, 1.0, "1", True, None)
NOT_OPTIONAL_NUMBERS: Final = NOT_NUMBERS[:-1]
NOT_COUNTS: Final = (0, *NOT_NUMBERS)
NOT_CODES: Final = ("", "Time out", "é", "9lives", "x" * 65, 7, None)
NOT_OPTIONAL_CODES: Final = NOT_CODES[:-1]
NOT_TIMES: Final = (
    datetime(2026, 1, 2),  # noqa: DTZ001 - a time without a zone is what must be refused
    datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    "2026-01-02T12:00:00Z",
    1_767_355_200,
    None,
)
NOT_OPTIONAL_TIMES: Final = NOT_TIMES[:-1]
NOT_AGENTS: Final = ("", "the editor", "e" * 129, 7, None)
NOT_PRINCIPALS: Final = ("", "ana", "user:", 7, None)
NOT_MEMBERS: Final = ("", "odd", "COMPLETED", 7, None)
NOT_FLAGS: Final = (0, 1, "yes", None)
NOT_A_HEAD: Final[Sequence[object]] = ("", (HEAD,), CHILD, 7)
NOT_HEADS: Final[Sequence[object]] = ([], (HEAD, HEAD), ("run",), None)
NOT_ITEMS: Final[Sequence[object]] = ([DECIDED], (DECIDED, DECIDED), (CONTENT,), None)
NOT_LISTS_OF_CODES: Final[Sequence[object]] = (["a"], ("a", "a"), ("Not a code",), "a", None)
NOT_LISTS_OF_CALLS: Final[Sequence[object]] = ([CALL], (CALL, CALL), (CHILD,), CALL, None)
NOT_LISTS_OF_HANDOFFS: Final[Sequence[object]] = ([DECLINED], (DECLINED, DECLINED), (CHILD,), DECLINED, None)

NOT_TRACES: Final[Sequence[object]] = (
    "",
    "x",
    TRACE.upper(),
    f"{TRACE}\n",
    f"01{TRACE[2:]}",
    f"00-{'0' * 32}{TRACE[35:]}",
    f"{TRACE[:36]}{'0' * 16}-01",
    7,
)
NOT_LABELS: Final[Sequence[object]] = ("external", 7, ())
NOT_SOURCES: Final = ("", "last", HANDOFF, 7, None)
NOT_LISTS_OF_SOURCES: Final[Sequence[object]] = ([CALL], (CALL, CALL), (HANDOFF,), CALL, None)

_LABELLED: Final[Wrong] = {"label": NOT_LABELS}
_TAINTED: Final[Wrong] = {"label": NOT_LABELS, "taint": NOT_LISTS_OF_SOURCES}
_VETTED: Final[Wrong] = {"label": NOT_LABELS, "untrusted": NOT_LISTS_OF_SOURCES}
_BY_WHOM: Final[Wrong] = {"handoff": NOT_IDS, "by": NOT_PRINCIPALS}
_ROOT_CLOSED: Final[Wrong] = {
    "children": NOT_HEADS,
    "effects": NOT_LISTS_OF_CALLS,
    "unverified": NOT_LISTS_OF_HANDOFFS,
    "waiting": NOT_LISTS_OF_HANDOFFS,
    "flags": NOT_LISTS_OF_CODES,
}
_CLOSE_OUT: Final[Wrong] = {
    "handoff": NOT_IDS,
    "parent": NOT_IDS,
    "run": NOT_IDS,
    "attempt": NOT_COUNTS,
    "kept": NOT_NUMBERS,
    "keeps": NOT_LISTS_OF_CALLS,
    "gives": NOT_ITEMS,
    **_ROOT_CLOSED,
    **_TAINTED,
}
_VERIFICATION: Final[Wrong] = {
    **_BY_WHOM,
    "attempt": NOT_COUNTS,
    "method": NOT_MEMBERS,
    "by_producer": NOT_FLAGS,
    "exit_code": NOT_OPTIONAL_NUMBERS,
    "output": NOT_OPTIONAL_DIGESTS,
}
_SESSION: Final[Wrong] = {
    "kept": NOT_ITEMS,
    "revisit": ([CONTENT], (CONTENT, CONTENT), (CHILD,), None),
    "dropped": NOT_NUMBERS,
    "in_flight": NOT_LISTS_OF_HANDOFFS,
}
_CALL: Final[Wrong] = {"run": NOT_IDS, "call": NOT_IDS}
_NOT_FATES: Final = ([FALLEN], (FALLEN, FALLEN), ("refuted",), None)
_NOT_CHARGES: Final = ([CHARGED], (CHARGED, CHARGED), ("calls",), None)
_NOT_CHANGES: Final = [[], ("x",), (Changed(change=CONTENT), Changed(change=CONTENT))]
_ENDED: Final[Wrong] = {
    "flags": NOT_LISTS_OF_CODES,
    "changes": _NOT_CHANGES,
    "took_us": NOT_OPTIONAL_NUMBERS,
    "exit_code": NOT_OPTIONAL_NUMBERS,
    "effects": ([SENT], (SENT, SENT), ("message",), None),
    "taint": NOT_LISTS_OF_SOURCES[:-1],
    "commits": ([COMMIT], (COMMIT, COMMIT), (COMMIT[:12],), (COMMIT.upper(),), None),
}
_ENROLMENT: Final[Wrong] = {"relay": NOT_IDS, "public_key": NOT_DIGESTS}
_APPROVER: Final[Wrong] = {"principal": (*NOT_PRINCIPALS, "agent:editor"), "public_key": NOT_DIGESTS}
_ALARM: Final[Wrong] = {"agent": NOT_AGENTS, "alarm": ("", "0123456789AB", "0123456789a", "0123456789abc", None, 12)}
_DECISION: Final[Wrong] = {
    "hold": NOT_OPTIONAL_DIGESTS,
    "shown": NOT_OPTIONAL_DIGESTS,
    "looked_ms": NOT_OPTIONAL_NUMBERS,
    "measured_ms": NOT_OPTIONAL_NUMBERS,
    "flags": NOT_LISTS_OF_CODES,
    "proof": ("ab" * 64, 7, {"key": RELAY}),
    "expires": NOT_OPTIONAL_TIMES,
}

_NOT_GATES: Final = tuple(wrong for wrong in NOT_MEMBERS if wrong is not None)
WRONG_IN_BODIES: Final[Mapping[Kind, Wrong]] = {
    Kind.RUN_STARTED: {
        "trace": NOT_TRACES,
        "run": NOT_IDS,
        "agent": NOT_AGENTS,
        "principal": NOT_PRINCIPALS,
        "run_key": NOT_DIGESTS,
        "continues": NOT_OPTIONAL_IDS,
        "series": NOT_OPTIONAL_CODES,
        "policy": NOT_OPTIONAL_DIGESTS,
        **_LABELLED,
        "terms": NOT_OPTIONAL_DIGESTS,
        "certificate": NOT_OPTIONAL_DIGESTS,
        "upstream": NOT_NUMBERS,
    },
    Kind.RUN_REKEYED: {"run": NOT_IDS, "run_key": NOT_DIGESTS},
    Kind.RUN_RECORDED: {"run": NOT_IDS, "by": NOT_PRINCIPALS, "items": NOT_ITEMS, **_LABELLED},
    Kind.RUN_RELAXED: {"run": NOT_IDS, "item": NOT_IDS, "by": NOT_PRINCIPALS},
    Kind.RUN_SETTLED: {"run": NOT_IDS, "by": NOT_PRINCIPALS, "call": NOT_IDS, "settlement": NOT_MEMBERS},
    Kind.RUN_ACKNOWLEDGED: {"run": NOT_IDS, "revision": NOT_COUNTS, "baton": NOT_DIGESTS},
    Kind.RUN_TAINTED: {
        "run": NOT_IDS,
        "sources": ((), *NOT_LISTS_OF_SOURCES),
        "handoff": NOT_OPTIONAL_IDS,
        "wrote": NOT_OPTIONAL_IDS,
    },
    Kind.RUN_ENDORSED: {"run": NOT_IDS, "source": NOT_SOURCES, "by": NOT_PRINCIPALS},
    Kind.RUN_GAP: {"run": NOT_IDS, "calls": NOT_COUNTS},
    Kind.RUN_SPENT: {"run": NOT_IDS, "tokens": NOT_NUMBERS, "cost": NOT_NUMBERS, "charges": _NOT_CHARGES},
    Kind.RUN_SUSPENDED: {"run": NOT_IDS, "call": NOT_OPTIONAL_IDS, "awaits": NOT_OPTIONAL_IDS},
    Kind.RUN_CLOSED: {
        "run": NOT_IDS,
        "outcome": NOT_MEMBERS,
        **_ROOT_CLOSED,
        **_LABELLED,
        "waiting_calls": NOT_LISTS_OF_CALLS,
    },
    Kind.CHECKPOINT_SAVED: {"run": NOT_IDS, "after": NOT_OPTIONAL_IDS, **_LABELLED},
    Kind.HANDOFF_INITIATED: {
        "handoff": NOT_IDS,
        "run": NOT_IDS,
        "to": NOT_AGENTS,
        "carrier": NOT_MEMBERS,
        "state": (State.RUNNING, State.READY, *NOT_MEMBERS),
        "relation": NOT_MEMBERS,
        "scope": NOT_STREAMS,
        "key": NOT_OPTIONAL_DIGESTS,
        "fingerprint": NOT_OPTIONAL_DIGESTS,
        "deadline": NOT_OPTIONAL_TIMES,
        "retries": NOT_OPTIONAL_NUMBERS,
        "carries": NOT_ITEMS,
        "missing": NOT_LISTS_OF_CODES,
        "unverified": NOT_LISTS_OF_HANDOFFS,
        "fates": _NOT_FATES,
        "replaces": NOT_OPTIONAL_IDS,
        "flags": NOT_LISTS_OF_CODES,
        "rule": NOT_OPTIONAL_CODES,
        "gate": _NOT_GATES,
        "until": NOT_OPTIONAL_TIMES,
        "proven": NOT_FLAGS,
        "approvals": NOT_COUNTS,
        **_TAINTED,
        "terms": NOT_OPTIONAL_DIGESTS,
        "reasoning": (DIGEST, 7, ()),
        "suspect": NOT_LISTS_OF_CODES,
        "trace": NOT_TRACES,
    },
    Kind.HANDOFF_CONTEXT_SANITIZED: {
        "handoff": NOT_IDS,
        "run": NOT_IDS,
        "action": NOT_MEMBERS,
        "label": NOT_MEMBERS,
        "scanned": NOT_NUMBERS,
        "found": ([FOUND], (FOUND, FOUND), ("override.ignore",), None),
        "context": NOT_OPTIONAL_IDS,
    },
    Kind.HANDOFF_ACCEPTED: {
        "handoff": NOT_IDS,
        "parent": NOT_IDS,
        "run": NOT_IDS,
        "attempt": NOT_COUNTS,
        "agent": NOT_AGENTS,
        "principal": NOT_PRINCIPALS,
        "run_key": NOT_DIGESTS,
        "baton": NOT_OPTIONAL_DIGESTS,
        "problems": NOT_LISTS_OF_CODES,
        "would_ask": NOT_FLAGS,
        "policy": NOT_OPTIONAL_DIGESTS,
        **_LABELLED,
        "certificate": NOT_OPTIONAL_DIGESTS,
    },
    Kind.HANDOFF_COMPLETED: _CLOSE_OUT,
    Kind.HANDOFF_FAILED: {**_CLOSE_OUT, "error": NOT_OPTIONAL_CODES, "to": NOT_AGENTS[:-1]},
    Kind.HANDOFF_HELD: {
        "handoff": NOT_IDS,
        "attempt": NOT_COUNTS,
        "ended": (*NOT_A_HEAD, None),
        "reason": NOT_CODES,
        "call": NOT_OPTIONAL_IDS,
        "awaits": NOT_IDS,
        "wait_until": NOT_MEMBERS[:-1],
        "gate": _NOT_GATES,
        "until": NOT_OPTIONAL_TIMES,
        "proven": NOT_FLAGS,
        "approvals": NOT_COUNTS,
    },
    Kind.HANDOFF_RESUMED: {"handoff": NOT_IDS, "attempt": NOT_COUNTS, "awaits": NOT_IDS},
    Kind.HANDOFF_PARKED: {"handoff": NOT_IDS, "attempt": NOT_NUMBERS, "error": NOT_CODES},
    Kind.HANDOFF_BACKED: {**_BY_WHOM, **_DECISION},
    Kind.HANDOFF_APPROVED: {**_BY_WHOM, **_DECISION},
    Kind.HANDOFF_DENIED: {**_BY_WHOM, **_DECISION},
    Kind.HANDOFF_ASKED: {**_BY_WHOM, "error": NOT_MEMBERS, "check": NOT_CODES, "question": NOT_DIGESTS},
    Kind.HANDOFF_ANSWERED: {
        **_BY_WHOM,
        "revision": NOT_COUNTS,
        "taint": NOT_LISTS_OF_SOURCES,
        "waives": NOT_OPTIONAL_CODES,
        "suspect": NOT_LISTS_OF_CODES,
    },
    Kind.HANDOFF_DECLINED: {**_BY_WHOM, "code": NOT_CODES},
    Kind.HANDOFF_LAPSED: {"handoff": NOT_IDS, "attempt": NOT_COUNTS, "ended": (*NOT_A_HEAD, None)},
    Kind.HANDOFF_EXPIRED: {"handoff": NOT_IDS, "ended": NOT_A_HEAD},
    Kind.HANDOFF_CANCELLED: {**_BY_WHOM, "ended": NOT_A_HEAD},
    Kind.HANDOFF_RETRIED: _BY_WHOM,
    Kind.HANDOFF_REVISED: {
        **_BY_WHOM,
        "revision": NOT_COUNTS,
        "drops": ([CONTENT], (CONTENT, CONTENT), (CHILD,), None),
        "carries": NOT_ITEMS,
        "fates": _NOT_FATES,
        "taint": NOT_LISTS_OF_SOURCES,
    },
    Kind.HANDOFF_REPLACED: {**_BY_WHOM, "to": NOT_AGENTS},
    Kind.HANDOFF_SETTLED: {**_BY_WHOM, "call": NOT_IDS, "settlement": NOT_MEMBERS},
    Kind.HANDOFF_ENDORSED: {**_BY_WHOM, "source": NOT_SOURCES},
    Kind.HANDOFF_LATE: {"handoff": NOT_IDS, "run": NOT_IDS, "call": NOT_IDS, "completed": NOT_FLAGS},
    Kind.VERIFICATION_PASSED: _VERIFICATION,
    Kind.VERIFICATION_FAILED: _VERIFICATION,
    Kind.VERIFICATION_REPEATED: {**_VERIFICATION, "passed": NOT_FLAGS},
    Kind.VERIFICATION_WAIVED: {**_BY_WHOM, "attempt": NOT_COUNTS},
    Kind.TOOL_REQUESTED: {
        **_CALL,
        "tool": NOT_AGENTS,
        "key": NOT_OPTIONAL_DIGESTS,
        "target": NOT_OPTIONAL_DIGESTS,
        "idempotent": NOT_FLAGS,
        "reversible": NOT_FLAGS,
        "reads": NOT_FLAGS,
        "flags": NOT_LISTS_OF_CODES,
        "tiers": NOT_LISTS_OF_CODES,
        "credential": NOT_OPTIONAL_DIGESTS,
        "charges": _NOT_CHARGES,
        **_VETTED,
    },
    Kind.TOOL_COMPLETED: {
        **_CALL,
        "cost": NOT_NUMBERS,
        **_ENDED,
        "cache": NOT_DIGESTS,
        "fresh_until": NOT_OPTIONAL_TIMES,
        "charges": _NOT_CHARGES,
        **_LABELLED,
    },
    Kind.TOOL_FAILED: {**_CALL, "error": NOT_CODES, **_ENDED, **_LABELLED},
    Kind.TOOL_DENIED: {**_CALL, "tool": NOT_AGENTS, "rule": NOT_CODES},
    Kind.TOOL_CACHED: {
        **_CALL,
        "tool": NOT_AGENTS,
        "made": NOT_IDS,
        "result": NOT_IDS,
        "key": NOT_OPTIONAL_DIGESTS,
        "flags": NOT_LISTS_OF_CODES,
    },
    Kind.SESSION_SAVED: {"run": NOT_IDS, "saves": NOT_IDS, **_SESSION},
    Kind.SESSION_RESUMED: {
        "run": NOT_IDS,
        "roots": ((), *NOT_HEADS),
        "resumes": NOT_OPTIONAL_IDS,
        **_SESSION,
        "bytes": NOT_NUMBERS,
        "oldest": NOT_OPTIONAL_TIMES,
        "taint": NOT_LISTS_OF_SOURCES,
    },
    Kind.TOOL_HELD: {
        **_CALL,
        "tool": NOT_AGENTS,
        "rule": NOT_CODES,
        "gate": NOT_MEMBERS,
        "key": NOT_DIGESTS,
        "reads": NOT_FLAGS,
        "tiers": NOT_LISTS_OF_CODES,
        "proven": NOT_FLAGS,
        "approvals": NOT_COUNTS,
        "target": NOT_OPTIONAL_DIGESTS,
        "until": NOT_OPTIONAL_TIMES,
        "stays": NOT_FLAGS,
        "standing": NOT_OPTIONAL_DIGESTS,
        **_VETTED,
    },
    Kind.TOOL_BACKED: {**_CALL, "by": NOT_PRINCIPALS, **_DECISION},
    Kind.TOOL_APPROVED: {**_CALL, "by": NOT_PRINCIPALS, **_DECISION},
    Kind.TOOL_REFUSED: {**_CALL, "by": NOT_PRINCIPALS, **_DECISION},
    Kind.RELAY_ENROLLED: _ENROLMENT,
    Kind.RELAY_ROTATED: {**_ENROLMENT, "old_key": NOT_DIGESTS},
    Kind.RELAY_REVOKED: _ENROLMENT,
    Kind.APPROVER_ENROLLED: _APPROVER,
    Kind.APPROVER_REVOKED: _APPROVER,
    Kind.CONTENT_ERASED: {
        "contents": ((), [CONTENT], (CONTENT, CONTENT), ("words",), None),
        "by": NOT_PRINCIPALS,
    },
    Kind.SESSION_PRUNED: {"root": NOT_IDS, "by": NOT_PRINCIPALS, "count": NOT_COUNTS},
    Kind.FINDING_ACKNOWLEDGED: {
        "root": NOT_IDS,
        "finding": ("", "0123456789AB", "0123456789a", "0123456789abc", None, 12),
        "code": NOT_CODES,
        "by": NOT_PRINCIPALS,
    },
    Kind.ALARM_RAISED: {
        **_ALARM,
        "cause": NOT_CODES,
        "window_since": NOT_TIMES,
        "window_until": NOT_TIMES,
        "compared_since": NOT_TIMES,
        "compared_until": NOT_TIMES,
        "configuration": ("", "0123456", "012345678", "ABCDEF01", 8),
        "first": NOT_OPTIONAL_IDS,
    },
    Kind.ALARM_ACKNOWLEDGED: {**_ALARM, "by": NOT_PRINCIPALS},
    Kind.ALARM_CLEARED: _ALARM,
    Kind.FILE_ENDORSED: {
        "holds": ((), [DIGEST], (DIGEST, DIGEST), (COMMIT,), None),
        "by": NOT_PRINCIPALS,
    },
    Kind.TOKEN_ADDED: {
        "token": NOT_IDS,
        "secret": NOT_DIGESTS,
        "principal": NOT_PRINCIPALS,
        "role": NOT_MEMBERS,
        "until": NOT_TIMES,
        "by": NOT_PRINCIPALS,
        "agents": (["editor"], ("editor", "editor"), ("the editor",), None),
    },
    Kind.TOKEN_REVOKED: {"token": NOT_IDS, "by": NOT_PRINCIPALS},
    Kind.WEBHOOK_CHANGED: {
        "webhook": NOT_IDS,
        "change": NOT_MEMBERS,
        "by": NOT_PRINCIPALS,
        "kinds": (["handoff"], ("handoff", "handoff"), ("a b",), None),
    },
    Kind.GRANT_REVOKED: {"account": (*NOT_IDS, f"{HANDOFF}/revoked", f"{HANDOFF}/x"), "by": NOT_PRINCIPALS},
}
