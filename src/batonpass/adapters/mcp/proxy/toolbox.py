"""The tools of a server as it lists them: what it says against them, and whether it changes what it said."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from batonpass.adapters.mcp.messages.message import encode
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyRecorder
from batonpass.adapters.mcp.server_declaration import Hints
from batonpass.errors import BatonpassError

_MOST_KEPT: Final = 100  # of changed definitions, which a server could make without end


class Toolbox(Struct):
    """What is known of a server's tools. A definition that changes under its name is kept, before and after."""

    recorder: ProxyRecorder
    hints: Hints = field(default_factory=Hints)
    known: dict[str, bytes] = field(default_factory=dict)
    kept: int = 0

    def learn(self, result: Mapping[str, Any]) -> None:
        """Take note of a list of tools, or of a page of one."""
        tools = result.get("tools")
        if not isinstance(tools, list):
            return
        self.hints.learn(tools)
        for tool in tools:
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self._compare(name, encode(tool))

    def _compare(self, name: str, definition: bytes) -> None:
        before = self.known.get(name)
        self.known[name] = definition
        if before is None or before == definition or self.kept == _MOST_KEPT:
            return
        # People and models trusted the tool that was described before: what it says now came from outside, later.
        self.kept += 1
        try:
            self.recorder.keep(f"mcp-tool-{self.kept}-before.json", before)
            self.recorder.keep(f"mcp-tool-{self.kept}-after.json", definition)
        except BatonpassError:
            return  # what is missed here is said by the first call that is missed
