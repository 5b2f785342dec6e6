"""Events as Claude Code sends them, and receipts as a test can compare them: ids by their order, digests left out."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.receipt import Receipt
from batonpass.relay import Relay
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

SESSION = "11111111-2222-4333-8444-555555555555"

_ID = re.compile(r"\b(run|handoff|call|content|receipt)_[0-9a-z]{26}\b")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MARK = re.compile(r"\[\[[0-9a-f]{16} ")


@dataclass(slots=True)
class Session:
    """A session of Claude Code in a project: what it tells its hooks, and the files that it keeps."""

    project: Path
    recorder: HookRecorder
    id: str = SESSION
    prompt_id: str = "p1"
    after: Callable[[], HookRecorder] | None = None  # who goes on recording after each event
    heard: list[str] = field(default_factory=list)
    asked: dict[tuple[str, str], Mapping[str, object]] = field(default_factory=dict)  # calls, with their arguments

    @property
    def transcript(self) -> Path:
        """Return where the session's transcript is."""
        return self.project.parent / "kept" / f"{self.id}.jsonl"

    def tell(self, name: str, **more: object) -> dict[str, Any]:
        """Tell a hook what happened; return its answer."""
        event = {
            "session_id": self.id,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "permission_mode": "default",
            "hook_event_name": name,
            "prompt_id": self.prompt_id,
            "some_field_of_the_next_version": {"x": 1},
            **more,
        }
        raw = json.dumps(event)
        self.heard.append(raw)
        answer = self.recorder.handle(json.loads(raw))
        if self.after is not None:
            self.recorder = self.after()
        return answer

    def says(self, words: str, prompt_id: str | None = None) -> dict[str, Any]:
        """Let the human say something."""
        self.prompt_id = prompt_id or self.prompt_id
        return self.tell("UserPromptSubmit", prompt=words)

    def asks(self, call: str, tool: str, agent: str | None = None, **given: object) -> dict[str, Any]:
        """Let the model ask for a call."""
        self.asked[call, tool] = given
        return self.tell("PreToolUse", tool_name=tool, tool_input=given, tool_use_id=call, **_of(agent))

    def returns(self, call: str, tool: str, response: object, agent: str | None = None, **given: object) -> None:
        """Let a call return: with the arguments with which it was asked for, unless others are given."""
        used = {**self.asked.get((call, tool), {}), **given}
        told = {"tool_name": tool, "tool_input": used, "tool_use_id": call, "tool_response": response}
        self.tell("PostToolUse", **told, **_of(agent), duration_ms=3)

    def fails(self, call: str, tool: str, error: str, agent: str | None = None, **given: object) -> None:
        """Let a call fail."""
        used = {**self.asked.get((call, tool), {}), **given}
        told = {"tool_name": tool, "tool_input": used, "tool_use_id": call, "error": error, "is_interrupt": False}
        self.tell("PostToolUseFailure", **told, **_of(agent))

    def calls(self, call: str, tool: str, response: object = "ok", agent: str | None = None, **given: object) -> None:
        """Let a call be made from beginning to end."""
        self.asks(call, tool, agent, **given)
        self.returns(call, tool, response, agent, **given)

    def delegates(
        self, call: str, prompt: str, kind: str | None = "editor", agent: str | None = None
    ) -> dict[str, Any]:
        """Let a sub-agent be asked for."""
        return self.asks(call, "Agent", agent, prompt=prompt, subagent_type=kind, description="edit")

    def starts(
        self, agent: str, call: str | None = None, kind: str | None = "editor", parent: str | None = None
    ) -> None:
        """Let a sub-agent start; the file beside its transcript comes after the hook was told."""
        self.tell("SubagentStart", agent_id=agent, agent_type=kind)
        if call is not None:
            above = {} if parent is None else {"parentAgentId": parent}
            self.keep(f"agent-{agent}.meta.json", {"toolUseId": call, "agentType": kind, **above}, agent=agent)

    def stops(self, agent: str, words: str | None, kind: str = "editor") -> None:
        """Let a sub-agent stop."""
        self.tell("SubagentStop", agent_id=agent, agent_type=kind, last_assistant_message=words, background_tasks=[])

    def delegated(
        self, call: str, agent: str, words: str, status: str = "completed", within: str | None = None
    ) -> None:
        """Let the call return that started a sub-agent."""
        response = {"status": status, "agentId": agent, "content": [{"type": "text", "text": words}]}
        self.returns(call, "Agent", response, within)

    def keep(self, name: str, document: object, agent: str | None = None) -> None:
        """Write a line into a file that Claude Code keeps."""
        folder = self.transcript.parent if agent is None else self.transcript.with_suffix("") / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(document) + "\n")


def _of(agent: str | None) -> dict[str, str]:
    return {} if agent is None else {"agent_id": agent, "agent_type": "editor"}


def told(relay: Relay) -> list[dict[str, Any]]:
    """Return all that is recorded, field by field, in a form in which two recordings of the same can be compared."""
    names = _Names()
    with relay.store.view() as view:
        found = [decode_receipt(one.payload) for one in view.find_receipts(ReceiptQuery())]
        return [_tell(receipt, view, names) for receipt in found if not receipt.kind.startswith("relay.")]


def lines(relay: Relay, *kinds: str) -> list[str]:
    """Return what is recorded, one line each: the run, the kind, and the names by which Claude Code knows it."""
    return [_line(one) for one in told(relay) if not kinds or one["kind"] in kinds]


def receipts(relay: Relay, kind: str) -> list[dict[str, Any]]:
    """Return the receipts of one kind."""
    return [one for one in told(relay) if one["kind"] == kind]


def _line(one: Mapping[str, Any]) -> str:
    source = one["content"].get("source", {})
    facts = [str(source[name]) for name in ("key", "link", "candidates", "status") if name in source]
    return " ".join([one["stream"], one["kind"], *facts])


class _Names:
    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, text: str) -> str:
        return _MARK.sub("[[MARK ", _DIGEST.sub("DIGEST", _ID.sub(self._name, text)))

    def _name(self, match: re.Match[str]) -> str:
        kind = match[1]
        if match[0] not in self._known:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[match[0]] = f"{kind}-{self._counts[kind]}"
        return self._known[match[0]]


def _tell(receipt: Receipt, view: LedgerView, names: _Names) -> dict[str, Any]:
    return {
        "stream": names(receipt.stream),
        "seq": receipt.seq,
        "kind": str(receipt.kind),
        "mode": str(receipt.mode),
        "session": receipt.session,
        "cosigned": receipt.cosigner is not None,
        "body": dict(_tell_body(receipt.body, names)),
        "content": {
            name: _tell_content(view.get_content(ref.id), ref.media_type, names)
            for name, ref in sorted(receipt.content.items())
            if not name.endswith("secret")
        },
    }


def _tell_body(body: object, names: _Names) -> Iterator[tuple[str, Any]]:
    assert isinstance(body, Struct)
    for name, part in asdict(body).items():
        # How long a call took differs every time, and whoever took over does not know it.
        yield name, None if name == "took_us" else _plain(part, names)


def _plain(value: Any, names: _Names) -> Any:  # noqa: ANN401 - whatever a body holds
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, str):
        return names(value)
    if isinstance(value, tuple):
        return [_plain(item, names) for item in value]
    if isinstance(value, Struct):
        return dict(_tell_body(value, names))
    return value


def _tell_content(stored: StoredContent, media_type: str, names: _Names) -> Any:  # noqa: ANN401 - JSON
    text = (stored.body or b"").decode("utf-8", "replace")
    if media_type != "application/json":
        return names(text)
    document = json.loads(names(text))
    if isinstance(document, dict):
        for name in ("at", "session"):
            document.pop(name, None)
    return document
