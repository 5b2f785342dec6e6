"""The signed statements of grants as bytes: canonical JSON with a version, signed as DSSE.

Each payload begins with its `_type`, which names kind and version. So no statement can pass for one of another kind. A
payload is accepted only if encoding the decoded value gives the same bytes. That refuses unknown fields, defaults that
are written out, and every second spelling.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from batonpass.errors import GrantMalformedError, GrantVersionError, InvalidValueError
from batonpass.model.base.value import defaults_of
from batonpass.model.grants.grant import Certificate, Proof, RelayEnrolment, Revocations, Statement, Terms
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_limits, read_scope
from batonpass.wire.canonical import encode_typed
from batonpass.wire.receipt_codec import refused

PAYLOAD_TYPE: Final = "application/vnd.batonpass.grant+json"

Kind = TypeVar("Kind", bound=Statement)

_TYPES: Final[Mapping[type[Any], str]] = {
    RelayEnrolment: "urn:batonpass:enrolment:v0",
    Terms: "urn:batonpass:terms:v0",
    Certificate: "urn:batonpass:certificate:v0",
    Proof: "urn:batonpass:proof:v0",
    Revocations: "urn:batonpass:revocations:v0",
}
_KINDS: Final = {name: kind for kind, name in _TYPES.items()}
# Canonical JSON sorts its keys, and `_` comes before every lower-case letter: the type is always first.
_HEADS: Final = {kind: f'{{"_type":"{name}",'.encode() for kind, name in _TYPES.items()}
_TYPED: Final = re.compile(rb'\{"_type":"(urn:batonpass:([a-z]+):v(0|[1-9][0-9]{0,8}))"')
_NEWEST: Final = 0
_PAE_HEAD: Final = b"DSSEv1 %d %s " % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode())


def _mirror(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a struct type with the fields as JSON has them: unknown fields are refused, default values omitted."""
    types = get_type_hints(kind)
    return msgspec.defstruct(
        kind.__name__,
        [
            (name, _AS_JSON.get(types[name], types[name]), _DEFAULTS.get(types[name], default))
            for name, default in defaults_of(kind).items()
        ],
        tag_field="_type",
        tag=_TYPES[kind],
        omit_defaults=True,
        forbid_unknown_fields=True,
        kw_only=True,
    )


_AS_JSON: Final[Mapping[type, Any]] = {Scope: tuple[str, ...], Limits: str}
_DEFAULTS: Final[Mapping[type, Any]] = {Scope: (), Limits: ""}
_MIRRORS: Final = {kind: _mirror(kind) for kind in _TYPES}
_DECODERS: Final = {kind: msgspec.json.Decoder(mirror) for kind, mirror in _MIRRORS.items()}


def encode_statement(statement: Statement) -> bytes:
    """Return the canonical bytes of a statement. They are signed and sent, and never encoded again."""
    kind = type(statement)
    said: dict[str, Any] = msgspec.structs.asdict(statement)
    if isinstance(statement, Terms):
        said["may"] = statement.may.lines
        said["may_delegate"] = statement.may_delegate.lines
        said["limits"] = str(statement.limits)
    return encode_typed(_MIRRORS[kind](**said))


def kind_of(payload: bytes) -> type[Statement]:
    """Return the kind of statement that bytes claim to be. Raises `GrantMalformedError` and `GrantVersionError`."""
    found = _TYPED.match(payload)
    if found is None:
        raise GrantMalformedError("a part of the grant does not begin with its type; ask for a new one")
    name = found[1].decode()
    if name in _KINDS:
        return _KINDS[name]
    if int(found[3]) > _NEWEST and f"urn:batonpass:{found[2].decode()}:v{_NEWEST}" in _KINDS:
        raise GrantVersionError(f"a part of the grant is {name}, and this program reads up to v{_NEWEST}; upgrade it")
    raise GrantMalformedError(f"{name} is no part of a grant; ask for a new one")


def decode_statement(payload: bytes, kind: type[Kind]) -> Kind:
    """Return the statement in bytes, of the given kind. Raises `GrantMalformedError` and `GrantVersionError`."""
    if not payload.startswith(_HEADS[kind]) and (found := kind_of(payload)) is not kind:
        raise GrantMalformedError(f"{_TYPES[found]} stands where {_TYPES[kind]} should; ask for a new one")
    try:
        mirror = _DECODERS[kind].decode(payload)
        statement: Any = _terms(mirror) if kind is Terms else kind(**msgspec.structs.asdict(mirror))
        _require(encode_typed(mirror) == payload)
    except msgspec.DecodeError as error:
        raise _unreadable(kind, refused("payload", error)) from None
    except (InvalidValueError, UnicodeError, RecursionError) as error:
        raise _unreadable(kind, error) from None
    said: Kind = statement
    return said


def _terms(mirror: Any) -> Terms:  # noqa: ANN401 - made from the fields of Terms
    given = msgspec.structs.asdict(mirror)
    given["may"] = _scope(mirror.may)
    given["may_delegate"] = _scope(mirror.may_delegate)
    given["limits"] = _limits(mirror.limits)
    return Terms(**given)


# The same scopes come with every hop and every call, and parsing one costs more than checking a signature.
@lru_cache(maxsize=1024)
def _scope(lines: tuple[str, ...]) -> Scope:
    scope = read_scope(lines)
    _require(scope.lines == lines)
    return scope


@lru_cache(maxsize=1024)
def _limits(text: str) -> Limits:
    limits = read_limits(text)
    _require(str(limits) == text)
    return limits


def _require(canonical: bool) -> None:  # noqa: FBT001 - the answer is the whole input
    if not canonical:
        raise InvalidValueError("payload", "is not in its canonical form")


def _unreadable(kind: type[Any], error: Exception) -> GrantMalformedError:
    return GrantMalformedError(f"{_TYPES[kind]} cannot be read: {error}; ask for a new one")


def signing_bytes(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: the bytes that a signature covers."""
    return b"%s%d %s" % (_PAE_HEAD, len(payload), payload)
