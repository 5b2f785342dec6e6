"""All dialects, by agent, in the order in which people are offered them."""

from collections.abc import Mapping
from typing import Final

from batonpass.adapters.coders.dialects.claude_code import CLAUDE_CODE
from batonpass.adapters.coders.dialects.cline import CLINE
from batonpass.adapters.coders.dialects.codex import CODEX
from batonpass.adapters.coders.dialects.copilot import COPILOT
from batonpass.adapters.coders.dialects.cursor import CURSOR
from batonpass.adapters.coders.dialects.dialect import Dialect
from batonpass.adapters.coders.dialects.droid import DROID
from batonpass.adapters.coders.dialects.gemini import GEMINI
from batonpass.adapters.coders.dialects.opencode import OPENCODE
from batonpass.adapters.coders.dialects.qwen import QWEN
from batonpass.adapters.tool_kinds import Coder

DIALECTS: Final[Mapping[Coder, Dialect]] = {
    dialect.coder: dialect for dialect in (CLAUDE_CODE, CODEX, COPILOT, QWEN, GEMINI, OPENCODE, CURSOR, DROID, CLINE)
}
