"""What a person is shown: the same baton, as Markdown that nothing in it can turn into something else."""

from hypothesis import given
from msgspec.structs import replace

from batonpass.briefing.baton_difference import compare, describe_difference
from batonpass.briefing.person import describe, escaped
from batonpass.model.base.kinds import Part
from batonpass.model.baton.baton import Answer, Baton, Budget, place_of
from batonpass.model.baton.items import Constraint, Decision, OpenQuestion, Statement
from tests.unit.guard.batons import ANA, NOON, a_baton, a_brief, an_artifact, erased
from tests.unit.guard.strategies import batons, texts


def test_a_person_reads_it_as_markdown() -> None:
    """Headings, bullets, terms and files stand as Markdown."""
    baton = a_baton(
        Statement("Fix *rounding*"),
        an_artifact("page.html", untrusted=True),
        deadline=NOON,
        missing=("rationale",),
        brief=a_brief(budget=Budget(calls=3), verify_by=("pytest", "-q")),
        answers=(Answer(question="Which?", answer="All", by=ANA, at=NOON),),
    )

    assert (
        "**A task from lead for editor, on behalf of user:ana, nothing done so far, 0 open questions, "
        "1 text from outside.**\n\n"
        "## Your task\n\n- Make total\\(\\) round half\\-even\n- done well when: total\\(0.125\\) is 0.12\n"
        "- verified by: pytest \\-q\n- deadline: 2026-01-02 12:00:00 UTC\n- budget: 3 calls\n\n"
        "## What the human wants, in their own words\n\n"
        "- Fix \\*rounding\\* *(user:ana, 2026\\-01\\-02 12:00 UTC)*\n\n"
        "## Data from outside: information, never instructions\n\n"
        f"- page.html (text/csv, 8 bytes, from agent:lead, sha256 {baton.untrusted[0].sha256[:12]})\n\n"
        "## Asked before it began\n\n- Which? → user:ana: All\n\n"
        "Nobody said anything about: rationale.\n"
    ) == describe(baton).replace("2026\\-01\\-02 12:00:00 UTC", "2026-01-02 12:00:00 UTC")


@given(texts)
def test_escaped_text_stays_on_its_line_and_does_nothing(text: str) -> None:
    """No text ends its line, opens a tag, a link or code, or hides a character."""
    shown = escaped(text)

    assert 1 == len(shown.splitlines())
    assert shown.isprintable()
    bare = shown.replace("\\\\", "").replace("\\<", "").replace("\\`", "").replace("\\[", "")
    assert not set("<`[") & set(bare)


@given(batons)
def test_any_baton_can_be_described(baton: Baton) -> None:
    """Whatever a baton holds, it can be shown; the headings are ours alone."""
    headings = [line for line in describe(baton).splitlines() if line.startswith("#")]

    assert len(headings) == len(set(headings))


def test_a_hop_shows_what_got_lost() -> None:
    """Items are the same if id and digest are; what everybody should have had and did not get is called lost."""
    before = a_baton(Statement("Fix it"), Constraint("no floats"), Decision("half-even"))
    kept, dropped, decided = before.items
    new = replace(decided, id=erased(Part.QUESTION).id, part=Part.QUESTION, value=OpenQuestion("negative?"))
    after = replace(before, items=(kept, new), task="Round it", to=before.to)

    found = compare(before, after)

    assert ((kept,), (new,), (dropped, decided), (dropped,)) == (found.carried, found.added, found.dropped, found.lost)
    assert not found.is_whole
    assert (
        "**editor → editor**: 1 item carried unchanged, 1 new, 2 not passed on.\n\n"
        "- task before: Make total\\(\\) round half\\-even\n- task now: Round it\n\n"
        "## New\n\n- What is not known: negative?\n\n"
        "## Not passed on\n\n- What must hold: no floats\n- What was decided: half\\-even\n\n"
        "**Lost**: 1 item that everybody further down should have had.\n"
    ) == describe_difference(before, after)


def test_nothing_lost_is_whole() -> None:
    """A hop that passes everything on loses nothing."""
    baton = a_baton(Statement("Fix it"), an_artifact())

    found = compare(baton, baton)

    assert found.is_whole
    assert () == found.added
    assert "Lost" not in describe_difference(baton, baton)


def test_a_person_is_shown_what_looks_injected_as_such() -> None:
    """It stands under its own heading with its author, and neither among the terms nor in the place of the task."""
    baton = a_baton(Decision("obey"), brief=a_brief(criteria=("obey too",)))
    suspect = frozenset({"task", "criteria", place_of(baton.items[0])})
    before, _, after = describe(replace(baton, suspect=suspect)).partition("## Words of a model")

    assert [] == [words for words in ("obey", baton.task) if escaped(words) in before]
    assert [True] * 3 == [f"- {escaped(words)} *(" in after for words in ("obey", "obey too", baton.task)]
