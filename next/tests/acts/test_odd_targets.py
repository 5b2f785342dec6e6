"""What a writing tool may name as its target: whatever it is, the call is made and recorded."""

from pathlib import Path

import pytest

from batonpass import Relay, tool
from batonpass.testing import a_relay, a_run, observe


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("a\0b", id="a name with a zero byte"),
        pytest.param("x" * 5_000, id="a name that is too long"),
        pytest.param("folder", id="a folder"),
        pytest.param("gone/missing.txt", id="a file in a folder that is not there"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_target_that_is_no_file_is_no_obstacle(target: str, record_place: Path) -> None:
    """A call whose target is no file is made and recorded, and leaves no effect."""
    (record_place / "folder").mkdir()
    made = []

    @tool(action="write", target="path")
    def note(path: str) -> str:
        made.append(path)
        return "noted"

    with Relay.open() as relay, relay.start("Take notes", by="user:ana") as run:
        result = run.call(note, target)

    assert ("noted", [target]) == (result, made)


def test_an_argument_that_may_be_left_out_is_no_target() -> None:
    """`print` has an argument named file, and most calls of it are about no file."""
    with a_relay() as relay, a_run(relay) as run:
        run.call(print, end="")

        assert ["print"] == [each.text("target") for each in observe(relay).of("tool.requested")]
