"""Commands are read as a shell reads them: no quoting hides one."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from batonpass.handoff.shell.command_text import read_commands

READS: Final = ["cat", "secret.txt"]

# In each of these a shell runs `cat secret.txt`, which a reader that takes quotes for something else does not see.
HIDING: Final = [
    'echo $(echo ")"; cat secret.txt)',
    'echo "$(echo ")"; cat secret.txt)"',
    'echo $(echo "$(echo ")")"; cat secret.txt)',
    "echo $(echo $'\\')'; cat secret.txt)",
    "echo $'\\''; cat secret.txt",
    'echo "$\'"; cat secret.txt; echo "\'"',
    'echo $(echo "it\'s)"; cat secret.txt)',
    "echo $(echo '\"'; cat secret.txt)",
    'echo $(echo \\"; cat secret.txt)',
    'diff <(echo "(") <(cat secret.txt)',
    'echo "a)b" $(cat secret.txt)',
    'echo "`echo ")"`"; cat secret.txt',
    'echo "a$"; cat secret.txt',
    'echo $"x"; cat secret.txt',
]


@pytest.mark.parametrize("command", HIDING)
def test_no_quoting_hides_a_command(command: str, tmp_path: Path) -> None:
    """What bash runs is among what is read; that bash runs it is tried."""
    (tmp_path / "secret.txt").write_text("found it\n")
    ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "found it" in ran.stdout
    assert READS in [found.words for found in read_commands(command)]


@pytest.mark.parametrize(
    "command", ["echo 'x; cat secret.txt'", 'echo "x; cat secret.txt"', "echo $'x; cat secret.txt'"]
)
def test_what_is_quoted_is_no_command(command: str) -> None:
    """Words stay words."""
    assert [["echo", "x; cat secret.txt"]] == [found.words for found in read_commands(command)]
