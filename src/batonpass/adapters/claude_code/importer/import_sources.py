"""Where imported receipts say what they come from, and how that is found again: importing twice adds nothing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct, field

from batonpass.adapters.claude_code.transcripts.conversation import Conversation, TranscriptCall, TranscriptRun
from batonpass.adapters.claude_code.transcripts.transcript_values import Prompt, Task, ToolResult, ToolUse
from batonpass.model.base.content_names import SOURCE
from batonpass.model.base.ids import SESSION, ContentId, RunId, SessionId, StreamId
from batonpass.model.bodies.body import HandoffAccepted, HandoffInitiated, Part, RunRecorded, RunStarted
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.call import CallOutcome, call_asked
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.codec import decode_receipt

PROGRAM: Final = "claude-code"

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_AT_ONCE: Final = 500


class KnownSession(Struct, frozen=True, kw_only=True):
    """What a ledger already holds of a session."""

    roots: tuple[RunId, ...]  # the latest first
    sizes: Mapping[str, int] | None  # of its files, when it was last imported to the end; None if it never was


class Heard(Struct, frozen=True, kw_only=True):
    """What of a session was recorded while it happened, by the program's own names."""

    calls: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    prompts: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()  # the human's, for what has no name of its own in a transcript


NOTHING: Final = Heard()


class HeldLines(Struct, frozen=True, kw_only=True):
    """Which lines of a session a ledger holds, what it was told besides, and whether some was erased since."""

    keys: frozenset[str]
    erased: bool
    heard: Heard


def series_of(session: str) -> str:
    """Return the name under which the roots of one session follow each other."""
    return f"{PROGRAM}.{sha256(session.encode()).hexdigest()[:24]}"


def session_id_of(session: str) -> SessionId | None:
    """Return the id of a session as receipts carry it: its UUID in our spelling; None if it is none."""
    try:
        number = UUID(session).int
    except ValueError:
        return None
    return SessionId(f"{SESSION}_{''.join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))}")


def key_of(found: ToolUse | ToolResult) -> str:
    """Return what names a call or its result: one line may hold several."""
    return f"{found.uuid}/{found.tool_use_id}"


def describe_source(session: str, version: str | None, **facts: object) -> bytes:
    """Return what an imported receipt says about where it comes from. Nobody signed it there."""
    return _describe(session, {"version": version, "imported": True, "unsigned": True}, facts)


def describe_recorded(session: str, **facts: object) -> bytes:
    """Return what a receipt says about where it comes from that was recorded while it happened."""
    return _describe(session, {"recorded": True}, facts)


def _describe(session: str, always: Mapping[str, object], facts: Mapping[str, object]) -> bytes:
    known = {name: _plain(value) for name, value in facts.items() if value is not None}
    return msgspec.json.encode({"source": PROGRAM, "session": session, **always, **known}, order="sorted")


def find_known(view: LedgerView, session: str) -> KnownSession | None:
    """Return what a ledger holds of a session; None if nothing."""
    roots = tuple(run.id for run in view.find_runs(series=series_of(session)))
    if not roots:
        return None
    for root in roots:
        stream = view.get_stream(StreamId(root))
        last = decode_receipt(view.get_receipt_at(stream.id, stream.seq).payload)
        for _, document in _documents(view, [last]):
            if document is not None and isinstance(document.get("sizes"), dict):
                return KnownSession(roots=roots, sizes=document["sizes"])
    return KnownSession(roots=roots, sizes=None)


def read_held(view: LedgerView, roots: Sequence[RunId]) -> HeldLines:
    """Return what the trees of these roots hold."""
    keys: set[str] = set()
    heard = _Hearing()
    erased = False
    for root in roots:
        receipts = (decode_receipt(stored.payload) for stored in view.find_receipts(ReceiptQuery(root=root)))
        while batch := list(islice(receipts, _AT_ONCE)):
            for receipt, document in _documents(view, batch):
                if document is None:
                    erased = True
                elif document.get("recorded") is True:
                    heard.take(receipt, document)
                elif isinstance(key := document.get("key"), str):
                    keys.add(key)
    return HeldLines(keys=frozenset(keys), erased=erased, heard=heard.heard(view))


class _Hearing(Struct):
    calls: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    prompts: set[str] = field(default_factory=set)
    words: list[ContentId] = field(default_factory=list)

    def take(self, receipt: Receipt, document: Mapping[str, Any]) -> None:
        key = document.get("key")
        match receipt.body:
            case RunStarted() | RunRecorded():
                said = [ref.id for name, ref in receipt.content.items() if name.partition(".")[0] == Part.INTENT]
                self.words += said
                # Said while the model was at work, it is named after what the model worked on: not by that alone.
                if said and isinstance(key, str) and "/" not in key:
                    self.prompts.add(key)
            case HandoffAccepted():
                self.agents |= {key} if isinstance(key, str) else set()
            case body if isinstance(body, HandoffInitiated) or _is_asked(receipt):
                self.calls |= {key} if isinstance(key, str) else set()
            case _:
                return

    def heard(self, view: LedgerView) -> Heard:
        bodies = [stored.body for stored in view.find_contents(self.words)] if self.words else []
        return Heard(
            calls=frozenset(self.calls),
            agents=frozenset(self.agents),
            prompts=frozenset(self.prompts),
            words=frozenset(body.decode("utf-8", "replace") for body in bodies if body is not None),
        )


def _is_asked(receipt: Receipt) -> bool:
    call = call_asked(receipt)
    return call is not None and (call.is_made or call.outcome is CallOutcome.DENIED)


def _documents(view: LedgerView, receipts: Sequence[Receipt]) -> Iterator[tuple[Receipt, dict[str, Any] | None]]:
    """Yield receipts with their sources; None for one that was erased."""
    wanted = {ref.id: receipt for receipt in receipts if (ref := receipt.content.get(SOURCE)) is not None}
    for stored in view.find_contents(list(wanted)):
        document = as_source(stored)
        if document is not None or stored.body is None:
            yield wanted[stored.id], document


def as_source(stored: StoredContent) -> dict[str, Any] | None:
    """Return what a content says about where its receipt comes from; None if it was erased, or says nothing."""
    try:
        document = None if stored.body is None else msgspec.json.decode(stored.body)
    except msgspec.DecodeError:
        return None
    return document if isinstance(document, dict) else None


def _plain(value: object) -> object:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


class Newness(Struct, frozen=True):
    """Tells what is new."""

    known: Collection[str] = ()  # the keys of what was imported
    heard: Heard = NOTHING

    def is_anything_new(self, conversation: Conversation) -> bool:
        """Return whether a session says anything that is not recorded yet."""
        return any(self._find(conversation))

    def is_new(self, step: Prompt | Task | TranscriptCall) -> bool:
        """Return whether something that was said or done is not recorded yet."""
        if isinstance(step, Prompt):
            return step.uuid not in self.known and not self._is_heard(step)
        if not isinstance(step, TranscriptCall):
            return step.uuid not in self.known
        if step.children:
            return any(map(self.is_new_run, step.children))
        return step.use.tool_use_id not in self.heard.calls and key_of(step.result or step.use) not in self.known

    def is_new_run(self, run: TranscriptRun) -> bool:
        """Return whether anything of a sub-agent is not recorded yet."""
        if run.agent in self.heard.agents:
            return any(map(self.is_new, run.calls))
        if run.report is not None and run.report.uuid not in self.known:
            return True
        return any(map(self.is_new, run.steps)) or end_key(run) not in self.known

    def _find(self, conversation: Conversation) -> Iterator[bool]:
        for run in conversation.runs:
            yield self.is_new_run(run) if run.agent is not None else any(map(self.is_new, run.steps))

    def _is_heard(self, prompt: Prompt) -> bool:
        if prompt.prompt_id is None:
            return prompt.text in self.heard.words
        return prompt.prompt_id in self.heard.prompts


def end_key(run: TranscriptRun) -> str:
    """Return what names the end of a run."""
    return run.report.uuid if run.report is not None else f"end/{run.agent}"
