"""The facts that checks of a baton need besides the baton itself. The relay collects them when a baton is received."""

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
    """The content that the store really has under an id."""

    size: int
    sha256: Digest  # of the body alone, as an artifact declares it
    digest_ok: bool  # salt and body still have the digest to which their receipt committed
    media_type: str | None = None  # the type of the bytes, as far as the relay knows
    fault: str | None = None  # why the bytes cannot be read as their declared type
    text: str | None = None  # the words of a small text, if somebody refers to a part of it
    rows: int | None = None  # of a table, without its header

    def __post_init__(self) -> None:
        require_integer("size", self.size)
        require_digest("sha256", self.sha256)
        require_instance("digest_ok", self.digest_ok, bool)
        if self.media_type is not None:
            require_media_type("media_type", self.media_type)


class KnownFacts(Value, frozen=True, kw_only=True):
    """The time, the depth of the signed lineage, the reachable contents, and the references that the ledger resolves.

    `contents` has the bodies of artifacts and, where they were read again, the contents of items; a body that is
    missing there is unreachable. `references` is the result of `find_open_references`, None if nobody looked.
    `resolves` has those references to which the ledger has an answer, as they are spelled: `run:7f3a`.
    """

    now: datetime
    depth: int = 0  # hops between the root and this handoff
    contents: Mapping[ContentId, KeptContent] = MappingProxyType({})
    resolves: frozenset[str] = frozenset()
    references: Mapping[str, bool] | None = None
    files: frozenset[str] = frozenset()  # answers that name a file of the work tree

    def __post_init__(self) -> None:
        require_utc("now", self.now)
        if type(self.depth) is not int or self.depth:
            require_integer("depth", self.depth)
        # The relay makes one for each handoff, of these very types. Then there is no call for each of them.
        if type(self.contents) is not dict:
            require_instance("contents", self.contents, Mapping)
        if type(self.resolves) is not frozenset or type(self.files) is not frozenset:
            require_instance("resolves", self.resolves, frozenset)
            require_instance("files", self.files, frozenset)
