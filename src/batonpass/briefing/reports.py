"""Reports of models: by the schema, or as plain text with gaps."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.baton import EXPECTED
from batonpass.model.baton.items import (
    SURE,
    Assumption,
    Claim,
    Decision,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
    parts_of,
)
from batonpass.wire.canonical import encode

NAME: Final = "report_back"
DESCRIPTION: Final = (
    "Give back what you found, once, at the end. Say what is done, what is not known, what is not to be tried again "
    "and what you assumed. Where there is nothing to say, name the part under `none`; do not leave it out."
)

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_SHARE: Final = {"type": "number", "minimum": 0, "maximum": 1}


def _objects(required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {required: _TEXT, **properties},
            "required": [required],
            "additionalProperties": False,
        },
    }


# There is no field for who verified something: only a recorded verification says that.
SCHEMA: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "result": {"type": "string", "description": "the result, in words"},
            "value": {"description": "the result for programs: any JSON"},
            "completed": _objects("what", outputs=_TEXTS),
            "open_questions": _objects("text", blocking={"type": "boolean"}),
            "rejected_paths": _objects("what", why=_TEXT),
            "decisions": _objects("what", why=_TEXT, conditions=_TEXTS),
            "assumptions": _objects("what", confidence=_SHARE),
            "claims": _objects("what", key=_TEXT, value=_TEXT, unit=_TEXT, confidence=_SHARE),
            "confidence": _SHARE,
            "none": {"type": "array", "items": {"type": "string", "enum": sorted(Part)}},
        },
        "required": ["result"],
        "additionalProperties": False,
    }
)

_KINDS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "completed": WorkItem,
        "open_questions": OpenQuestion,
        "rejected_paths": RejectedPath,
        "decisions": Decision,
        "assumptions": Assumption,
        "claims": Claim,
    }
)


def read_report(arguments: Mapping[str, Any]) -> Report:
    """Return a model's report. Raises `InvalidValueError` with a sentence the model can act on."""
    known = SCHEMA["properties"]
    if unknown := sorted(set(arguments) - set(known)):
        raise InvalidValueError(
            NAME, f"{shorten(unknown[0])} is not a field of a report; the fields are {', '.join(known)}"
        )
    given: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
    for name in _KINDS:
        if name in given:
            given[name] = tuple(_values(name, given[name]))
    if "none" in given:
        given["none"] = tuple(_parts(given["none"]))
    if "value" in given:
        given["value"] = encode(given["value"]).decode()
    if "confidence" in given:
        given["confidence"] = _thousandths("confidence", given["confidence"])
    report: Report = _made(NAME, lambda: Report(**given))
    return report


def plain_report(text: str) -> Report:
    """Return plain text as a report that has only a result."""
    return Report(result=text)


def gaps_of(report: Report) -> tuple[str, ...]:
    """Return the parts that a report to a lead does not mention, not even as none."""
    said = parts_of(report) if report.completed or report.result else parts_of(report) - {Part.COMPLETED}
    return tuple(str(part) for part in EXPECTED[Relation.WORKER_TO_LEAD] if part not in said)


def _parts(given: object) -> Iterator[Part]:
    if not isinstance(given, list | tuple):
        raise InvalidValueError("none", f"must be a list, not {shorten(given)}")
    for part in given:
        if part not in tuple(Part):
            raise InvalidValueError(
                "none", f"{shorten(part)} is not a part of a report; the parts are {', '.join(Part)}"
            )
        yield Part(part)


def _values(name: str, given: object) -> list[Any]:
    kind = _KINDS[name]
    fields = SCHEMA["properties"][name]["items"]["properties"]
    if not isinstance(given, list | tuple):
        raise InvalidValueError(name, f"must be a list, not {shorten(given)}")
    return [_value(f"{name}.{number}", kind, fields, one) for number, one in enumerate(given, 1)]


def _value(name: str, kind: type[Any], fields: Mapping[str, Any], given: object) -> object:
    if isinstance(given, str):
        return _made(name, lambda: kind(given))
    if not isinstance(given, Mapping):
        raise InvalidValueError(name, f"must be a text or an object, not {shorten(given)}")
    if unknown := sorted(str(key) for key in given if key not in fields):
        raise InvalidValueError(name, f"{shorten(unknown[0])} is not a field of it; the fields are {', '.join(fields)}")
    parts = {key: value for key, value in given.items() if value is not None}
    if "confidence" in parts:
        parts["confidence"] = _thousandths(f"{name}.confidence", parts["confidence"])
    for several in ("outputs", "conditions"):
        if isinstance(parts.get(several), list):
            parts[several] = tuple(parts[several])
    return _made(name, lambda: kind(**parts))


def _thousandths(name: str, given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidValueError(name, f"must be between 0 and 1, not {shorten(given)}")
    return round(given * SURE)


def _made(name: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is made
    try:
        return make()
    except TypeError as error:
        raise InvalidValueError(name, str(error)) from None
