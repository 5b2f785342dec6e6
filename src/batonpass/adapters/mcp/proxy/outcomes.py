"""The outcomes of calls: a result, an error, a question from the server, or a task whose result comes later."""

import threading
from typing import TYPE_CHECKING

from msgspec import Struct, field

from batonpass.adapters.mcp.messages.message import INPUT_REQUIRED, Message
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxiedCall, ProxyRecorder

if TYPE_CHECKING:
    from batonpass.handoff.calls.pending_call import Begun

_MOST_CHARACTERS = 10_000


class WaitingRequest(Struct, frozen=True):
    """A request that the server has not answered, and the recorded call that it is about, if any."""

    message: Message
    call: ProxiedCall | None = None
    begun: "Begun | None" = None


class Outcomes(Struct):
    """Follows calls until they have an outcome. A call that never gets one is in doubt, and the record says so."""

    recorder: ProxyRecorder
    legs: list[WaitingRequest] = field(default_factory=list)  # the server asked something; the client will call again
    tasks: dict[str, WaitingRequest] = field(default_factory=dict)  # accepted; the result is fetched by task id
    lock: threading.Lock = field(default_factory=threading.Lock)

    def about(self, message: Message) -> WaitingRequest | None:
        """Return the call whose result a request asks for; None if it asks for none."""
        if message.method != "tasks/result":
            return None
        with self.lock:
            found = self.tasks.get(str(message.params.get("taskId")))
        return None if found is None else WaitingRequest(message, found.call, found.begun)

    def take_leg(self, message: Message, call: ProxiedCall) -> WaitingRequest | None:
        """Return the call that this request continues with the answer to the server's question; None if there is none.

        It must be the same call in every argument: only that one was allowed.
        """
        if "inputResponses" not in message.params and "requestState" not in message.params:
            return None
        with self.lock:
            for leg in self.legs:
                if leg.call is not None and call.is_same(leg.call):
                    self.legs.remove(leg)
                    return WaitingRequest(message, leg.call, leg.begun)
        return None

    def take(self, answer: Message, waiting: WaitingRequest) -> None:
        """Record the outcome of a call."""
        call, begun, result = waiting.call, waiting.begun, answer.result
        if call is None or begun is None:
            return
        if result is None:
            self.recorder.fail(begun, call, str(answer.error.get("message", "no reason was given"))[:_MOST_CHARACTERS])
        elif result.get("resultType") == INPUT_REQUIRED:
            with self.lock:
                self.legs.append(waiting)
        elif (task := _task_of(waiting.message, answer)) is not None:
            with self.lock:
                self.tasks[task] = waiting
        else:
            self._forget_task(waiting.message)
            if result.get("isError") is True:
                self.recorder.fail(begun, call, _words_of(result.get("content"))[:_MOST_CHARACTERS])
            else:
                self.recorder.finish(begun, call, result, answer.line)

    def _forget_task(self, message: Message) -> None:
        if message.method == "tasks/result":
            with self.lock:
                self.tasks.pop(str(message.params.get("taskId")), None)


def _task_of(asked: Message, answer: Message) -> str | None:
    task = (answer.result or {}).get("task")
    if asked.method != "tools/call" or not isinstance(task, dict) or "content" in (answer.result or {}):
        return None
    return str(task.get("taskId"))


def _words_of(content: object) -> str:
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)) or "no reason was given"
