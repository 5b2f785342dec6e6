"""Changed inputs: a result in the baton no longer stands, or the sender has a newer version of a file."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from batonpass.errors import StaleHeadError
from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.ledger.position import anchor_of
from batonpass.model.base.content_names import REPORT
from batonpass.model.base.ids import ContentId, Digest, HandoffId, PrincipalId, RunId, StreamId
from batonpass.model.base.kinds import Carried, CarriedFate, ItemFate, Part
from batonpass.model.base.label import Source
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Artifact, Item
from batonpass.model.bodies.body import HandoffCompleted, HandoffRevised
from batonpass.model.ledger.run import Handoff, RunState
from batonpass.records.inheritance import find_later_roots
from batonpass.records.stale_results import TreeFates, describe_input
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView

# Not a held one: an approver was shown its present inputs.
_TOLD: Final = frozenset({State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING})


def find_fallen(view: LedgerView, handoff: Handoff) -> Iterator[str]:
    """Yield the inputs of a handoff that no longer stand, in words: refuted, or made from a refuted result."""
    for ref, known in TreeFates(view, handoff.root).find_inputs(handoff):
        yield describe_input(view, ref, known)


def find_renewed(holding: Holding, baton: Baton) -> Iterator[str]:
    """Yield the files of a baton of which the sender has another version now, in words.

    Nothing for a resumed run. Its program repeats its steps from the first on, and a file that a later step writes is
    there already when an earlier step asks for its result. So the difference would mean nothing.
    """
    if holding.resumed:
        return
    wanted = baton.brief.inputs
    now = _latest(_known(holding))
    for name, then in _latest(item for item in baton.items if item.id not in baton.fates).items():
        if (not wanted or name in wanted) and now.get(name, then) != then:
            yield f"{name} was {then[:8]}, now {now[name][:8]}"


def revise(desk: Desk, handoff: HandoffId, *, by: str) -> bool:
    """Replace results that no longer stand by those that were delivered in their place; do nothing if all stand.

    If there is no replacement, the result stays in the baton, and the receiver is told that it does not stand. Returns
    whether there was anything to tell. Raises `StaleHeadError` if somebody acts on the handoff at the same moment.
    """
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        fallen = list(TreeFates(view, known.root).find_news(known))
        if not fallen:
            return False
        last = anchor_of(view, known)
        baton = read_offer(view, known).baton
        redone = {
            fate.refutation.handoff
            for _, fate in fallen
            if fate.fate is ItemFate.SUPERSEDED and view.get_handoff(fate.refutation.handoff).root == known.root
        }
        given = [_delivered(view, one) for one in sorted(redone)]
    # What was redone in the tree of an earlier session does not travel here: a session takes along what it began with.
    dropped = {ref.item for ref, fate in fallen if fate.refutation.handoff in redone}
    carried = {item.id for item in baton.items}
    body = HandoffRevised(
        handoff=handoff,
        by=PrincipalId(by),
        revision=baton.revision + 1,
        drops=tuple(ref.item for ref, _ in fallen if ref.item in dropped),
        carries=tuple(ref for refs, _ in given for ref in refs if ref.item not in carried),
        fates=tuple(
            CarriedFate(item=ref.item, fate=fate.fate, verdict=fate.refutation.receipt)
            for ref, fate in fallen
            if ref.item not in dropped
        ),
        taint=tuple(dict.fromkeys(source for _, taint in given for source in taint)),
    )
    # Only after what was read here: two who tell the same would give two revisions the same number.
    desk.recording.act(handoff, lambda _, __: body, after=last)
    return True


def tell_open(desk: Desk, root: RunId, *, by: str) -> None:
    """Tell everybody in a tree whose work is not over that something they build on no longer stands.

    An attempt that has yet to begin begins with the revision. One that works already has to acknowledge it.
    """
    with desk.store.view() as view:
        fates = TreeFates(view, root)
        if not fates:
            return
        unaware = [one.id for one in view.find_handoffs(root=root, states=_TOLD) if any(fates.find_news(one))]
    for handoff in unaware:
        # Somebody acted on it meanwhile. If that was another revision, it may have said the same already.
        with suppress(StaleHeadError):
            try:
                revise(desk, handoff, by=by)
            except StaleHeadError:
                revise(desk, handoff, by=by)
        desk.revised.add(handoff)


def tell_later_sessions(desk: Desk, root: RunId, *, by: str) -> None:
    """Tell everybody who works in a session that goes on from a tree that something in that tree no longer stands.

    The roots themselves look by themselves (`session_news`): nobody else writes to the stream of a run.
    """
    with desk.store.view() as view:
        later = [run for run in find_later_roots(view, root) if run.state is RunState.OPEN]
    for run in later:
        tell_open(desk, run.id, by=by)
        desk.revised.add(run.id)


def _latest(items: Iterable[Item]) -> dict[str, Digest]:
    """Return the digest of the latest file of each name."""
    return {item.value.name: item.value.sha256 for item in items if isinstance(item.value, Artifact)}


def _known(holding: Holding) -> tuple[Item, ...]:
    with holding.lock:
        return tuple(holding.notes.values())


def _delivered(view: LedgerView, handoff: HandoffId) -> tuple[list[Carried], tuple[Source, ...]]:
    """Return the items that the latest attempt at a handoff delivered, and their taint."""
    run: RunId | None = view.get_handoff(handoff).run
    if run is None:
        return [], ()
    stream = view.get_stream(StreamId(run))
    receipt = read_receipt(view.get_receipt_at(stream.id, stream.seq))
    if not isinstance(receipt.body, HandoffCompleted):
        return [], ()
    refs = list(receipt.body.gives)
    if (report := receipt.content.get(REPORT)) is not None:
        refs.append(Carried(item=ContentId(report.id), digest=report.digest, part=Part.COMPLETED))
    return refs, receipt.body.taint
