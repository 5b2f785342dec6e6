"""A held call of a proxy, decided in another process."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.mcp.servers import PROGRAM, STRANGE, proxied, surroundings
from tests.mcp.wire import Wire

pytestmark = pytest.mark.slow


def decide(directory: Path, sentence: str, *words: str) -> None:
    """Do what the sentence says that a person can do, or the opposite."""
    found = re.search(r"`batonpass handoff approve (\w+)`", sentence)
    assert found, sentence
    subprocess.run(
        [str(PROGRAM), "handoff", words[0], found[1], *words[1:]], cwd=directory, env=surroundings(), check=True
    )


def test_a_held_call_is_made_once_somebody_approved_it(tmp_path: Path) -> None:
    """The sentence for the model leads a person to the call; the same call again goes through, and no other."""
    (tmp_path / ".batonpass").mkdir()
    with Wire(proxied(STRANGE, "--name", "strange", "--enforce"), tmp_path) as wire:
        held = wire.call("look", at="tea")["result"]["content"][0]["text"]
        decide(tmp_path, held, "approve", "--yes")
        made = wire.call("look", at="tea")["result"]["content"][0]["text"]
        other = wire.call("look", at="gold")["result"]["content"][0]["text"]
        decide(tmp_path, other, "deny", "--reason", "too dear")
        denied = wire.call("look", at="gold")["result"]["content"][0]["text"]

    assert ("look {'at': 'tea'}", True, True) == (made, other.startswith("Held"), denied.startswith("Denied"))
