"""Whatever was recorded, and however wrong: each line has an answer, and nobody is named who wrote nothing."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from batonpass.attribution.changes.change import FileChange, Hunk, digest_of, lines_of
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.attribution.git.git_history import History, Revision
from batonpass.attribution.lines.attribution import Attribution, attribute
from batonpass.model.base.ids import Digest
from tests.attribution.story import BEGAN, Story, data_of

LINES = st.lists(
    st.sampled_from(
        [
            "",
            "    pass",
            "}",
            "n = 1",
            "  n = 1",
            "total = sum_of_all(invoice)",
            "    total = sum_of_all(invoice)",
            "taxes = rate_for(country) * total",
            "names = sorted(customer_names)",
            "print_the_invoice(total, taxes)",
            "send_by_email(invoice, names)",
        ]
    ),
    max_size=12,
)
PATHS = st.sampled_from(["a", "b"])
TIMES = st.integers(0, 30).map(lambda minutes: BEGAN + timedelta(minutes=minutes))


@st.composite
def hunks(draw: st.DrawFn) -> tuple[Hunk, ...]:
    """Return hunks of some edit, or hunks that no edit has."""
    if draw(st.booleans()):
        return hunks_between(draw(LINES), draw(LINES))
    sides = draw(st.lists(st.tuples(st.integers(1, 12), LINES, LINES), max_size=3))
    return tuple(Hunk(at, len(old), at, len(new), tuple(old), tuple(new)) for at, old, new in sides)


@st.composite
def changes(draw: st.DrawFn, digests: Sequence[Digest]) -> list[FileChange]:
    """Return changes that need not fit together."""
    known = st.sampled_from([None, *digests])
    return [
        FileChange(
            call=f"call_{number}",
            run=draw(st.sampled_from(["run_a", "run_b", "run_c"])),
            at=draw(TIMES),
            path=draw(PATHS),
            before=draw(known),
            after=draw(known),
            hunks=draw(st.none() | hunks()),
            renamed_from=draw(st.none() | PATHS),
            overlapping=draw(st.sampled_from([(), ("call_0",), ("call_99",)])),
        )
        for number in range(draw(st.integers(0, 6)))
    ]


@st.composite
def histories(draw: st.DrawFn, texts: Sequence[Sequence[str]]) -> History:
    """Return commits of some texts, with whatever parents."""
    digests = [digest_of(data_of(text)) for text in texts]
    revisions = [
        Revision(
            commit=str(number),
            at=draw(TIMES),
            path=draw(PATHS),
            digest=draw(st.sampled_from([*digests, digest_of(b"not read")])),
            parents=tuple(map(str, draw(st.lists(st.integers(0, number), max_size=2)))),
            runs=draw(st.sampled_from([(), ("run_a",), ("run_z",)])),
        )
        for number in range(draw(st.integers(0, 4)))
    ]
    return History(
        revisions=revisions,
        lines=dict(zip(digests, texts, strict=True)),
        paths=("a", "b"),
        head=draw(st.sampled_from([None, "0", "9"])),
    )


def bare(line: str) -> str:
    """Return a line without its white space, which has no author."""
    return "".join(line.split())


def wrote(recorded: Sequence[FileChange], texts: Sequence[Sequence[str]]) -> set[tuple[str | None, str]]:
    """Return which call may have written which text: what its hunks add, or anything if it has none."""
    every = {line for text in texts for line in text}
    return {
        (change.call, bare(line))
        for change in recorded
        for line in (every if change.hunks is None else [line for hunk in change.hunks for line in hunk.added])
    }


def named(found: Attribution) -> set[tuple[str | None, str | None]]:
    """Return whom an answer names."""
    sure = {(found.call, found.run)} if found.call else set()
    return sure | {(one.call, one.run) for one in found.candidates}


@given(data=st.data(), texts=st.lists(LINES, min_size=1, max_size=4))
def test_anything_recorded_has_an_answer_for_each_line(data: st.DataObject, texts: list[list[str]]) -> None:
    """Records that contradict each other, and git, are no reason to fail or to name somebody who is not among them."""
    recorded = data.draw(changes([digest_of(data_of(text)) for text in texts]))
    history = data.draw(st.none() | histories(texts))
    present = data_of(texts[0])

    found = attribute("a", present, recorded, history)

    calls: set[tuple[str | None, str | None]] = {(change.call, change.run) for change in recorded}
    calls |= {(call, None) for change in recorded for call in change.overlapping}
    assert lines_of(present.decode()) == [one.text for one in found]
    assert list(range(1, len(found) + 1)) == [one.line for one in found]
    assert set() == {who for one in found for who in named(one)} - calls
    assert set() == {one.run for one in found} - {None} - {change.run for change in recorded}
    assert set() == {(one.call, bare(one.text)) for one in found if one.call} - wrote(recorded, [*texts, []])


@given(texts=st.lists(LINES, min_size=1, max_size=8))
def test_what_is_recorded_without_a_gap_is_never_unexplained(texts: list[list[str]]) -> None:
    """If every change of a file was recorded from its first line on, each line is some run's."""
    story = Story()
    for number, text in enumerate(texts):
        story.records(f"run_{number}", *text)

    found = story.found()

    assert [True] * len(found) == [one.run is not None or len(one.candidates) > 1 for one in found]


@given(texts=st.lists(st.tuples(st.booleans(), LINES), min_size=1, max_size=8))
def test_a_run_is_named_only_for_a_text_that_it_wrote(texts: list[tuple[bool, list[str]]]) -> None:
    """Whatever people do in between, a line is a run's only if a change of that run added these words."""
    story = Story()
    for number, (is_recorded, text) in enumerate(texts):
        if is_recorded:
            story.records(f"run_{number}", *text)
        else:
            story.becomes(*text)
            story.commits()

    by_run = {(change.run, text) for change in story.changes for _, text in wrote([change], ())}
    assert set() == {(one.run, bare(one.text)) for one in story.found() if one.run} - by_run
