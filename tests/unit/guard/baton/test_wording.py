"""Words from outside stand in our sentences without spoiling them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.guard.baton.problem import quote
from tests.unit.guard.batons import LONG


def test_a_short_text_stands_as_it_is() -> None:
    """Nothing is added to what people can read."""
    assert '"rows.csv"' == quote("rows.csv")


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        pytest.param("one two three four five six", '"one two three four five… #', id="too many words are cut"),
        pytest.param("a" * 100_000, f'"{"a" * 60}… #', id="a word without an end is cut"),
        pytest.param("two\nlines", '"two lines… #', id="a line break is a space"),
        pytest.param("a\u202eb", '"a b… #', id="what turns the direction of reading is a space"),
        pytest.param('say "no"', "\"say 'no'… #", id="quotation marks do not end the quotation"),
        pytest.param("\0" * 9, '"… #', id="what cannot be seen is left out"),
    ],
)
def test_what_is_changed_is_marked(text: str, begins: str) -> None:
    """What does not stand there as it was written ends in a piece of its digest."""
    assert quote(text).startswith(begins)


def test_two_texts_that_begin_alike_differ() -> None:
    """The answer about one long name is never taken for the answer about another."""
    assert quote(LONG + "1") != quote(LONG + "2")


@given(st.text(), st.integers(1, 9))
def test_a_quotation_has_few_words(text: str, words: int) -> None:
    """Whatever the text, lone surrogates included, its quotation is one line of at most one word more than asked."""
    quoted = quote(text, words=words)

    assert len(quoted.split()) <= words + 1
    assert len(quoted.splitlines()) == 1
    assert quoted.count('"') == 2
