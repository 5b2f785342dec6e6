"""The tables `[grant.NAME]`: what an agent may use and delegate. Errors name their line."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from batonpass.errors import InvalidValueError, PolicyFileError
from batonpass.model.base.ids import AgentId, require_agent
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_toml import FIELDS, read_grant
from batonpass.model.grants.scope_text import read_limits, read_permit
from batonpass.policy.document import GRANT, Document, DocumentPlace, find_document, require_fitting


def grants_of(document: Document) -> dict[AgentId, Grant]:
    """Return the grants of a document by agent. Raises `PolicyFileError`."""
    return {AgentId(name): _grant(AgentId(name), place) for name, place in document.table(GRANT).table().items()}


def read_tables(path: Path) -> dict[AgentId, Grant]:
    """Return what a file grants, by agent; nothing without the file. Raises `PolicyFileError`."""
    document = find_document(path)
    return {} if document is None else grants_of(document)


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
