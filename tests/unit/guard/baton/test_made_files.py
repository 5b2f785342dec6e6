"""A file that a task tells somebody to make is not missing; a file that it needs is."""

import pytest

from batonpass.guard.baton.validation import validate_baton
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import a_baton, a_brief, an_artifact, kept, known

MADE = [
    "Write a summary of the rows into news.md.",
    "Write news.md.",
    "Create a short page called `news.md` with three headings.",
    "Write the totals to totals.json",
    "Save the chart as chart.html and tell Ana.",
    "Convert rows.csv to rows.json.",
    "Merge the two tables into all.csv.",
    "Export everything to a new file named export.xlsx.",
    "Create totals.csv and notes.md from the rows.",
    "Create totals.csv, notes.md and news.md from the rows.",
    "Count the rows; the result goes into count.txt.",
    "Read rows.csv. Then write what you found in a new file called found.md.",
    "Summarise the rows into summary.txt. summary.txt has at most ten lines.",
    "Translate the rows and save them under german.csv",
    "Draft reply.txt in two sentences.",
]
MISSING = [
    ("Write a summary of survey.csv into news.md.", ["survey.csv"]),
    ("Write tests for parser.json.", ["parser.json"]),
    ("Add a line to notes.md.", ["notes.md"]),
    ("Append the totals to totals.json", ["totals.json"]),
    ("Write a paragraph and add it to notes.md.", ["notes.md"]),
    ("Write an answer to letter.docx.", ["letter.docx"]),
    ("Write the figures in survey.csv as a table.", ["survey.csv"]),
    ("Write survey.csv to the database.", ["survey.csv"]),
    ("Compare rows.csv to old.csv.", ["old.csv"]),
    ("Convert survey.docx to survey.pdf.", ["survey.docx"]),
    ("Write it in the same form as report.md.", ["report.md"]),
    ("Read notes.md and write notes.md anew.", ["notes.md"]),
    ("Update news.md.", ["news.md"]),
    ("Make sure that survey.csv has no blanks, then write news.md.", ["survey.csv"]),
    ("Create a chart from survey.csv and prices.csv.", ["survey.csv", "prices.csv"]),
    ("Insert the table into report.docx.", ["report.docx"]),
    ("Keep to style.md when you write news.md.", ["style.md"]),
    ("Write the code. The rules are in rules.md", ["rules.md"]),
]


def missing(task: str) -> list[str]:
    """Return the files that are asked for, of a task that carries the file rows.csv."""
    baton = a_baton(an_artifact(), task=task, brief=a_brief())
    problems = validate_baton(baton, known=known(kept()), policy=HandoffPolicy(asks=True))
    found = [one for one in problems if one.check == "referential-drift.file-missing"]
    return [one.question.split('"')[1] for one in found if one.question is not None]


@pytest.mark.parametrize("task", MADE)
def test_what_is_to_be_made_is_not_missing(task: str) -> None:
    """Nobody can carry a file that is only written by the task."""
    assert [] == missing(task)


@pytest.mark.parametrize(("task", "needed"), MISSING, ids=[task for task, _ in MISSING])
def test_what_is_needed_is_missing_all_the_same(task: str, needed: list[str]) -> None:
    """A verb of making somewhere in the sentence says nothing about the other files in it."""
    assert needed == missing(task)
