"""Lines that are meant to bring a call past a proxy: to buy gold, which nobody may."""

import json
from typing import Any

import pytest

GOLD = {"what": "gold"}
BUY: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "buy", "arguments": GOLD},
}
PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

_BUY = json.dumps(BUY)
_PING = json.dumps(PING)
_INSIDE = _BUY[1:-1]
_PARAMS = json.dumps(BUY["params"])


def _between(separator: str) -> str:
    return f"{_PING}{separator}{_BUY}"


# Each server with some habit finds the call in each of these lines.
HIDDEN: dict[str, str | bytes] = {
    "after a carriage return": _between("\r"),
    "after several": _between("\r\r \r"),
    "before one": f"{_BUY}\r{_PING}",
    "inside of another message, between two": f'{{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": \r{_BUY}\r}}',
    "inside of a batch, between two": f"[{_PING},\r{_BUY}\r]",
    "after a line separator": _between("\u2028"),
    "after a paragraph separator": _between("\u2029"),
    "after a next line": _between("\x85"),
    "after a vertical tab": _between("\x0b"),
    "after a form feed": _between("\x0c"),
    "after a record separator": _between("\x1e"),
    "after a blank": _between(" "),
    "after nothing": _between(""),
    "after a number": f"1 {_BUY}",
    "in a batch": f"[{_PING}, {_BUY}]",
    "with a second method": f'{{{_INSIDE}, "method": "ping"}}',
    "with a first method": f'{{"method": "ping", {_INSIDE}}}',
    "with a second method in other letters": f'{{{_INSIDE}, "m\\u0065thod": "ping"}}',
    "with a second name": _BUY.replace('"name": "buy"', '"name": "buy", "name": "price"'),
    "with a first name": _BUY.replace('"name": "buy"', '"name": "price", "name": "buy"'),
    "with second params": f'{{{_INSIDE}, "params": {{"name": "price"}}}}',
    "with a method in capitals": f'{{"jsonrpc": "2.0", "id": 2, "method": "ping", "METHOD": "tools/call", '
    f'"params": {_PARAMS}}}',
    "with nothing but a method in capitals": _BUY.replace('"method"', '"Method"'),
    "with params in capitals": _BUY.replace('"params"', '"Params"'),
    "with params in both": f'{{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {{"name": "price"}}, '
    f'"Params": {_PARAMS}}}',
    "with a name in capitals": _BUY.replace('"name"', '"Name"'),
    "with a name in both": _BUY.replace('"name": "buy"', '"name": "price", "Name": "buy"'),
    "with arguments in capitals": _BUY.replace('"arguments"', '"ARGUMENTS"'),
    "with arguments spelled with a long s": _BUY.replace('"arguments"', '"argument\u017f"'),
    "with params spelled with a long s": _BUY.replace('"params"', '"param\\u017f"'),
    "with bytes that are no text": _BUY.replace('"2.0"', '"\x00"').encode().replace(b"\x00", b"\xff"),
    "behind a mark of the byte order": b"\xef\xbb\xbf" + _BUY.encode(),
    "with a control character in a text": _BUY.replace('"2.0"', '"2\x01.0"'),
    "with half a surrogate": _BUY.replace('"2.0"', '"\\ud83d"'),
    "with half a surrogate in a key": _BUY.replace('"jsonrpc"', '"\\udc00"'),
    "with a number that is none": _BUY.replace("}}}", '}, "_meta": {"n": NaN}}}'),
    "with an infinite number": _BUY.replace("}}}", '}, "_meta": {"n": -Infinity}}}'),
    "as a notification": _BUY.replace('"id": 2, ', ""),
    "with an id that is none": _BUY.replace('"id": 2', '"id": {"a": 1}'),
    "with an empty id": _BUY.replace('"id": 2', '"id": null'),
    "as an answer as well": f'{{{_INSIDE}, "result": {{}}}}',
    "nested deep": _BUY.replace("}}}", '}, "_meta": ' + '{"n":' * 60 + "1" + "}" * 60 + "}}"),
    "with a carriage return in itself": _BUY.replace(": ", ":\r"),
    "with an escaped method": _BUY.replace("tools/call", "tools\\/c\\u0061ll"),
}

CASES = [
    pytest.param(line if isinstance(line, bytes) else line.encode(), id=sentence) for sentence, line in HIDDEN.items()
]
