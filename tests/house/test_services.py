"""Documents name no service that acts by itself and is nowhere in the code."""

import re
from typing import Final

from tests.house.tree import DOCS, PACKAGE, ROOT, files

SERVICE: Final = re.compile(r"service:[a-z][a-z-]*")
EXAMPLES: Final = frozenset({"service:nightly", "service:shop"})  # somebody's own


def test_services_in_documents_are_in_the_code() -> None:
    """Whoever reads that a service decides something can find where it does."""
    documents = [*files(DOCS, ".md"), ROOT / "README.md"]
    named = {found for path in documents for found in SERVICE.findall(path.read_text(encoding="utf-8"))}
    ours = {found for path in files(PACKAGE, ".py") for found in SERVICE.findall(path.read_text(encoding="utf-8"))}

    assert named
    assert set() == named - ours - EXAMPLES
