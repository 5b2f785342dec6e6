"""All tools of the MCP server. Each but a few is one endpoint of the HTTP interface under another name."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from batonpass.agents.attempt_input import prepare_input
from batonpass.briefing.references import Excerpt, show_excerpt
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import HANDOFF, RECEIPT, RunId
from batonpass.model.base.ids import RUN as RUNS
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Constraint, Exclusion
from batonpass.model.grants.grant_request import GrantRequest, grant_unless_nothing
from batonpass.server.acts.own_run import begun
from batonpass.server.acts.run_acts import StartMessage, said_items
from batonpass.server.endpoint import DECIDERS, PEOPLE, ApiRequest
from batonpass.server.mcp.directory_answers import DirectoryAnswer
from batonpass.server.mcp.run_handle import handle_of
from batonpass.server.mcp.tool import RUN, EndpointTool, McpCall, McpTool, answered, endpoint_named, required
from batonpass.server.mcp.tool_answer import ToolAnswer
from batonpass.server.resources.page import CursorQuery
from batonpass.server.resources.search import SearchQuery

_OFFERED: Final = (
    "to", "task", "may", "rationale", "criteria", "inputs", "expects", "stop_when", "verify_by", "deadline", "carrier",
    "constraints", "exclusions", "completed", "open_questions", "rejected_paths", "decisions", "assumptions", "claims",
    "hold", "key",
)  # fmt: skip
_MOST_FOUND: Final = 50
_KEEP: Final = "Keep `run`: you give it to every tool that acts for this run."
_SHOWN: Final = {RUNS: "showRun", HANDOFF: "showHandoff", RECEIPT: "showReceipt"}


def _endpoint(
    name: str,
    endpoint: str,
    title: str,
    about: str,
    *,
    shows: tuple[str, ...] | None = None,
    quotes: bool = False,
    is_idempotent: bool = False,
    repeats: bool = True,
) -> McpTool:
    behind = EndpointTool(endpoint, shows)

    def act(call: McpCall) -> ToolAnswer:
        told = behind.act(call)
        # The caller said the task, or has its briefing: an answer without anybody's words needs no quotation.
        told.pop("task", None)
        return ToolAnswer(data=told, quotes=quotes or told.get("replayed") is True)

    return McpTool(
        name=name,
        title=title,
        about=about,
        roles=behind.endpoint.roles,
        schema=behind.schema(),
        act=act,
        reads=behind.endpoint.is_read,
        is_idempotent=is_idempotent or behind.endpoint.is_read,
        repeats=repeats,
    )


_START: Final = EndpointTool("startRun")
_ACCEPT: Final = EndpointTool("acceptHandoff")
_SEARCH: Final = EndpointTool("search", ("pattern", "kind", "ignore_case"))
_READ: Final = EndpointTool("readText")


def start(call: McpCall) -> ToolAnswer:
    """Start a root run: with a token as over HTTP, else for the user of this machine, as on the command line."""
    arguments = {name: value for name, value in call.arguments.items() if name != "key"}
    asked = _START.request(replace(call, arguments=arguments))
    key = required(call.arguments, "key") if "key" in call.arguments else None
    asked = replace(asked, key=key)
    told = _start_here(asked) if call.caller.is_local else answered(_START.endpoint, asked)
    return ToolAnswer(data=_with_handle(told), said=_KEEP, quotes=False)


def _start_here(asked: ApiRequest) -> Mapping[str, Any]:
    said: StartMessage = asked.body
    grant = grant_unless_nothing(said.may, said.may_delegate, said.limits)
    live = asked.plane.relay.start(
        said.intent,
        by=asked.caller.principal,
        agent=said.agent,
        items=(*said_items(said.constraints, Constraint), *said_items(said.exclusions, Exclusion)),
        grant=None
        if grant is None
        else GrantRequest(may=grant.may, may_delegate=grant.may_delegate, limits=grant.limits, until=said.until),
        key=None if asked.key is None else f"mcp/{asked.key}",
    )
    return begun(asked, live)


def _with_handle(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run that was begun, without the words that its caller said just now."""
    run = told["run"]
    return {RUN: handle_of(told["proof"]), "id": run["id"], "agent": run["agent"], "grant": told["task"]["grant"]}


def accept(call: McpCall) -> ToolAnswer:
    """Take a handoff, and return its briefing: instructions in one text, data from outside in another."""
    told = _with_handle(_ACCEPT.act(call))
    plane = call.caller.plane
    with plane.runs.turn_of(RunId(told["id"])) as opened:
        prepared = prepare_input(opened.live, plane.relay.store, can_ask=False)
    briefing = prepared.briefing
    data = {
        **told,
        "instructions": briefing.instructions,
        "data": briefing.data,
        "deferred": briefing.deferred,
        "messages": prepared.messages,
    }
    texts = [f"run: {told[RUN]}", briefing.instructions, *([briefing.data] if briefing.data else [])]
    return ToolAnswer(data=data, said=_KEEP, texts=tuple(texts))


def read_artifact(call: McpCall) -> ToolAnswer:
    """Return a text that a briefing gives by reference."""
    found = _READ.act(call)
    text, start = found["text"], found["start"]
    excerpt = Excerpt(text=text, start=start, total=start + len(text) + found["rest"])
    return ToolAnswer(data=found, texts=(show_excerpt(found["ref"], excerpt),))


def show(call: McpCall) -> ToolAnswer:
    """Return a run, a handoff or a receipt, whichever the id is of."""
    given = required(call.arguments, "id")
    kind = given.partition("_")[0]
    if kind not in _SHOWN:
        raise InvalidValueError("id", "is the whole id of a run, a handoff or a receipt")
    endpoint = endpoint_named(_SHOWN[kind])
    return ToolAnswer(data=answered(endpoint, call.caller.request(endpoint, handle=call.handle, names={kind: given})))


def search(call: McpCall) -> ToolAnswer:
    """Search the whole ledger, a part at a time, so that it can be watched and stopped."""
    asked = _SEARCH.request(call)
    query: SearchQuery = asked.query
    found: list[object] = []
    after = 0
    with asked.plane.relay.store.view() as view:
        end = view.last_position()
    while True:
        one = SearchQuery(pattern=query.pattern, kind=query.kind, ignore_case=query.ignore_case, after=after)
        part = answered(_SEARCH.endpoint, replace(asked, query=one))
        found += part["items"]
        if part["next"] is None or len(found) >= _MOST_FOUND:
            break
        after = int(part["next"])
        call.step(after, max(end, after))
    shown = found[:_MOST_FOUND]
    more = part["next"] is not None or len(found) > len(shown)
    return ToolAnswer(data={"matches": shown, "is_all": not more})


def waiting(call: McpCall) -> ToolAnswer:
    """Return the approvals and questions that wait for a person."""
    return ToolAnswer(data={"approvals": _listed(call, "listApprovals"), "questions": _listed(call, "listQuestions")})


def _listed(call: McpCall, name: str) -> list[dict[str, Any]]:
    endpoint = endpoint_named(name)
    found: list[dict[str, Any]] = answered(endpoint, call.caller.request(endpoint, query=CursorQuery()))["items"]
    return found


def decide(call: McpCall) -> ToolAnswer:
    """Return the hold or question under an id. The person at the client is asked, and nobody else."""
    given = required(call.arguments, "id")
    asked = next((one for one in _listed(call, "listQuestions") if one["handoff"] == given), None)
    if asked is not None:
        words = asked["question"]
        return ToolAnswer(data={"handoff": given, "state": State.ASKED, "question": words and words["text"]})
    endpoint = endpoint_named("showSheet")
    sheet = answered(endpoint, call.caller.decision(endpoint, names={"held": given}))
    return ToolAnswer(data={"held": given, "sheet": sheet})


def _of_directory(call: McpCall, told: DirectoryAnswer) -> ToolAnswer:
    call.step(1, 1)
    return ToolAnswer(data=told.facts, lines=told.lines)


def blame(call: McpCall) -> ToolAnswer:
    """Return who wrote a file, lines of it, or a diff."""
    if call.answers is None:
        raise NotFoundError("directory with files", "here")
    return _of_directory(call, call.answers.blame(required(call.arguments, "where")))


def review(call: McpCall) -> ToolAnswer:
    """Return the findings for a person to look at after a run, or in a pull request."""
    if call.answers is None:
        raise NotFoundError("directory with files", "here")
    if "diff" in call.arguments:
        return _of_directory(call, call.answers.review_diff(required(call.arguments, "diff")))
    of = required(call.arguments, "of") if "of" in call.arguments else None
    return _of_directory(call, call.answers.review(of))


def _schema(needed: tuple[str, ...], /, **properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": about} for name, about in properties.items()},
        "required": list(needed),
        "additionalProperties": False,
    }


def _start_schema() -> dict[str, Any]:
    schema = _START.schema()
    key = {"type": "string", "description": "The same key and words are the same run, however often you ask."}
    return {**schema, "properties": {**schema["properties"], "key": key}}


TOOLS: Final[tuple[McpTool, ...]] = (
    McpTool(
        name="start",
        title="Start a run",
        about=(
            "Begin work for a person, in their own words. Do this first: everything else is done in the name of a run. "
            "With `may` the run is held to it; without, it is only recorded."
        ),
        roles=_START.endpoint.roles,
        schema=_start_schema(),
        act=start,
    ),
    _endpoint(
        "hand_off",
        "handOff",
        "Hand off a task",
        (
            "Delegate one task to another agent, with everything it has to know: why, what it may do, what is decided, "
            "rejected or open. It is durable when this returns; `accept` then begins the work."
        ),
        shows=_OFFERED,
        is_idempotent=True,
    ),
    McpTool(
        name="accept",
        title="Take a handoff",
        about=(
            "Begin the work on a handoff that your run made, as the agent that it is for. Returns the briefing and the "
            "`run` of that agent. Give both to whoever does the work."
        ),
        roles=_ACCEPT.endpoint.roles,
        schema=_ACCEPT.schema(),
        act=accept,
    ),
    _endpoint(
        "ask",
        "ask",
        "Ask the sender",
        "Before you take a handoff: ask its sender one closed question. The answer travels with the task.",
        repeats=False,
    ),
    _endpoint("answer", "answer", "Answer a question", "Answer what the receiver of a handoff asked."),
    _endpoint("decline", "declineHandoff", "Decline a handoff", "Do not take a handoff, and say why."),
    _endpoint(
        "result",
        "takeResult",
        "Take a result",
        "See how a handoff stands and take its result. What it reports is the word of its agent until you verify it.",
        quotes=True,
        is_idempotent=True,
    ),
    _endpoint(
        "judge",
        "judgeResult",
        "Verify or refute a result",
        "Say whether the result of a handoff holds, and by what you know it. Completed is not verified.",
    ),
    _endpoint("retry", "retryHandoff", "Retry a handoff", "Let a handoff that failed or was refuted be tried again."),
    _endpoint("cancel", "cancelHandoff", "Cancel a handoff", "Withdraw a handoff, and every handoff below it."),
    _endpoint(
        "record",
        "recordItem",
        "Write something down",
        (
            "Write down a Decision, Constraint, Exclusion, RejectedPath, OpenQuestion, Assumption, Claim or WorkItem. "
            "It travels with every handoff of the run."
        ),
    ),
    _endpoint(
        "begin_call",
        "beginCall",
        "Ask before a call",
        (
            "Before you call a tool of your own that changes or reads something: have the call judged and recorded. "
            "Make it only if this succeeds, then say with `finish_call` how it ended."
        ),
    ),
    _endpoint("finish_call", "finishCall", "Say how a call ended", "Record the result or the error of a call."),
    _endpoint(
        "checkpoint",
        "saveCheckpoint",
        "Save a checkpoint",
        "Save what the next attempt at this task needs to go on from here.",
    ),
    _endpoint(
        "report",
        "report",
        "Report",
        (
            "Say what the run gives back: the result, what is open, rejected, decided, claimed. Then end it with "
            "`close`."
        ),
        is_idempotent=True,
    ),
    _endpoint("close", "closeRun", "End a run", "End the run. Its report goes back to its sender."),
    McpTool(
        name="read_artifact",
        title="Read what a briefing refers to",
        about="Read a text that the briefing of a handoff gives by reference.",
        roles=_READ.endpoint.roles,
        schema=_READ.schema(),
        act=read_artifact,
        reads=True,
        is_idempotent=True,
    ),
    McpTool(
        name="show",
        title="Show a run, a handoff or a receipt",
        about="Show everything that is recorded of a run, a handoff or a receipt.",
        roles=endpoint_named("showRun").roles,
        schema=_schema(
            ("id",), id="The whole id: run_…, handoff_… or receipt_….", run="The run in whose name you read."
        ),
        act=show,
        reads=True,
        is_idempotent=True,
    ),
    McpTool(
        name="search",
        title="Search the ledger",
        about="Search receipts and the words beside them with a regular expression.",
        roles=_SEARCH.endpoint.roles,
        schema=_SEARCH.schema(),
        act=search,
        reads=True,
        is_idempotent=True,
    ),
    McpTool(
        name="blame",
        title="Who wrote this?",
        about="Find out which agent wrote a line, on which task, for whom and with whose approval.",
        roles=PEOPLE,
        schema=_schema(("where",), where="PATH, PATH:LINE, PATH:LINE-LINE, a commit, or BASE..HEAD."),
        act=blame,
        reads=True,
        is_idempotent=True,
        needs_files=True,
    ),
    McpTool(
        name="review",
        title="What should somebody look at?",
        about=(
            "Review what agents did: a run, a handoff, a session, the latest tree, or with `diff` a pull request, hunk "
            "by hunk. Each finding names the receipts that prove it."
        ),
        roles=PEOPLE,
        schema=_schema((), of="A run, a handoff, a session, or last.", diff="A commit, or BASE..HEAD."),
        act=review,
        reads=True,
        is_idempotent=True,
        needs_files=True,
    ),
    McpTool(
        name="waiting",
        title="What waits for a person?",
        about="List what waits for an approval, and the questions that nobody has answered.",
        roles=PEOPLE,
        schema=_schema(()),
        act=waiting,
        reads=True,
        is_idempotent=True,
    ),
    McpTool(
        name="decide",
        title="Have a person decide",
        about="Ask the person at this client about something that waits. You cannot decide it yourself.",
        roles=DECIDERS,
        schema=_schema(("id",), id="The id of the handoff or the call that waits."),
        act=decide,
        repeats=False,
        only_asks=True,
    ),
)
