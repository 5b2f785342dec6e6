"""Batons and what surrounds them: a test says only what matters to it. The plain baton has no problem at all."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from batonpass.guard.baton.known_facts import KeptContent, KnownFacts
from batonpass.guard.baton.problem import Problem, Whom
from batonpass.model.base.ids import AgentId, ContentId, Digest, HandoffId, PrincipalId, RunId
from batonpass.model.base.kinds import ErrorType, Part, Relation
from batonpass.model.baton.baton import Baton, Brief
from batonpass.model.baton.items import Artifact, Item, ItemValue, part_of
from batonpass.model.policy.handoff_policy import HandoffPolicy

NOON: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
ANA: Final = PrincipalId("user:ana")
LAX: Final = HandoffPolicy()
ROWS: Final = b"a,b\n1,2\n"
OTHER: Final = Digest("0" * 64)
LONG: Final = "very long words " * 6250  # 100,000 characters


def content_id(number: int) -> ContentId:
    return ContentId(f"content_01jd2m0000000000000000{number:04}")


def body_id(number: int) -> ContentId:
    return ContentId(f"content_01jd2m000000000000000b{number:04}")


def an_artifact(name: str = "rows.csv", *, number: int = 1, data: bytes = ROWS, **changes: Any) -> Artifact:  # noqa: ANN401
    """Return an artifact with the digest and size of its data."""
    plain = Artifact(
        name=name,
        body=body_id(number),
        sha256=Digest(sha256(data).hexdigest()),
        size=len(data),
        media_type="text/csv",
        source="agent:lead",
    )
    return replace(plain, **changes)


def kept(data: bytes = ROWS, **changes: Any) -> KeptContent:  # noqa: ANN401
    """Return what is kept of some data, intact."""
    plain = KeptContent(size=len(data), sha256=Digest(sha256(data).hexdigest()), digest_ok=True)
    return replace(plain, **changes)


def known(*contents: KeptContent, **changes: Any) -> KnownFacts:  # noqa: ANN401
    """Return a knowledge of noon, with contents for the artifacts that have the numbers 1, 2, 3."""
    plain = KnownFacts(
        now=NOON, contents={body_id(number): content for number, content in enumerate(contents, start=1)}
    )
    return replace(plain, **changes)


def items_of(*values: ItemValue) -> tuple[Item, ...]:
    """Return values as recorded items."""
    return tuple(
        Item(id=content_id(number), digest=Digest("d" * 64), part=part_of(value), by=ANA, at=NOON, value=value)
        for number, value in enumerate(values, start=1)
    )


def erased(part: Part, number: int = 9) -> Item:
    return Item(id=content_id(number), digest=Digest("d" * 64), part=part, by=ANA, at=NOON, value=None)


def a_brief(**changes: Any) -> Brief:  # noqa: ANN401
    """Return a brief that says when the task is done."""
    return Brief(**{"criteria": ("total(0.125) is 0.12",), **changes})


def a_baton(*values: ItemValue, **changes: Any) -> Baton:  # noqa: ANN401
    """Return a baton that carries some values, and has what the test changes."""
    given: dict[str, Any] = {
        "handoff": HandoffId("handoff_01jd2m0000000000000000ha1f"),
        "root": RunId("run_01jd2m00000000000000007f3a"),
        "parent": RunId("run_01jd2m00000000000000009c1e"),
        "sender": AgentId("lead"),
        "principal": ANA,
        "to": AgentId("editor"),
        "relation": Relation.LEAD_TO_WORKER,
        "revision": 0,
        "task": "Make total() round half-even",
        "brief": a_brief(),
        "items": items_of(*values),
    }
    return Baton(**{**given, **changes})


def a_problem(
    error: ErrorType = ErrorType.DATA_GAP,
    question: str = "Is it so?",
    *,
    blocking: bool = True,
) -> Problem:
    """Return a problem of some type."""
    return Problem(
        error=error,
        check=f"{error}.example",
        about="Something is wrong.",
        blocking=blocking,
        question=question,
        whom=Whom.PRODUCER,
    )
