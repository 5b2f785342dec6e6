"""Effects: the changes of a call in the world besides files, as its tool reports them."""

from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.checks import (
    require_digest,
    require_integer,
    require_member,
)
from batonpass.model.base.ids import CONTENT, ContentId, Digest, require_id


class EffectKind(StrEnum):
    """The kind of thing that was changed. The text is signed, so it is forever."""

    FILE = "file"
    HTTP = "http"
    DATABASE = "database"
    MESSAGE = "message"
    CUSTOM = "custom"


class Effect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One effect of a call: its kind and a count. The details are content."""

    effect: ContentId  # the content with the details
    kind: EffectKind
    target: Digest  # of the changed thing, keyed with the tree's secret, as in a request
    count: int | None = None  # rows or recipients; None: not reported

    def __post_init__(self) -> None:
        require_id("effects.effect", self.effect, CONTENT)
        require_member("effects.kind", self.kind, EffectKind)
        require_digest("effects.target", self.target)
        if self.count is not None:
            require_integer("effects.count", self.count)
