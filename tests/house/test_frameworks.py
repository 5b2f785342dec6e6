"""The table framework × thing says what the columns declare and what was played."""

import ast

from tests.frameworks.shown import SHOWN_COLUMNS
from tests.house.tree import ROOT
from website.frameworks import IMPOSSIBLE, LABELS, PAGE, PASSED, THINGS, columns, declared, page, results, scenes

PLAY_IT = "run `make frameworks COLUMN=…`, which plays a column and writes the table"


def test_every_column_came_out_as_it_declares() -> None:
    """A column that the Makefile lists was played, and each scene passed unless the column says why it cannot."""
    played = results()
    every = scenes()
    said = {column: declared(column) for column in columns()}
    wanted = {column: {scene: told.get(scene, (PASSED, ""))[0] for scene in every} for column, told in said.items()}

    found = {column: {scene: played.get(column, {}).get(scene) for scene in every} for column in said}
    assert wanted == found, PLAY_IT


def test_no_column_declares_a_scene_that_there_is_not() -> None:
    """A scene that was renamed takes its exceptions along, and has its words in the table."""
    known = set(scenes())

    assert [] == [(column, scene) for column in columns() for scene in declared(column) if scene not in known]
    assert scenes() == list(LABELS)


def test_the_page_is_what_was_played() -> None:
    """Nobody edits it."""
    assert page() == PAGE.read_text(encoding="utf-8"), PLAY_IT


def test_tests_that_are_said_to_show_something_are_there() -> None:
    """A test that was renamed or removed shows nothing any more."""
    missing = []
    for column in SHOWN_COLUMNS.values():
        for test in (test for tests in column.shown.values() for test in tests):
            path, *names = test.split("::")
            body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
            for name in names:
                named = (node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef))
                found = [node for node in named if node.name == name]
                missing += [] if found else [test]
                body = found[0].body if found else []

    assert [] == missing


def test_fifteen_of_sixteen_cells_are_shown() -> None:
    """What frameworks make impossible stays the exception."""
    played = results()
    cells = [played[column][scene] for column in columns() if column != "own_loop" for scene in scenes()[:THINGS]]

    assert 16 * cells.count(PASSED) >= 15 * len(cells)
    assert set(cells) <= {PASSED, IMPOSSIBLE, "missing"}
