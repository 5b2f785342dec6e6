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
    return _HEAD + rows + "".join(f"\n{line}" for kind in KINDS.values() for line in _section(kind)) + "\n"


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
