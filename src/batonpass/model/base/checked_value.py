"""Values whose fields are checked as their types say, so that no field can be forgotten."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import astuple, fields

from batonpass.model.base.checks import (
    CODE,
    Form,
    require_digest,
    require_instance,
    require_integer,
    require_member,
    require_unique,
    require_utc,
)
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    HANDOFF,
    RECEIPT,
    RELAY,
    RUN,
    SESSION,
    TOKEN,
    WEBHOOK,
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    ReceiptId,
    RelayId,
    RunId,
    SessionId,
    StreamId,
    TokenId,
    WebhookId,
    require_agent,
    require_id,
    require_principal,
    require_stream,
)
from batonpass.model.base.kinds import Carried, CarriedFate, ChildHead
from batonpass.model.base.label import Source, require_source
from batonpass.model.base.trace import TraceParent, require_traceparent

Check: TypeAlias = Callable[[str, Any], object]


class FieldCheck:
    """A check in an annotation, for a field whose type alone does not say how it is checked. A `Form` is one too."""

    __slots__ = ("require",)

    def __init__(self, require: Check) -> None:
        self.require = require


Code: TypeAlias = Annotated[str, CODE]
Ordinal: TypeAlias = Annotated[int, FieldCheck(partial(require_integer, least=1))]  # from 1


class CheckedValue(Struct, frozen=True, kw_only=True):
    """A value whose fields are checked as their types say. Raises `InvalidValueError` with the name of the field."""

    def __post_init__(self) -> None:
        # Most fields of most values have their defaults, which need no check, and `is` cannot be deceived.
        for value, (field, spared, check) in zip(astuple(self), checks_of(type(self)), strict=True):
            if value is not spared:
                check(field, value)


@cache
def checks_of(kind: type[CheckedValue]) -> tuple[tuple[str, object, Check], ...]:
    """Return each field, the value that is spared its check, and the check.

    None is spared where it is allowed, else the default. Raises `TypeError` if nothing says how a type is checked.
    """
    types: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        types |= getattr(base, "__annotations__", {})
    return tuple((one.name, *_spared_and_check(types[one.name], one.default)) for one in fields(kind))


def _spared_and_check(annotation: Any, default: object) -> tuple[object, Check]:  # noqa: ANN401 - may be anything
    if annotation in _CHECKS or get_origin(annotation) not in {Union, UnionType}:
        return default, _check_of(annotation)
    (only,) = (part for part in get_args(annotation) if part is not NoneType)
    return None, _check_of(only)


def _check_of(annotation: Any) -> Check:  # noqa: ANN401 - an annotation may be anything
    if annotation in _CHECKS:
        return _CHECKS[annotation]
    if get_origin(annotation) is Annotated:
        rule: FieldCheck | Form = annotation.__metadata__[0]
        return rule.require
    if get_origin(annotation) is tuple:
        element = get_args(annotation)[0]
        return each_by(element, _IDENTITIES[element]) if element in _IDENTITIES else _each(_check_of(element))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return partial(require_member, members=annotation)
    if isinstance(annotation, type) and issubclass(annotation, Struct | bool):
        return partial(require_instance, kind=annotation)
    raise TypeError(f"nothing says how {annotation} is checked")


def _each(check: Check) -> Check:
    """Return a check that refuses anything but a tuple of different values that each pass another check."""

    def require(field: str, values: tuple[str, ...]) -> None:
        for value in require_instance(field, values, tuple):
            check(field, value)
        require_unique(field, values)

    return require


def each_by(kind: type[Struct], identity: Callable[[Any], str]) -> Check:
    """Return a check that refuses anything but a tuple of values of this kind with different identities."""

    def require(field: str, values: tuple[Struct, ...]) -> None:
        for value in require_instance(field, values, tuple):
            if type(value) is not kind:  # the full check is a call for each, and there may be two hundred
                require_instance(field, value, kind)
        require_unique(field, [*map(identity, values)])

    return require


_CHECKS: Final[dict[Any, Check]] = {
    CallId: partial(require_id, prefix=CALL),
    ContentId: partial(require_id, prefix=CONTENT),
    HandoffId: partial(require_id, prefix=HANDOFF),
    ReceiptId: partial(require_id, prefix=RECEIPT),
    RelayId: partial(require_id, prefix=RELAY),
    RunId: partial(require_id, prefix=RUN),
    SessionId: partial(require_id, prefix=SESSION),
    TokenId: partial(require_id, prefix=TOKEN),
    WebhookId: partial(require_id, prefix=WEBHOOK),
    StreamId: require_stream,
    AgentId: require_agent,
    PrincipalId: require_principal,
    Digest: require_digest,
    PublicKey: require_digest,
    Source: require_source,
    TraceParent: require_traceparent,
    datetime: require_utc,
    int: require_integer,
}
_IDENTITIES: Final[dict[Any, Callable[[Any], str]]] = {
    Carried: attrgetter("item"),
    CarriedFate: attrgetter("item"),
    ChildHead: attrgetter("run"),
}
