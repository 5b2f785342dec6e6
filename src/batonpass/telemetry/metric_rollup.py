"""The totals of all receipts so far, for metrics: counts and durations by position, under a bounded number of names.

Everything follows from the ledger, so two servers have the same numbers, and a counter goes on where it was after a
restart. Names are taken as they come; from a number of them on, further ones are counted together as `other`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime
from itertools import accumulate
from typing import Final

from msgspec import Struct, field

from batonpass.model.base.kinds import Kind
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.telemetry.conventions import AGENT_NAME, DURATION_BOUNDS, OPERATION, OURS, TOOL_NAME
from batonpass.telemetry.span_record import SpanRecord

TELEMETRY_FOLDER: Final = "telemetry"  # beside the keys: how far each reader has come
OTHER: Final = "other"
MOST_AGENTS: Final = 50
MOST_TOOLS: Final = 100
MOST_OPERATIONS: Final = 2000
_KINDS: Final = frozenset(map(str, Kind))


class OperationCount(Struct, kw_only=True):
    """How often something was done, by whom and how it ended."""

    operation: str  # invoke_agent or execute_tool
    agent: str
    tool: str  # empty for a run
    outcome: str
    count: int = 0


class DurationCount(Struct, kw_only=True):
    """A histogram of durations: a count for each bound, and one for durations above all bounds."""

    operation: str
    agent: str
    counts: list[int]
    microseconds: int = 0

    def up_to(self) -> list[int]:
        """Return how many took no longer than each bound; the last is all of them."""
        return list(accumulate(self.counts))


class AgentUse(Struct, kw_only=True):
    """The use of resources by the ended runs of an agent."""

    tokens: int = 0
    cost: int = 0  # in millionths


class MetricRollup(Struct, kw_only=True):
    """The sums up to a position."""

    ledger: str = ""
    position: int = 0
    began: datetime | None = None
    receipts: dict[str, int] = field(default_factory=dict)  # by kind
    operations: dict[str, OperationCount] = field(default_factory=dict)
    durations: dict[str, DurationCount] = field(default_factory=dict)
    use: dict[str, AgentUse] = field(default_factory=dict)  # by agent
    agents: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)

    def add(self, stored: StoredReceipt, at: datetime, spans: Iterable[SpanRecord]) -> None:
        """Add a receipt and the spans that end with it. Receipts come by position, each once."""
        self.position = stored.position or self.position
        self.began = self.began or at
        kind = stored.kind if stored.kind in _KINDS else OTHER
        self.receipts[kind] = self.receipts.get(kind, 0) + 1
        for span in spans:
            if OPERATION in span.facts:
                self._add_span(span)

    def _add_span(self, span: SpanRecord) -> None:
        operation = str(span.facts[OPERATION])
        agent = _bounded(self.agents, str(span.facts.get(AGENT_NAME, "")), MOST_AGENTS)
        tool = _bounded(self.tools, str(span.facts.get(TOOL_NAME, "")), MOST_TOOLS)
        self._operation(operation, agent, tool, str(span.facts.get(f"{OURS}outcome", ""))).count += 1
        taken = self._duration(operation, agent)
        microseconds = int((span.ended - span.began).total_seconds() * 1_000_000)
        taken.counts[bisect_left(DURATION_BOUNDS, microseconds / 1_000_000)] += 1
        taken.microseconds += microseconds
        tokens, cost = span.facts.get(f"{OURS}tokens", 0), span.facts.get(f"{OURS}cost", 0)
        if not tool and isinstance(tokens, int) and isinstance(cost, int):
            used = self.use.setdefault(agent, AgentUse())
            used.tokens += tokens
            used.cost += cost

    def _operation(self, operation: str, agent: str, tool: str, outcome: str) -> OperationCount:
        name = f"{operation} {agent} {tool} {outcome}"
        if name not in self.operations:
            if len(self.operations) >= MOST_OPERATIONS and agent != OTHER:
                return self._operation(operation, OTHER, OTHER if tool else "", outcome)
            self.operations[name] = OperationCount(operation=operation, agent=agent, tool=tool, outcome=outcome)
        return self.operations[name]

    def _duration(self, operation: str, agent: str) -> DurationCount:
        name = f"{operation} {agent}"
        if name not in self.durations:
            none = [0] * (len(DURATION_BOUNDS) + 1)
            self.durations[name] = DurationCount(operation=operation, agent=agent, counts=none)
        return self.durations[name]


def _bounded(known: list[str], name: str, most: int) -> str:
    """Return a name, or `other` if there are too many. Names come by position, so everybody keeps the same ones."""
    if not name or name in known:
        return name
    if len(known) >= most:
        return OTHER
    known.append(name)
    return name
