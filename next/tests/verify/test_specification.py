"""The steps have the order, the names and the codes that the specification has."""

import re
from pathlib import Path

from batonpass.verify.verifier import INDEXES, NOT_RUN, RELAY_KEY, ROOT_KEY, ROWS, STEPS

PAGE = (Path(__file__).parents[2] / "docs" / "spec" / "verification.md").read_text(encoding="utf-8")


def test_the_steps_are_those_of_the_page() -> None:
    """What the evidence names, the page explains, in the order in which it is done."""
    rows = re.findall(r"^\| (\d+) \| \*\*([a-z ]+)\*\* \| `([a-z.]+)` \|", PAGE, flags=re.MULTILINE)
    last = [
        (ROOT_KEY, "verify.recorder"),
        (RELAY_KEY, "verify.recorder"),
        (ROWS, "verify.rows"),
        (INDEXES, "verify.rows"),
    ]
    steps = [*((step.name, step.code) for step in STEPS), *last]

    assert [(str(number), *step) for number, step in enumerate(steps, 1)] == rows


def test_what_is_never_run_is_named() -> None:
    """The page says of each step that this version does not have that it is not run."""
    assert [f"**{name}**" for name in NOT_RUN] == re.findall(r"\*\*(?:end|grants)\*\*", PAGE)
