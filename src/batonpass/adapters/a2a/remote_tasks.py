"""The tasks of a remote agent: sent, looked at and cancelled as A2A 1.0 says, over JSON-RPC or HTTP+JSON."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from batonpass.adapters.a2a.remote_card import JSON_RPC, RemoteCard
from batonpass.dispatch.egress import Egress
from batonpass.errors import RemoteRefusedError

VERSION: Final = {"A2A-Version": "1.0", "Content-Type": "application/json"}
OVER: Final = frozenset({"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"})
ASKS: Final = "TASK_STATE_INPUT_REQUIRED"
DONE: Final = "TASK_STATE_COMPLETED"

Document = dict[str, Any]


class RemoteTasks(Struct, frozen=True, kw_only=True):
    """Asks one remote agent. Raises `RemoteRefusedError` if it refuses, and `EgressError`."""

    egress: Egress
    card: RemoteCard
    headers: Mapping[str, str]

    def send(self, message: Document, extensions: str) -> Document:
        """Send a message, and return its task; an agent that only answers with a message has done the task."""
        said: Document = {"message": message, "configuration": {"returnImmediately": True}}
        told = self._ask("SendMessage", "POST", "/message:send", said, {"A2A-Extensions": extensions})
        if isinstance(task := told.get("task"), dict):
            return task
        if isinstance(answer := told.get("message"), dict):
            return {"id": "", "status": {"state": DONE, "message": answer}}
        raise RemoteRefusedError(f"{self.card.name} answered a message with neither a task nor a message")

    def get(self, task: str) -> Document:
        """Return a task as it is now."""
        return self._ask("GetTask", "GET", f"/tasks/{quote(task, safe='')}", {"id": task})

    def cancel(self, task: str) -> Document:
        """Ask the agent to stop."""
        return self._ask("CancelTask", "POST", f"/tasks/{quote(task, safe='')}:cancel", {"id": task})

    def _ask(
        self, method: str, verb: str, path: str, said: Document, headers: Mapping[str, str] | None = None
    ) -> Document:
        sent = {**self.headers, **VERSION, **(headers or {})}
        if self.card.tenant:
            said = {"tenant": self.card.tenant, **said}
        if self.card.binding == JSON_RPC:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": said}
            answer = self.egress.send("POST", self.card.url, headers=sent, body=json.dumps(body).encode())
            told = self._read(answer.body, answer.status)
            if (error := told.get("error")) is not None:
                raise RemoteRefusedError(f"{self.card.name} refused {method}: {_words(error)}")
            result = told.get("result")
        else:
            tenant = f"/{quote(self.card.tenant, safe='')}" if self.card.tenant else ""
            body_bytes = json.dumps(said).encode() if verb == "POST" else None
            answer = self.egress.send(verb, f"{self.card.url}{tenant}{path}", headers=sent, body=body_bytes)
            result = self._read(answer.body, answer.status)
            if not answer.is_good:
                raise RemoteRefusedError(f"{self.card.name} refused {method}: {_words(result.get('error'))}")
        if not isinstance(result, dict):
            raise RemoteRefusedError(f"{self.card.name} answered {method} with something that is not A2A")
        return result

    def _read(self, body: bytes, status: int) -> Document:
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            raise RemoteRefusedError(f"{self.card.name} answered {status} with something that is not JSON")
        return told


def _words(error: object) -> str:
    found = error.get("message") if isinstance(error, dict) else None
    return str(found)[:500] if found else "it says no reason"
