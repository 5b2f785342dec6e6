"""The trailers of a commit: they say that an agent took part in it. They are about the commit as a whole."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from batonpass.notes.foreign.hearsay import Hearsay, HearsayReach, HearsaySource, shown

ENTIRE: Final = "entire-checkpoint"
_CO_AUTHORED: Final = "co-authored-by"
_ASSISTED: Final = "assisted-by"
_SESSION: Final = "claude-session"
NAMES: Final = (ENTIRE, _CO_AUTHORED, _ASSISTED, _SESSION)

_AIDER: Final = "aider@aider.chat"  # which writes its model in brackets behind its name
# By address alone: people are called Claude too, and somebody else's name is no proof of anything.
_AGENTS: Final = {
    "noreply@anthropic.com": "Claude",
    _AIDER: "Aider",
    "cursoragent@cursor.com": "Cursor",
    "codex@openai.com": "Codex",
    "noreply@openai.com": "Codex",
    "amp@ampcode.com": "Amp",
    "noreply@opencode.ai": "OpenCode",
    "qwen-coder@alibabacloud.com": "Qwen Code",
    "noreply@windsurf.com": "Windsurf",
    "noreply@codeium.com": "Windsurf",
    "roomote@roocode.com": "Roo Code",
    # GitHub puts an account's number before these.
    "copilot@users.noreply.github.com": "Copilot",
    "copilot-swe-agent[bot]@users.noreply.github.com": "Copilot",
    "cursor[bot]@users.noreply.github.com": "Cursor",
    "devin-ai-integration[bot]@users.noreply.github.com": "Devin",
    "factory-droid[bot]@users.noreply.github.com": "droid",
    "gemini-cli[bot]@users.noreply.github.com": "Gemini CLI",
    "google-labs-jules[bot]@users.noreply.github.com": "Jules",
}
_PERSON: Final = re.compile(r"\s*(?P<name>[^<>]{0,200}?)\s*<(?:\d{1,20}\+)?(?P<mail>[^<>\s]{1,200})>\s*")
_IN_BRACKETS: Final = re.compile(r"(?P<name>[^()]{1,80}?)\s*\((?P<model>[^()]{1,80})\)")
_ASSISTANT: Final = re.compile(r"(?P<agent>[^\s:<>]{1,60}):(?P<model>[^\s<>]{1,80})(?:\s.*)?", re.DOTALL)
_CHECKPOINT: Final = re.compile(r"[0-9a-z]{12,26}", re.IGNORECASE | re.ASCII)


def read_trailers(trailers: Iterable[tuple[str, str]]) -> tuple[Hearsay, ...]:
    """Return the claims in trailers, each agent once by each kind of trailer."""
    given = [(key.lower(), value) for key, value in trailers]
    session = next((shown(value) for key, value in given if key == _SESSION), None)
    found = [one for key, value in given for one in _read(key, value)]
    claude = [replace(one, session=session) if one.by.startswith("Claude") else one for one in found]
    return tuple(dict.fromkeys(claude))


def _read(key: str, value: str) -> Iterator[Hearsay]:
    match key:
        case "co-authored-by" if (person := _PERSON.fullmatch(value)) and person["mail"].lower() in _AGENTS:
            mail = person["mail"].lower()
            name = person["name"] or _AGENTS[mail]
            inside = _IN_BRACKETS.fullmatch(name) if mail == _AIDER else None
            by, model = (name, None) if inside is None else (inside["name"], inside["model"])
            yield _said(HearsaySource.CO_AUTHORED, by, model)
        case "assisted-by" if assistant := _ASSISTANT.fullmatch(value.strip()):
            yield _said(HearsaySource.ASSISTED, assistant["agent"], assistant["model"])
        case "entire-checkpoint" if _CHECKPOINT.fullmatch(value.strip()):
            said = _said(HearsaySource.ENTIRE, "an agent", None)
            yield replace(said, session=shown(value.strip()))
        case _:
            return


def _said(source: HearsaySource, by: str, model: str | None) -> Hearsay:
    return Hearsay(source=source, reach=HearsayReach.COMMIT, by=shown(by) or "an agent", model=shown(model))
