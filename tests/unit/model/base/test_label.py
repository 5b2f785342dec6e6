"""Labels: how far something is trusted follows from where it came from."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batonpass.model.base.ids import CallId, PrincipalId
from batonpass.model.base.label import MOST_SOURCES, Label, SourceType, join, named_sources
from batonpass.model.baton.items import Artifact, Decision, Item, Statement, label_of, part_of
from tests.unit.model.examples import ANA, AT, CONTENT, DIGEST, PARENT, an_id

FILE: Final = Artifact("page", body=CONTENT, sha256=DIGEST, size=5, media_type="text/html", source="agent:lead")
LABELS: Final = [
    pytest.param("user:ana", Statement("fix it"), SourceType.USER_INPUT, id="what a human said"),
    pytest.param("service:nightly", Statement("run it"), SourceType.USER_INPUT, id="what a service asks for"),
    pytest.param("agent:lead", Decision("half-even"), SourceType.LLM_GENERATED, id="what an agent decided"),
    pytest.param("agent:lead", {"source": "tool:fetch"}, SourceType.TOOL_OUTPUT, id="what a tool returned"),
    pytest.param("agent:lead", {"label": SourceType.USER_INPUT}, SourceType.USER_INPUT, id="what the relay labelled"),
    pytest.param("agent:lead", {"untrusted": True}, SourceType.EXTERNAL, id="what came from outside"),
    pytest.param(
        "agent:lead",
        {"untrusted": True, "label": SourceType.SYSTEM},
        SourceType.EXTERNAL,
        id="what came from outside, whatever it is called",
    ),
]


@pytest.mark.parametrize(("by", "value", "expected"), LABELS)
def test_an_item_is_trusted_as_far_as_where_it_came_from(by: str, value: Any, expected: SourceType) -> None:  # noqa: ANN401
    """The label follows from who recorded something and from where it is, and never rises."""
    if isinstance(value, dict):
        value = replace(FILE, **{"source": by, "untrusted": False, "label": None, **value})
    item = Item(id=CONTENT, digest=DIGEST, part=part_of(value), by=PrincipalId(by), at=AT, value=value)

    assert expected == label_of(item)


def test_trust_is_in_thousandths_and_falls() -> None:
    """The five levels, and that a mixture is trusted as far as the worst of it."""
    assert [1.0, 0.9, 0.7, 0.5, 0.3] == [source.trust_level for source in SourceType]
    assert SourceType.EXTERNAL == join(SourceType.SYSTEM, SourceType.EXTERNAL, SourceType.LLM_GENERATED)


BOB: Final = PrincipalId("user:bob")
SOURCES: Final = st.sampled_from(SourceType)
READERS: Final = st.none() | st.sets(st.sampled_from([ANA, BOB, PrincipalId("agent:lead")])).map(tuple)
ANY: Final = st.builds(Label, SOURCES, READERS)


@given(ANY, ANY, ANY)
def test_labels_join_in_any_order_and_only_get_worse(one: Label, two: Label, three: Label) -> None:
    """The least trust of all, and the readers that all have; nothing that is joined later takes it back."""
    joined = one.joined(two, three)

    assert joined == three.joined(one).joined(two)
    assert joined == joined.joined(one)
    assert joined.integrity.trust == min(label.integrity.trust for label in (one, two, three))
    assert {reader for reader in (ANA, BOB) if joined.may_read(reader)} == {
        reader for reader in (ANA, BOB) if all(label.may_read(reader) for label in (one, two, three))
    }


def test_everybody_may_read_what_nobody_limits() -> None:
    """Nothing said is everybody; an empty list is nobody."""
    assert (True, False) == (Label(SourceType.SYSTEM).may_read(BOB), Label(SourceType.SYSTEM, ()).may_read(BOB))


def test_a_list_of_sources_does_not_grow() -> None:
    """The run stands for more of them than fit."""
    calls = [CallId(an_id("call", number)) for number in range(MOST_SOURCES + 1)]

    assert (tuple(calls[1:]), (PARENT,)) == (named_sources(PARENT, calls[:0:-1]), named_sources(PARENT, calls))
