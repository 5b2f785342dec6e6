"""An agent acts only in its own run, and everybody acts only in their own name."""

from batonpass.errors import AnotherPrincipalError, OutOfReachError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.programs.program_briefing import tell_task
from batonpass.model.base.ids import RunId
from batonpass.model.ledger.run import Handoff
from batonpass.records.json_shapes import Shape, run_shape
from batonpass.records.lineage import Tasks
from batonpass.server.endpoint import ApiRequest
from batonpass.signing.run_proof import make_proof


def own_run(asked: ApiRequest) -> RunId:
    """Return the run in the path, which must be the one that the caller proves. Raises `OutOfReachError`."""
    with asked.looking() as (_, reach):
        run = reach.run(asked.names["run"])
        if run.id != reach.own.id:
            # A run may read what is below it, and not act in its place.
            raise OutOfReachError(run.id)
    return run.id


def own_handoff(asked: ApiRequest) -> Handoff:
    """Return the handoff in the path. An agent's own run must have made it. Raises `OutOfReachError`."""
    with asked.looking() as (_, reach):
        handoff = reach.handoff(asked.names["handoff"])
        if reach.is_limited and handoff.parent != reach.own.id:
            raise OutOfReachError(handoff.id)
    return handoff


def in_whose_name(asked: ApiRequest, given: str | None) -> str:
    """Return the principal of the token. Raises `AnotherPrincipalError` if somebody else is named."""
    own = asked.caller.principal
    if given is not None and given != own:
        raise AnotherPrincipalError(given, own)
    return own


def begun(asked: ApiRequest, live: LiveRun) -> Shape:
    """Keep a run that was begun just now, and return it with the proof for its holder, which nobody else gets.

    A client that keeps the key itself makes the proof itself.
    """
    opened = asked.plane.runs.add(live)
    signer = asked.plane.runs.signer_of(live.id)
    with asked.plane.relay.store.view() as view:
        run = view.get_run(live.id)
        told = run_shape(run, Tasks(view).find(run))
    return {
        "run": told,
        "proof": None if opened.elsewhere else make_proof(signer, live.id, asked.caller.token.id),
        "mode": opened.live._holding.working.mode,  # noqa: SLF001 - a door inside the package
        "task": tell_task(opened.live),
    }
