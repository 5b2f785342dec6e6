"""The tables `[approvers."user:NAME"]`: what a person may approve. Errors name their line."""

from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import PrincipalId, is_user, require_principal
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_permit
from batonpass.model.policy.approver_scope import ApproverScope
from batonpass.policy.document import APPROVERS, Document, DocumentPlace, require_fitting

_KEYS: Final = ("agents", "may")


def approvers_of(document: Document) -> dict[PrincipalId, ApproverScope]:
    """Return what each person may approve. Raises `PolicyFileError`."""
    return {_person(name, place): _scope(place) for name, place in document.table(APPROVERS).table().items()}


def _person(name: str, place: DocumentPlace) -> PrincipalId:
    try:
        person = require_principal(APPROVERS, PrincipalId(name))
    except InvalidValueError as error:
        raise place.error(error.problem) from None
    if not is_user(person):
        raise place.error(f'{name} is no person, and nobody else approves; write [{APPROVERS}."user:ana"]')
    return person


def _scope(place: DocumentPlace) -> ApproverScope:
    given = place.table(_KEYS)
    may = None if "may" not in given else Scope(tuple(map(_permit, given["may"].elements("permits"))))
    try:
        return ApproverScope(agents=given["agents"].texts("agents") if "agents" in given else None, may=may)
    except InvalidValueError as error:
        raise require_fitting(place, error) from None


def _permit(place: DocumentPlace) -> Permit:
    text = place.text()
    try:
        return read_permit(text)
    except InvalidValueError as error:
        raise place.error(error.problem) from None
