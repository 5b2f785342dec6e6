"""What one agent tells the next, item by item. Each is a value with its text first."""

from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr


class Item(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="item"):
    """One thing that is known."""

    text: str


class Intent(Item, frozen=True, tag="intent"):
    """A statement of the person for whom the work is done, in their words."""

    by: str = ""


class Constraint(Item, frozen=True, tag="constraint"):
    """Something that has to hold."""


class Exclusion(Item, frozen=True, tag="exclusion"):
    """Something that is not to be done or looked at."""

    why: str = ""


class WorkItem(Item, frozen=True, tag="work"):
    """Work that is done; unverified, unless it says by whom."""

    verified_by: str = ""


class Decision(Item, frozen=True, tag="decision"):
    """Something that was decided, and why."""

    why: str = ""


class OpenQuestion(Item, frozen=True, tag="question"):
    """Something that nobody has answered."""

    blocking: bool = False


class RejectedPath(Item, frozen=True, tag="rejected"):
    """Something that was tried or considered, and why it was left."""

    why: str = ""


class Assumption(Item, frozen=True, tag="assumption"):
    """Something taken for true. Confidence is per mille."""

    confidence: int | None = None


class Claim(Item, frozen=True, tag="claim"):
    """A statement with a name and a value, which later work may build on. Confidence is per mille."""

    key: str = ""
    value: str | int | bool | None = None
    confidence: int | None = None


AnyItem: TypeAlias = (
    Intent | Constraint | Exclusion | WorkItem | Decision | OpenQuestion | RejectedPath | Assumption | Claim
)


class Report(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a child gives back. Nothing is filled in: what it did not say is not there; an explicit none says why."""

    result: str = ""
    value: Any = None
    completed: tuple[WorkItem, ...] = ()
    open_questions: tuple[OpenQuestion, ...] = ()
    rejected_paths: tuple[RejectedPath, ...] = ()
    decisions: tuple[Decision, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    claims: tuple[Claim, ...] = ()
    confidence: int | None = None
    none: dict[str, str] = {}
    usage: dict[str, dict[str, int]] = {}
    ended: str = ""


class Brief(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a task is given, and how it may be judged. `reasoning` points at the thought that chose to delegate."""

    rationale: str = ""
    reasoning: Any = None
    inputs: tuple[str, ...] = ()
    stop_when: tuple[str, ...] = ()
    verify_by: str = ""
    role: str = ""
    phase: str = ""
    context: Any = None


_NO_BRIEF: Final = Brief()


class Baton(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that travels with a handoff: what the person said, the task, and what everybody on the way recorded."""

    intent: tuple[Intent, ...]
    task: str
    criteria: tuple[str, ...] = ()
    items: tuple[AnyItem, ...] = ()
    brief: Brief = _NO_BRIEF
    agents: tuple[str, ...] = ()  # from the root down to who gives it

    def __post_init__(self) -> None:
        _share_no_brief(self)


class HandoffOptions(Struct, frozen=True, kw_only=True):
    """What few handoffs need. The same `key` by the same parent to the same agent is the same handoff."""

    key: str | None = None


class OfferedParts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of a baton that an offer adds; the rest is read from the receipts above it."""

    criteria: tuple[str, ...] = ()
    items: tuple[AnyItem, ...] = ()
    brief: Brief = _NO_BRIEF

    def __post_init__(self) -> None:
        _share_no_brief(self)


def _share_no_brief(parts: Baton | OfferedParts) -> None:
    """Let an empty brief be the default itself: the encoder leaves out what *is* the default, not what equals it.

    Else the same offer would have two spellings, and so two digests and two handoffs.
    """
    if parts.brief == _NO_BRIEF:
        force_setattr(parts, "brief", _NO_BRIEF)
