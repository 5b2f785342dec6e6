"""What a ledger says, as values: a test asks for what it means, and reaches for no row and no byte."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, json, to_builtins

from batonpass.api.handles import Relay
from batonpass.api.port import LocalPort
from batonpass.errors import InvalidValueError
from batonpass.model.bodies import public_kind
from batonpass.model.lifecycle import RunState, State
from batonpass.model.rows import HandoffRow, StreamRow
from batonpass.model.values import Mode
from batonpass.reading.history import DoubtfulCall, read_attempts, read_run
from batonpass.store.admission import TABLES
from batonpass.store.port import Store, View
from batonpass.wire.contents import unpack
from batonpass.wire.statements import read_signed

T = TypeVar("T")


class SeenReceipt(Struct, frozen=True, kw_only=True):
    """A receipt as it stands in the ledger, with the words beside it."""

    position: int
    stream: str
    seq: int
    epoch: int
    kind: str  # the public name: with its subject, where it has one
    mode: Mode
    at: int
    body: Mapping[str, Any]
    parts: Mapping[str, bytes | None]  # None: erased
    request: str | None = None

    def text(self, part: str) -> str:
        """Return a content that is text. Raises `KeyError` if the receipt has none of that name."""
        return (self.parts[part] or b"").decode()

    def value(self, part: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return a content that is JSON. Raises `KeyError` if the receipt has none of that name."""
        return json.decode(self.parts[part] or b"null")


class SeenEffect(Struct, frozen=True, kw_only=True):
    """What a call changed in a file: digests before and after, and the lines in their places."""

    target: str
    before: str | None
    after: str | None
    hunks: tuple[Mapping[str, Any], ...]


class Observed(Struct, frozen=True, kw_only=True):
    """A ledger at one moment."""

    receipts: tuple[SeenReceipt, ...]  # in the order in which they were written
    handoffs: Mapping[str, State]  # by id, in the order in which they were offered
    runs: Mapping[str, RunState]  # by id, in the order in which they began
    in_doubt: tuple[DoubtfulCall, ...]
    rows: Mapping[str, tuple[tuple[Any, ...], ...]]  # of each derived table

    def kinds(self) -> list[str]:
        """Return the kinds of all receipts, in their order, from after the enrolment of the relay on."""
        return [receipt.kind for receipt in self.receipts if receipt.kind != "key.enrolled.relay"]

    def counts(self) -> dict[str, int]:
        """Return how many receipts of each kind there are."""
        return dict(Counter(receipt.kind for receipt in self.receipts))

    def of(self, kind: str) -> list[SeenReceipt]:
        """Return the receipts of a kind, or of all that begin with it: `tool` is every `tool.…`."""
        return [receipt for receipt in self.receipts if f"{receipt.kind}.".startswith(f"{kind}.")]

    def last(self, kind: str) -> SeenReceipt:
        """Return the latest receipt of a kind. Raises `IndexError` if there is none."""
        return self.of(kind)[-1]

    @property
    def gaps(self) -> list[str]:
        """What observed runs did and could not record when they did it."""
        return [gap for receipt in self.of("run.recorded.gap") for gap in receipt.value("gaps")]

    @property
    def denied(self) -> list[tuple[str, str]]:
        """Of each call that was not made the rule and the reason."""
        return [(receipt.body["rule"], receipt.text("reason")) for receipt in self.of("tool.denied")]

    @property
    def effects(self) -> list[SeenEffect]:
        """What calls changed in files."""
        targets = {receipt.body["call"]: receipt.text("target") for receipt in self.of("tool.requested")}
        return [
            SeenEffect(
                target=targets[receipt.body["call"]],
                before=effect.get("before"),
                after=effect.get("after"),
                hunks=tuple(receipt.value("hunks")) if "hunks" in receipt.parts else (),
            )
            for receipt in self.receipts
            for effect in receipt.body.get("effects", ())
        ]


def observe(relay: object) -> Observed:
    """Return what the ledger of a relay says now; of any handle, or of a file or URL, which is opened for it."""
    if isinstance(relay, str | Path):
        with Relay.open(relay, create=False) as opened:
            return observe(opened)
    store = port_of(relay).context.recorder.store
    with store.view() as view:
        receipts = tuple(_receipts(view))
        rows = {table: tuple(view.rows(table)) for table in TABLES}
    streams = _named(rows["streams"], StreamRow)
    handoffs = sorted(_named(rows["handoffs"], HandoffRow), key=lambda row: row.offered_at)
    begun = {receipt.stream: receipt.position for receipt in reversed(receipts)}
    runs = sorted((row for row in streams if row.agent is not None), key=lambda row: begun[row.id])
    return Observed(
        receipts=receipts,
        handoffs={row.id: State(row.state) for row in handoffs},
        runs={row.id: RunState(row.state) for row in runs},
        in_doubt=tuple(_doubtful(store, runs, handoffs)),
        rows=rows,
    )


def port_of(handle: object) -> LocalPort:
    """Return the port of this process behind a handle. Raises `InvalidValueError` if it is elsewhere."""
    port: object = handle
    while port is not None and not isinstance(port, LocalPort):
        port = getattr(port, "_port", None) or getattr(port, "port", None)
    if port is None:
        raise InvalidValueError(f"{handle!r} has no ledger in this process: observe the ledger by its file or URL")
    return port


def _receipts(view: View) -> list[SeenReceipt]:
    found = []
    for position, _, _, payload, signature, cosignature, contents in view.receipts():
        signed = read_signed(payload, signature, cosignature, contents)
        receipt, body = signed.receipt, signed.body
        found.append(
            SeenReceipt(
                position=position,
                stream=signed.stream,
                seq=receipt.seq,
                epoch=receipt.epoch,
                kind=public_kind(receipt.kind, body),
                mode=receipt.mode,
                at=receipt.at,
                body=to_builtins(body),
                parts=unpack(contents, receipt.content),
                request=receipt.request,
            )
        )
    return found


def _named(rows: tuple[tuple[Any, ...], ...], kind: type[T]) -> list[T]:
    return [kind(*row) for row in rows]


def _doubtful(store: Store, runs: list[StreamRow], handoffs: list[HandoffRow]) -> list[DoubtfulCall]:
    roots = [read_run(store, run.id, None) for run in runs if run.handoff is None]
    attempts = [read_attempts(store, row) for row in handoffs]
    return [call for history in (*roots, *attempts) for call in history.in_doubt.values()]
