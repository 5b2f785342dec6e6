"""Groups whose commands are loaded when they are used."""

import pytest
from click.testing import CliRunner

from batonpass.cli.nouns import cli


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["handof", "list"], "No such command 'handof'. Did you mean 'handoff'?"),
        (["handoff", "retri"], "No such command 'retri'. Did you mean 'retry'?"),
        (["xyzzy"], "No such command 'xyzzy'."),
    ],
    ids=["a noun", "a verb", "nothing is alike"],
)
def test_a_misspelled_command_is_wrong_usage_and_the_error_says_what_is_alike(words: list[str], said: str) -> None:
    """It exits with 2, and names the command only if one is nearly the same."""
    done = CliRunner().invoke(cli, words)

    assert (2, f"Error: {said}") == (done.exit_code, done.stderr.strip().splitlines()[-1])
