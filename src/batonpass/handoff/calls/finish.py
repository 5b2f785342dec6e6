"""The end of a call: record its result or its failure, and the files and other effects that it changed.

The outcome also decides taint: from then on, the run knows the content that came back.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.changes.change_document import encode_change
from batonpass.attribution.git.arrived_commits import find_arrived
from batonpass.errors import FencedError, OutsideGrantError, StoreError, StreamClosedError
from batonpass.handoff.calls.call_limits import cost_of
from batonpass.handoff.calls.call_receipts import write_about_call
from batonpass.handoff.calls.constraints import BROKEN, find_broken
from batonpass.handoff.calls.pending_call import Begun
from batonpass.handoff.calls.shell_call import find_outside
from batonpass.handoff.calls.taint_gate import add_text
from batonpass.handoff.calls.tainted_files import say_taint
from batonpass.handoff.files.background_commits import GOES_ON, HISTORY, head_of
from batonpass.handoff.files.edited_files import find_edited
from batonpass.handoff.files.work_tree import SeenChanges
from batonpass.handoff.grants.limit_use import after_call
from batonpass.handoff.history.written_files import OUTSIDE
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.shell.commands import exit_code_of
from batonpass.handoff.tools.call_context import SaidChange
from batonpass.handoff.tools.json_values import SHOWN, describe, keep_result, readable
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.content_names import EFFECT, MESSAGE
from batonpass.model.base.kinds import Mode
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import Changed, Effect, HandoffLate, ToolCompleted, ToolFailed
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Touch
from batonpass.model.ledger.receipt import SignedReceipt

CUT: Final = "effects.cut"

_VERSION: Final = 0


def find_effects(
    desk: Desk, holding: Holding, call: ToolCall[Any], said: tuple[SaidChange, ...], *, completed: bool
) -> Iterator[tuple[Effect, Content]]:
    """Yield the effects of a call: each as its receipt names it, and as content in words.

    If a call returned without reporting an effect of the kind that its tool declares, the declared effect is added. A
    call that raised may have stopped before its effect, so only the effects that it reported itself count.
    """
    declared = call.declared
    if completed and declared.effect is not None and all(one.kind is not declared.effect for one in said):
        said = (*said, SaidChange(kind=declared.effect, target=call.target or declared.name))
    for number, one in enumerate(said, 1):
        target = readable(one.target)
        document = {"v": _VERSION, "kind": one.kind, "target": target, "how": one.how, "count": one.count}
        present = {name: value for name, value in document.items() if value is not None}
        content = desk.told(f"{EFFECT}{number}", describe(present))
        digest = desk.secrets.digest(holding.root, b"target", target.encode())
        yield Effect(effect=content.ref.id, kind=one.kind, target=digest, count=one.count), content


# PostgreSQL stores no larger content.
LARGEST_CONTENT: Final = 16 * 1024 * 1024


class _Ended(Struct, frozen=True, kw_only=True):
    """The changes and effects of a call, as its outcome names them, with their contents and paths."""

    changes: tuple[Changed, ...] = ()
    effects: tuple[Effect, ...] = ()
    flags: tuple[str, ...] = ()
    contents: tuple[Content, ...] = ()
    touches: tuple[Touch, ...] = ()
    outside: tuple[str, ...] = ()  # changed files that its run may not write
    commits: tuple[str, ...] = ()  # git commits that it made


_NOTHING_SEEN: Final = SeenChanges()
_NOTHING_ENDED: Final = _Ended()
_completed: Final = unchecked_maker(ToolCompleted)


def finish_call(
    desk: Desk,
    holding: Holding,
    begun: Begun,
    call: ToolCall[Any],
    value: object,
    *,
    seen: SeenChanges | None = None,
    beside: tuple[Content, ...] = (),
) -> None:
    """Record the result of a call, its effects and its charges.

    A door that looks at files itself passes the changes as `seen`. Raises `FencedError` or `StreamClosedError` if the
    run is over; the outcome is then kept as evidence. In an enforced run, raises `OutsideGrantError` if a command
    changed files that the run may not write, and `ConstraintViolatedError` if the result breaks a constraint; the
    outcome is recorded first. Raises `StoreError` if an enforced run cannot record it.
    """
    # Before everything else: recording the outcome is no work of the tool.
    took = begun.took_us
    cost = cost_of(call, value)
    # Without a request in the ledger, an outcome would belong to no call. The run has read the result all the same, so
    # its label and taint have to know it.
    if not begun.recorded:
        _take(holding, begun, call, None)
        return
    body, media_type = keep_result(value, call.declared.encode)
    content = desk.result(body, media_type)
    ended = _see(desk, holding, begun, call, completed=True, seen=seen)
    broken = find_broken(holding, call.declared.name, value)
    flags = ended.flags if broken is None else (*ended.flags, BROKEN)
    # Another media type than the tool's means that a secret was removed. Then the record holds something else than the
    # tool returned, and it is never given back as its result.
    if cost is None or content.ref.media_type != media_type:
        flags = (*_flags_of(cost, redacted=content.ref.media_type != media_type), *flags)
    until = None if begun.cache is None else _fresh_until(desk, begun, call, content.ref.media_type)
    charges = after_call(
        begun.counted, cost=cost or 0, rows=len(value) if isinstance(value, list) else 0, size=len(body)
    )
    # If the call changed nothing and has no flags, every field was made or checked here, so no field is checked again.
    exit_code = exit_code_of(value)
    plain = ended is _NOTHING_ENDED and not flags and until is None and exit_code is None
    done = (_completed if plain else ToolCompleted)(
        run=holding.id,
        call=begun.call,
        cost=cost or 0,
        flags=flags,
        changes=ended.changes,
        cache=None if until is None else begun.cache,
        fresh_until=until,
        label=call.declared.label,
        charges=charges,
        took_us=took,
        exit_code=exit_code,
        effects=ended.effects,
        commits=ended.commits,
    )
    try:
        # Under the same lock as the beginning of a call: another call of this run is either recorded before this
        # outcome, or has it in its label.
        with holding.taint.lock:
            done = say_taint(holding, done)
            written = write_about_call(desk, holding, done, content, *ended.contents, *beside, touches=ended.touches)
            _take(holding, begun, call, written)
        if call.declared.external:
            add_text(holding, begun.call, body, media_type)
        if written is not None:
            holding.last_call = begun.call
    except (FencedError, StreamClosedError):
        keep_late(desk, holding, begun, content, *beside, completed=True)
        raise
    except StoreError:
        # Nothing was recorded, but the caller may have read the result already. So the run counts as knowing it.
        _take(holding, begun, call, None)
        raise
    if holding.working.mode is Mode.ENFORCED:
        # Only now, with the outcome in the ledger: the files are changed, and a record without them would hide exactly
        # the changes that were not allowed.
        if ended.outside:
            raise OutsideGrantError(holding.agent, ended.outside)
        if broken is not None:
            raise broken


def _see(
    desk: Desk, holding: Holding, begun: Begun, call: ToolCall[Any], *, completed: bool, seen: SeenChanges | None
) -> _Ended:
    """Return the changes and effects of a call: from `seen` if its door looked, else from a look at the files."""
    if seen is None:
        seen = _look(desk, holding, begun, is_command=bool(call.declared.scripts))
    said, cut = begun.sayings.take()
    told = said or cut or (completed and call.declared.effect is not None)
    if not (told or seen.changes or seen.flags or seen.goes_on):
        commits = find_arrived(begun.watched.history)
        return _Ended(commits=commits) if commits else _NOTHING_ENDED
    holding.changed.update(change.path for change in seen.changes)
    going = (desk.text(HISTORY, head_of(desk.files.root) or ""),) if seen.goes_on else ()
    outside = find_outside(desk, holding, seen.changes) if call.declared.any_file else ()
    holding.went_outside = holding.went_outside or bool(outside)
    changes = [(change, _kept(desk, change, number)) for number, change in enumerate(seen.changes, 1)]
    effects = list(find_effects(desk, holding, call, said, completed=completed))
    return _Ended(
        changes=tuple(
            Changed(change=kept.ref.id, before=change.before, after=change.after) for change, kept in changes
        ),
        effects=tuple(effect for effect, _ in effects),
        flags=(
            *seen.flags,
            *((GOES_ON,) if seen.goes_on else ()),
            *((OUTSIDE,) if outside else ()),
            *((CUT,) if cut else ()),
        ),
        contents=(*(kept for _, kept in changes), *(kept for _, kept in effects), *going),
        touches=tuple(Touch(path=change.path, content=kept.ref.id) for change, kept in changes),
        outside=outside,
        commits=find_arrived(begun.watched.history),
    )


def _look(desk: Desk, holding: Holding, begun: Begun, *, is_command: bool) -> SeenChanges:
    # A file that a command names need not be one that it writes: `pytest a.py` only reads it. The files that
    # a command wrote are found by the look at the work tree and by its text.
    edited = () if is_command and begun.looked else tuple(find_edited(begun.watched))
    if not edited and not begun.looked:
        return _NOTHING_SEEN
    at = desk.clock.now()
    if begun.looked:
        return desk.files.end(begun.call, holding.id, at, edited, begun.watched)
    return SeenChanges(tuple(edit.change(call=begun.call, run=holding.id, at=at) for edit in edited))


def _kept(desk: Desk, change: FileChange, number: int) -> Content:
    document = encode_change(change)
    # Without its lines the change still has both digests, so it is known that the file changed, and from which state to
    # which.
    if len(document) > LARGEST_CONTENT:
        document = encode_change(replace(change, hunks=None))
    return desk.json(f"change.{number}", document)


def _flags_of(cost: int | None, *, redacted: bool) -> tuple[str, ...]:
    return (*(("cost.unknown",) if cost is None else ()), *(("result.redacted",) if redacted else ()))


def _take(holding: Holding, begun: Begun, call: ToolCall[Any], written: SignedReceipt | None) -> None:
    """Add the outcome of a call to the label of its run; the outcome of an external tool taints the run."""
    if call.declared.external:
        holding.taint.enter((begun.call,), None if written is None else written.receipt.id)
    holding.taint.learn(call.declared.label)


def _fresh_until(desk: Desk, begun: Begun, call: ToolCall[Any], media_type: str) -> datetime | None:
    """Return until when a result may be served from the cache; None if it is not cached or cannot be given back."""
    if begun.cache is None or call.declared.cache_for is None or media_type == SHOWN:
        return None
    try:
        return desk.clock.now() + call.declared.cache_for
    except OverflowError:
        return None


def fail_call(
    desk: Desk,
    holding: Holding,
    begun: Begun,
    call: ToolCall[Any],
    error: BaseException | Fault,
    *,
    made: bool = True,
    seen: SeenChanges | None = None,
    beside: tuple[Content, ...] = (),
) -> None:
    """Record that a call failed, with the error.

    A call that was interrupted has not failed: nobody knows how far it came. It gets no outcome, so it is in doubt.
    Raises `FencedError` or `StreamClosedError` if the run is over; the failure is then kept as evidence.
    """
    took = begun.took_us
    interrupted = not isinstance(error, Exception | Fault)
    if begun.looked and (not made or interrupted):
        desk.files.forget(begun.call)
    if made and interrupted:
        return
    # The number is free again: whoever repeats a failed call means the same call. Under another number it would get
    # another key, and the next attempt would make it twice.
    holding.uncount(begun.described, begun.number)
    if not begun.recorded:
        if made:
            _take(holding, begun, call, None)
        return
    fault = error if isinstance(error, Fault) else Fault.of(error)
    content = desk.text(MESSAGE, fault.words)
    label = call.declared.label if made else None  # a call that was not made brought no content
    ended = _see(desk, holding, begun, call, completed=False, seen=seen) if made else _Ended()
    failed = ToolFailed(
        run=holding.id,
        call=begun.call,
        error=fault.code,
        changes=ended.changes,
        label=label,
        flags=ended.flags,
        took_us=took if made else None,
        exit_code=None if isinstance(error, Fault) else exit_code_of(error),
        effects=ended.effects,
        commits=ended.commits,
    )
    try:
        with holding.taint.lock:
            failed = say_taint(holding, failed)
            written = write_about_call(desk, holding, failed, content, *ended.contents, *beside, touches=ended.touches)
            if made:
                _take(holding, begun, call, written)
        if written is not None:
            holding.last_call = begun.call
    except (FencedError, StreamClosedError):
        keep_late(desk, holding, begun, content, *beside, completed=False)
        raise
    except StoreError:
        if made:
            _take(holding, begun, call, None)
        raise


def keep_late(desk: Desk, holding: Holding, begun: Begun, *contents: Content, completed: bool) -> None:
    """Keep the outcome of a call that ended after its run was over, as evidence in the stream of the handoff."""
    handoff = holding.working.run.handoff
    if handoff is None:
        return  # a root run has no handoff to write to; whoever took it over finds the call in doubt
    late = HandoffLate(handoff=handoff, run=holding.id, call=begun.call, completed=completed)
    desk.recording.act(handoff, lambda _, __: late, contents)
