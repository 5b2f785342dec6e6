"""What people mean by an id when it may be one of several things: a run, a handoff, a receipt or a call."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from batonpass.audit.lookup import ending, get_handoff, get_run, read_receipt
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.model.bodies import ToolDenied, ToolHeld, ToolRequested
from batonpass.model.ids import CALL, HANDOFF, RECEIPT, RUN, CallId, HandoffId, ReceiptId, RunId
from batonpass.store.port import LedgerView, ReceiptQuery

_SHOWN: Final = 5
_LONGEST: Final = 26 + len(RECEIPT) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The one thing that answers to what somebody typed."""

    id: RunId | HandoffId | ReceiptId | CallId
    receipt: ReceiptId | None = None  # of a call: that of its request, or of its denial

    @property
    def kind(self) -> str:
        """Return which kind of thing it is."""
        return self.id.partition("_")[0]


def get_meant(view: LedgerView, given: str, kinds: Collection[str]) -> Meant:
    """Return what is meant: by the end of an id, or by an agent's name. Raises `NotFoundError`, `AmbiguousIdError`."""
    wanted = given.strip().removeprefix("…").lower()
    found = list(islice(_find(view, wanted, kinds), _SHOWN + 1))
    if len(found) > 1:
        lines = tuple(_line(view, meant) for meant in found[:_SHOWN])
        raise AmbiguousIdError("thing", given, (*lines, "… and more") if len(found) > _SHOWN else lines)
    return found[0] if found else _named(view, given, kinds)


def _find(view: LedgerView, wanted: str, kinds: Collection[str]) -> Iterator[Meant]:
    if not wanted or len(wanted) > _LONGEST:
        return
    for kind, made in ((RUN, RunId), (HANDOFF, HandoffId), (RECEIPT, ReceiptId)):
        if kind in kinds:
            yield from (Meant(id=made(found)) for found in view.find_ids(kind, wanted))
    if CALL in kinds:
        yield from _find_calls(view, wanted)


def _find_calls(view: LedgerView, wanted: str) -> Iterator[Meant]:
    # Nothing lists calls: every receipt about one is looked through, and read only if its bytes could name it.
    quoted = f'{wanted}"'.encode()
    for stored in view.find_receipts(ReceiptQuery(kind="tool")):
        if quoted in stored.payload:
            body = read_receipt(stored).body
            if isinstance(body, ToolRequested | ToolDenied | ToolHeld) and body.call.endswith(wanted):
                yield Meant(id=body.call, receipt=stored.id)


def _named(view: LedgerView, given: str, kinds: Collection[str]) -> Meant:
    """Return what an agent's name means: its run, or, if there are several or none, what was handed to it."""
    several: AmbiguousIdError | None = None
    try:
        return Meant(id=get_run(view, given).id)
    except AmbiguousIdError as error:
        several = error
    except NotFoundError:
        pass
    try:
        return Meant(id=get_handoff(view, given).id)
    except AmbiguousIdError as error:
        raise several or error from None
    except NotFoundError:
        *most, last = sorted(kinds)
        raise several or NotFoundError(f"{', '.join(most)} or {last}", given) from None


def _line(view: LedgerView, meant: Meant) -> str:
    """Return enough about something to choose by."""
    match meant.kind:
        case "run":
            run = view.get_run(RunId(meant.id))
            about = f"{run.agent} · {run.state}"
        case "handoff":
            handoff = view.get_handoff(HandoffId(meant.id))
            about = f"to {handoff.to} · {handoff.state}"
        case _:
            about = view.get_receipt(ReceiptId(meant.receipt or meant.id)).kind
    return f"{ending(meant.id, 8)} · {meant.kind} · {about}"
