"""Which tests share an expensive set-up: one process of many runs all of them, so that it is made once."""

from typing import TYPE_CHECKING, Final

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer

# By the beginning of their names. The first that fits counts; what fits none goes wherever there is room: the ledger
# of the mutations is made quickly, and what is done to it takes long.
TOGETHER: Final = (
    "tests/acceptance/test_demo.py",
    "tests/acceptance/test_freight.py",
    "tests/acceptance/test_protected_doors.py",
    "tests/acceptance/test_tool_server.py",
    "tests/attribution/test_generated.py",
    "tests/claude_code/test_recording.py",
    "tests/claude_code/test_sdk.py",
    "tests/claude_code/",
    "tests/house/test_json_shapes.py",
    "tests/integration/agents/test_chain.py",
    "tests/integration/sqlite/test_schema.py",
    "tests/mcp/test_revisions.py",
    "tests/mcp/test_transparent.py",
    "tests/unit/adapters/claude_code/hooks/rules/test_refusal.py",
    "tests/unit/adapters/claude_code/hooks/session/test_recovery.py",
)

# Each of these takes a minute or so by itself. Begun last, it would keep one process busy while the others have nothing
# left to do.
LONG: Final = (
    "tests/attribution/test_sessions.py::test_in_many_sessions",
    "tests/attribution/test_workshop.py::test_many_workshops",
    "tests/acceptance/test_documents.py",
    "tests/integration/test_stateful.py",
    "tests/integration/test_mutations.py",
)


def longest_first(items: "list[pytest.Item]") -> None:
    """Let what takes longest begin first; all else keeps its order."""
    items.sort(key=lambda item: next((at for at, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG)))


class Sharing(LoadScopeScheduling):  # type: ignore[misc]  # its package has no types
    """Gives each test to whoever is free, and those that belong together to one."""

    def _split_scope(self, nodeid: str) -> str:
        return next((group for group in TOGETHER if nodeid.startswith(group)), nodeid)


def schedule(config: "pytest.Config", log: "Producer") -> Sharing | None:
    """Return who runs what, where that is asked for with `--dist=loadgroup`.

    The mark `xdist_group` does nothing: pytest-xdist 3.8 writes it into the ids of tests, which pytest 9.2 does not
    let it. Nobody is told; everything is set up in every process.
    """
    return Sharing(config, log) if config.getvalue("dist") == "loadgroup" else None
