"""Tasks that only point are found, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.guard.baton.vague_task import BEFORE_CLAUSES, FILLERS, POINTERS, THINGS, VERBS, points_only

POINTING = [
    "it",
    "This",
    "do it",
    "Do it.",
    "DO IT NOW!",
    "Please do it now",
    "do this",
    "Do that, please.",
    "fix it",
    "Fix this issue",
    "fix that bug",
    "fix the above",
    "Fix the above-mentioned problems",
    "As discussed",
    "as discussed above",
    "as we agreed",
    "As mentioned earlier, fix them",
    "continue",
    "Continue with that",
    "continue as before",
    "Proceed",
    "proceed with the previous step",
    "go ahead",
    "Go on…",
    "keep going",
    "carry on",
    "try again",
    "do the same",
    "Do the same for the other one",
    "ditto",
    "finish the rest",
    "Handle those",
    "make it work",
    "Make sure that it works",
    "Check that",
    "verify this",
    "see above",
    "See below.",
    "do what was said",
    "do what I told you",
    "It's the same problem again",
    "It’s that one",
    '"do it"',
    "  fix \n it  ",
    "implement the latter",
    "ｄｏ　ｉｔ",  # noqa: RUF001 - full-width letters are letters
    "resume it",
    "continue our discussion",
]
CONCRETE = [
    "Make total() round half-even",
    "Fix it in src/invoice.py",
    "Fix #42",
    "Fix the rounding bug",
    "do it in two steps: parse, then sum",
    "Run the tests",
    "run this: make check",
    "run do_it()",
    "Implement this()",
    "Refactor it to use Decimal",
    "Do the same for src/tax.py",
    "Continue with the migration",
    "Continue the translation of chapter 3",
    "Review the change",
    "Review the resume",
    "Verify that all tasks are done",
    "Check that all items have messages",
    "Make sure that everything works",
    "Update IT",
    "Send it to ana@example.org",
    "Fix all errors",
    "Fix all remaining errors",
    "Complete all steps",
    "Check all messages again",
    "Verify before delete",
    "Sort by last, then first",
    "Update my resume",
    "Change the address",
    "Summarise this: the invoice has three lines",
    "Deploy it",
    "Translate the above into French",
    "do 3 of them",
    "say `it`",
    "Schreib das um",
    "それを直して",
    "Help",
    "Go",
    "Do",
    "...",
    "👍",
    "it" + "x" * 100_000,
]


@pytest.mark.parametrize("task", POINTING, ids=repr)
def test_a_task_that_only_points_is_found(task: str) -> None:
    """Without what was said before, nobody knows what to do."""
    assert points_only(task)


@pytest.mark.parametrize("task", CONCRETE, ids=lambda task: repr(task[:60]))
def test_a_task_with_a_word_of_its_own_passes(task: str) -> None:
    """One concrete word is enough, and so is a task that points at nothing."""
    assert not points_only(task)


@given(st.lists(st.sampled_from(sorted(POINTERS | VERBS | THINGS | FILLERS))), st.integers(0, 9))
def test_one_word_that_is_on_no_list_makes_a_task_concrete(words: list[str], at: int) -> None:
    """Wherever it stands, a name is enough."""
    assert not points_only(" ".join([*words[:at], "invoice", *words[at:]]))


@given(st.text())
def test_any_text_is_a_task(text: str) -> None:
    """Every text is judged, and the same way each time."""
    assert points_only(text) is points_only(text)


def test_the_lists_do_not_contradict_each_other() -> None:
    """A word either points or does not, and is written as it is compared."""
    rest = VERBS | THINGS | FILLERS

    assert set() == POINTERS & rest
    assert {word.lower() for word in POINTERS | rest} == POINTERS | rest
    assert set() == BEFORE_CLAUSES - POINTERS - rest
