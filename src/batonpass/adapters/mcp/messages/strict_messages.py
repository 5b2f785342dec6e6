"""The strict reader of an enforcing proxy: it accepts only lines in which every reader finds the same.

A message is written anew, and its original bytes are not passed on. So the other side gets the message that was judged
and recorded.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from batonpass.adapters.mcp.messages.json_text import JsonFaultError, TwinKeys, find_fault, read_generously, read_json
from batonpass.adapters.mcp.messages.message import OWN_KEYS, OWN_PARAMS, Message, is_number

_NONE: Final = "it is no message"
_FOLDED_KEYS: Final = frozenset(name.casefold() for name in OWN_KEYS)
_FOLDED_PARAMS: Final = frozenset(name.casefold() for name in OWN_PARAMS)


def read_from_client(line: bytes) -> Iterator[Message]:
    """Yield the message on a client's line, or each message of a batch.

    A message has a fault if two servers may read it differently, or if it is no request, notification or answer.
    """
    try:
        found = read_json(line)
    except JsonFaultError as error:
        yield _faulty(next((read.value for read in read_generously(line)), None), str(error))
        return
    for each in found.value if isinstance(found.value, list) and found.value else [found.value]:
        fault = find_fault(each) or next(_faults_of(each), None)
        yield Message(found.write(each), each) if fault is None else _faulty(each, fault)


def read_from_server(line: bytes) -> Iterator[Message]:
    """Yield the message on a server's line, or each message of a batch.

    Servers return many things, and clients cope. So fewer things are faults here: a line that is not JSON in UTF-8,
    something that is no message, and a repeated key, because the client may take the value that is not recorded.
    """
    try:
        found = read_json(line, constants=True)
    except JsonFaultError as error:
        yield Message(b"", next((read.value for read in read_generously(line)), None), fault=str(error))
        return
    twice = "a key appears twice in it" if found.repeated else None
    for each in found.value if isinstance(found.value, list) and found.value else [found.value]:
        if isinstance(each, dict):
            yield Message(b"" if twice else found.write(each), each, fault=twice)
        else:
            yield Message(b"", None, fault=_NONE)


def _faulty(found: object, fault: str) -> Message:
    """Return a message that is not passed on.

    It keeps its id, for the error answer, if there is no doubt about the id.
    """
    if not isinstance(found, dict) or isinstance(found, TwinKeys) or not _can_be_id(found.get("id")):
        return Message(b"", None, fault=fault)
    return Message(b"", {"id": found["id"]}, fault=fault)


def _faults_of(found: object) -> Iterator[str]:
    """Yield why a client's message is not passed on, although its JSON is unambiguous."""
    if not isinstance(found, dict):
        yield _NONE
        return
    if _differs_by_case(found, OWN_KEYS, _FOLDED_KEYS):
        yield "a key in it is one of the protocol but for its case"
    if ("method" in found) is ("result" in found or "error" in found):
        yield "it is neither a request nor an answer, or both"
    if "method" not in found:
        return
    if not isinstance(found["method"], str):
        yield "its method is not a text"
    if "id" in found and not _can_be_id(found["id"]):
        yield "its id is neither a text nor a number"
    if not isinstance(params := found.get("params", {}), dict):
        yield "its params are no object"
    elif _differs_by_case(params, OWN_PARAMS, _FOLDED_PARAMS):
        yield "a key in it is one of the protocol but for its case"


def _differs_by_case(table: Mapping[str, Any], own: frozenset[str], folded: frozenset[str]) -> bool:
    return any(name not in own and name.casefold() in folded for name in table)


def _can_be_id(given: object) -> bool:
    return isinstance(given, str) or is_number(given)
