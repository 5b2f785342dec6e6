"""Changes of which a transcript alone tells: hunks with context, and seldom a digest."""

from batonpass.attribution.changes.change import FileChange, Hunk, digest_of
from batonpass.attribution.lines.attribution import attribute
from tests.attribution.generator import with_context
from tests.attribution.story import BEGAN, Story, data_of

TOTAL = "total = sum_of_all(invoice)"
TAXES = "taxes = rate_for(country) * total"
NAMES = "names = sorted(customer_names)"
PRINT = "print_the_invoice(total, taxes)"
EMAIL = "send_by_email(invoice, names)"
ROUND = "total = rounded(total, digits=2)"
FILE = (TOTAL, TAXES, PRINT)


def shown(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[Hunk, ...]:
    """Return one hunk that shows all of a file."""
    return (Hunk(1 if old else 0, len(old), 1 if new else 0, len(new), old, new),)


def committed() -> Story:
    """Return a file that was there before anything was recorded."""
    story = Story()
    story.becomes(*FILE)
    story.commits()
    return story


def test_context_is_not_written() -> None:
    """What a hunk only shows is not the call's."""
    story = committed()
    new = (TOTAL, NAMES, TAXES, PRINT, EMAIL)
    story.tells("run_a", *new, hunks=shown(FILE, new))

    assert [None, "run_a", None, None, "run_a"] == story.runs()


def test_an_insertion_at_the_top_is_no_more_than_that() -> None:
    """With context below it only, a hunk still says what is new."""
    story = committed()
    new = (NAMES, TOTAL, TAXES, PRINT)
    story.tells("run_a", *new, hunks=with_context([Hunk(0, 0, 1, 1, (), (NAMES,))], FILE))

    assert ["run_a", None, None, None] == story.runs()


def test_a_hunk_belongs_where_its_old_side_stands() -> None:
    """Somebody added lines further up, and the numbers of the hunk are no longer those of the text that is known."""
    story = committed()
    story.becomes(NAMES, EMAIL, *FILE)
    before = tuple(story.lines or ())
    after = (NAMES, EMAIL, TOTAL, TAXES, ROUND, PRINT)
    story.tells("run_a", *after, hunks=[Hunk(4, 2, 4, 3, (TAXES, PRINT), (TAXES, ROUND, PRINT))])

    assert (NAMES, EMAIL, *FILE) == before
    assert [None, None, None, None, "run_a", None] == story.runs()


def test_lines_of_a_hunk_that_fits_nowhere_are_found_again_in_the_commit() -> None:
    """What stood around it is not known; where it stands now is."""
    story = committed()
    story.becomes(NAMES, EMAIL)
    story.tells("run_a", NAMES, ROUND, EMAIL, hunks=shown((NAMES, EMAIL), (NAMES, ROUND, EMAIL)))
    story.commits()

    assert [None, "run_a", None] == story.runs()


def test_of_equal_lines_in_a_row_the_last_is_the_new_one() -> None:
    """A hunk with context leaves open which blank line is new; git's way of telling it decides."""
    story = Story()
    story.becomes(TOTAL, "", TAXES)
    story.commits()
    story.tells("run_a", TOTAL, "", "", TAXES, hunks=shown((TOTAL, "", TAXES), (TOTAL, "", "", TAXES)))

    assert [None, None, "run_a", None] == story.runs()


def test_of_equal_lines_in_a_row_the_last_is_the_one_that_went() -> None:
    """Also where one is taken away."""
    story = Story()
    story.records("run_a", TOTAL, "", TAXES)
    story.records("run_b", TOTAL, "", "", TAXES)
    story.commits()
    story.tells("run_c", TOTAL, "", TAXES, hunks=shown((TOTAL, "", "", TAXES), (TOTAL, "", TAXES)))

    assert ["run_a", "run_a", "run_a"] == story.runs()


def test_a_digest_of_the_result_is_believed_only_if_it_is_the_digest_of_the_result() -> None:
    """A hunk was put where it fits; whether all the rest was as we thought, the digest says."""
    story = committed()
    after = (TOTAL, NAMES, TAXES, PRINT)
    hunks = shown(FILE, after)
    story.tells("run_a", *after, hunks=hunks)
    known = story.changes[0]
    story.changes[0] = FileChange(
        call="call_1", run="run_a", at=known.at, path=known.path, after=digest_of(data_of(after)), hunks=hunks
    )
    story.records("run_b", *after, EMAIL)

    assert [None, "run_a", None, None, "run_b"] == story.runs()


def test_a_call_of_which_nothing_is_known_takes_nothing() -> None:
    """Neither digests nor hunks: it changed the file, and nobody says how."""
    story = Story()
    story.records("run_a", *FILE)
    story.tells("run_b", *FILE, EMAIL, hunks=None)

    assert ["run_a", "run_a", "run_a", None] == story.runs()


def test_without_git_what_was_told_is_still_known() -> None:
    """A file that is no repository's has the changes that were recorded, and nothing else."""
    hunk = Hunk(1, 2, 1, 3, (TAXES, PRINT), (TAXES, ROUND, PRINT))
    change = FileChange(call="call_1", run="run_a", at=BEGAN, path="a", hunks=(hunk,))

    found = attribute("a", data_of([TAXES, ROUND, PRINT]), [change])

    assert [None, "run_a", None] == [one.run for one in found]


def test_a_deletion_without_hunks_takes_all() -> None:
    """A file that a call is known to have deleted has no lines, whatever they were."""
    story = Story()
    story.records("run_a", *FILE)
    story.deletes("run_b")
    gone = story.changes[1]
    story.changes[1] = FileChange(call=gone.call, run=gone.run, at=gone.at, path=gone.path, before=gone.before)
    story.records("run_c", TOTAL)

    assert ["run_c"] == story.runs()


def test_lines_that_arrived_and_went_are_typed_again_by_somebody() -> None:
    """A call wrote lines at a place that nobody knows. They came, they went, and a part is elsewhere now."""
    story = committed()
    block = (NAMES, ROUND, EMAIL, "archive = kept_for(years, country)")
    added = [Hunk(40, 0, 41, 4, (), block)]
    story.tells("run_a", TOTAL, *block, TAXES, PRINT, hunks=added)
    story.commits()
    arrived = story.runs()
    story.becomes(*FILE)
    story.commits()
    story.becomes(TOTAL, TAXES, ROUND, EMAIL, PRINT)
    story.commits()

    assert [None, *["run_a"] * 4, None, None] == arrived
    assert [None] * 5 == story.runs()


def test_a_blank_line_beside_a_blank_context_is_not_the_calls() -> None:
    """A hunk shows a blank line above what it added. What follows a person's function may be the person's."""
    story = committed()
    hunk = Hunk(40, 3, 40, 7, ("", "", ""), ("", "", "", "", ROUND, EMAIL, ""))
    story.becomes(TOTAL, NAMES, "", "", ROUND, EMAIL)
    story.tells("run_a", *(story.lines or ()), hunks=[hunk])
    story.commits()

    assert "run_a" == story.runs()[4]
    assert [None, None] == story.runs()[2:4]
