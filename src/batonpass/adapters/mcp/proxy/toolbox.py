"""The tools that a server lists: their hints, and whether a definition changes under the same name."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from batonpass.adapters.mcp.messages.message import encode
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyRecorder
from batonpass.adapters.mcp.server_declaration import Hints
from batonpass.errors import BatonpassError

_MOST_KEPT: Final = 100  # changed definitions; a server could produce them without end


class Toolbox(Struct):
    """The known tools of a server. If a definition changes under its name, both versions are kept as artifacts."""

    recorder: ProxyRecorder
    hints: Hints = field(default_factory=Hints)
    known: dict[str, bytes] = field(default_factory=dict)
    kept: int = 0

    def learn(self, result: Mapping[str, Any]) -> None:
        """Take in a list of tools, or one page of it."""
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
        # People and models trusted the earlier description. The new one came later, from outside.
        self.kept += 1
        try:
            self.recorder.keep(f"mcp-tool-{self.kept}-before.json", before)
            self.recorder.keep(f"mcp-tool-{self.kept}-after.json", definition)
        except BatonpassError:
            return  # the first call that cannot be recorded will report it
