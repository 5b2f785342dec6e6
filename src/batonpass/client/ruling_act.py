"""The ruling that an approver signs through a control plane, about the hold whose sheet they have read."""

import json

from batonpass.client.asked_act import AskedAct
from batonpass.handoff.approvals.decision_sheet import Material
from batonpass.signing.approver_key import Approver
from batonpass.wire.versions import RULING_TYPE


def ruling_act(held: str, *, approved: bool, by: Approver, shown: Material | None, looked_ms: int | None) -> AskedAct:
    """Return the ruling of a person: about this hold, in their own name, and with the decision that they made."""

    def rules(payload: bytes) -> str | None:
        try:
            said = json.loads(payload)
            ((name, hold),) = [(one["name"], one["digest"]["sha256"]) for one in said["subject"]]
            ruling = said["predicate"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return "it cannot be read"
        expected = {
            "type": (said.get("predicateType"), RULING_TYPE),
            "decision": (ruling.get("decision"), "approved" if approved else "denied"),
            "by": (ruling.get("by"), by.principal),
            "about": (name, held),
            "hold": (hold, hold if shown is None else shown.hold),
            "shown": (ruling.get("shown"), None if shown is None else shown.digest),
            "looked_ms": (ruling.get("looked_ms"), looked_ms),
        }
        wrong = [part for part, (found, wanted) in expected.items() if found != wanted]
        return f"another ruling: {', '.join(wrong)}" if wrong else None

    return AskedAct(
        run=None, kinds=frozenset(), says=lambda _, __: "it is no ruling", new_key=by.signer.public_key, rules=rules
    )
