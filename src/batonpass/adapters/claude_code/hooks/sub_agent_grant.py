"""What a sub-agent is given: nobody says `may` when a model starts one."""

from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.model.grant import Grant
from batonpass.model.ids import AgentId


def grant_of_sub_agent(desk: Desk, holding: Holding, to: AgentId) -> Grant | None:
    """Return what a sub-agent is asked for: all that its sender may give, unless a table of the file says less.

    None where the table decides, where nobody is held to a grant, and where there is nothing to give: then the offer
    is refused as any other.
    """
    chain = holding.bounds.chain
    if not chain or to in desk.gates.grants:
        return None
    above = chain[-1].said.may_delegate
    return Grant(may=above, may_delegate=above) if above else None
