"""Labels: where content came from, and therefore how far it is trusted. The relay sets them, never the sender."""

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

# A source of content from outside: a call that returned it, an item, or a run that took in more than can be listed.
Source: TypeAlias = CallId | ContentId | RunId

# The longest list of sources: signed bytes must not grow with the size of the tree.
MOST_SOURCES: Final = 16

_SOURCE: Final = Form(pattern_of(CALL, CONTENT, RUN), "the id of a call, a content or a run")


class SourceType(StrEnum):
    """Where content came from. The text is kept with it, so it is forever."""

    SYSTEM = "system"
    USER_INPUT = "user_input"
    LLM_GENERATED = "llm_generated"
    TOOL_OUTPUT = "tool_output"
    EXTERNAL = "external"

    @property
    def trust(self) -> int:
        """Return how far content of this origin is trusted, in thousandths."""
        return _TRUST[self]

    @property
    def trust_level(self) -> float:
        """Return how far content of this origin is trusted, between 0 and 1."""
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
    """Return the origin of content that was made from several: the least trusted one. A summary cleans nothing."""
    return min(labels, key=_TRUST.__getitem__)


class Label(Struct, frozen=True, omit_defaults=True):
    """How far content is trusted, and who may read it.

    Content made from several pieces has the least trust of all, and only the readers that all of them have.
    """

    integrity: SourceType
    readers: tuple[PrincipalId, ...] | None = None  # sorted; None: everybody may read it

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
        """Return whether the content came from outside, or was made from such content."""
        return self.integrity is SourceType.EXTERNAL

    def joined(self, *others: Self) -> "Label":
        """Return the label of content made from this and others: the least trust, and the readers that all have."""
        readers = self.readers
        for other in others:
            if readers is None or other.readers is None:
                readers = other.readers if readers is None else readers
            else:
                readers = tuple(reader for reader in readers if reader in other.readers)
        integrity = join(self.integrity, *[other.integrity for other in others])
        return PLAIN[integrity] if readers is None else Label(integrity, readers)

    def may_read(self, reader: str) -> bool:
        """Return whether a reader may read the content."""
        return self.readers is None or reader in self.readers


# The labels without a list of readers, by origin.
PLAIN: Final[Mapping[SourceType, Label]] = MappingProxyType({integrity: Label(integrity) for integrity in SourceType})


def require_source(field: str, value: AnyId) -> AnyId:
    """Return value if it is the id of a possible source: a call, a content or a run."""
    return _SOURCE.require(field, value)


def named_sources(run: RunId, sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return sources as receipts name them. If there are too many to list, the run itself stands for them."""
    found = tuple(sorted(set(sources)))
    return found if len(found) <= MOST_SOURCES else (run,)
