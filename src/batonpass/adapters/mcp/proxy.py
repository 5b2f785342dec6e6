"""The proxy between one client and one server: everything passes as it is; calls are recorded, and may be held.

What comes from the client is handled by one thread, what comes from the server by another, each in its order.
"""

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from batonpass.adapters.mcp import messages
from batonpass.adapters.mcp.asking import (
    ELICIT,
    can_be_asked,
    question,
    question_as_result,
    read_carried_verdict,
    read_verdict,
    sentence_against,
    sentence_declined,
    sentence_for,
)
from batonpass.adapters.mcp.deciding import Denied, GoOn, Guard, Held, Known
from batonpass.adapters.mcp.declaring import PROMPT, RESOURCE, Server, name_for
from batonpass.adapters.mcp.messages import Key, Message, read_messages
from batonpass.adapters.mcp.outcomes import Outcomes, Waiting
from batonpass.adapters.mcp.recorder import ProxiedCall, Recorder, proxied
from batonpass.adapters.mcp.toolbox import Toolbox
from batonpass.errors import BatonpassError
from batonpass.handoff.transfer.decision_sheet import Material
from batonpass.model.ids import AgentId

CALL: Final = "tools/call"
_READINGS: Final = {"resources/read": (RESOURCE, "uri"), "prompts/get": (PROMPT, "name")}
_OLDEST: Final = "2024-11-05"  # of the protocol: what a client speaks that has not said so yet


@dataclass(frozen=True, slots=True)
class _Asked:
    """A held call about which somebody was asked."""

    message: Message
    call: ProxiedCall
    held: Held
    material: Material
    since: float  # of the monotonic clock

    @property
    def looked_ms(self) -> int:
        """Return for how long the question has been open."""
        return int((time.monotonic() - self.since) * 1000)


@dataclass(slots=True)
class _Client:
    """What the client said of itself."""

    capabilities: dict[str, Any] = field(default_factory=dict)
    version: str = _OLDEST


class Proxy:
    """Passes lines on in both directions. Both outlets may be used from any thread."""

    def __init__(
        self,
        server: Server,
        recorder: Recorder,
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
        self._waiting: dict[Key, Waiting] = {}
        self._asked: dict[str, _Asked] = {}  # by the id of our question, or by the state that comes back with an answer
        self._lock = threading.Lock()

    def from_client(self, line: bytes) -> None:
        """Take a line from the client."""
        for message in read_messages(line, strict=self._recorder.enforced):
            self._take_from_client(message)

    def _take_from_client(self, message: Message) -> None:
        if message.method is None and not message.is_answer and self._recorder.enforced:
            # The server might read a call where we read nothing.
            self._to_client(messages.failure(None, messages.PARSE_ERROR, "this line is no message in JSON"))
            return
        if message.is_answer and (asked := self._take_asked(str(message.id))):
            self._settle(asked, asked.message, read_verdict(message))
            return
        self._meet(message)
        match message.method:
            case "tools/call":
                self._take_call(message)
            case "resources/read" | "prompts/get" as method:
                what, argument = _READINGS[method]
                declared = self._server.declare_reading(what)
                given = {argument: message.params.get(argument)}
                self._send(message, proxied(declared, given, f"{self._server.name}/{method}"))
            case "notifications/cancelled" if given_up := self._find_cancelled(message):
                # The server never saw that call, and the person need not answer any more.
                self._to_client(messages.notification("notifications/cancelled", {"requestId": given_up}))
            case _:
                self._pass_on(message, self._outcomes.about(message))

    def _meet(self, message: Message) -> None:
        """Learn who the client is, from its first words or, where each request says it, from the first that does."""
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
        name, arguments = message.params.get("name"), message.params.get("arguments")
        given = arguments if isinstance(arguments, dict) else {}
        named = name if isinstance(name, str) else repr(name)
        declared = self._server.declare(named, self._toolbox.hints)
        call = proxied(declared, given, self._server.resource_of(named), local=self._server.local)
        state = message.params.get("requestState")
        if isinstance(state, str) and (asked := self._take_asked(state)):
            self._settle_carried(asked, message, call)
        elif (leg := self._outcomes.take_leg(message, call)) is not None:
            self._pass_on(message, leg)
        else:
            self._send(message, call)

    def _send(self, message: Message, call: ProxiedCall, *, line: bytes | None = None) -> None:
        """Let a call be made, or have somebody asked, or say why not."""
        match self._guard.decide(call):
            case GoOn(begun):
                self._pass_on(message, Waiting(message, call, begun), line=line)
            case Known(result):
                self._to_client(messages.answer(message, result))
            case Held() as held:
                self._hold(message, call, held)
            case Denied() as denied:
                self._refuse(message, sentence_against(denied))

    def _hold(self, message: Message, call: ProxiedCall, held: Held) -> None:
        material = self._recorder.material(held.call) if self._can_ask(message) else None
        # Whoever answers at the client proves nothing, and is one person.
        if material is None or material.proven or material.approvals > 1:
            self._refuse(message, sentence_for(held))
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
        """Go on with a call that brings the answer to our question; it has to be the call that was asked about."""
        if not call.is_same(asked.call):
            self._send(again, call, line=_without_answer(again, asked.message))
            return
        self._settle(asked, again, read_carried_verdict(again), line=_without_answer(again, asked.message))

    def _settle(self, asked: _Asked, message: Message, verdict: bool | None, *, line: bytes | None = None) -> None:  # noqa: FBT001 - what a person said
        if verdict is None:
            self._refuse(message, sentence_for(asked.held))
            return
        try:
            self._recorder.settle(asked.held.call, approved=verdict, shown=asked.material, looked_ms=asked.looked_ms)
        except BatonpassError as error:
            self._refuse(message, f"{sentence_for(asked.held)} The answer at the client does not count: {error}")
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

    def _pass_on(self, message: Message, waiting: Waiting | None, *, line: bytes | None = None) -> None:
        if message.is_request and message.key is not None:
            with self._lock:
                self._waiting[message.key] = waiting or Waiting(message)
        self._to_server(line or message.line)

    def _take_asked(self, identifier: str) -> _Asked | None:
        with self._lock:
            return self._asked.pop(identifier, None)

    def _find_cancelled(self, message: Message) -> str | None:
        """Return our question about a call that the client has given up, and forget it."""
        given_up = message.params.get("requestId")
        with self._lock:
            for identifier, asked in self._asked.items():
                if asked.message.id == given_up and not asked.message.is_modern:
                    del self._asked[identifier]
                    return identifier
        return None

    def from_server(self, line: bytes) -> None:
        """Take a line from the server. What came of a call is recorded before the client learns it."""
        for message in read_messages(line):
            if message.is_answer and message.key is not None:
                with self._lock:
                    waiting = self._waiting.pop(message.key, None)
                if waiting is not None:
                    self._recorder.attempt(partial(self._take_answer, message, waiting))
            self._to_client(message.line)

    def _take_answer(self, message: Message, waiting: Waiting) -> None:
        if waiting.message.method == "tools/list":
            self._toolbox.learn(message.result or {})
        elif waiting.message.method == "initialize" and isinstance(
            version := (message.result or {}).get("protocolVersion"), str
        ):
            self._client.version = version
        self._outcomes.take(message, waiting)

    def end(self, why: str) -> None:
        """Tell the client that nothing more will come: each of its open requests fails. Open calls stay in doubt."""
        with self._lock:
            left, self._waiting = list(self._waiting.values()), {}
        for waiting in left:
            sentence = why if waiting.begun is None else f"{why}; whether the call was made is not known"
            self._to_client(messages.failure(waiting.message.id, messages.CONNECTION_CLOSED, sentence))


def _without_answer(again: Message, first: Message) -> bytes:
    """Return a call as the server would have got it at first: our question and its answer are not the server's."""
    params = dict(again.params)
    for name in ("inputResponses", "requestState"):
        if name in first.params:
            params[name] = first.params[name]
        else:
            params.pop(name, None)
    return messages.encode({**(again.body or {}), "params": params})
