"""What `find` finds of what is protected: its expression is read as it reads it, and doubt counts against it."""

import shlex

import pytest

from batonpass.handoff.files.path_spellings import File
from batonpass.handoff.shell.find_expression import FindExpression

HOME = File("./.batonpass", 1, directory=True)
KEY = File("./.batonpass/relay.key", 2)


@pytest.mark.parametrize(
    ("words", "acts"),
    [
        (".", {"-print"}),
        ("", {"-print"}),
        ("-L . -type f", {"-print"}),
        (". -type d", set()),
        (". -type f,d", {"-print"}),
        (". -name '*.key' -exec cat {} ;", {"-exec"}),
        (". -name '*.py' -exec cat {} ;", set()),
        (". -iname 'RELAY.*' -delete", {"-delete"}),
        (". ! -name '*.py' -delete", {"-delete"}),
        (". -not -name '*.key'", set()),
        (". -mtime 1 -exec cat {} ;", {"-exec"}),
        (". -not -mtime 1 -exec cat {} ;", {"-exec"}),
        (". -regex '.*py' -print", {"-print"}),
        (". -path './.batonpass/*' -prune -o -print", set()),
        (". -path ./.batonpass -prune -o -print", set()),
        (". -name .batonpass -prune -o -type f -exec cat {} +", set()),
        (". -mtime 1 -prune -o -exec cat {} +", {"-exec"}),
        (". -path ./.batonpass -prune -o -delete", {"-delete"}),
        (". -depth -path ./.batonpass -prune -o -print", {"-print"}),
        (". -name '*.py' -o -name '*.key' -exec cat {} ;", {"-exec"}),
        (". -name '*.key' -o -name '*.py' -exec cat {} ;", set()),
        (". ( -name '*.key' -o -name '*.py' ) -exec cat {} ;", {"-exec"}),
        (". ( -name '*.key' -o -name '*.py' ) -not -path '*/.batonpass/*' -exec cat {} ;", set()),
        (". -name '*.py' , -exec cat {} ;", {"-exec"}),
        (". -maxdepth 1 -type f -exec cat {} +", set()),
        (". -mindepth 3", set()),
        (". -false -exec cat {} ;", set()),
        (". -exec cat -name '*.py' {} ; -name '*.py'", {"-exec"}),
        (". -name '*.key' -exec echo {} ; -exec cat {} ;", {"-exec"}),
        (". -fprintf x '%p' -exec cat {} ;", {"-print", "-exec"}),
    ],
)
def test_what_is_done_to_a_key(words: str, acts: set[str]) -> None:
    """A test that nobody can answer from here may come out either way."""
    assert acts == FindExpression(shlex.split(words)).acts_on(KEY, [HOME])


def test_where_it_begins_and_what_it_runs() -> None:
    """Without a place it begins where it is run; each program ends with a semicolon or a plus."""
    found = FindExpression(["-H", "src", "docs", "-exec", "cat", "{}", ";", "-ok", "rm", "{}", "+"])

    assert (["src", "docs"], [["cat", "{}"], ["rm", "{}"]]) == (found.starts, found.programs)
    assert ["."] == FindExpression(["-type", "f"]).starts


@pytest.mark.parametrize("words", ["( ( (", ") ) )", "! ! !", "-exec", "-name", "-o -o", ", ,", "( -name", "-not"])
def test_half_an_expression_is_read_to_its_end(words: str) -> None:
    """Whatever is written, there is an answer."""
    FindExpression(words.split()).acts_on(KEY, [HOME])
