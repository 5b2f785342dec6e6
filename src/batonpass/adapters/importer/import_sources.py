"""The sources of imported and recorded receipts, and finding them again, so that importing twice adds nothing."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct, field

from batonpass.adapters.session_files.conversation import Conversation, TranscriptCall, TranscriptRun
from batonpass.adapters.session_files.session_values import Prompt, Task, ToolResult, ToolUse
from batonpass.model.base.content_names import SOURCE
from batonpass.model.base.ids import SESSION, ContentId, RunId, SessionId, StreamId
from batonpass.model.bodies.body import HandoffAccepted, HandoffInitiated, Part, RunRecorded, RunStarted
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import CallOutcome, call_asked
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
INFERRED_CALL: Final = "inferred-"  # begins the name of a call whose agent gave it none
_AT_ONCE: Final = 500


class KnownSession(Struct, frozen=True, kw_only=True):
    """The roots and the state of a session in a ledger."""

    roots: tuple[RunId, ...]  # latest first
    sizes: Mapping[str, int] | None  # of its files at the last complete import; None if there was none


def series_of(program: str, session: str) -> str:
    """Return the series that connects the roots of one session."""
    return f"{program}.{sha256(session.encode()).hexdigest()[:24]}"


def session_id_of(program: str, session: str) -> SessionId:
    """Return the session id for receipts: the session's UUID, else a digest of its name in its program."""
    try:
        number = UUID(session).int
    except ValueError:
        number = int.from_bytes(sha256(f"{program}:{session}".encode()).digest()[:16])
    return SessionId(f"{SESSION}_{''.join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))}")


def key_of(found: ToolUse | ToolResult) -> str:
    """Return the key of a call or its result: one line may contain several."""
    return f"{found.uuid}/{found.tool_use_id}"


def describe_source(program: str, session: str, version: str | None, **facts: object) -> bytes:
    """Return the source of an imported receipt. Nobody signed the original."""
    return _describe(program, session, {"version": version, "imported": True, "unsigned": True}, facts)


def describe_recorded(program: str, session: str, **facts: object) -> bytes:
    """Return the source of a receipt that was recorded live."""
    return _describe(program, session, {"recorded": True}, facts)


def _describe(program: str, session: str, always: Mapping[str, object], facts: Mapping[str, object]) -> bytes:
    known = {name: _plain(value) for name, value in facts.items() if value is not None}
    return msgspec.json.encode({"source": program, "session": session, **always, **known}, order="sorted")


def find_known(view: LedgerView, program: str, session: str) -> KnownSession | None:
    """Return the recorded part of a session; None if a ledger has none of it."""
    roots = tuple(run.id for run in view.find_runs(series=series_of(program, session)))
    if not roots:
        return None
    for root in roots:
        stream = view.get_stream(StreamId(root))
        last = decode_receipt(view.get_receipt_at(stream.id, stream.seq).payload)
        for _, document in _documents(view, [last]):
            if document is not None and isinstance(document.get("sizes"), dict):
                return KnownSession(roots=roots, sizes=document["sizes"])
    return KnownSession(roots=roots, sizes=None)


def read_recorded(view: LedgerView, roots: Sequence[RunId]) -> "RecordedSession":
    """Return the part of a session that is in the trees of these roots."""
    recorded = RecordedSession()
    for root in roots:
        receipts = (decode_receipt(stored.payload) for stored in view.find_receipts(ReceiptQuery(root=root)))
        while batch := list(islice(receipts, _AT_ONCE)):
            for receipt, document in _documents(view, batch):
                recorded.take(receipt, document)
    stored = view.find_contents(recorded.said) if recorded.said else ()
    recorded.words = {one.body.decode("utf-8", "replace") for one in stored if one.body is not None}
    return recorded


def _documents(view: LedgerView, receipts: Sequence[Receipt]) -> Iterator[tuple[Receipt, dict[str, Any] | None]]:
    """Yield receipts with their sources; None for one that was erased."""
    wanted = {ref.id: receipt for receipt in receipts if (ref := receipt.content.get(SOURCE)) is not None}
    for stored in view.find_contents(list(wanted)):
        document = as_source(stored)
        if document is not None or stored.body is None:
            yield wanted[stored.id], document


def as_source(stored: StoredContent) -> dict[str, Any] | None:
    """Return the source in a content; None if it was erased or is not a source."""
    try:
        document = None if stored.body is None else msgspec.json.decode(stored.body)
    except msgspec.DecodeError:
        return None
    return document if isinstance(document, dict) else None


def _plain(value: object) -> object:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


class RecordedSession(Struct, kw_only=True):
    """The recorded part of a session: keys of imported lines, and names recorded by hooks."""

    keys: set[str] = field(default_factory=set)  # of imported lines
    erased: bool = False  # part of it was erased since
    calls: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    prompts: set[str] = field(default_factory=set)
    said: list[ContentId] = field(default_factory=list)  # the human's words
    words: set[str] = field(default_factory=set)  # the same as text, for lines without a prompt id

    def take(self, receipt: Receipt, source: Mapping[str, Any] | None) -> None:
        """Add a receipt and its source; None if that was erased."""
        key = None if source is None else source.get("key")
        keys = {key} if isinstance(key, str) else set()
        if source is None:
            self.erased = True
        elif source.get("recorded") is not True:
            self.keys |= keys
        elif isinstance(receipt.body, RunStarted | RunRecorded):
            said = [ref.id for name, ref in receipt.content.items() if name.partition(".")[0] == Part.INTENT]
            self.said += said
            # A key with a slash names words that were said while the model worked on an earlier prompt.
            self.prompts |= {one for one in keys if said and "/" not in one}
        elif isinstance(receipt.body, HandoffAccepted):
            self.agents |= keys
        else:
            call = call_asked(receipt)
            is_asked = call is not None and (call.is_made or call.outcome is CallOutcome.DENIED)
            self.calls |= keys if is_asked or isinstance(receipt.body, HandoffInitiated) else set()

    @property
    def has_inferred_calls(self) -> bool:
        """Return whether calls were recorded live of an agent that gives them no ids."""
        return any(call.startswith(INFERRED_CALL) for call in self.calls)

    def is_anything_new(self, conversation: Conversation) -> bool:
        """Return whether a session contains anything that is not recorded yet."""
        return any(
            self.is_new_run(run) if run.agent is not None else any(map(self.is_new, run.steps))
            for run in conversation.runs
        )

    def is_new(self, step: Prompt | Task | TranscriptCall) -> bool:
        """Return whether a step is not recorded yet."""
        if isinstance(step, Prompt):
            heard = step.text in self.words if step.prompt_id is None else step.prompt_id in self.prompts
            return step.uuid not in self.keys and not heard
        if not isinstance(step, TranscriptCall):
            return step.uuid not in self.keys
        if step.children:
            return any(map(self.is_new_run, step.children))
        return step.use.tool_use_id not in self.calls and key_of(step.result or step.use) not in self.keys

    def is_new_run(self, run: TranscriptRun) -> bool:
        """Return whether anything of a sub-agent is not recorded yet."""
        if run.agent in self.agents:
            return any(map(self.is_new, run.calls))
        if run.report is not None and run.report.uuid not in self.keys:
            return True
        return any(map(self.is_new, run.steps)) or end_key(run) not in self.keys


def end_key(run: TranscriptRun) -> str:
    """Return the key of the end of a run."""
    return run.report.uuid if run.report is not None else f"end/{run.agent}"
