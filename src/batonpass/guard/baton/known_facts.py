"""What the relay knows when a baton is received: everything that a check needs and a baton does not say."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from batonpass.model.base.checks import (
    require_digest,
    require_instance,
    require_integer,
    require_media_type,
    require_utc,
)
from batonpass.model.base.ids import ContentId, Digest
from batonpass.model.base.value import Value


class KeptContent(Value, frozen=True, kw_only=True):
    """What is really kept under the id of a content."""

    size: int
    sha256: Digest  # of the body alone, as an artifact declares it
    digest_ok: bool  # salt and body still have the digest to which their receipt committed
    media_type: str | None = None  # what the bytes are, as far as the relay knows

    def __post_init__(self) -> None:
        require_integer("size", self.size)
        require_digest("sha256", self.sha256)
        require_instance("digest_ok", self.digest_ok, bool)
        if self.media_type is not None:
            require_media_type("media_type", self.media_type)


class KnownFacts(Value, frozen=True, kw_only=True):
    """The moment, the depth of the signed lineage, the contents that can be reached, and what the ledger resolves.

    `contents` has the bodies of artifacts and, where they were read again, the contents of items. A body that is not
    there cannot be reached. `references` has what `find_open_references` found, None if nobody looked; `resolves` those
    of them that the ledger has an answer to, as they stand there: `run:7f3a`.
    """

    now: datetime
    depth: int = 0  # hops between the root and this handoff
    contents: Mapping[ContentId, KeptContent] = MappingProxyType({})
    resolves: frozenset[str] = frozenset()
    references: Mapping[str, bool] | None = None

    def __post_init__(self) -> None:
        require_utc("now", self.now)
        require_integer("depth", self.depth)
        require_instance("contents", self.contents, Mapping)
        require_instance("resolves", self.resolves, frozenset)
