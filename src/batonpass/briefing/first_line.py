"""The first line of a briefing, which says what it is."""

from typing import Final

from batonpass.model.base.kinds import Relation
from batonpass.model.baton.baton import Baton

_WHAT: Final = {
    Relation.LEAD_TO_WORKER: "A task",
    Relation.WORKER_TO_LEAD: "Worker output",
    Relation.PEER_TO_PEER: "A peer's output",
    Relation.EXTERNAL_TO_AGENT: "A request from outside",
}


def opening_of(baton: Baton) -> str:
    """Return the first line: sender, phase, how far it is verified, and how much is open."""
    facts = [f"{_WHAT[baton.relation]} from {baton.sender} for {baton.to}, on behalf of {baton.principal}"]
    if baton.brief.phase is not None:
        facts.append(f"{' '.join(baton.brief.phase.split())} phase")
    facts.append(_verified(baton))
    questions = baton.open_questions
    blocking = sum(question.blocking for question in questions)
    facts.append(counted(len(questions), "open question") + (f" ({blocking} blocking)" if blocking else ""))
    if baton.untrusted:
        facts.append(counted(len(baton.untrusted), "text", "texts") + " from outside")
    if baton.revision > 1:
        facts.append(f"revision {baton.revision}")
    return ", ".join(facts) + "."


def _verified(baton: Baton) -> str:
    done = baton.completed
    if not done:
        return "nothing done so far"
    verified = sum(work.verified for work in done)
    if verified == len(done):
        return "verified"
    return "unverified" if not verified else f"{verified} of {len(done)} results verified"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
