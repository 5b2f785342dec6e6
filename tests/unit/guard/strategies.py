"""Any value that the model takes, for properties."""

from datetime import UTC
from typing import Final

from hypothesis import strategies as st

from batonpass.guard.baton.known_facts import KeptContent, KnownFacts
from batonpass.model.base.ids import AgentId, Digest
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.baton import Answer, Baton, Brief, Budget
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import (
    Artifact,
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Item,
    ItemValue,
    OpenQuestion,
    Operator,
    RejectedPath,
    Statement,
    WorkItem,
    part_of,
)
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import ANA, LONG, a_baton, body_id, content_id

NUMBERS: Final = ["0", "-0", "3", "3.0", "1e3", "1e999999999", "-1e-999999999999999999999", "nan", "-inf", "1_000", "٣"]
NAMES: Final = [
    "rows",
    "rows.csv",
    "count:rows",
    "a b",
    LONG[:2000],
    "\u202e",
    "it",
    "artifact:rows.csv",
    "run:7f3a",
    "the above",
]
MEDIA_TYPES: Final = st.sampled_from(["text/plain", "text/csv", "application/octet-stream", "image/png"])

texts = st.one_of(
    st.sampled_from([*NUMBERS, *NAMES]),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(lambda text: bool(text.strip())),
)
lists = st.lists(texts, max_size=3).map(tuple)
maybe = st.none() | texts
times = st.datetimes(timezones=st.just(UTC))
digests = st.sampled_from([Digest("0" * 64), Digest("f" * 64)])
sizes = st.sampled_from([0, 1, 8, 2**53 - 1])
bodies = st.integers(0, 3).map(body_id)

claims = st.one_of(
    st.builds(Claim, texts, as_of=st.none() | times),
    st.builds(Claim, texts, key=texts, value=texts, unit=maybe, as_of=st.none() | times),
)
typed = st.builds(
    Constraint,
    key=texts,
    operator=st.sampled_from(Operator).map(str),
    value=texts,
    unit=maybe,
    binds_to=st.sampled_from([None, "call:*.a", "call:t.a", "call:t.a.b", "result:a.b"]),
)
values: st.SearchStrategy[ItemValue] = st.one_of(
    st.builds(Statement, texts),
    st.builds(Constraint, texts),
    typed,
    st.builds(Exclusion, texts),
    st.builds(WorkItem, texts, outputs=lists, verified_by=maybe, how=texts, evidence=maybe),
    st.builds(OpenQuestion, texts, blocking=st.booleans()),
    st.builds(RejectedPath, texts, why=texts),
    st.builds(Decision, texts, why=texts, conditions=lists),
    st.builds(Assumption, texts),
    claims,
    st.builds(
        Artifact,
        name=texts,
        body=bodies,
        sha256=digests,
        size=sizes,
        media_type=MEDIA_TYPES,
        source=texts,
        untrusted=st.booleans(),
    ),
)


@st.composite
def items(draw: st.DrawFn) -> Item:
    """Draw an item, erased or not."""
    value = draw(st.none() | values)
    return Item(
        id=content_id(draw(st.integers(0, 9))),
        digest=draw(digests),
        part=draw(st.sampled_from(Part)) if value is None else part_of(value),
        by=ANA,
        at=draw(times),
        value=value,
    )


counts = st.none() | st.integers(0, 2)
budgets = st.builds(Budget, calls=counts, seconds=counts, tokens=counts, cost=counts)
briefs = st.builds(
    Brief,
    criteria=lists,
    inputs=lists,
    expects=lists,
    verify_by=lists,
    rationale=maybe,
    budget=st.none() | budgets,
    needs_tools=lists,
    needs_skills=lists,
    none=st.sampled_from([(), ("criteria",), ("rationale", "question")]),
)
answers = st.builds(Answer, question=texts, answer=texts, by=st.just(ANA), at=times)
batons: st.SearchStrategy[Baton] = st.builds(
    a_baton,
    task=texts,
    brief=briefs,
    relation=st.sampled_from(Relation),
    items=st.lists(items(), max_size=8).map(tuple),
    answers=st.lists(answers, max_size=2).map(tuple),
    missing=st.sampled_from([(), ("rationale",), ("criteria", "question")]),
    deadline=st.none() | times,
)
keeps = st.builds(
    KeptContent,
    size=sizes,
    sha256=digests,
    digest_ok=st.booleans(),
    media_type=st.none() | MEDIA_TYPES,
)
knowledge = st.builds(
    KnownFacts,
    now=times,
    depth=st.integers(0, 3),
    contents=st.dictionaries(bodies | st.integers(0, 9).map(content_id), keeps, max_size=6),
    resolves=st.frozensets(st.sampled_from(["artifact:rows.csv", "run:7f3a"])),
)
policies = st.builds(
    HandoffPolicy,
    require=st.dictionaries(st.sampled_from(Relation), st.sampled_from([("rationale",), ("criteria", "claim")])),
    verified_only=st.booleans(),
    asks=st.booleans(),
    questions=st.integers(0, 2),
    hops_between_questions=st.integers(0, 5),
    oldest=st.none() | st.timedeltas(),
    max_depth=st.none() | st.integers(1, 3),
)
cards = st.builds(
    Card,
    agent=st.just(AgentId("editor")),
    skills=st.none() | lists,
    tools=st.none() | lists,
    accepts=st.none() | st.lists(MEDIA_TYPES, max_size=2).map(tuple),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just(1).map(lambda one: one << 20_000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)
