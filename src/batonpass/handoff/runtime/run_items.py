"""The notes of a run: items, later statements of the human, artifacts, checkpoints, and relaxed constraints."""

import json
from collections.abc import Sequence
from hashlib import sha256

from batonpass.errors import ContentErasedError, InvalidValueError, NotEntitledError, NotFoundError
from batonpass.handoff.history.offers import author_of
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import NO_WORK, Holding, ref_of
from batonpass.model.base.checks import require_instance
from batonpass.model.base.content_names import MESSAGES, REASON
from batonpass.model.base.ids import ContentId, Digest, HandoffId, PrincipalId, quotes_models
from batonpass.model.base.kinds import Part
from batonpass.model.base.label import Label, SourceType
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Artifact, Item, ItemValue, Statement
from batonpass.model.bodies.body import CheckpointSaved, RunRecorded, RunRelaxed
from batonpass.model.bodies.reasoning import ReasoningPlace, Thought
from batonpass.model.ledger.content import Content

_RELAXABLE = frozenset({Part.CONSTRAINT, Part.EXCLUSION})


def record_items(
    desk: Desk, holding: Holding, values: Sequence[ItemValue], *, by: str | None = None
) -> tuple[Item, ...]:
    """Record items in a run; they travel with every handoff of it from now on. Raises `InvalidValueError` for none."""
    if not values:
        raise InvalidValueError("items", "there is nothing to record")
    said_by_human = any(isinstance(value, Statement) for value in values)
    author = PrincipalId(by) if by else (holding.principal if said_by_human else author_of(holding.agent))
    work = holding.work if author.startswith("agent:") else NO_WORK
    noted = [desk.item(value, author, number, work=work) for number, value in enumerate(values, 1)]
    if holding.replaying:
        return tuple(item for item, _ in noted)
    items = tuple(item for item, _ in noted)
    write_items(desk, holding, items, tuple(content for _, content in noted), by=author)
    holding.add(*items)
    holding.claims_work = holding.claims_work or any(item.part is Part.COMPLETED for item in items)
    return items


def write_items(
    desk: Desk, holding: Holding, items: tuple[Item, ...], contents: tuple[Content, ...], *, by: PrincipalId
) -> None:
    """Record items with the label of their author. Untrusted items taint the run."""
    taint = holding.taint
    with taint.lock:
        outside = [item.id for item in items if item.part is Part.UNTRUSTED]
        own = taint.label if quotes_models(by) else Label(SourceType.USER_INPUT)
        label = own.joined(Label(SourceType.EXTERNAL)) if outside else own
        fill_gap(desk, holding)
        body = RunRecorded(run=holding.id, by=by, items=tuple(map(ref_of, items)), label=label)
        written = desk.recording.record(holding.working, body, contents)
        taint.enter(outside, written.receipt.id)
        taint.unread.update(outside)


def state_intent(
    desk: Desk, holding: Holding, text: str, *, by: str | None = None
) -> tuple[Item, tuple[HandoffId, ...]]:
    """Record a statement of the human; return it, and the running handoffs of the tree that do not know it."""
    (item,) = record_items(desk, holding, (Statement(text),), by=by or holding.principal)
    holding.stated = None  # so its next offer reads the statements at once, and is not refused first
    with desk.store.view() as view:
        running = tuple(
            handoff.id
            for handoff in view.find_handoffs(root=holding.root)
            if handoff.state in {State.RUNNING, State.CLAIMED}
        )
    return item, running


def attach(
    desk: Desk,
    holding: Holding,
    name: str,
    body: bytes | str,
    *,
    media_type: str | None = None,
    source: str | None = None,
    untrusted: bool = False,
) -> Item:
    """Attach a file or a text of any size to a run as an artifact; it travels by digest."""
    require_instance("body", body, (bytes, bytearray, memoryview, str))
    kept = desk.body(body, media_type or _usual_type(body))
    data = kept.body
    value = Artifact(
        name,
        body=kept.ref.id,
        sha256=Digest(sha256(data).hexdigest()),
        size=len(data),
        media_type=kept.ref.media_type,
        source=source or f"agent:{holding.agent}",
        untrusted=untrusted,
        label=SourceType.EXTERNAL if untrusted or holding.taint else None,
    )
    item, content = desk.item(value, author_of(holding.agent), 1, work=holding.work)
    if not holding.replaying:
        write_items(desk, holding, (item,), (content, kept), by=author_of(holding.agent))
    holding.add(item)
    return item


def read_artifact(desk: Desk, holding: Holding, name: str) -> bytes:
    """Return the bytes of an artifact that travels with a run. Raises `NotFoundError`, `ContentErasedError`."""
    with holding.lock:
        items = tuple(holding.notes.values())
    found = [item.value for item in items if isinstance(item.value, Artifact) and name in {item.value.name, item.id}]
    if not found:
        raise NotFoundError("artifact", name)
    # An untrusted artifact must not replace a trusted one by having the same name.
    artifact = next((value for value in reversed(found) if not value.untrusted), found[-1])
    with desk.store.view() as view:
        stored = view.get_content(artifact.body)
    if stored.body is None:
        raise ContentErasedError(artifact.body)
    if sha256(stored.body).hexdigest() != artifact.sha256:
        raise InvalidValueError(name, "is not what was attached; run `batonpass ledger verify`")
    return stored.body


def relax(desk: Desk, holding: Holding, item: ContentId, *, by: str, reason: str) -> None:
    """Release a run, and its later handoffs, from a constraint or an exclusion.

    Raises `NotEntitledError` unless the author of the item or the principal says so, and `NotFoundError` and
    `InvalidValueError` if there is no such item.
    """
    if holding.replaying:
        return
    known = holding.notes.get(item)
    if known is None or item in holding.relaxed:
        raise NotFoundError("constraint or exclusion of this run", item)
    if known.part not in _RELAXABLE:
        raise InvalidValueError("item", f"is {known.part}; only constraints and exclusions can be relaxed")
    entitled = tuple(dict.fromkeys((known.by, holding.principal)))
    if by not in entitled:
        raise NotEntitledError(item, by, entitled)
    body = RunRelaxed(run=holding.id, item=item, by=PrincipalId(by))
    fill_gap(desk, holding)
    desk.recording.record(holding.working, body, (desk.text(REASON, reason),))
    holding.relaxed.add(item)


def checkpoint(desk: Desk, holding: Holding, messages: object) -> None:
    """Save a checkpoint from which the next attempt can go on: the messages of a model, or any JSON."""
    if holding.replaying:
        return
    content = desk.json(MESSAGES, _as_json("messages", messages))
    with holding.taint.lock:
        fill_gap(desk, holding)
        saved = CheckpointSaved(run=holding.id, after=holding.last_call, label=holding.taint.label)
        holding.saved = desk.recording.record(holding.working, saved, (content,)).receipt.id


def note_message(holding: Holding, message: object, number: int | None) -> None:
    """Remember the last message of the model; it is recorded only when the run hands off.

    Raises `InvalidValueError` if it is not JSON.
    """
    body = _as_json("message", message)
    place = ReasoningPlace(sha256=Digest(sha256(body).hexdigest()), message=number)
    holding.thought = Thought(place=place, body=body)


def _as_json(field: str, value: object) -> bytes:
    try:
        # Escaped, so that half a surrogate pair, which models do write, comes back unchanged.
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        json.loads(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(field, f"is not JSON: {error}") from None
    return data


def read_messages(desk: Desk, holding: Holding) -> object | None:
    """Return the messages of the last checkpoint of earlier attempts; None if there is none."""
    if holding.resumption.messages is None:
        return None
    with desk.store.view() as view:
        stored = view.get_content(holding.resumption.messages.id)
    return None if stored.body is None else json.loads(stored.body)


def _usual_type(body: bytes | str) -> str:
    return "text/plain" if isinstance(body, str) else "application/octet-stream"
