"""The proxy between one client and one server: it judges and records calls, and passes everything else on.

An observing proxy passes lines on as they came. An enforcing proxy writes each message anew from its parsed form, so
that the server gets exactly the judged message. One thread handles the client's lines in order, another the server's.
"""

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from batonpass.adapters.mcp.messages import message as messages
from batonpass.adapters.mcp.messages.hidden_messages import read_all_messages
from batonpass.adapters.mcp.messages.message import Key, Message
from batonpass.adapters.mcp.messages.strict_messages import read_from_client, read_from_server
from batonpass.adapters.mcp.proxy.call_decision import CallDenied, CallHeld, GoOn, Guard, KnownAnswer
from batonpass.adapters.mcp.proxy.call_messages import CALL, find_wrong_params, is_call, read_call
from batonpass.adapters.mcp.proxy.client_question import (
    ELICIT,
    LONGEST_QUESTION,
    can_be_asked,
    question,
    question_as_result,
    read_carried_verdict,
    read_verdict,
    sentence_declined,
)
from batonpass.adapters.mcp.proxy.outcomes import Outcomes, WaitingRequest
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxiedCall, ProxyRecorder
from batonpass.adapters.mcp.proxy.toolbox import Toolbox
from batonpass.adapters.mcp.server_declaration import Server, name_for
from batonpass.errors import BatonpassError
from batonpass.model.base.ids import AgentId

if TYPE_CHECKING:
    from batonpass.handoff.approvals.decision_sheet import Material

_OLDEST: Final = "2024-11-05"  # the protocol revision of a client that has not named one yet


class _Asked(Struct, frozen=True):
    """A held call about which the person at the client was asked."""

    message: Message
    call: ProxiedCall
    held: CallHeld
    material: "Material"
    since: float  # monotonic time

    @property
    def looked_ms(self) -> int:
        """Return how long the question has been open, in milliseconds."""
        return int((time.monotonic() - self.since) * 1000)


class _Client(Struct):
    """The client's declarations about itself."""

    capabilities: dict[str, Any] = field(default_factory=dict)
    version: str = _OLDEST


class Proxy:
    """Passes messages in both directions. `to_client` and `to_server` may be called from any thread."""

    def __init__(
        self,
        server: Server,
        recorder: ProxyRecorder,
        guard: Guard,
        *,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
    ) -> None:
        self._server = server
        self._recorder = recorder
        self._guard = guard
        self._to_client = to_client
        self._to_server = to_server
        self._client = _Client()
        self._toolbox = Toolbox(recorder)
        self._outcomes = Outcomes(recorder)
        self._waiting: dict[Key, WaitingRequest] = {}
        self._asked: dict[str, _Asked] = {}  # by the id of our question, or by the state that the answer brings back
        self._passed: list[bytes] = []  # from the client's current line: messages for the server
        self._lock = threading.Lock()

    def from_client(self, line: bytes) -> None:
        """Handle a line from the client."""
        self._passed = []
        if self._recorder.enforced:
            for message in read_from_client(line):
                self._take_strictly(message)
        else:
            self._watch(line)
        for passed in self._passed:
            self._to_server(passed)

    def _take_strictly(self, message: Message) -> None:
        if message.fault is not None:
            # The server might read another call than we do, or a call where we read none.
            sentence = f"not passed on: {message.fault}"
            self._to_client(messages.failure(message.id, messages.PARSE_ERROR, sentence))
        elif message.is_request and self._is_open(message):
            # With two answers under one id, nobody could tell which call had which outcome.
            sentence = "not passed on: a request with this id is open already"
            self._to_client(messages.failure(None, messages.INVALID_REQUEST, sentence))
        elif is_call(message) and (wrong := find_wrong_params(message)) is not None:
            self._to_client(messages.failure(message.id, messages.INVALID_PARAMS, f"not passed on: {wrong}"))
        else:
            self._take_from_client(message)

    def _watch(self, line: bytes) -> None:
        """Record every call that some server may find in a line.

        The line passes unchanged, unless a call must not be made.
        """
        told, hidden = read_all_messages(line)
        found = [*told, *filter(is_call, hidden)]
        for message in found:
            self._take_from_client(message)
        if len(found) > 1:
            self._forget_twins(found)
        if self._passed == [message.line for message in found]:
            self._passed = [line]
        else:
            # A call must not be made, or one message was an answer for us and a held call goes on. What goes on is sent
            # in lines of its own, and only if it can be read in one way.
            self._passed = [one for one in self._passed if all(each.fault is None for each in read_from_client(one))]

    def _forget_twins(self, found: list[Message]) -> None:
        """Expect no answer to requests that share an id: nobody can tell which of them the server answers."""
        keys = Counter(message.key for message in found if message.is_request and message.key is not None)
        with self._lock:
            for key in (key for key, number in keys.items() if number > 1):
                self._waiting.pop(key, None)

    def _take_from_client(self, message: Message) -> None:
        if message.is_answer and (asked := self._take_asked(str(message.id))):
            self._settle(asked, asked.message, read_verdict(message))
            return
        self._meet(message)
        if message.method == CALL:
            self._take_call(message)
        elif is_call(message):
            self._send(message, self._read_call(message))
        elif message.method == "notifications/cancelled" and (given_up := self._find_cancelled(message)):
            # The server never saw that call, and the person no longer needs to answer.
            self._to_client(messages.notification("notifications/cancelled", {"requestId": given_up}))
        else:
            self._pass_on(message, self._outcomes.about(message))

    def _read_call(self, message: Message) -> ProxiedCall:
        return read_call(message, self._server, self._toolbox.hints)

    def _meet(self, message: Message) -> None:
        """Learn who the client is: from `initialize` or, if every request says it, from a request."""
        if message.method == "initialize":
            said, info = message.params, message.params.get("clientInfo")
            capabilities, version = said.get("capabilities"), said.get("protocolVersion")
        elif message.is_modern:
            info = message.meta.get(messages.CLIENT_INFO)
            capabilities, version = message.meta.get(messages.CLIENT_CAPABILITIES), message.meta[messages.VERSION]
        else:
            return
        self._client.capabilities = capabilities if isinstance(capabilities, dict) else {}
        self._client.version = version if isinstance(version, str) else _OLDEST
        name = info.get("name") if isinstance(info, dict) else None
        if isinstance(name, str) and name:
            self._recorder.meet(AgentId(name_for(name)))

    def _take_call(self, message: Message) -> None:
        call = self._read_call(message)
        state = message.params.get("requestState")
        if isinstance(state, str) and (asked := self._take_asked(state)):
            self._settle_carried(asked, message, call)
        elif (leg := self._outcomes.take_leg(message, call)) is not None:
            self._pass_on(message, leg)
        else:
            self._send(message, call)

    def _send(self, message: Message, call: ProxiedCall, *, line: bytes | None = None) -> None:
        """Judge a call: pass it on, answer from the record, ask the person, or refuse it."""
        match self._guard.decide(call):
            case GoOn(begun):
                self._pass_on(message, WaitingRequest(message, call, begun), line=line)
            case KnownAnswer(result):
                self._to_client(messages.answer(message, result))
            case CallHeld() as held:
                self._hold(message, call, held)
            case CallDenied() as denied:
                self._refuse(message, denied.sentence)

    def _hold(self, message: Message, call: ProxiedCall, held: CallHeld) -> None:
        material = self._recorder.material(held.call) if self._can_ask(message) else None
        # An answer at the client is no proof, and comes from one person.
        if material is None or material.proven or material.approvals > 1 or len(material.text) > LONGEST_QUESTION:
            self._refuse(message, held.sentence)
            return
        identifier = f"batonpass-{secrets.token_hex(12)}"
        with self._lock:
            self._asked[identifier] = _Asked(message, call, held, material, time.monotonic())
        asked = question(material)
        if message.is_modern:
            self._to_client(messages.answer(message, question_as_result(asked, identifier)))
        else:
            self._to_client(messages.request(identifier, ELICIT, asked))

    def _can_ask(self, message: Message) -> bool:
        if message.method != CALL or not self._recorder.can_ask:
            return False
        return can_be_asked(self._client.capabilities, self._client.version)

    def _settle_carried(self, asked: _Asked, again: Message, call: ProxiedCall) -> None:
        """Handle a repeated call that brings the answer to our question. It must be the call that was asked about."""
        if not call.is_same(asked.call):
            self._send(again, call, line=_without_answer(again, asked.message))
            return
        self._settle(asked, again, read_carried_verdict(again), line=_without_answer(again, asked.message))

    def _settle(self, asked: _Asked, message: Message, verdict: bool | None, *, line: bytes | None = None) -> None:  # noqa: FBT001 - a person's answer
        if verdict is None:
            self._refuse(message, asked.held.sentence)
            return
        try:
            self._recorder.settle(asked.held.call, approved=verdict, shown=asked.material, looked_ms=asked.looked_ms)
        except BatonpassError as error:
            self._refuse(message, f"{asked.held.sentence} The answer at the client does not count: {error}")
            return
        if verdict:
            self._send(message, asked.call, line=line)
        else:
            self._refuse(message, sentence_declined(asked.held))

    def _refuse(self, message: Message, sentence: str) -> None:
        if message.method == CALL:
            self._to_client(messages.tool_failure(message, sentence))
        else:
            self._to_client(messages.failure(message.id, messages.REFUSED, sentence))

    def _pass_on(self, message: Message, waiting: WaitingRequest | None, *, line: bytes | None = None) -> None:
        """Queue a message for the server. It is sent when its whole line is judged."""
        if message.is_request and message.key is not None:
            with self._lock:
                self._waiting[message.key] = waiting or WaitingRequest(message)
        self._passed.append(line or message.line)

    def _is_open(self, message: Message) -> bool:
        with self._lock:
            asked = [each.message.key for each in self._asked.values() if not each.message.is_modern]
            return message.key in self._waiting or message.key in asked

    def _take_asked(self, identifier: str) -> _Asked | None:
        with self._lock:
            return self._asked.pop(identifier, None)

    def _find_cancelled(self, message: Message) -> str | None:
        """Return the id of our question about a call that the client has cancelled, and forget the question."""
        given_up = message.params.get("requestId")
        with self._lock:
            for identifier, asked in self._asked.items():
                if asked.message.id == given_up and not asked.message.is_modern:
                    del self._asked[identifier]
                    return identifier
        return None

    def from_server(self, line: bytes) -> None:
        """Handle a line from the server. The outcome of a call is recorded before the client gets it."""
        if not self._recorder.enforced:
            told, hidden = read_all_messages(line)
            for message in (*told, *hidden):
                self._learn(message)
            self._to_client(line)
            return
        for message in read_from_server(line):
            if message.fault is None:
                self._learn(message)
                self._to_client(message.line)
            else:
                self._keep_back(message)

    def _learn(self, message: Message) -> None:
        waiting = self._take_waiting(message)
        if waiting is not None:
            self._recorder.attempt(partial(self._take_answer, message, waiting))

    def _keep_back(self, message: Message) -> None:
        """Withhold a message that the client might read differently from the record, and tell a waiting client so.

        The outcome of the call is then unknown, so it stays in doubt.
        """
        self._recorder.warn(f"a line of the server is not passed on: {message.fault}")
        if (waiting := self._take_waiting(message)) is not None:
            sentence = f"the answer of the server is not passed on: {message.fault}"
            self._to_client(messages.failure(waiting.message.id, messages.CONNECTION_CLOSED, sentence))

    def _take_waiting(self, answer: Message) -> WaitingRequest | None:
        if not answer.is_answer or answer.key is None:
            return None
        with self._lock:
            return self._waiting.pop(answer.key, None)

    def _take_answer(self, message: Message, waiting: WaitingRequest) -> None:
        if waiting.message.method == "tools/list":
            self._toolbox.learn(message.result or {})
        elif waiting.message.method == "initialize" and isinstance(
            version := (message.result or {}).get("protocolVersion"), str
        ):
            self._client.version = version
        self._outcomes.take(message, waiting)

    def end(self, why: str) -> None:
        """Tell the client that nothing more will come: each open request fails. Open calls stay in doubt."""
        with self._lock:
            left, self._waiting = list(self._waiting.values()), {}
        for waiting in left:
            sentence = why if waiting.begun is None else f"{why}; whether the call was made is not known"
            self._to_client(messages.failure(waiting.message.id, messages.CONNECTION_CLOSED, sentence))


def _without_answer(again: Message, first: Message) -> bytes:
    """Return a call as it was before our question: the question and its answer are not for the server."""
    params = dict(again.params)
    for name in ("inputResponses", "requestState"):
        if name in first.params:
            params[name] = first.params[name]
        else:
            params.pop(name, None)
    return messages.encode({**(again.body or {}), "params": params})
