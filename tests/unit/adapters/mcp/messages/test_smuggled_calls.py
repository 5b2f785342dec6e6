"""No spelling of a line brings a call past the proxy: enforced, no server gets it; watched, it is on record."""

import json
from itertools import product
from typing import Any

import pytest

from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyOrigin
from batonpass.adapters.mcp.server_declaration import Server
from batonpass.model.bodies.body import ToolRequested
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.scope_text import read_scope
from tests.unit.adapters.mcp.hostile_server import READERS, SPLITTERS, find_calls
from tests.unit.adapters.mcp.spellings import BUY, CASES, GOLD, PING
from tests.unit.adapters.mcp.stage import Stage

HABITS = list(product(SPLITTERS, READERS))
GRANTED = ProxyOrigin(by="user:ana", grant=Grant(may=read_scope(["call:shop/price"])))


class Wired(Stage):
    """A stage on which what the server gets is kept as bytes."""

    def __init__(self, **rest: Any) -> None:  # noqa: ANN401 - what a stage takes
        super().__init__(**rest)
        self.wire = b""
        self.proxy._to_server = self._keep

    def _keep(self, line: bytes) -> None:
        self.wire += line + b"\n"

    def recorded(self) -> list[tuple[str, Any]]:
        """Return the calls on record, with their arguments."""
        tools = [body.tool.removeprefix("mcp__shop__") for body in self.bodies(ToolRequested)]
        return list(zip(tools, (json.loads(words)["arguments"] for words in self.words("arguments")), strict=True))


def bought(wire: bytes) -> list[tuple[str, str]]:
    """Return the habits of the servers that would buy something."""
    return [habits for habits in HABITS if [name for name, _ in find_calls(wire, *habits) if name == "buy"]]


@pytest.mark.parametrize("line", CASES)
def test_these_lines_are_dangerous(line: bytes) -> None:
    """Without a proxy there is a server that finds the call."""
    assert bought(line)


@pytest.mark.parametrize("line", CASES)
def test_no_server_behind_an_enforced_proxy_finds_the_call(line: bytes) -> None:
    """Whatever its habits are. The client reads an error, or all of it goes on as a ping; the next message passes."""
    stage = Wired(enforced=True, server=Server(name="shop", local=True), origin=GRANTED)

    stage.proxy.from_client(line)
    stage.say("ping", "next")

    told = [answer for answer in stage.to_client if "error" in answer or answer["result"].get("isError")]
    *before, last = (json.loads(line)["id"] for line in stage.wire.splitlines())
    assert ([], True, "next") == (bought(stage.wire), bool(told) or before == [1], last)


@pytest.mark.parametrize("line", CASES)
def test_whatever_a_server_behind_a_watching_proxy_finds_is_on_record(line: bytes) -> None:
    """The bytes pass as they are, and every call that any server finds in them is recorded, with its arguments."""
    stage = Wired()

    stage.proxy.from_client(line)

    recorded = stage.recorded()
    missing = {
        (habits, str(call))
        for habits in HABITS
        for call in find_calls(stage.wire, *habits)
        if (call[0], call[1] or {}) not in recorded
    }
    assert (line + b"\n", set()) == (stage.wire, missing)
    assert [] == [answer for answer in stage.to_client if "error" in answer]


def test_a_call_behind_a_carriage_return_is_flagged() -> None:
    """Both are on record, and both say that their line may be two."""
    stage = Wired()
    price = json.dumps(BUY).replace('"buy"', '"price"').replace(": 2,", ": 3,")

    stage.proxy.from_client(f"{price}\r{json.dumps(BUY)}".encode())

    flags = {body.tool: body.flags[0] for body in stage.bodies(ToolRequested)}
    assert {"mcp__shop__price": "mcp.split-line", "mcp__shop__buy": "mcp.split-line"} == flags


def test_a_call_that_one_server_reads_and_another_does_not_is_flagged() -> None:
    """By the first key it is a call, by the last it is none."""
    stage = Wired()

    stage.proxy.from_client(f'{json.dumps(BUY)[:-1]}, "method": "ping"}}'.encode())

    (body,) = stage.bodies(ToolRequested)
    assert ("mcp__shop__buy", "mcp.ambiguous") == (body.tool, body.flags[0])


def test_a_plain_call_has_no_such_flag() -> None:
    """Nor has one with a separator in a text, or a name in capitals among its own arguments."""
    stage = Wired()

    stage.call(1, arguments={"Name": "x", "name_": "y"})
    stage.proxy.from_client(json.dumps(BUY | {"id": 5}, ensure_ascii=False).replace("gold", "go\u2028ld").encode())

    assert [("would_hold.tier.external-write",)] * 2 == [body.flags for body in stage.bodies(ToolRequested)]


def test_the_answer_to_one_of_two_calls_with_one_id_is_nobodys() -> None:
    """A line that is two calls in one: which of them was made nobody knows, so both are in doubt."""
    stage = Wired()

    stage.proxy.from_client(f"{json.dumps(BUY)}\r{json.dumps(BUY).replace('gold', 'tea')}".encode())
    stage.tell(None, 2, result={"content": []})

    assert ["run.started", "tool.requested", "tool.requested"] == stage.kinds()


@pytest.mark.parametrize(
    "number",
    [
        "1.0",
        "1e400",
        "-1e-400",
        "12345678901234567890",
        "0.1000",
        "-0",
        "1E5",
        "1e-7",
        "0.1" + "0" * 30 + "1",
        "9" * 5000,
    ],
    ids=lambda number: number[:30],
)
@pytest.mark.parametrize("enforced", [False, True], ids=["watched", "enforced"])
def test_a_number_keeps_its_spelling(number: str, enforced: bool) -> None:  # noqa: FBT001 - pytest calls it
    """To the last digit: what a server makes of it is the server's."""
    stage = Wired(enforced=enforced, server=Server(name="shop", reads=("buy",)))

    stage.proxy.from_client(json.dumps(BUY).replace('"gold"', number).encode())

    assert f'"what":{number}}}' in stage.wire.decode().replace(" ", "")


def test_numbers_that_no_double_tells_apart_are_two_calls() -> None:
    """A call that is approved, or finished, is this one to the last digit."""
    stage = Wired()

    for number in ("1e400", "1e500", "0.1", "0.1" + "0" * 20 + "1", "true", "1", "1.0"):
        stage.proxy.from_client(json.dumps(BUY).replace('"gold"', number).encode())

    assert 7 == len({body.key for body in stage.bodies(ToolRequested)})


def test_a_text_that_some_reader_splits_goes_on_escaped() -> None:
    """And means the same: nothing of it is lost."""
    stage = Wired(enforced=True, server=Server(name="shop", reads=("buy",)))
    text = "a\u2028b\u2029c\x85d\re\nf\x0b\x0c\x1c\u00e9"
    line = json.dumps(BUY, ensure_ascii=False).replace('"gold"', json.dumps(text, ensure_ascii=False))

    stage.proxy.from_client(line.encode())

    assert (1, text) == (
        len(stage.wire.decode().splitlines()),
        json.loads(stage.wire)["params"]["arguments"]["what"],
    )


def test_one_wrong_message_of_a_batch_does_not_take_the_others_along() -> None:
    """Each is told about by its id, and what is right goes on."""
    stage = Wired(enforced=True)
    wrong = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"a": 1, "A": 2}}'

    stage.proxy.from_client(f"[{json.dumps(PING)}, {wrong}, [], 5]".encode())

    assert ([1], [(7, -32700), (None, -32700), (None, -32700)]) == (
        [json.loads(line)["id"] for line in stage.wire.splitlines()],
        [(answer["id"], answer["error"]["code"]) for answer in stage.to_client],
    )


def test_a_second_request_with_an_open_id_is_refused() -> None:
    """Else the outcome of one call would be recorded as that of another; once it is answered, the id is free."""
    stage = Wired(enforced=True, server=Server(name="shop", reads=("*",)))

    stage.call(1, "price")
    stage.call(1, "look")
    stage.tell(None, 1, result={"content": []})
    stage.call(1, "weigh")

    names = [json.loads(line)["params"]["name"] for line in stage.wire.splitlines()]
    assert (["price", "weigh"], (None, -32600)) == (
        names,
        (stage.to_client[0]["id"], stage.to_client[0]["error"]["code"]),
    )


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"arguments": GOLD}, id="without a name"),
        pytest.param({"name": ["buy"], "arguments": GOLD}, id="with a list of names"),
        pytest.param({"name": "price", "arguments": ["gold"]}, id="with arguments in a row"),
        pytest.param({"name": "price", "arguments": "gold"}, id="with arguments as a text"),
    ],
)
def test_a_call_of_which_it_is_not_clear_what_it_asks_for_is_refused(params: dict[str, Any]) -> None:
    """What cannot be judged is not passed on; where nothing is enforced, it is recorded as far as it goes."""
    enforced, watched = Wired(enforced=True), Wired()
    for stage in (enforced, watched):
        stage.say("tools/call", 1, params=params)

    assert (b"", -32602) == (enforced.wire, enforced.to_client[0]["error"]["code"])
    assert "gold" in str(watched.recorded())


class TestFromTheServer:
    """What a client reads is what is recorded."""

    LINE = '{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "good"}]}}'

    def test_an_enforced_proxy_passes_on_what_it_recorded(self) -> None:
        """Written anew, so that no client finds a second message in it; numbers keep their spelling."""
        stage = Stage(enforced=True, server=Server(name="shop", reads=("buy",)))
        lines: list[bytes] = []
        stage.proxy._to_client = lines.append

        stage.call(1)
        stage.proxy.from_server(self.LINE.replace(": ", ":\r").replace('"good"', '"good\u2028", "n": 1.50').encode())

        (line,) = lines
        assert (1, True, ["tool.completed"]) == (
            len(line.decode().splitlines()),
            b'"n":1.50' in line,
            stage.kinds()[2:],
        )

    @pytest.mark.parametrize(
        "line",
        [
            pytest.param(LINE.replace('"content"', '"content": [], "content"'), id="a key that stands twice"),
            pytest.param(LINE + "\r" + LINE.replace("good", "bad"), id="two answers"),
            pytest.param(LINE.encode() + b"\xff", id="what is no text"),
        ],
    )
    def test_what_a_client_may_read_otherwise_is_kept_back(self, line: str | bytes) -> None:
        """Whoever waits is told if it is known who that is, the call is in doubt, and the session goes on."""
        stage = Stage(enforced=True, server=Server(name="shop", reads=("buy",)))

        stage.call(1)
        stage.proxy.from_server(line if isinstance(line, bytes) else line.encode())
        stage.tell("notifications/message", params={"level": "info"})

        failed, heard = stage.to_client
        assert (1, -32000, "notifications/message") == (failed["id"], failed["error"]["code"], heard["method"])
        assert ["run.started", "tool.requested"] == stage.kinds()
        (complaint,) = stage.complaints
        assert complaint.startswith("a line of the server is not passed on: ")

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param('{"Path": 1, "PATH": 2}', id="keys that differ by case"),
            pytest.param('"\\ud83d"', id="half a surrogate"),
            pytest.param("NaN", id="a number that is none"),
        ],
    )
    def test_what_servers_do_return_passes(self, text: str) -> None:
        """It is read in one way only by all who read it, and honest servers send it."""
        stage = Stage(enforced=True, server=Server(name="shop", reads=("buy",)))
        lines: list[bytes] = []
        stage.proxy._to_client = lines.append

        stage.call(1)
        stage.proxy.from_server(f'{{"jsonrpc":"2.0","id":1,"result":{{"structuredContent":{text}}}}}'.encode())

        assert (text.replace(" ", "").encode() in lines[0], ["tool.completed"]) == (True, stage.kinds()[2:])

    def test_a_second_answer_behind_a_carriage_return_is_recorded_where_it_passes(self) -> None:
        """A proxy that only watches passes both on, and both calls have their outcome."""
        stage = Stage()
        lines: list[bytes] = []
        stage.proxy._to_client = lines.append
        line = f"{self.LINE}\r{self.LINE.replace(': 1,', ': 2,')}".encode()

        stage.call(1)
        stage.call(2)
        stage.proxy.from_server(line)

        assert ([line], 2) == (lines, stage.kinds().count("tool.completed"))
