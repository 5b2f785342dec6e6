"""The tables `[grant.NAME]` and `[approvers."user:NAME"]`: grants of agents, and the scope of people who approve.

Errors name their line.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from batonpass.errors import InvalidValueError, PolicyFileError
from batonpass.model.base.ids import AgentId, PrincipalId, is_user, require_agent, require_principal
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_toml import FIELDS, read_grant
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_limits, read_permit
from batonpass.model.policy.approver_scope import ApproverScope
from batonpass.policy.document import APPROVERS, GRANT, Document, DocumentPlace, require_fitting


def grants_of(document: Document) -> dict[AgentId, Grant]:
    """Return the grants of a document by agent. Raises `PolicyFileError`."""
    return {AgentId(name): _grant(AgentId(name), place) for name, place in document.table(GRANT).table().items()}


def lines_of(document: Document) -> dict[str, int]:
    """Return the first line of each of these tables, by name."""
    return {place.name: place.line for place in document.table(GRANT).table().values()}


def _grant(agent: AgentId, place: DocumentPlace) -> Grant:
    place.table(FIELDS)
    try:
        require_agent(GRANT, agent)
        return read_grant(place.value, place.name)
    except InvalidValueError as error:
        raise _placed(place, error) from None


def _placed(place: DocumentPlace, error: InvalidValueError) -> PolicyFileError:
    """Return the error with the line of the text that caused it, if there is one."""
    for text, read in _texts(place.table()):
        try:
            read(text.text())
        except PolicyFileError as wrong:
            return wrong
        except InvalidValueError as wrong:
            return text.error(wrong.problem)
    return require_fitting(place, error)


def _texts(given: Mapping[str, DocumentPlace]) -> Iterator[tuple[DocumentPlace, Callable[[str], object]]]:
    """Yield the texts of a grant that have a grammar, each with its reader."""
    for key in ("may", "may_delegate"):
        if key in given and isinstance(given[key].value, list):
            yield from ((element, read_permit) for element in given[key].elements("permits"))
    if "limits" in given:
        yield given["limits"], read_limits


_KEYS: Final = ("agents", "may")


def approvers_of(document: Document) -> dict[PrincipalId, ApproverScope]:
    """Return the scope of each approver. Raises `PolicyFileError`."""
    return {_person(name, place): _scope(place) for name, place in document.table(APPROVERS).table().items()}


def _person(name: str, place: DocumentPlace) -> PrincipalId:
    try:
        person = require_principal(APPROVERS, PrincipalId(name))
    except InvalidValueError as error:
        raise place.error(error.problem) from None
    if not is_user(person):
        raise place.error(f'{name} is not a person, and only people approve; write [{APPROVERS}."user:ana"]')
    return person


def _scope(place: DocumentPlace) -> ApproverScope:
    given = place.table(_KEYS)
    may = None if "may" not in given else Scope(tuple(map(_read_permit, given["may"].elements("permits"))))
    try:
        return ApproverScope(agents=given["agents"].texts("agents") if "agents" in given else None, may=may)
    except InvalidValueError as error:
        raise require_fitting(place, error) from None


def _read_permit(place: DocumentPlace) -> Permit:
    text = place.text()
    try:
        return read_permit(text)
    except InvalidValueError as error:
        raise place.error(error.problem) from None
