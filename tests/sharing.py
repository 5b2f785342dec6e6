"""What several processes share: tests with one expensive set-up run in one process, and each file is compiled once."""

import importlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol, SupportsIndex

    import pytest
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

    class ToldReports(Protocol):
        """What tells the first process about tests."""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            """Tell it."""


# By the beginning of their names. The first that fits counts; what fits none goes wherever there is room: the ledger
# of the mutations is made quickly, and what is done to it takes long.
TOGETHER: Final = (
    "tests/unit/drift/test_reports.py",
    "tests/acceptance/test_demo.py",
    "tests/acceptance/test_freight.py",
    "tests/acceptance/test_protected_doors.py",
    "tests/acceptance/test_tool_server.py",
    "tests/attribution/test_generated.py",
    "tests/claude_code/test_recording.py",
    "tests/claude_code/test_sdk.py",
    "tests/claude_code/",
    "tests/house/test_json_shapes.py",
    "tests/integration/a2a/",  # the SDK takes seconds to import
    "tests/integration/cli/test_share.py",
    "tests/integration/agents/",  # a client of a model takes seconds to import
    "tests/integration/sqlite/test_schema.py",
    "tests/mcp/test_revisions.py",
    "tests/mcp_server/test_clients.py",
    "tests/mcp_server/test_conformance.py",
    "tests/mcp/test_transparent.py",
    "tests/page/",  # one browser and one server for all of them
    "tests/unit/accounts/blame/test_forged_notes.py",
    "tests/unit/accounts/blame/test_note_blame.py",
    "tests/unit/adapters/coders/rules/test_refusal.py",
    "tests/unit/adapters/coders/session/test_recovery.py",
    "tests/unit/drift/test_reports.py",
    "tests/unit/cli/blame/test_blame_targets.py",
    "tests/unit/cli/server/test_work_tree_answers.py",
    "tests/unit/review/test_reviewed_diff.py",
    "tests/unit/server/page/test_blame_view.py",
    "tests/unit/server/page/test_fleet_views.py",
    "tests/unit/server/page/test_handoff_view.py",
    "tests/unit/server/page/test_ledger_view.py",
    "tests/unit/server/page/test_review_view.py",
    "tests/unit/server/page/test_tree_view.py",
    "tests/unit/server/page/test_views.py",
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


def import_from(number: int, of: int) -> None:
    """Import all tests, beginning where process number `number` of so many begins; pytest finds them imported.

    Asserts are rewritten when a file is imported for the first time in a clone, which takes longer than to import it.
    Where all processes begin with the same file, each rewrites all of them.
    """
    tests = Path(__file__).parent
    names = [path.relative_to(tests.parent).with_suffix("").parts for path in sorted(tests.rglob("test_*.py"))]
    begin = number * len(names) // of
    for name in (*names[begin:], *names[:begin]):
        if name[1] != "house":
            with suppress(Exception):  # which pytest says again, and where
                importlib.import_module(".".join(name))


class _Numbered(list[str]):
    """The ids of all tests, each of which knows its number."""

    def __init__(self, names: "Sequence[str]") -> None:
        super().__init__(names)
        self._numbers = {name: number for number, name in enumerate(names)}

    def index(self, value: str, *_: "SupportsIndex") -> int:
        return self._numbers[value]


class Sharing(LoadScopeScheduling):  # type: ignore[misc]  # its package has no types
    """Gives each test to whoever is free, and those that belong together to one.

    After every test, pytest-xdist goes through all that a process was ever given to count what it has left, and
    searches the list of all tests for the next one. With thousands of groups of one test that takes eight seconds. Here
    a finished group is forgotten, and a test knows its number.
    """

    def add_node_collection(self, node: "WorkerController", collection: "Sequence[str]") -> None:
        """Remember which tests a process has found."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Numbered(collection)

    def mark_test_complete(self, node: "WorkerController", item_index: int, duration: float = 0) -> None:
        """Give the process more to do, and forget the group if this was the last of it."""
        given = self.assigned_work[node]
        group = self._split_scope(self.registered_collections[node][item_index])
        unit = given[group]
        super().mark_test_complete(node, item_index, duration)
        if all(unit.values()):
            given.pop(group, None)

    def _split_scope(self, nodeid: str) -> str:
        return next((group for group in TOGETHER if nodeid.startswith(group)), nodeid)


class _ResultsOnly:
    """Passes on what became of a test, and that it is over."""

    def __init__(self, process: "ToldReports") -> None:
        self._process = process

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        if report.when == "call" or not report.passed or report.sections:
            self._process.pytest_runtest_logreport(report)


def tell_results_only(config: "pytest.Config") -> None:
    """Let a process say nothing of set-ups that went well, nor that a test begins: nobody prints that.

    Twenty thousand tests say six things each, and the process that listens has a tenth of a core to itself for it.
    """
    for process in config.pluginmanager.get_plugins():
        if type(process).__name__ == "WorkerInteractor":
            for hook in (config.hook.pytest_runtest_logstart, config.hook.pytest_runtest_logreport):
                hook._remove_plugin(process)
            config.pluginmanager.register(_ResultsOnly(process))


def schedule(config: "pytest.Config", log: "Producer") -> Sharing | None:
    """Return who runs what, where that is asked for with `--dist=loadgroup`.

    The mark `xdist_group` does nothing: pytest-xdist 3.8 writes it into the ids of tests, which pytest 9.2 does not
    let it. Nobody is told; everything is set up in every process.
    """
    return Sharing(config, log) if config.getvalue("dist") == "loadgroup" else None
