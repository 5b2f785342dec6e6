"""Items: single things that a run knows and hands on unchanged.

No item is ever filled in automatically. If nobody gave a part, it is missing, and is reported as missing.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    require_codes,
    require_digest,
    require_instance,
    require_integer,
    require_media_type,
    require_member,
    require_text,
    require_texts,
    require_utc,
    shorten,
)
from batonpass.model.base.ids import (
    CONTENT,
    ContentId,
    Digest,
    PrincipalId,
    quotes_models,
    require_id,
    require_principal,
)
from batonpass.model.base.kinds import Part
from batonpass.model.base.label import SourceType, join

SURE: Final = 1000

_BINDS_TO: Final = re.compile(r"(?:call|returned):.+\.[^.]+|result:.+")


class Operator(StrEnum):
    """The comparison of a typed constraint."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    ONE_OF = "in"
    NONE_OF = "not in"


class Statement(Struct, frozen=True):
    """A human's statement of their wish, in their own words."""

    part: ClassVar = Part.INTENT
    text: str

    def __post_init__(self) -> None:
        require_text("text", self.text)


class Constraint(Struct, frozen=True):
    """Something that must hold, in prose or typed.

    A typed constraint that is bound to an argument or a result is also checked:

    `Constraint(key="threshold", operator="<=", value="3", unit="sigma", binds_to="call:find_anomalies.threshold")`
    """

    part: ClassVar = Part.CONSTRAINT
    text: str = ""
    key: str | None = None
    operator: str | None = None  # one of Operator
    value: str | None = None
    unit: str | None = None
    binds_to: str | None = None  # call:TOOL.ARGUMENT, returned:TOOL.FIELD, or result:FIELD

    def __post_init__(self) -> None:
        require_text("text", self.text, empty=True)
        for name in ("key", "value", "unit", "binds_to"):
            if (given := getattr(self, name)) is not None:
                require_text(name, given)
        if self.operator is not None and self.operator not in tuple(Operator):
            raise InvalidValueError("operator", f"{shorten(self.operator)} is not one of {', '.join(Operator)}")
        typed = (self.key, self.operator, self.value)
        if None in typed and (not self.text or typed != (None, None, None)):
            raise InvalidValueError("constraint", "needs a text, or a key, an operator and a value")
        if self.binds_to is not None and _BINDS_TO.fullmatch(self.binds_to) is None:
            raise InvalidValueError("binds_to", "is call:TOOL.ARGUMENT, returned:TOOL.FIELD or result:FIELD")

    @property
    def sentence(self) -> str:
        """Return the constraint as a sentence for people."""
        if self.key is None:
            return self.text
        typed = " ".join(str(part) for part in (self.key, self.operator, self.value, self.unit) if part is not None)
        return f"{self.text} ({typed})" if self.text else typed


class Exclusion(Struct, frozen=True):
    """Something that is out of scope."""

    part: ClassVar = Part.EXCLUSION
    text: str

    def __post_init__(self) -> None:
        require_text("text", self.text)


class WorkItem(Struct, frozen=True):
    """Completed work, and who verified it; None if nobody did."""

    part: ClassVar = Part.COMPLETED
    what: str
    outputs: tuple[str, ...] = ()
    verified_by: str | None = None  # None: nobody
    how: str | None = None  # how it was verified
    evidence: str | None = None

    def __post_init__(self) -> None:
        require_text("what", self.what)
        force_setattr(self, "outputs", require_texts("outputs", self.outputs))
        for name in ("verified_by", "how", "evidence"):
            if (given := getattr(self, name)) is not None:
                require_text(name, given)
        if self.verified_by is not None and self.how is None:
            raise InvalidValueError("how", "verified work says how it was verified")

    @property
    def verified(self) -> bool:
        """Return whether somebody verified it."""
        return self.verified_by is not None


class OpenQuestion(Struct, frozen=True):
    """A question without an answer. A blocking one must be answered before anybody goes on."""

    part: ClassVar = Part.QUESTION
    text: str
    blocking: bool = False

    def __post_init__(self) -> None:
        require_text("text", self.text)
        require_instance("blocking", self.blocking, bool)


class RejectedPath(Struct, frozen=True):
    """A path that was tried or considered and should not be tried again, and why."""

    part: ClassVar = Part.REJECTED
    what: str
    why: str = ""

    def __post_init__(self) -> None:
        require_text("what", self.what)
        require_text("why", self.why, empty=True)


class Decision(Struct, frozen=True):
    """A decision of a run, its reason, and the conditions under which it holds."""

    part: ClassVar = Part.DECISION
    what: str
    why: str = ""
    conditions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_text("what", self.what)
        require_text("why", self.why, empty=True)
        force_setattr(self, "conditions", require_texts("conditions", self.conditions))


class Assumption(Struct, frozen=True):
    """Something that is assumed and was not checked."""

    part: ClassVar = Part.ASSUMPTION
    what: str
    confidence: int | None = None  # in thousandths

    def __post_init__(self) -> None:
        require_text("what", self.what)
        require_confidence(self.confidence)


class Claim(Struct, frozen=True):
    """Something that somebody claims to be true. With a key and a value it can be compared with other claims."""

    part: ClassVar = Part.CLAIM
    what: str
    key: str | None = None
    value: str | None = None
    unit: str | None = None
    confidence: int | None = None  # in thousandths
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        require_text("what", self.what)
        for name in ("key", "value", "unit"):
            if (given := getattr(self, name)) is not None:
                require_text(name, given)
        if (self.key is None) != (self.value is None):
            raise InvalidValueError("claim", "a key and a value come together")
        require_confidence(self.confidence)
        if self.as_of is not None:
            require_utc("as_of", self.as_of)


class Artifact(Struct, frozen=True):
    """A file or a text, known by its digest. Its bytes are a content of their own."""

    part: ClassVar = Part.ARTIFACT
    name: str
    body: ContentId  # the content that has the bytes
    sha256: Digest
    size: int
    media_type: str
    source: str  # an agent, a tool or a person
    untrusted: bool = False  # it came from outside: data, never instructions
    label: SourceType | None = None  # its origin, if the relay knows more than who attached it

    def __post_init__(self) -> None:
        require_text("name", self.name)
        require_id("body", self.body, CONTENT)
        require_digest("sha256", self.sha256)
        require_integer("size", self.size)
        require_media_type("media_type", self.media_type)
        require_text("source", self.source)
        require_instance("untrusted", self.untrusted, bool)
        if self.label is not None:
            require_member("label", self.label, SourceType)


class Report(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that a run gives back. It travels on as a whole, as completed work that is not verified yet."""

    part: ClassVar = Part.COMPLETED

    result: str = ""
    value: str | None = None  # a result for programs, as canonical JSON
    completed: tuple[WorkItem, ...] = ()
    open_questions: tuple[OpenQuestion, ...] = ()
    rejected_paths: tuple[RejectedPath, ...] = ()
    decisions: tuple[Decision, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    claims: tuple[Claim, ...] = ()
    confidence: int | None = None  # in thousandths
    none: tuple[str, ...] = ()  # parts that are empty on purpose

    def __post_init__(self) -> None:
        require_text("result", self.result, empty=True)
        if self.value is not None:
            require_text("value", self.value)
        for name, kind in _REPORTED.items():
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InvalidValueError(name, f"{shorten(given)} is no list; write a list of texts or items")
            # A plain text is short for an item with only that text.
            values = tuple(kind(value) if isinstance(value, str) else value for value in given)
            for value in values:
                require_instance(name, value, kind)
            force_setattr(self, name, values)
        require_confidence(self.confidence)
        force_setattr(self, "none", require_texts("none", self.none))
        require_codes("none", self.none)

    # A report travels with every later handoff of its parent, and each asks for these several times.
    @cached_property
    def values(self) -> "tuple[ReportedValue, ...]":
        """Return all values that it lists."""
        return (
            *self.completed,
            *self.open_questions,
            *self.rejected_paths,
            *self.decisions,
            *self.assumptions,
            *self.claims,
        )

    @cached_property
    def within(self) -> "tuple[ItemValue, ...]":
        """Return the report, its result as completed work, and all values that it lists."""
        result = (WorkItem(self.result),) if self.result.strip() else ()
        return (self, *result, *self.values)

    @cached_property
    def parts(self) -> frozenset[Part]:
        """Return all parts that it covers, including those that it says are empty."""
        said = {kind.part for name, kind in _REPORTED.items() if getattr(self, name)}
        return frozenset({Part.COMPLETED, *said, *(part for part in Part if part in self.none)})


_REPORTED: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "completed": WorkItem,
        "open_questions": OpenQuestion,
        "rejected_paths": RejectedPath,
        "decisions": Decision,
        "assumptions": Assumption,
        "claims": Claim,
    },
)


ReportedValue: TypeAlias = WorkItem | OpenQuestion | RejectedPath | Decision | Assumption | Claim
ItemValue: TypeAlias = (
    Statement
    | Constraint
    | Exclusion
    | WorkItem
    | OpenQuestion
    | RejectedPath
    | Decision
    | Assumption
    | Claim
    | Artifact
    | Report
)

VALUE_TYPES: Final[tuple[type[ItemValue], ...]] = get_args(ItemValue)

# Read the text fields of each kind of value: one text, or a tuple of several. What an artifact contains is data and no
# text of the baton.
TEXT_READERS: Final[Mapping[type[ItemValue], "attrgetter[Any] | None"]] = MappingProxyType(
    {
        Statement: attrgetter("text"),
        Constraint: attrgetter("text"),
        Exclusion: attrgetter("text"),
        WorkItem: attrgetter("what", "how", "evidence"),
        OpenQuestion: attrgetter("text"),
        RejectedPath: attrgetter("what", "why"),
        Decision: attrgetter("what", "why"),
        Assumption: attrgetter("what"),
        Claim: attrgetter("what"),
        Artifact: None,
        Report: None,
    },
)


def part_of(value: ItemValue) -> Part:
    """Return the part of a baton to which a value belongs."""
    return Part.UNTRUSTED if isinstance(value, Artifact) and value.untrusted else value.part


def parts_of(value: ItemValue) -> frozenset[Part]:
    """Return all parts that a value covers, including those that a report says are empty."""
    return value.parts if isinstance(value, Report) else frozenset({part_of(value)})


class Item(Struct, frozen=True, kw_only=True):
    """A recorded value: its author, its time, its id and its digest."""

    id: ContentId
    digest: Digest
    part: Part
    by: PrincipalId
    at: datetime
    value: ItemValue | None  # None after its content was erased
    role: str | None = None  # of its author when it was recorded
    phase: str | None = None  # of the work in which it was recorded

    def __post_init__(self) -> None:
        require_id("id", self.id, CONTENT)
        require_digest("digest", self.digest)
        if type(self.part) is not Part:
            require_member("part", self.part, Part)
        require_principal("by", self.by)
        require_utc("at", self.at)
        for name in ("role", "phase"):
            if (given := getattr(self, name)) is not None:
                require_text(name, given)
        if self.value is not None and type(self.value) not in VALUE_TYPES:
            require_instance("value", self.value, VALUE_TYPES)


def label_of(item: Item) -> SourceType:
    """Return how far an item is trusted: by who recorded it, and for an artifact by where it came from."""
    label = SourceType.LLM_GENERATED if quotes_models(item.by) else SourceType.USER_INPUT
    value = item.value
    if isinstance(value, Artifact):
        if value.source.startswith("tool:"):
            label = join(label, SourceType.TOOL_OUTPUT)
        label = label if value.label is None else value.label
        # A label on the artifact cannot lift the quarantine.
        label = join(label, SourceType.EXTERNAL) if value.untrusted else label
    return label


def require_confidence(value: int | None) -> None:
    """Refuse a confidence that is not a whole number from 0 to 1000."""
    if value is None:
        return
    if isinstance(value, float):
        example = f"write {round(value * SURE)} for {value:.0%}" if 0 <= value <= 1 else f"{value} is none"
        raise InvalidValueError("confidence", f"is in thousandths: {example}")
    if require_integer("confidence", value) > SURE:
        raise InvalidValueError("confidence", f"{value} is more than {SURE} thousandths")
