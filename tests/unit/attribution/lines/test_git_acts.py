"""What git does to a file, as values: commits on branches, brought together or made anew."""

from tests.attribution.story import Story

TOTAL = "total = sum_of_all(invoice)"
TAXES = "taxes = rate_for(country) * total"
NAMES = "names = sorted(customer_names)"
PRINT = "print_the_invoice(total, taxes)"
EMAIL = "send_by_email(invoice, names)"
ROUND = "total = rounded(total, digits=2)"


def a_branch() -> tuple[Story, str, str]:
    """Return a file of run_a, to which run_b added on a branch while run_c did on another."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT)
    base = story.commits()
    story.records("run_b", TOTAL, TAXES, PRINT, EMAIL)
    topic = story.commits()
    story.returns_to(base)
    story.records("run_c", NAMES, TOTAL, TAXES, PRINT)
    main = story.commits(base)
    return story, topic, main


def test_a_merge_keeps_who_wrote_both_sides() -> None:
    """A merge commit writes nothing."""
    story, topic, main = a_branch()
    story.becomes(NAMES, TOTAL, TAXES, PRINT, EMAIL)
    story.commits(main, topic)

    assert ["run_c", "run_a", "run_a", "run_a", "run_b"] == story.runs()


def test_a_squash_keeps_who_wrote_what_it_squashed() -> None:
    """One commit on the main branch has what several had that are gone."""
    story, topic, main = a_branch()
    story.becomes(NAMES, TOTAL, TAXES, PRINT, EMAIL)
    story.commits(main)
    story.forgets(topic)

    assert ["run_c", "run_a", "run_a", "run_a", "run_b"] == story.runs()


def test_a_rebase_keeps_who_wrote_what_it_made_anew() -> None:
    """Each commit of a branch is made again on another base, and the first ones are gone."""
    story, topic, main = a_branch()
    story.returns_to(topic)
    story.records("run_d", TOTAL, TAXES, ROUND, PRINT, EMAIL)
    second = story.commits(topic)
    story.becomes(NAMES, TOTAL, TAXES, PRINT, EMAIL)
    story.commits(main)
    story.becomes(NAMES, TOTAL, TAXES, ROUND, PRINT, EMAIL)
    story.commits()
    story.forgets(topic, second)

    assert ["run_c", "run_a", "run_a", "run_d", "run_a", "run_b"] == story.runs()


def test_a_cherry_pick_keeps_who_wrote_what_it_took() -> None:
    """One commit of a branch comes along, the others do not."""
    story, topic, main = a_branch()
    story.returns_to(topic)
    story.records("run_d", TOTAL, TAXES, ROUND, PRINT, EMAIL)
    second = story.commits(topic)
    story.becomes(NAMES, TOTAL, TAXES, ROUND, PRINT)
    story.commits(main)
    story.forgets(topic, second)

    assert ["run_c", "run_a", "run_a", "run_d", "run_a"] == story.runs()


def test_what_a_merge_brings_that_nobody_recorded_is_nobodys() -> None:
    """A person resolved a conflict with a line of their own."""
    story, topic, main = a_branch()
    story.becomes(NAMES, TOTAL, TAXES, ROUND, PRINT, EMAIL)
    story.commits(main, topic)

    assert ["run_c", "run_a", "run_a", None, "run_a", "run_b"] == story.runs()


def test_a_trailer_decides_between_candidates() -> None:
    """Two runs wrote the same line on two branches, and the commit that brings it names one of them."""
    story = Story()
    story.becomes(TOTAL, TAXES, PRINT)
    base = story.commits()
    story.records("run_a", TOTAL, TAXES, ROUND, PRINT)
    one = story.commits()
    story.returns_to(base)
    story.records("run_b", TOTAL, TAXES, ROUND, PRINT)
    other = story.commits(base)
    story.returns_to(base)
    story.records("run_c", TOTAL, TAXES, PRINT, EMAIL)
    main = story.commits(base)
    story.becomes(TOTAL, TAXES, ROUND, PRINT, EMAIL)
    story.commits(main, runs=("run_b",))
    story.forgets(one, other)

    assert [None, None, "run_b", None, "run_c"] == story.runs()


def test_a_commit_with_a_wrong_clock_comes_after_its_parents() -> None:
    """A commit that says it is older than what it builds on is looked at after it."""
    story = Story()
    story.records("run_a", TOTAL, PRINT)
    story.commits()
    story.records("run_b", TOTAL, TAXES, PRINT)
    story.now = story.changes[0].at
    story.commits()

    assert ["run_a", "run_b", "run_a"] == story.runs()


def test_blank_lines_are_told_as_git_tells_them() -> None:
    """Of blank lines in a row the last one is new: there is no other way to say which."""
    story = Story()
    story.records("run_a", TOTAL, "", TAXES)
    story.commits()
    story.becomes(TOTAL, "", "", TAXES)

    assert ["run_a", "run_a", None, "run_a"] == story.runs()


def test_blank_lines_of_two_runs_of_which_one_is_gone_have_two_candidates() -> None:
    """Which of two blank lines somebody deleted cannot be seen."""
    story = Story()
    story.records("run_a", TOTAL, "", TAXES)
    story.records("run_b", TOTAL, "", "", TAXES)
    story.becomes(TOTAL, "", TAXES, NAMES)

    assert ["run_a", "run_b"] == [one.run for one in story.found()[1].candidates]


def test_a_copy_is_not_whose_it_was_copied_from() -> None:
    """A person pastes what a run wrote in another place; what the run wrote stays the run's."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT, EMAIL)
    story.commits()
    story.becomes(TOTAL, TAXES, PRINT, EMAIL, NAMES, TOTAL, TAXES)

    assert ["run_a"] * 4 + [None] * 3 == story.runs()


def test_a_copy_beside_its_original_is_in_doubt() -> None:
    """Which of two equal pieces in a row was there first cannot be seen."""
    story = Story()
    story.records("run_a", NAMES, TOTAL, TAXES, PRINT)
    story.commits()
    story.becomes(NAMES, TOTAL, TAXES, TOTAL, TAXES, PRINT)

    assert ["run_a", None, None, None, None, "run_a"] == story.runs()
    assert {"run_a"} == {one.run for found in story.found()[1:5] for one in found.candidates}


def test_a_block_that_a_person_moves_keeps_who_wrote_it() -> None:
    """Moved by nobody who is recorded, a piece is known by its text and by what stands around."""
    story = Story()
    story.records("run_a", TOTAL, TAXES, PRINT)
    story.records("run_b", TOTAL, TAXES, PRINT, NAMES, EMAIL)
    story.commits()
    story.becomes(NAMES, EMAIL, TOTAL, TAXES, PRINT)

    assert ["run_b", "run_b", "run_a", "run_a", "run_a"] == story.runs()
