"""Inherited against used: what a run did under its grant, what it was refused, and what would have been enough."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.guard.least import Breadth, LeastScope, least_scope
from batonpass.handoff.calls.written_files import SHELL, read_written
from batonpass.model.bodies import ToolCompleted, ToolDenied, ToolFailed, ToolRequested
from batonpass.model.call import Call
from batonpass.model.grant import Terms
from batonpass.model.ids import CallId, RunId, StreamId
from batonpass.model.permit import Permit
from batonpass.model.scope import Scope
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import encode
from batonpass.wire.codec import decode_receipt

USE: Final = "use"
SCOPE: Final = "scope"  # what a call does to what, as its grant sees it


@dataclass(slots=True)
class Use:
    """What a run did to what, and by which rules it was refused something, each with how often."""

    made: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # tool, action, resource
    refused: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make(self, call: Call) -> None:
        """Count a call that is made."""
        with self._lock:
            self.made[call.tool, call.action, call.resource] += 1

    def refuse(self, rule: str) -> None:
        """Count a call that was refused."""
        with self._lock:
            self.refused[rule] += 1


def read_use(view: LedgerView, run: RunId, lead: Callable[[str], str]) -> Use:
    """Return what a run did and was refused so far, from its receipts; what was erased is not in it.

    `lead` says where the path of a file, from the root of its repository, leads to in the work tree.
    """
    use = Use()
    commands: set[CallId] = set()
    for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run))):
        receipt = decode_receipt(stored.payload)
        match receipt.body:
            case ToolRequested() as body if (ref := receipt.content.get(SCOPE)) is not None:
                commands |= {body.call} if body.tool == SHELL else set()
                action, _, resource = (view.get_content(ref.id).body or b"").decode().partition(":")
                if resource:
                    use.make(Call(body.tool, action, resource))
            case ToolCompleted() | ToolFailed() as body if body.call in commands:
                for call in read_written(view, receipt, lead):
                    use.make(call)
            case ToolDenied() as body:
                use.refuse(body.rule)
            case _:
                continue
    return use


def describe_use(terms: Terms, use: Use) -> bytes:
    """Return, as a document, what was granted against what was used of it."""
    least = _least(terms, use)
    exact = () if least is None else least.suggested
    return encode(
        {
            "may": _counted(terms.may, use),
            "denied": dict(sorted(use.refused.items())),
            "least": [{"permit": one.permit.text, "calls": one.calls} for one in exact],
        }
    )


def _counted(granted: Scope, use: Use) -> list[Mapping[str, object]]:
    """Return each permit with how many calls it alone, or it among others, let be made."""
    return [
        {"permit": permit.text, "calls": sum(times for call, times in _calls(use) if _means(permit, call))}
        for permit in granted.permits
    ]


def _least(terms: Terms, use: Use) -> LeastScope | None:
    """Return the least permits, none beyond what was granted; None if nothing was done."""
    made = [(terms.agent, call) for call, times in _calls(use) for _ in range(times)]
    breadth = Breadth(ceiling=terms.may)
    try:
        return next(iter(least_scope(made, breadth)), None)
    except InvalidValueError:
        return None  # so many different places that no grant could name them


def _calls(use: Use) -> Iterator[tuple[Call, int]]:
    for (tool, action, resource), times in sorted(use.made.items()):
        yield Call(tool, action, resource), times


def _means(permit: Permit, call: Call) -> bool:
    return permit.pattern.matches(call.action, call.place)
