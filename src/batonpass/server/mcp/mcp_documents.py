"""Resources and prompts: batons, handoffs, runs and receipts, and the review of a diff."""

from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from msgspec import Struct

from batonpass.briefing.outside_result import fit
from batonpass.briefing.quotes import new_marker, quoted
from batonpass.errors import InvalidValueError, NotFoundError, RoleRefusedError, RunProofError
from batonpass.model.base.checks import shorten
from batonpass.server.endpoint import PEOPLE
from batonpass.server.mcp.directory_answers import DirectoryAnswers
from batonpass.server.mcp.mcp_caller import McpCaller
from batonpass.server.mcp.tool import answered, endpoint_named, required
from batonpass.server.mcp.tool_answer import ABOUT, as_text
from batonpass.server.resources.handoffs import HandoffQuery

SCHEME: Final = "batonpass"
_BATONS: Final = "batons"
_LISTED: Final = 50
_LONGEST: Final = 1_000
# The last part of the address, and the endpoint that answers it.
_PLACES: Final = {
    "handoffs": ("handoff", "showHandoff"),
    "runs": ("run", "showRun"),
    "receipts": ("receipt", "showReceipt"),
}
_DIFF: Final = (
    "Review this pull request with the person you work for. The marked part says for each hunk which agent wrote it, "
    "on which task and under whose authority; what is unexplained is listed apart, and findings name the receipts that "
    "prove them. Begin with findings of high severity, then what is unexplained, then what nobody verified. Look each "
    "one up with the tools `show` and `blame` before you judge it, and say what you could not find out."
)


class LedgerDocument(Struct, frozen=True, kw_only=True):
    """A text that is read, and its type."""

    text: str
    media_type: str


class TemplateRow(Struct, frozen=True, kw_only=True):
    """A kind of resource, by the pattern of its addresses."""

    pattern: str
    name: str
    about: str
    media_type: str = "application/json"


TEMPLATES: Final = (
    TemplateRow(
        pattern=f"{SCHEME}://batons/{{handoff}}{{?run}}",
        name="baton",
        about="What travels with a handoff, as its receiver reads it; what came from outside is marked in it.",
        media_type="text/plain",
    ),
    TemplateRow(
        pattern=f"{SCHEME}://handoffs/{{handoff}}{{?run}}", name="handoff", about="A handoff and its attempts."
    ),
    TemplateRow(pattern=f"{SCHEME}://runs/{{id}}{{?run}}", name="run", about="A run: its task, calls and report."),
    TemplateRow(
        pattern=f"{SCHEME}://receipts/{{receipt}}{{?run}}", name="receipt", about="One signed record, and its words."
    ),
)


def read_document(caller: McpCaller, uri: str) -> LedgerDocument:
    """Return the document behind an address. Raises `NotFoundError`, `OutOfReachError` and `RunProofError`."""
    place, name, handle = _parsed(uri)
    if place == _BATONS:
        return LedgerDocument(text="\n\n".join(_briefing(caller, name, handle)), media_type="text/plain")
    if place not in _PLACES:
        raise NotFoundError("resource", shorten(uri))
    part, named = _PLACES[place]
    endpoint = endpoint_named(named)
    told = answered(endpoint, caller.request(endpoint, handle=handle, names={part: name}))
    return LedgerDocument(text=as_text({"about": ABOUT, "data": told}), media_type="application/json")


def list_batons(caller: McpCaller) -> list[tuple[str, str]]:
    """Return the addresses and names of the latest batons within reach. Nobody's words are in a name."""
    return [(f"{SCHEME}://batons/{quote(one['id'])}", f"{one['to']} {one['id'][-6:]}") for one in _latest(caller)]


def complete_handoff(caller: McpCaller, begun: str) -> list[str]:
    """Return the ids of the latest handoffs within reach that begin or end like this."""
    return [one["id"] for one in _latest(caller) if one["id"].startswith(begun) or one["id"].endswith(begun)]


def _latest(caller: McpCaller) -> list[dict[str, Any]]:
    endpoint = endpoint_named("listHandoffs")
    try:
        page = answered(endpoint, caller.request(endpoint, query=HandoffQuery(limit=_LISTED)))
    except RunProofError:
        return []  # an agent that names no run has nothing to list
    found: list[dict[str, Any]] = page["items"]
    return found


def briefing_prompt(caller: McpCaller, arguments: dict[str, str]) -> list[str]:
    """Return the briefing of a handoff: the instructions, and apart from them the data from outside."""
    return _briefing(caller, required(arguments, "handoff"), arguments.get("run") or None)


def review_prompt(caller: McpCaller, answers: DirectoryAnswers | None, arguments: dict[str, str]) -> list[str]:
    """Return the instructions for the review of a pull request, and the review as data."""
    role = caller.reader.role
    if role not in PEOPLE:
        raise RoleRefusedError(role, tuple(sorted(PEOPLE)))
    if answers is None:
        raise NotFoundError("directory with files", "here")
    told = "\n".join(answers.review_diff(required(arguments, "diff")).lines)
    shown, cut = fit(told)
    return [_DIFF, f"{ABOUT}\n{quoted(new_marker([told]), 'data', shown)}{cut}"]


def _briefing(caller: McpCaller, handoff: str, handle: str | None) -> list[str]:
    endpoint = endpoint_named("showBriefing")
    told = answered(endpoint, caller.request(endpoint, handle=handle, names={"handoff": handoff}))
    return [told["instructions"], *([told["data"]] if told["data"] else [])]


def _parsed(uri: str) -> tuple[str, str, str | None]:
    if len(uri) > _LONGEST:
        raise InvalidValueError("uri", "is too long")
    try:
        parts = urlsplit(uri)
        asked = parse_qs(parts.query, strict_parsing=bool(parts.query), max_num_fields=1)
    except ValueError:
        raise NotFoundError("resource", shorten(uri)) from None
    name = parts.path.removeprefix("/")
    if parts.scheme != SCHEME or not name or "/" in name or set(asked) - {"run"}:
        raise NotFoundError("resource", shorten(uri))
    return parts.netloc, name, asked["run"][0] if "run" in asked else None
