"""Labels: where words came from, and so how far they are to be trusted. Set by the relay, never by the sender."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.model.base.checks import Form, require_instance, require_member, require_unique
from batonpass.model.base.ids import (
    CALL,
    CONTENT,
    RUN,
    AnyId,
    CallId,
    ContentId,
    PrincipalId,
    RunId,
    pattern_of,
    require_principal,
)

# What came from outside: a call whose result it is, an item, or a run that took in more than can be listed.
Source: TypeAlias = CallId | ContentId | RunId

# A list of sources has so many at most: what is signed must not grow with the tree.
MOST_SOURCES: Final = 16

_SOURCE: Final = Form(pattern_of(CALL, CONTENT, RUN), "the id of a call, a content or a run")


class SourceType(StrEnum):
    """Where words came from. The text is kept with them, so it is forever."""

    SYSTEM = "system"
    USER_INPUT = "user_input"
    LLM_GENERATED = "llm_generated"
    TOOL_OUTPUT = "tool_output"
    EXTERNAL = "external"

    @property
    def trust(self) -> int:
        """Return how far it is trusted, in thousandths."""
        return _TRUST[self]

    @property
    def trust_level(self) -> float:
        """Return how far it is trusted, between 0 and 1."""
        return self.trust / 1000


_TRUST: Final[Mapping[SourceType, int]] = MappingProxyType(
    {
        SourceType.SYSTEM: 1000,
        SourceType.USER_INPUT: 900,
        SourceType.LLM_GENERATED: 700,
        SourceType.TOOL_OUTPUT: 500,
        SourceType.EXTERNAL: 300,
    },
)


def join(*labels: SourceType) -> SourceType:
    """Return the label of what was made from several: that of the least trusted. A summary launders nothing."""
    return min(labels, key=_TRUST.__getitem__)


class Label(Struct, frozen=True, omit_defaults=True):
    """How far something is trusted, and who may read it. What is made of several has the least of both."""

    integrity: SourceType
    readers: tuple[PrincipalId, ...] | None = None  # in order; None: everybody

    def __post_init__(self) -> None:
        require_member("label.integrity", self.integrity, SourceType)
        if self.readers is None:
            return
        for reader in require_instance("label.readers", self.readers, tuple):
            require_principal("label.readers", reader)
        require_unique("label.readers", self.readers)
        force_setattr(self, "readers", tuple(sorted(self.readers)))

    @property
    def is_external(self) -> bool:
        """Return whether it came from outside, or was made of what did."""
        return self.integrity is SourceType.EXTERNAL

    def joined(self, *others: Self) -> "Label":
        """Return the label of what is made of this and others: the least trust, and whoever may read all of it."""
        readers = self.readers
        for other in others:
            if readers is None or other.readers is None:
                readers = other.readers if readers is None else readers
            else:
                readers = tuple(reader for reader in readers if reader in other.readers)
        integrity = join(self.integrity, *[other.integrity for other in others])
        return PLAIN[integrity] if readers is None else Label(integrity, readers)

    def may_read(self, reader: str) -> bool:
        """Return whether somebody may read it."""
        return self.readers is None or reader in self.readers


# What everybody may read, by where it came from.
PLAIN: Final[Mapping[SourceType, Label]] = MappingProxyType({integrity: Label(integrity) for integrity in SourceType})


def require_label(field: str, label: Label | None) -> None:
    """Refuse what is neither a label nor nothing."""
    if label is not None:
        require_instance(field, label, Label)


def require_source(field: str, value: AnyId) -> AnyId:
    """Return value if it names something that may have come from outside: a call, a content or a run."""
    return _SOURCE.require(field, value)


def require_sources(field: str, values: tuple[Source, ...]) -> None:
    """Refuse what is not a short tuple of different sources."""
    if type(values) is tuple and not values:
        return
    for value in require_instance(field, values, tuple):
        require_source(field, value)
    require_unique(field, values)


def named_sources(run: RunId, sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return sources as receipts name them; the run itself stands for more of them than fit."""
    found = tuple(sorted(set(sources)))
    return found if len(found) <= MOST_SOURCES else (run,)
