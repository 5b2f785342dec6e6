"""Holds: how often somebody has to decide, in work that nobody poisoned and in work that somebody did."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import HandoffInitiated, Kind
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from bench.effort import Effort
from bench.table import Figure, Goal, Note, Row, Unit

EXAMPLES: Final = Path(__file__).resolve().parent.parent / "examples"
_NONE: Final = Goal(words="0", at_most=0, of_ratio=False)


def measure(directory: Path, _: Effort) -> Sequence[Row | Note]:
    """Play the examples, and count. Nothing of it depends on the machine."""
    return [*_rows(directory)]


def _rows(directory: Path) -> Iterator[Row | Note]:
    poisoned = _example("poisoned")
    clean: dict[str, Callable[[Path], Relay]] = {
        "freight": lambda place: _example("freight").main(place, _quietly),
        "sessions": lambda place: _example("sessions").main(place, _quietly),
        "poisoned, an honest page": lambda place: poisoned.main(place, _quietly, poisoned.HONEST)[0],
    }
    played = [_play(directory / str(number), main) for number, main in enumerate(clean.values())]
    yield _row("clean examples", sum(held for held, _ in played), sum(handoffs for _, handoffs in played), _NONE)
    held, handoffs = _play(directory / "poisoned", lambda place: poisoned.main(place, _quietly)[0])
    yield _row("a page with an order in it", held, handoffs, None)
    yield Note(f"Clean examples: {'; '.join(clean)}. The page with an order in it: poisoned, as it is")


def _row(what: str, held: int, handoffs: int, goal: Goal | None) -> Row:
    return Row(
        what=f"holds per 100 handoffs, {what}",
        ours=Figure(100 * held / handoffs, Unit.COUNT),
        against=f"{handoffs} handoffs, {held} held",
        theirs=None,
        goal=goal,
    )


def _play(place: Path, main: Callable[[Path], Relay]) -> tuple[int, int]:
    """Return how many holds there were, and how many handoffs."""
    place.mkdir()
    with main(place) as relay, relay.store.view() as view:
        offers = [
            body
            for stored in view.find_receipts(ReceiptQuery(kind=Kind.HANDOFF_INITIATED))
            if isinstance(body := decode_receipt(stored.payload).body, HandoffInitiated)
        ]
        held = len([*view.find_receipts(ReceiptQuery(kind=Kind.TOOL_HELD))])
    return held + sum(offer.state is State.HELD for offer in offers), len(offers)


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _quietly(_: str) -> None:
    pass
