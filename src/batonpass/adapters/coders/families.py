"""Which session is whose child: agents whose sub-agents have sessions of their own are recorded as one session."""

import json
import threading
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind
from batonpass.adapters.coders.events import HookEvent, is_agent_id
from batonpass.adapters.tool_kinds import Coder

_MOST: Final = 4096  # sessions that are remembered
_LONGEST_LINE: Final = 1 << 20
_PARENTS: Final = ("parent_thread_id", "callingSessionId")  # in the first line of a session file: Codex, droid
_DEEPEST: Final = 8


class Families:
    """Remembers the root and the parent of each sub-agent. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parents: dict[tuple[Coder, str], str | None] = {}  # None: it is known to have none

    def place(self, event: HookEvent, dialect: Dialect) -> HookEvent:
        """Return an event with the session of its main conversation, and with its sub-agent's parent there."""
        told = event.parent is not None and event.agent is not None
        if event.parent is not None and event.agent is not None:
            self._remember(event.coder, event.agent, event.parent)
        elif LinkKind.FILE in dialect.links and event.coder is not Coder.CLAUDE_CODE:
            self._read_parent(event)
        agent = event.agent
        if agent is None and self._parent(event.coder, event.session) is not None:
            agent = event.session  # a session that another one called
        if agent is None:
            return event
        parent = self._parent(event.coder, agent)
        # A sub-agent's events name its own session, that of its parent, or that of the main conversation.
        root = parent if event.session == agent and parent is not None else event.session
        seen = {agent}
        while (above := self._parent(event.coder, root)) is not None and root not in seen:
            seen.add(root)
            root = above
        name = "SubagentStop" if event.agent is None and event.name == "SessionEnd" else event.name
        return replace(
            event,
            name=name,
            agent=agent,
            session=root,
            parent=parent if parent is not None and parent != root else None,
            link=None if parent is None else LinkKind.PARENT if told else LinkKind.FILE,
        )

    def _parent(self, coder: Coder, child: str) -> str | None:
        with self._lock:
            return self._parents.get((coder, child))

    def _remember(self, coder: Coder, child: str, parent: str | None) -> None:
        with self._lock:
            self._parents[coder, child] = None if parent == child else parent
            while len(self._parents) > _MOST:
                del self._parents[next(iter(self._parents))]

    def _read_parent(self, event: HookEvent) -> None:
        """Learn the parent of a sub-agent from its session file, once."""
        child = event.agent or event.session
        with self._lock:
            known = (event.coder, child) in self._parents
        # The end of a sub-agent is told with the file of its parent.
        if known or event.transcript is None or child not in event.transcript.name:
            return
        parent = parent_in_file(event.transcript)
        if parent is not None or event.agent is None:
            self._remember(event.coder, child, parent)


def parent_in_file(path: Path) -> str | None:
    """Return the session that started another one, as the first line of a session file says; None if it says none."""
    try:
        with path.open("rb") as file:
            first = json.loads(file.readline(_LONGEST_LINE))
    except (OSError, ValueError, RecursionError):
        return None
    return next((found for name in _PARENTS if is_agent_id(found := _find(first, name))), None)


def _find(value: Any, name: str, depth: int = 0) -> object:  # noqa: ANN401 - whatever JSON can hold
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    if name in value:
        return value[name]
    return next((found for one in value.values() if (found := _find(one, name, depth + 1)) is not None), None)
