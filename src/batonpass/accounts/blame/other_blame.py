"""Blame for anything but lines: a call's effect, an artifact, a digest, or words."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import LedgerPlace, Maker, RunWork
from batonpass.accounts.blame.maker_chain import Makers
from batonpass.accounts.handoff.effects import read_effects
from batonpass.accounts.taint.taint_way import find_way
from batonpass.attribution.changes.change import Certainty
from batonpass.attribution.changes.change_document import decode_change, find_file_changes, read_file_changes
from batonpass.audit.meant_ids import choose, get_meant
from batonpass.audit.short_ids import ending
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.checks import require_digest
from batonpass.model.base.content_names import ARGUMENTS, CHANGE, EFFECT, RESULT, TASK
from batonpass.model.base.ids import (
    CALL,
    HANDOFF,
    RECEIPT,
    RUN,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    ReceiptId,
    RunId,
    StreamId,
)
from batonpass.model.baton.items import Artifact
from batonpass.model.bodies.body import HandoffInitiated, Kind, Part, RunRecorded
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.run import Run
from batonpass.records.call import CallOutcome, CallRecord, Ended, call_of, read_call, read_calls
from batonpass.records.grant import read_credential
from batonpass.records.hold import Leave, find_handoff_holds, find_leave
from batonpass.records.lineage import get_offer
from batonpass.records.source import Source, happened_at, read_source
from batonpass.records.text import Text, read_receipt, read_texts, texts_in
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_item

_WRITTEN: Final = {
    Certainty.CERTAIN: "written",
    Certainty.CANDIDATE: "came while it ran",
    Certainty.BROUGHT: "brought by git",
}
_EVERYWHERE: Final = ReceiptQuery()
_AROUND: Final = 40
_SHOWN: Final = 5
_ATTACHED: Final = frozenset({Part.ARTIFACT, Part.UNTRUSTED})
Attached = tuple[StoredReceipt, Receipt, ContentId, Artifact]


def blame_effect(view: LedgerView, given: str) -> Blame:
    """Return the caller and the changes of a call, given the end of its id or a target.

    A target is the name of a changed thing, as the tool gives it, like `https://host/orders`. Then all calls that
    changed it are listed, the latest first. Raises `NotFoundError` and `AmbiguousIdError`.
    """
    try:
        meant = get_meant(view, given, (CALL, RECEIPT))
    except NotFoundError:
        if not (found := _find_targeted(view, given)):
            raise NotFoundError("call, receipt or effect on", given) from None
        return _blame_target(view, given, found)
    call = read_call(view, read_receipt(view.get_receipt(ReceiptId(meant.receipt or meant.id))))
    if call is None:
        raise NotFoundError("call", given)
    notes = (*_became(call), *map(str, read_effects(view, call)))
    return Blame(asked=f"call {call.id}", calls=(call.id,), makers={call.id: _maker(view, call)}, notes=notes)


def _maker(view: LedgerView, call: CallRecord) -> Maker:
    last = call.ending or call.receipt
    return Makers(view).of_call(view.get_receipt(last.id), last, call.id, tuple(read_file_changes(view, call)))


def _find_targeted(view: LedgerView, target: str) -> list[CallRecord]:
    """Return the calls that changed this target, the latest first. There is no index, so all effects are read."""
    found: list[CallRecord] = []
    for kind in (Kind.TOOL_COMPLETED, Kind.TOOL_FAILED):
        for stored in view.find_receipts(ReceiptQuery(kind=kind)):
            call = read_call(view, read_receipt(stored)) if EFFECT.encode() in stored.payload else None
            if call is not None and any(one.target == target for one in read_effects(view, call)):
                found.append(call)
    return sorted(found, key=lambda call: call.ended_at or call.at, reverse=True)


def _blame_target(view: LedgerView, target: str, found: Sequence[CallRecord]) -> Blame:
    makers: dict[CallId | ReceiptId, Maker] = {}
    notes: list[str] = []
    for call in found[:_SHOWN]:
        makers[call.id] = _maker(view, call)
        notes += (f"{ending(call.id)}: {one}" for one in read_effects(view, call) if one.target == target)
    if len(found) > _SHOWN:
        notes.append(f"… and {len(found) - _SHOWN} more")
    return Blame(asked=f"effects on {target}", calls=tuple(makers), makers=makers, notes=tuple(notes))


def _became(call: CallRecord) -> Iterator[str]:
    """Yield a remark about a call that did not complete."""
    match call.outcome:
        case CallOutcome.FAILED:
            yield f"it failed: {call.error}"
        case CallOutcome.DENIED:
            yield f"it was denied, and never made: {call.rule}"
        case CallOutcome.HELD:
            yield f"it was held, and not made: {call.rule}"
        case None:
            yield "it has no outcome: nobody knows whether it happened"
        case _:
            return


def blame_artifact(view: LedgerView, given: str) -> Blame:
    """Return who attached an artifact, by its name or the end of its id.

    Raises `NotFoundError`, and `AmbiguousIdError` if several have that name.
    """
    known = list(_find_artifacts(view))
    stored, receipt, _, artifact = choose(
        given,
        "artifact",
        named=lambda name: _first_of_each(one for one in known if one[3].name == name),
        ended=lambda end: _first_of_each(one for one in known if one[2].endswith(end) or one[3].body.endswith(end)),
        lines=lambda found: (f"{ending(item, 8)} · {one.name} · {one.source}" for _, _, item, one in found),
    )
    what = f"attached {artifact.name} ({artifact.size:,} bytes, sha256 {artifact.sha256})"
    maker = Makers(view).of_receipt(stored, receipt, what)
    note = (f"it came from {artifact.source}: data from outside",) if artifact.untrusted else ()
    return Blame(asked=f"artifact {artifact.name}", calls=(receipt.id,), makers={receipt.id: maker}, notes=note)


def _first_of_each(attached: Iterable[Attached]) -> list[Attached]:
    """Return one for each content: the first that attached these bytes."""
    found: dict[Digest, Attached] = {}
    for one in attached:
        found.setdefault(one[3].sha256, one)
    return list(found.values())


def _find_artifacts(view: LedgerView, within: ReceiptQuery = _EVERYWHERE) -> Iterator[Attached]:
    """Yield all artifacts in the order they were attached. There is no index of names, so all are read."""
    for kind in (Kind.RUN_RECORDED, Kind.HANDOFF_INITIATED):
        for stored in view.find_receipts(replace(within, kind=kind)):
            receipt = read_receipt(stored)
            items = _attached(receipt)
            for text in read_texts(view, receipt).values() if items else ():
                if text.ref.id in items and (artifact := _artifact(text)) is not None:
                    yield stored, receipt, text.ref.id, artifact


def _attached(receipt: Receipt) -> set[ContentId]:
    match receipt.body:
        case RunRecorded() as body:
            return {item.item for item in body.items if item.part in _ATTACHED}
        case HandoffInitiated() as body:
            own = {ref.id for ref in receipt.content.values()}
            return {item.item for item in body.carries if item.part in _ATTACHED and item.item in own}
        case _:
            return set()


def _artifact(text: Text) -> Artifact | None:
    try:
        value = None if text.body is None else decode_item(text.body)[0]
    except InvalidValueError:
        return None
    return value if isinstance(value, Artifact) else None


def as_digest(given: str) -> Digest:
    """Return a sha256 as it is written in receipts. Raises `InvalidValueError`."""
    return Digest(require_digest("digest", Digest(given.strip().lower().removeprefix("sha256:"))))


def require_words(text: str) -> str:
    """Return the words to search for. Raises `InvalidValueError` if there are none."""
    if not text.strip():
        raise InvalidValueError("text", "is empty; give some words to look for")
    return text


def blame_digest(view: LedgerView, given: str, within: ReceiptQuery = _EVERYWHERE) -> Blame:
    """Return the places of bytes with this sha256: before or after a change, attached, or as a content.

    All receipts are read, or only those `within` selects.

    Raises `InvalidValueError` if it is not a digest.
    """
    digest = as_digest(given)
    wanted = digest.encode()
    makers = Makers(view)
    places: list[LedgerPlace] = []
    made: dict[CallId | ReceiptId, Maker] = {}
    for stored in view.find_receipts(within):
        if wanted not in stored.payload:
            continue  # receipts contain digests literally, so this skips the others cheaply
        receipt = read_receipt(stored)
        for place in _named_by(view, stored, receipt, digest):
            places.append(place)
            call = None if place.call is None or place.call in made else read_call(view, receipt)
            if call is not None:
                made[call.id] = makers.of_call(stored, receipt, call.id, tuple(read_file_changes(view, call)))
    places += [
        _place(view, receipt, "artifact", f"{artifact.name} ({artifact.size:,} bytes)")
        for _, receipt, _, artifact in _find_artifacts(view, within)
        if artifact.sha256 == digest
    ]
    places.sort(key=lambda place: (place.at, place.receipt))
    return Blame(asked=f"sha256 {digest}", places=tuple(places), makers=made)


def _named_by(view: LedgerView, stored: StoredReceipt, receipt: Receipt, digest: str) -> Iterator[LedgerPlace]:
    if isinstance(receipt.body, Ended):
        paths = {touched.content: touched.path for touched in view.find_touches_of([*_change_ids(receipt)])}
        call = read_call(view, receipt)
        told = {} if call is None else find_file_changes(view, call)
        certain = {content: change.certainty for content, change in told.items()}
        for changed in receipt.body.changes:
            path = paths.get(changed.change, "(erased)")
            if changed.after == digest:
                what = _WRITTEN[certain.get(changed.change, Certainty.CERTAIN)]
                yield _place(view, receipt, what, path)
            if changed.before == digest:
                yield _place(view, receipt, "replaced", path)
    for name, ref in receipt.content.items():
        if ref.digest == digest:
            yield _place(view, receipt, f"content {name}", f"{ref.size:,} bytes, {ref.id}")
    if receipt.previous == digest:
        yield _place(view, receipt, "receipt before", stored.stream)


def _change_ids(receipt: Receipt) -> Iterator[ContentId]:
    return (ref.id for name, ref in receipt.content.items() if name.startswith(CHANGE))


def blame_text(view: LedgerView, text: str, *, most: int | None = None, within: ReceiptQuery = _EVERYWHERE) -> Blame:
    """Return the places of some words in the order of recording: tasks, statements, calls, changes.

    All receipts are read, or only those `within` selects.

    Raises `InvalidValueError` if there are no words.
    """
    require_words(text)
    places: list[LedgerPlace] = []
    for stored in view.find_receipts(within):
        receipt = read_receipt(stored)
        for name, held in read_texts(view, receipt).items():
            for what, words in _words_of(name, held, receipt):
                if (at := words.find(text)) >= 0:
                    places.append(_place(view, receipt, what, _around(words, at, len(text))))
        if most is not None and len(places) > most:
            break
    first = next((place for place in places if place.run is not None), None)
    made: dict[CallId | ReceiptId, Maker] = {}
    if first is not None:
        stored = view.get_receipt(first.receipt)
        made[first.receipt] = Makers(view).of_receipt(stored, read_receipt(stored), first.what)
    return Blame(asked=f'"{text}"', places=tuple(places[:most]), makers=made)


def _words_of(name: str, held: Text, receipt: Receipt) -> Iterator[tuple[str, str]]:
    """Yield the texts of a content with their name; for a JSON document, each string in it."""
    if held.body is None:
        return
    words = held.body.decode(errors="replace")
    what = _what(name, receipt)
    if name.startswith(CHANGE):
        yield from _words_of_change(held.body, receipt)
    elif held.ref.media_type == "application/json":
        try:
            yield from ((what, leaf) for leaf in texts_in(json.loads(words)))
        except (ValueError, RecursionError):
            yield what, words
    else:
        yield what, words


def _what(name: str, receipt: Receipt) -> str:
    """Return the name of a content for people."""
    match receipt.body:
        case HandoffInitiated() as body if name == TASK:
            return f"task for {body.to}"
        case RunRecorded() as body if name == "body":
            return "untrusted" if any(item.part is Part.UNTRUSTED for item in body.items) else "artifact"
        case _:
            return _CALLED.get(name.partition(".")[0], name)


_CALLED: Final = {
    "intent": "statement",
    ARGUMENTS: "call",
    RESULT: "result of a call",
    "brief": "handoff",
    "told": "task",
    "asked": "task",
}


def _words_of_change(body: bytes, receipt: Receipt) -> Iterator[tuple[str, str]]:
    if not isinstance(receipt.body, Ended):
        return
    try:
        change = decode_change(body, call=receipt.body.call, run=receipt.body.run, at=receipt.at)
    except InvalidValueError:
        return
    yield "change", change.path
    for hunk in change.hunks or ():
        yield f"added to {change.path}", "\n".join(hunk.added)
        yield f"removed from {change.path}", "\n".join(hunk.removed)


def _around(words: str, at: int, length: int) -> str:
    start, end = max(0, at - _AROUND), at + length + _AROUND
    return f"{'…' * (start > 0)}{words[start:end]}{'…' * (end < len(words))}"


def _place(view: LedgerView, receipt: Receipt, what: str, detail: str) -> LedgerPlace:
    body: Any = receipt.body
    source = read_source(view, receipt)
    kind = receipt.stream.partition("_")[0]
    run = RunId(receipt.stream) if kind == RUN else None
    handoff = getattr(body, "handoff", None)
    return LedgerPlace(
        what=what,
        receipt=receipt.id,
        at=happened_at(receipt, source),
        agent=_agent(view, receipt.stream),
        theirs=None if source is None else _theirs(view, receipt, source),
        key=None if source is None else source.key,
        run=run,
        handoff=None if handoff is None else HandoffId(handoff),
        call=call_of(receipt),
        detail=detail,
    )


def _theirs(view: LedgerView, receipt: Receipt, source: Source) -> str | None:
    """Return a run's name in the program it was imported from: by sub-agent, else by session."""
    if not receipt.stream.startswith(f"{RUN}_"):
        return None
    run = view.get_run(RunId(receipt.stream))
    subagent = None
    if run.handoff is not None:
        offered = read_source(view, get_offer(view, view.get_handoff(run.handoff))[0])
        subagent = None if offered is None else offered.subagent
    return f"{run.agent} {ending(subagent or source.session or '')}".rstrip()


def _agent(view: LedgerView, stream: StreamId) -> str:
    if stream.startswith(f"{RUN}_"):
        return f"{view.get_run(RunId(stream)).agent} {ending(stream)}"
    return f"{stream.partition('_')[0]} {ending(stream)}"


def blame_run(view: LedgerView, given: str) -> Blame:
    """Return who worked in a run: task, human, grant and approvals; for a handoff, its latest attempt.

    Raises `NotFoundError`, also if nobody accepted the handoff, and `AmbiguousIdError`.
    """
    run = _run_of(view, given)
    stored = view.get_receipt_at(StreamId(run.id), 1)
    receipt = read_receipt(stored)
    maker = replace(Makers(view).of_receipt(stored, receipt, "worked"), work=_work(view, run))
    return Blame(asked=f"{run.agent} {ending(run.id)}", calls=(receipt.id,), makers={receipt.id: maker})


def with_ways(view: LedgerView, blame: Blame) -> Blame:
    """Return an answer with the shortest way of all content from outside to each call or run in it."""
    targets: dict[CallId | RunId, object] = {}
    for name, maker in blame.makers.items():
        if maker.noted is None:  # a note is not in this ledger
            targets[maker.call or maker.run.id] = name
    ways = {name: find_way(view, target) for target, name in targets.items()}
    return replace(blame, ways={name: ways.get(name, ()) for name in blame.makers})


def _run_of(view: LedgerView, given: str) -> Run:
    meant = get_meant(view, given, (RUN, HANDOFF))
    if meant.kind == RUN:
        return view.get_run(RunId(meant.id))
    handoff = view.get_handoff(HandoffId(meant.id))
    if handoff.run is None:
        raise NotFoundError("attempt at handoff", given)
    return view.get_run(handoff.run)


def _asked_about(view: LedgerView, run: Run, calls: Sequence[CallRecord]) -> Iterator[CallRecord]:
    """Yield the calls that needed, or would have needed, an approval; a run may have made thousands of others."""
    held = {call.key for call in calls if call.outcome is CallOutcome.HELD}
    if run.handoff is not None:
        held |= {record.key for record in find_handoff_holds(view, view.get_handoff(run.handoff))}
    for call in calls:
        would = any(what == "would_hold" for what, _ in call.would)
        if would or call.outcome is CallOutcome.HELD or (call.is_made and call.key is not None and call.key in held):
            yield call


def _work(view: LedgerView, run: Run) -> RunWork:
    calls = list(read_calls(view, run).values())
    outcomes = Counter("in doubt" if call.in_doubt else str(call.outcome or "open") for call in calls)
    files = Counter(change.path for call in calls for change in read_file_changes(view, call))
    first: dict[Digest, CallRecord] = {}
    acted: Counter[Digest] = Counter()
    for call in calls:
        if call.credential is not None:
            first.setdefault(call.credential, call)
            acted[call.credential] += 1
    credentials = [(read_credential(view, first[key]), count) for key, count in acted.items()]
    leaves = [(call, find_leave(view, call)) for call in _asked_about(view, run, calls)]
    return RunWork(
        outcomes=dict(outcomes),
        files=dict(files),
        credentials=tuple((one, count) for one, count in credentials if one is not None),
        leaves=tuple((call, leave) for call, leave in leaves if leave.leave is not Leave.NOT_NEEDED),
    )
