"""Write the catalogue of findings, docs/reference/findings.md, from the code and the programs that raise them.

python website/findings.py
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from batonpass.review.catalogue import KINDS
from batonpass.review.finding import FindingKind

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "findings.md"
PROGRAMS: Final = ROOT / "examples" / "findings"

# What the library never writes, and another program that writes into a ledger can.
UNRAISED: Final = {
    "lost-constraint": "An offer of the library always carries what binds everybody. Another program's may not.",
    "record-gap": "It is written by a run that goes on while its ledger cannot be written.",
}

# MAST, arXiv:2503.13657: its failure modes, and what is told of those that no kind of finding has.
MODES: Final = {
    "1.1": ("disobey task specification", ""),
    "1.2": ("disobey role specification", ""),
    "1.3": ("step repetition", ""),
    "1.4": ("loss of conversation history", ""),
    "1.5": ("unaware of termination conditions", ""),
    "2.1": ("conversation reset", ""),
    "2.2": ("fail to ask for clarification", ""),
    "2.3": ("task derailment", ""),
    "2.4": ("information withholding", "no finding; of a failed tree, `--suspects` says who did not pass on what"),
    "2.5": ("ignored other agent's input", ""),
    "2.6": ("reasoning-action mismatch", "not detectable, except that a file was claimed and not made: `ghost-task`"),
    "3.1": ("premature termination", ""),
    "3.2": ("no or incomplete verification", "no finding; the checklist says of each result if nobody verified it"),
    "3.3": ("incorrect verification", ""),
}

_HEAD: Final = """# Findings

`batonpass review` lists what a person should look at. This is every kind of finding, with a program that raises it and
one that nearly does. MAST is a taxonomy of why multi-agent systems fail. OWASP is its Top 10 for Agentic Applications
2026. [The guide](../guide/review.md) shows how to read a review. This page is made from the code by `make findings`;
the programs are in `examples/findings`, and the tests run them.

| finding | severity | MAST | OWASP | why it matters |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page."""
    rows = "".join(f"| {' | '.join(_cells(kind))} |\n" for kind in KINDS.values())
    sections = "".join(f"\n{line}" for kind in KINDS.values() for line in _section(kind))
    return f"{_HEAD}{rows}\n{_modes()}{sections}\n"


def _modes() -> str:
    """Return the failure modes of MAST, each with the findings that show it, or with the reason why there is none."""
    rows = "".join(f"| {number} | {name} | {_shown(number) or why} |\n" for number, (name, why) in MODES.items())
    return f"By failure mode of MAST:\n\n| mode | name | found as |\n|---|---|---|\n{rows}"


def _shown(number: str) -> str:
    return ", ".join(f"[{kind.code}](#{kind.code})" for kind in KINDS.values() if kind.mast == number)


def _cells(kind: FindingKind) -> Iterator[str]:
    yield f"[{kind.title}](#{kind.code})"
    yield from (str(kind.severity), kind.mast or "–", kind.owasp or "–", kind.matters)


def _section(kind: FindingKind) -> Iterator[str]:
    yield f"## {kind.code}\n"
    yield f"**{kind.title}**: {kind.matters[0].lower()}{kind.matters[1:]}\n"
    if kind.code in UNRAISED:
        yield UNRAISED[kind.code] + "\n"
        return
    yield f"```py\n{program(kind.code)}\n```\n"


def program(code: str) -> str:
    """Return the program of a kind, from its first statement on, without what makes it a module."""
    text = (PROGRAMS / f"{code.replace('-', '_')}.py").read_text(encoding="utf-8")
    first = ast.parse(text).body[1]
    lines = text.splitlines()[first.lineno - 1 :]
    return "\n".join(lines).rstrip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
