"""Items, briefs and reports as content: canonical JSON with a version, in which unknown fields are refused."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from batonpass.errors import InvalidValueError, UnknownFieldError
from batonpass.model.base.checks import require_utc, shorten
from batonpass.model.base.ids import PrincipalId, require_principal
from batonpass.model.base.value import defaults_of
from batonpass.model.baton.baton import Brief
from batonpass.model.baton.items import VALUE_TYPES, ItemValue, Report
from batonpass.model.bodies.reasoning import ReasoningPlace
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.wire.canonical import encode, encode_typed

JSON: Final = "application/json"
VERSION: Final = 0

_FLAT: Final = frozenset({str, int, bool, type(None)})  # types without fields of their own

Document = TypeVar("Document")


class DocumentReader(Generic[Document]):
    """Reads values of one type from JSON. Make it when a module is imported, not when something is read."""

    def __init__(self, kind: type[Document]) -> None:
        self._kind = kind
        # msgspec prepares a type when it is first decoded, and stores that on the class before it is complete. A second
        # thread that decodes at the same time crashes the process. Making a decoder here, which is not used further,
        # prepares the type in time.
        msgspec.json.Decoder(kind)

    def read(self, document: object, where: str) -> Document:
        """Return a value. Raises `InvalidValueError`, and `UnknownFieldError` with the name of an unknown field."""
        try:
            value = msgspec.convert(document, self._kind)
        except msgspec.ValidationError as error:
            raise InvalidValueError(where, str(error)) from None
        _require_known(document, value, where)
        return value

    def read_texts(self, texts: Mapping[str, str]) -> Document:
        """Return a value from texts, such as the parameters of a URL: `"7"` is a number where one is wanted.

        Raises as `read` does.
        """
        try:
            value = msgspec.convert(dict(texts), self._kind, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidValueError("query", str(error)) from None
        # msgspec reads the text `null` as nothing, and a filter that is nothing would let everything through.
        if empty := next((name for name in texts if getattr(value, name) is None), None):
            raise InvalidValueError(empty, f"{shorten(texts[empty])} is no value of it")
        return value


class _Work(msgspec.Struct, frozen=True, kw_only=True):
    """The role of an author, and the phase of the work, when something was written."""

    role: str | None = None
    phase: str | None = None


class _WrittenPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A policy for handoffs in types that JSON has."""

    require: dict[str, tuple[str, ...]] = {}
    verified_only: bool = False
    asks: bool = False
    questions: int = 1
    hops_between_questions: int = 5
    oldest: int | None = None  # in milliseconds
    max_depth: int | None = None
    allowed_agents: tuple[str, ...] | None = None
    refuse_loops: bool = False
    known_agents: bool = False
    max_attempts: int | None = None
    sanitize_context: bool = True
    trust_degradation: bool = True


_ITEMS: Final[Mapping[str, DocumentReader[ItemValue]]] = {kind.__name__: DocumentReader(kind) for kind in VALUE_TYPES}
_BRIEFS: Final = DocumentReader(Brief)
_REPORTS: Final = DocumentReader(Report)
_POLICIES: Final = DocumentReader(_WrittenPolicy)
_WORKS: Final = DocumentReader(_Work)
_WORK: Final = frozenset({"work"})
_WORK_MARK: Final = b',"work":{'
_REASONING: Final = DocumentReader(ReasoningPlace)


def encode_item(
    value: ItemValue, by: PrincipalId, at: datetime, *, role: str | None = None, phase: str | None = None
) -> bytes:
    """Return an item as the bytes of its content."""
    document = {
        "v": VERSION,
        "type": type(value).__name__,
        "by": by,
        "at": at.isoformat(),
        "value": _sparse(value),
    }
    return encode(document | _work(role, phase))


def decode_item(data: bytes) -> tuple[ItemValue, PrincipalId, datetime]:
    """Return an item, its author and its time. Raises `InvalidValueError`."""
    document = _open(data, {"v", "type", "by", "at", "value"}, _WORK)
    items = _ITEMS.get(str(document["type"]))
    if items is None:
        raise InvalidValueError("type", f"{shorten(document['type'])} is no item")
    try:
        at = datetime.fromisoformat(document["at"])
    except (TypeError, ValueError):
        raise InvalidValueError("at", "is not a time") from None
    by = require_principal("by", PrincipalId(document["by"]))
    return items.read(document["value"], "value"), by, require_utc("at", at)


def decode_work(data: bytes) -> tuple[str | None, str | None]:
    """Return the role and the phase in which an item or a report was written. Raises `InvalidValueError`."""
    if _WORK_MARK not in data:
        return None, None
    said = _WORKS.read(msgspec.json.decode(data).get("work", {}), "work")
    return said.role, said.phase


def _work(role: str | None, phase: str | None) -> dict[str, Any]:
    # The name sorts behind the others, so that a report still begins with `report`.
    return {"work": _sparse(_Work(role=role, phase=phase))} if role or phase else {}


def encode_brief(brief: Brief) -> bytes:
    """Return a brief as the bytes of its content."""
    # `Brief` omits fields with default values itself, and its checks refuse everything that canonical JSON cannot hold.
    # So the fast encoder is safe here.
    return encode_typed({"v": VERSION, "brief": brief})


def decode_brief(data: bytes) -> Brief:
    """Return a brief. Raises `InvalidValueError`."""
    return _BRIEFS.read(_open(data, {"v", "brief"})["brief"], "brief")


def encode_reasoning(place: ReasoningPlace) -> bytes:
    """Return the place of a sender's message as the bytes of its content."""
    return encode({"v": VERSION, "reasoning": _sparse(place)})


def decode_reasoning(data: bytes) -> ReasoningPlace:
    """Return the place of a sender's message. Raises `InvalidValueError`."""
    return _REASONING.read(_open(data, {"v", "reasoning"})["reasoning"], "reasoning")


def encode_report(report: Report, *, role: str | None = None, phase: str | None = None) -> bytes:
    """Return a report as the bytes of its content."""
    return encode({"v": VERSION, "report": _sparse(report)} | _work(role, phase))


def decode_report(data: bytes) -> Report:
    """Return a report. Raises `InvalidValueError`."""
    return _REPORTS.read(_open(data, {"v", "report"}, _WORK)["report"], "report")


def encode_policy(policy: HandoffPolicy) -> bytes:
    """Return the policy of one offer as the bytes of its content."""
    said: dict[str, Any] = {name: getattr(policy, name) for name in HandoffPolicy.__struct_fields__}
    said["require"] = {str(relation): list(parts) for relation, parts in policy.require.items()}
    said["oldest"] = None if policy.claim_age is None else policy.claim_age // timedelta(milliseconds=1)
    if policy.allowed_agents is not None:
        said["allowed_agents"] = tuple(policy.allowed_agents)
    return encode({"v": VERSION, "policy": _sparse(_WrittenPolicy(**said))})


def decode_policy(data: bytes) -> HandoffPolicy:
    """Return the policy of one offer. Raises `InvalidValueError`."""
    written = _POLICIES.read(_open(data, {"v", "policy"})["policy"], "policy")
    said: dict[str, Any] = {name: getattr(written, name) for name in _WrittenPolicy.__struct_fields__}
    said["oldest"] = None if written.oldest is None else timedelta(milliseconds=written.oldest)
    return HandoffPolicy(**said)


def is_report(data: bytes) -> bool:
    """Return whether the bytes of a content are a report; else they are an item."""
    # Canonical JSON sorts its keys. A report has `report` and `v`; an item begins with `at`.
    return data.startswith(b'{"report":')


def to_document(value: object) -> Any:  # noqa: ANN401 - JSON
    """Return one of our values as JSON, without fields that have their default value."""
    return _sparse(value)


def _open(data: bytes, wanted: set[str], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidValueError("document", str(error)) from None
    if not isinstance(document, dict) or document.get("v") is False or document.get("v") != VERSION:
        raise InvalidValueError("v", f"is not version {VERSION}; was it written by a newer version?")
    if document.keys() != wanted:
        for unknown in sorted(document.keys() - wanted - optional):
            raise UnknownFieldError(unknown)
        for absent in sorted(wanted - document.keys()):
            raise InvalidValueError(absent, "is missing")
    return document


def _require_known(document: object, value: object, where: str) -> None:
    """Refuse a field that no type has: a misspelled field would be lost otherwise."""
    kind: Any = type(value)
    if isinstance(document, dict) and (names := _names_of(kind)) is not None:
        for name, part in document.items():
            if name not in names:
                raise UnknownFieldError(f"{where}.{name}")
            if type(part) not in _FLAT:
                _require_known(part, getattr(value, name, None), f"{where}.{name}")
    elif isinstance(value, tuple) and isinstance(document, list):
        for part, item in zip(document, value, strict=True):
            if type(part) not in _FLAT:
                _require_known(part, item, where)


@lru_cache(maxsize=256)
def _names_of(kind: type) -> frozenset[str] | None:
    """Return the names of the fields of a struct type or a dataclass; None for any other type."""
    # Not only the model's structs are read here: other programs' input is described by dataclasses.
    if issubclass(kind, msgspec.Struct):
        return frozenset(kind.__struct_fields__)
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    from dataclasses import fields  # noqa: PLC0415 - whoever made a dataclass has loaded it, and we make none

    made: Any = kind
    return frozenset(part.name for part in fields(made))


def _sparse(value: object) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, msgspec.Struct):
        return {
            name: _sparse(given)
            for name, default in defaults_of(type(value)).items()
            if (given := getattr(value, name)) != default
        }
    if isinstance(value, tuple | list):
        return [_sparse(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value
