"""Answers: values as JSON bytes, errors in one shape, and the status of each error."""

import json
from hashlib import sha256
from typing import Any, Final

from batonpass.errors import (
    AccessError,
    AmbiguousIdError,
    BatonpassError,
    CallDecidedError,
    CallDeniedError,
    CallError,
    CallProtectedError,
    ConstraintViolatedError,
    ContentErasedError,
    ContentTooLargeError,
    EgressError,
    EgressRefusedError,
    FourEyesError,
    GrantError,
    HandoffError,
    InternalFaultError,
    InvalidValueError,
    LockedOutError,
    LookupFailedError,
    MediaTypeError,
    MissingExtraError,
    NoSuchRouteError,
    NotApproverError,
    NotEntitledError,
    NotPersonError,
    OutOfScopeError,
    PolicyRefusedError,
    RequestTooLargeError,
    SessionEndedError,
    StoreError,
    TooManyRequestsError,
    UnknownTokenError,
    UnprovenError,
    WrongHostError,
    WrongMethodError,
)
from batonpass.errors.base import error_shape
from batonpass.handoff.tools.refusal_sentences import sentence_for
from batonpass.records.json_shapes import in_json

JSON: Final = "application/json"

# The first that fits counts. Whatever is not here is a conflict with what is recorded: 409.
_STATUSES: Final[tuple[tuple[type[BatonpassError] | tuple[type[BatonpassError], ...], int], ...]] = (
    ((UnknownTokenError, SessionEndedError), 401),
    ((LockedOutError, TooManyRequestsError), 429),
    (WrongHostError, 421),
    (AccessError, 403),
    (AmbiguousIdError, 409),
    ((LookupFailedError, NoSuchRouteError), 404),
    (WrongMethodError, 405),
    (MediaTypeError, 415),
    ((RequestTooLargeError, ContentTooLargeError), 413),
    (ContentErasedError, 410),
    ((InvalidValueError, EgressRefusedError), 400),
    (EgressError, 502),
    ((GrantError, PolicyRefusedError, CallDeniedError, CallProtectedError, ConstraintViolatedError), 403),
    ((NotApproverError, NotEntitledError, NotPersonError, OutOfScopeError, FourEyesError, UnprovenError), 403),
    (CallDecidedError, 409),
    (MissingExtraError, 501),
    (StoreError, 503),
    (InternalFaultError, 500),
)
CONFLICT: Final = 409


def status_of(error: BatonpassError) -> int:
    """Return the HTTP status of an error. The code in the answer says more."""
    return next((status for kinds, status in _STATUSES if isinstance(error, kinds)), CONFLICT)


def told_error(error: BatonpassError) -> dict[str, Any]:
    """Return an error as every door tells it: its code, its sentence and its facts."""
    told = error_shape(error)
    if isinstance(error, CallError | GrantError | HandoffError):
        told |= {"message": sentence_for(error), "plain": str(error)}  # as models are told it, and as programs are
    return told


def error_body(error: BatonpassError) -> bytes:
    """Return an error as JSON."""
    return json_bytes({"error": told_error(error)})


def json_bytes(value: object) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=in_json).encode()


def etag_of(body: bytes) -> str:
    """Return a strong ETag."""
    return f'"{sha256(body).hexdigest()[:32]}"'


def is_known(given: str | None, etag: str) -> bool:
    """Return whether a client has this answer already, by its `If-None-Match`."""
    if given is None:
        return False
    return given.strip() == "*" or etag in {one.strip().removeprefix("W/") for one in given.split(",")}
